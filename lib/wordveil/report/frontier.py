"""The frontier between privacy and utility: what each subject leaves to an attacker, against what it leaves of use.

A subject is Pareto-optimal if no other one has at least its utility and at most its attack accuracy, and is better in
one of the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordveil.report.numbers import name_method
from wordveil.scores.score import Group, Score

ACCURACY = "accuracy"
ADAPTIVE = "adaptive"
ORIGINAL = "original"
"""The subject that is not sanitised: an attacker has nothing to adapt to."""


@dataclass(frozen=True)
class Span:
    """A figure and its interval; the ends are the figure where it has none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """One subject.

    Attributes
    ----------
    subject
        its name.
    utility, attack
        the figures.
    attacker
        the strongest attack on it.
    is_bound
        whether that attack is adaptive, or the subject is the original: a static one bounds nothing.
    is_optimal
        whether no other subject is better.
    """

    subject: str
    utility: Span
    attack: Span
    attacker: str
    is_bound: bool
    is_optimal: bool


@dataclass(frozen=True)
class Frontier:
    """One picture.

    Attributes
    ----------
    task, figure
        of the attacks.
    utilities
        the tasks whose mean is the utility, the same for all points.
    chance
        of the attack; None where it has none.
    points
        in the order of the report.
    """

    task: str
    figure: str
    utilities: tuple[str, ...]
    chance: float | None
    points: tuple[Point, ...]

    @property
    def optimal(self) -> tuple[Point, ...]:
        """The Pareto-optimal points, by utility."""
        return tuple(sorted((one for one in self.points if one.is_optimal), key=lambda one: one.utility.value))


def find_frontiers(scores: Sequence[Score]) -> tuple[Frontier, ...]:
    """A picture for each task of attacks that has at least two subjects with an attack and with utility.

    The attack on a subject is the strongest adaptive one, or the strongest of all where none is adaptive. The utility
    is the mean of the figures that all these subjects have. Only figures from 0 to 1 take part, accuracies before
    others: of attacks, those that have a chance level; of utilities without accuracies, those of the figure that most
    tasks have. Subjects whose chance levels differ in their first digit, such as among 10 authors and among 50, have a
    picture each.
    """
    attacks = [one for one in scores if one.group == Group.ATTACK and one.chance is not None and _is_share(one)]
    utilities = _utilities(scores)
    found = []
    for task in dict.fromkeys(one.task for one in attacks):
        figures = [one.figure for one in attacks if one.task == task]
        figure = ACCURACY if ACCURACY in figures else figures[0]
        part = [one for one in attacks if (one.task, one.figure) == (task, figure)]
        levels = dict.fromkeys(_level(one) for one in part)
        for level in levels:
            name = task if len(levels) == 1 else f"{task}, chance {float(level):.3g}"
            found.append(_find(name, figure, [one for one in part if _level(one) == level], utilities))
    return tuple(one for one in found if one)


def _level(score: Score) -> str:
    return f"{score.chance:.1g}"


def is_original(subject: str) -> bool:
    """Whether a subject is not sanitised, also where the name of its evaluation stands before its own."""
    return subject.rpartition(": ")[2] == ORIGINAL


def _is_share(score: Score) -> bool:
    return score.value is not None and 0 <= score.value <= 1


def _utilities(scores: Sequence[Score]) -> list[Score]:
    chosen = [one for one in scores if one.group == Group.UTILITY and one.higher_is_better and _is_share(one)]
    names = [one.figure for one in chosen]
    figure = ACCURACY if ACCURACY in names else max(names, key=names.count, default="")
    return [one for one in chosen if one.figure == figure]


def _find(task: str, figure: str, attacks: Sequence[Score], utilities: Sequence[Score]) -> Frontier | None:
    useful = {score.subject for score in utilities}
    subjects = [name for name in dict.fromkeys(score.subject for score in attacks) if name in useful]
    of = {subject: {one.key: one for one in utilities if one.subject == subject} for subject in subjects}
    shared = [key for key in dict.fromkeys(one.key for one in utilities) if all(key in of[name] for name in subjects)]
    if len(subjects) < 2 or not shared:
        return None
    rows: list[tuple[str, Span, Score]] = []
    for subject in subjects:
        attack = _strongest([score for score in attacks if score.subject == subject])
        rows.append((subject, _mean([of[subject][key] for key in shared]), attack))
    places = [(utility.value, _span(attack).value) for _, utility, attack in rows]
    points = tuple(
        Point(
            subject,
            utility,
            _span(attack),
            name_method(attack),
            is_bound=attack.variant == ADAPTIVE or is_original(subject),
            is_optimal=not any(_is_better(other, place) for other in places),
        )
        for (subject, utility, attack), place in zip(rows, places, strict=True)
    )
    chances = [one.chance for one in attacks if one.chance is not None]
    names = tuple(dict.fromkeys(f"{of[subjects[0]][key].task} ({of[subjects[0]][key].method})" for key in shared))
    return Frontier(task, figure, names, max(chances, default=None), points)


def _is_better(other: tuple[float, float], place: tuple[float, float]) -> bool:
    return other != place and other[0] >= place[0] and other[1] <= place[1]


def _strongest(attacks: Sequence[Score]) -> Score:
    chosen = [one for one in attacks if one.variant == ADAPTIVE] or attacks
    return max(chosen, key=lambda one: one.value or 0.0)


def _span(score: Score) -> Span:
    value = score.value or 0.0
    return Span(value, value if score.low is None else score.low, value if score.high is None else score.high)


def _mean(scores: Sequence[Score]) -> Span:
    """The mean of independent figures; the halves of their intervals add as roots of sums of squares."""
    spans = [_span(score) for score in scores]
    value = math.fsum(span.value for span in spans) / len(spans)
    below = math.hypot(*(span.value - span.low for span in spans)) / len(spans)
    above = math.hypot(*(span.high - span.value for span in spans)) / len(spans)
    return Span(value, value - below, value + above)
