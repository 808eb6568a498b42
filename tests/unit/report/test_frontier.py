"""The frontier: which points it has and which are Pareto-optimal."""

from __future__ import annotations

import numpy as np
import pytest

from support.evaluations import make_attack, make_score
from wordveil.report.frontier import Frontier, find_frontiers
from wordveil.scores.score import Score


def pair(subject: str, utility: float, attack: float) -> list[Score]:
    return [make_score(subject, utility), make_attack(subject, attack)]


def only(scores: list[Score]) -> Frontier:
    (found,) = find_frontiers(scores)
    return found


def test_optimal_points_are_those_that_no_other_beats():
    named = {"a": (0.5, 0.1), "b": (0.7, 0.3), "worse": (0.6, 0.3), "c": (0.9, 0.8), "twin": (0.7, 0.3)}
    found = only([score for name, values in named.items() for score in pair(name, *values)])
    assert {one.subject for one in found.optimal} == {"a", "b", "twin", "c"}
    assert [one.utility.value for one in found.optimal] == [0.5, 0.7, 0.7, 0.9]
    assert found.chance == 0.1


def test_the_attack_is_the_strongest_adaptive_one():
    scores = [
        make_score("release", 0.7),
        make_attack("release", 0.6, "static"),
        make_attack("release", 0.2, method="koppel"),
        make_attack("release", 0.3, method="svm-words"),
        make_score("weak", 0.6),
        make_attack("weak", 0.1, "static"),
        make_score("original", 0.9),
        make_attack("original", 0.7, "static"),
    ]
    points = {one.subject: one for one in only(scores).points}
    assert points["release"].attack.value == 0.3
    assert points["release"].attacker == "svm-words, adaptive, accuracy"
    assert [points[name].is_bound for name in ("release", "weak", "original")] == [True, False, True]


def test_the_utility_is_the_mean_of_what_all_subjects_have():
    scores = pair("a", 0.5, 0.1) + pair("b", 0.7, 0.3)
    scores += [make_score("a", 0.9, task="sst2"), make_score("b", 0.5, task="sst2"), make_score("a", 0.1, task="alone")]
    scores += [make_score("a", 0.9, task="slots", figure="f1"), make_score("b", 0.9, task="slots", figure="f1")]
    found = only(scores)
    assert found.utilities == ("topic (fasttext)", "sst2 (fasttext)")
    assert [round(one.utility.value, 6) for one in found.points] == [0.7, 0.6]
    # Two independent intervals of 0.02 to each side: 0.02 * sqrt(2) / 2.
    assert found.points[0].utility.high - found.points[0].utility.value == pytest.approx(0.02 / np.sqrt(2))


@pytest.mark.parametrize(
    "scores",
    [
        [],
        [make_score("a", 0.5)],
        pair("alone", 0.5, 0.5),
        [make_score("a", 0.5), make_attack("b", 0.5)],
        [make_score("a", 0.5), make_score("b", 0.5), make_attack("a", 0.5), make_attack("b", None)],
        [make_score("a", 0.5), make_score("b", 50.0), make_attack("a", 0.5), make_attack("b", 0.5)],
    ],
)
def test_a_picture_needs_two_subjects(scores):
    assert find_frontiers(scores) == ()
