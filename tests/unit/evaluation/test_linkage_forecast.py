"""The forecast of linkage agrees with arithmetic on simple laws, of words and of whole texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wordveil.arrays import Float64, Int32
from wordveil.evaluation import linkage
from wordveil.evaluation.linkage import CANDIDATES, LinkageTrials
from wordveil.evaluation.text_meaning import judge_subjects, measure_text_meaning
from wordveil.mechanisms.laws import WordLaws

SIZE = 1_000
EVEN = np.ones(SIZE)


def laws_that_keep(share: float) -> WordLaws:
    ids = np.arange(SIZE, dtype=np.int32)
    offsets = np.arange(SIZE + 1, dtype=np.int64)
    return WordLaws(np.full(SIZE, 1 / SIZE), np.full(SIZE, 1 - share), offsets, ids, np.full(SIZE, share))


def find_linked(share: float, frequencies: Float64 = EVEN, words: int = 5) -> float:
    return LinkageTrials(laws_that_keep(share), frequencies).find_linked(words)


def test_words_that_never_stay_link_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(linkage, "CANDIDATES", 1_000)  # all lengths up to 512 are tried
    found = LinkageTrials(laws_that_keep(1e-9), EVEN).forecast()
    assert max(found.linked.values()) < 0.01
    assert found.half is None


def test_words_that_always_stay_link_all_texts_that_are_unique():
    found = LinkageTrials(laws_that_keep(1 - 1e-9), EVEN).forecast()
    assert found.linked == pytest.approx({5: 1.0, 20: 1.0}, abs=1e-3)
    assert found.half == 2, "10,000 texts of one word of 1,000 are no different texts; of two words they are"


def test_shares_are_those_of_arithmetic():
    """The right text wins where it keeps more words than all others, and shares a tie."""
    keep, words = 0.3, 5
    stays = keep + (1 - keep) / SIZE
    right = np.array([stays**m * (1 - stays) ** (words - m) * c for m, c in enumerate((1, 5, 10, 10, 5, 1))])
    other = np.array([(1 / SIZE) ** m * (1 - 1 / SIZE) ** (words - m) * c for m, c in enumerate((1, 5, 10, 10, 5, 1))])
    below = np.concatenate([[0], np.cumsum(other)[:-1]])
    # The expectation of 1 / (1 + ties) over the others, where none is better.
    number = CANDIDATES - 1
    up_to = below + other
    wanted = sum(
        p * ((up_to[m] ** (number + 1) - below[m] ** (number + 1)) / ((number + 1) * other[m]))
        for m, p in enumerate(right)
    )
    assert find_linked(keep) == pytest.approx(wanted, abs=0.06)
    assert abs(find_linked(0.4) - wanted) > 0.06


def test_forecast_estimated_laws_draws_by_the_mechanism():
    rng = np.random.default_rng(1)

    def draw(words: Int32) -> Int32:
        return np.where(rng.random(len(words)) < 0.3, words, rng.integers(0, SIZE, len(words))).astype(np.int32)

    found = LinkageTrials(laws_that_keep(0.8), EVEN, draw).find_linked(5)
    assert found == pytest.approx(find_linked(0.3), abs=0.06)
    assert find_linked(0.8) > found + 0.1


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
