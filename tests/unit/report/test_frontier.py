"""The frontier: which points it has, which are Pareto-optimal, and labels that cover nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from support.evaluations import make_attack, make_score
from wordveil.report.frontier import Frontier, find_frontiers
from wordveil.report.picture import Box, draw_frontier, estimate_width, place_labels
from wordveil.scores.score import Group, Score


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


def test_frontier_with_many_figures_takes_accuracy_as_utility():
    scores = pair("a", 0.5, 0.1) + pair("b", 0.7, 0.3)
    scores += [make_score(name, 0.2, task=task, figure="gain") for name in "ab" for task in ("x", "y", "z")]
    found = only(scores)
    assert found.utilities == ("topic (fasttext)",)
    assert [one.utility.value for one in found.points] == [0.5, 0.7]
    others = only([one for one in scores if one.group != Group.UTILITY or one.figure == "gain"])
    assert [one.utility.value for one in others.points] == pytest.approx([0.2, 0.2])


def test_subjects_of_other_chance_levels_have_their_own_picture():
    four = [*pair("a", 0.5, 0.1), *pair("b", 0.7, 0.3), *pair("c", 0.6, 0.5), *pair("d", 0.8, 0.6)]

    def change(chance: float) -> list[Score]:
        return [replace(one, chance=chance) if one.chance and one.subject in "cd" else one for one in four]

    many, few = find_frontiers(change(0.5))
    assert [one.subject for one in many.points] == ["a", "b"]
    assert [one.subject for one in few.points] == ["c", "d"]
    assert (many.chance, few.chance) == (0.1, 0.5)
    assert many.task.endswith(", chance 0.1")
    assert few.task.endswith(", chance 0.5")
    assert len(only(change(0.102)).points) == 4


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


def test_only_figures_that_chance_can_be_compared_with_are_drawn():
    scores = pair("a", 0.5, 0.1) + pair("b", 0.7, 0.3)
    scores += [make_attack(name, 0.9, figure="answered", chance=None) for name in "ab"]
    scores += [make_attack(name, 0.2, figure="recall") for name in "ab"]
    scores += [make_attack(name, 0.2, task="words", figure="recovered") for name in "ab"]
    drawn = [(one.task, one.figure) for one in find_frontiers(scores)]
    assert drawn == [("authors", "accuracy"), ("words", "recovered")]


def crowd(count: int, seed: int) -> list[Score]:
    draws = np.random.default_rng(seed).uniform(0.3, 0.7, (count, 2)).tolist()
    return [score for number, (x, y) in enumerate(draws) for score in pair(f"mechanism {number}", x, y)]


@pytest.mark.parametrize("count", [2, 9, 40])
def test_everything_lies_inside_the_picture(count):
    for picture in draw_frontier(only(crowd(count, count))):
        for dot in picture.dots:
            assert picture.plot.left <= dot.left <= dot.x <= dot.right <= picture.plot.right
            assert picture.plot.top <= dot.top <= dot.y <= dot.bottom <= picture.plot.bottom
        assert picture.plot.left < picture.across[0].position < picture.across[-1].position < picture.plot.right
        assert picture.chance is not None and picture.plot.top < picture.chance < picture.plot.bottom


def test_names_that_do_not_fit_become_numbers():
    wide, narrow = draw_frontier(only(crowd(4, 1)))
    assert [dot.label for dot in wide.dots] == [f"mechanism {number}" for number in range(4)]
    assert not wide.is_numbered
    wide, narrow = draw_frontier(only(crowd(40, 1)))
    assert wide.is_numbered and narrow.is_numbered
    assert {dot.label for dot in wide.dots} <= {"", *map(str, range(1, 41))}
    assert all(dot.label for dot in wide.dots if dot.point.is_optimal)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("count", [3, 40])
def test_labels_cover_neither_each_other_nor_points(count, seed):
    frame = Box(0, 0, 600, 400)
    points = [tuple(one) for one in np.random.default_rng(seed).uniform([50, 50], [550, 350], (count, 2)).tolist()]
    labels = [f"name {number}" for number in range(count)]
    blocked = Box(550, 380, 600, 400)
    boxes = place_labels(points, labels, frame, [], [blocked])
    placed = [box for box in boxes if box]
    assert len(placed) >= 0.7 * count
    assert not [1 for one, other in combinations(placed, 2) if one.meets(other)]
    discs = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    assert not [1 for box in placed for other in [*discs, blocked] if box.meets(other)]
    assert all(frame.holds(box) for box in placed)
    assert all(box.right - box.left == pytest.approx(estimate_width("name 0")) for box in placed[:9])
    (moved,) = place_labels([(100, 50)], ["name"], frame, [bar := Box(60, 49, 140, 51)])
    assert moved is not None and not moved.meets(bar)
    assert place_labels([(5, 5)], ["a long name that is wider"], Box(0, 0, 60, 40), []) == (None,)
