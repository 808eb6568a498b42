"""What epsilon keeps of subjects of whole texts, and links, by the law that a build certifies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wordveil.evaluation.text_meaning import CLUSTERS, judge_subjects, measure_text_meaning


def test_each_epsilon_has_the_configured_number_too():
    rows = measure_text_meaning((4.0, 6.0), 50)
    assert [(row.epsilon, row.clusters) for row in rows] == [
        (e, k) for e in (4.0, 6.0) for k in sorted({*CLUSTERS, 50})
    ]


@pytest.mark.parametrize(("epsilon", "clusters"), [(4.0, 16), (6.0, 100), (8.0, 400)])
def test_links_are_those_of_an_attacker_who_knows_all_subjects(epsilon: float, clusters: int):
    """100,000 draws of 10,000 records of equally frequent subjects; the attacker guesses inside the drawn subject."""
    (row,) = (row for row in measure_text_meaning((epsilon,), clusters) if row.clusters == clusters)
    rng = np.random.default_rng(0)
    stays = rng.random(100_000) < math.exp(epsilon) / (math.exp(epsilon) + clusters)
    assert stays.mean() == pytest.approx(row.stays, abs=0.005)
    assert (stays / (10_000 / clusters)).mean() == pytest.approx(row.linked, rel=0.01)
    assert row.linked < row.at_most == pytest.approx(1 / (1 + 9_999 * math.exp(-epsilon)))


def make_sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """300 texts of six symbols, whose label is mostly the symbol's half, and which of them tell the labels."""
    rng = np.random.default_rng(0)
    symbols = rng.integers(0, 6, 300)
    labels = np.where(rng.random(300) < 0.8, symbols % 3, rng.integers(0, 3, 300))
    return symbols, labels, rng.random(300) < 0.5


def test_accuracy_is_that_of_many_draws_of_each_text():
    symbols, labels, is_learned = make_sample()
    rng = np.random.default_rng(1)
    laws = rng.dirichlet(np.full(6, 0.5), 6)
    found = judge_subjects(symbols, labels, is_learned, laws)
    draws = [[rng.choice(6, 2_000, p=laws[symbol]) for symbol in symbols[half]] for half in (is_learned, ~is_learned)]
    counts = np.zeros((6, 3))
    for drawn, label in zip(draws[0], labels[is_learned], strict=True):
        counts[:, label] += np.bincount(drawn, minlength=6)
    named = counts.argmax(axis=1)
    hits = [(named[drawn] == label).mean() for drawn, label in zip(draws[1], labels[~is_learned], strict=True)]
    assert found.value == pytest.approx(np.mean(hits), abs=0.005)
    assert found.count == len(hits)
    assert found.low < found.value < found.high < found.value + 0.1
    assert found.chance == pytest.approx(np.bincount(labels[~is_learned]).max() / len(hits))


def test_without_a_subject_the_most_frequent_label_is_taken():
    """Draws that are alike tell nothing; draws without noise tell all that symbols tell."""
    symbols, labels, is_learned = make_sample()
    alike = judge_subjects(symbols, labels, is_learned, np.full((6, 6), 1 / 6))
    most = np.bincount(labels[is_learned]).argmax()
    assert alike.value == pytest.approx((labels[~is_learned] == most).mean())
    sure = judge_subjects(symbols, labels, is_learned, np.eye(6))
    assert sure.value == pytest.approx((labels == symbols % 3)[~is_learned].mean())
