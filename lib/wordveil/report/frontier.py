"""Frontier between privacy and utility: the attack accuracy of each subject against its utility.

A subject is Pareto-optimal unless another is at least as good in both and better in one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordveil.report.values import name_method
from wordveil.scores.score import Group, Score

ACCURACY = "accuracy"
ADAPTIVE, STATIC = "adaptive", "static"
ORIGINAL = "original"
"""Name of the subject that is not sanitised: an attacker has nothing to adapt to."""


@dataclass(frozen=True)
class Span:
    """Figure and its interval. Without an interval both ends are the figure."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """Subject, with its strongest attack, which bounds something if it is adaptive or the subject is the original."""

    subject: str
    utility: Span
    attack: Span
    attacker: str
    is_bound: bool
    is_optimal: bool


@dataclass(frozen=True)
class Frontier:
    """Picture of a frontier: points in the order of the report, and the tasks whose mean is their utility."""

    task: str
    figure: str
    utilities: tuple[str, ...]
    chance: float | None
    points: tuple[Point, ...]

    @property
    def optimal(self) -> tuple[Point, ...]:
        return tuple(
            sorted((point for point in self.points if point.is_optimal), key=lambda point: point.utility.value)
        )


def find_frontiers(scores: Sequence[Score]) -> tuple[Frontier, ...]:
    """Find a picture for each task of attacks on at least two subjects that also have a utility.

    The attack on a subject is the strongest adaptive one, or the strongest of all if none is adaptive. The utility is
    the mean of the figures that all these subjects have. Only figures from 0 to 1 count, and accuracies before others:
    for attacks, figures with a chance level; for utilities without accuracies, the figure that most tasks have.
    Subjects whose chance levels differ in their first digit, such as for 10 and for 50 authors, get separate pictures.
    """
    attacks = [
        score for score in scores if score.group == Group.ATTACK and score.chance is not None and _is_share(score)
    ]
    utilities = _utilities(scores)
    frontiers = []
    for task in dict.fromkeys(attack.task for attack in attacks):
        figures = [attack.figure for attack in attacks if attack.task == task]
        figure = ACCURACY if ACCURACY in figures else figures[0]
        part = [attack for attack in attacks if (attack.task, attack.figure) == (task, figure)]
        levels = dict.fromkeys(_level(score) for score in part)
        for level in levels:
            name = task if len(levels) == 1 else f"{task}, chance {float(level):.3g}"
            frontiers.append(_find(name, figure, [score for score in part if _level(score) == level], utilities))
    return tuple(frontier for frontier in frontiers if frontier)


def _level(score: Score) -> str:
    return f"{score.chance:.1g}"


def is_original(subject: str) -> bool:
    """Return whether a subject is not sanitised, with or without the name of its evaluation."""
    return subject.rpartition(": ")[2] == ORIGINAL


def _is_share(score: Score) -> bool:
    return score.value is not None and 0 <= score.value <= 1


def _utilities(scores: Sequence[Score]) -> list[Score]:
    chosen = [score for score in scores if score.group == Group.UTILITY and score.higher_is_better and _is_share(score)]
    names = [score.figure for score in chosen]
    figure = ACCURACY if ACCURACY in names else max(names, key=names.count, default="")
    return [score for score in chosen if score.figure == figure]


def _find(task: str, figure: str, attacks: Sequence[Score], utilities: Sequence[Score]) -> Frontier | None:
    useful = {score.subject for score in utilities}
    subjects = [name for name in dict.fromkeys(score.subject for score in attacks) if name in useful]
    of = {name: {utility.key: utility for utility in utilities if utility.subject == name} for name in subjects}
    keys = dict.fromkeys(utility.key for utility in utilities)
    shared = [key for key in keys if all(key in of[name] for name in subjects)]
    if len(subjects) < 2 or not shared:
        return None
    rows: list[tuple[str, Span, Score]] = []
    for subject in subjects:
        attack = find_strongest([score for score in attacks if score.subject == subject])
        rows.append((subject, _mean([of[subject][key] for key in shared]), attack))
    positions = [(utility.value, _span(attack).value) for _, utility, attack in rows]
    points = tuple(
        Point(
            subject,
            utility,
            _span(attack),
            name_method(attack),
            is_bound=attack.variant == ADAPTIVE or is_original(subject),
            is_optimal=not any((x, y) != position and x >= position[0] and y <= position[1] for x, y in positions),
        )
        for (subject, utility, attack), position in zip(rows, positions, strict=True)
    )
    chances = [attack.chance for attack in attacks if attack.chance is not None]
    names = tuple(dict.fromkeys(f"{of[subjects[0]][key].task} ({of[subjects[0]][key].method})" for key in shared))
    return Frontier(task, figure, names, max(chances, default=None), points)


def find_strongest(scores: Sequence[Score]) -> Score:
    """Find the largest figure, among adaptive attacks if there are any."""
    adaptive = [score for score in scores if score.variant == ADAPTIVE]
    return max(adaptive or scores, key=lambda score: score.value or 0.0)


def _span(score: Score) -> Span:
    value = score.value or 0.0
    return Span(value, value if score.low is None else score.low, value if score.high is None else score.high)


def _mean(scores: Sequence[Score]) -> Span:
    """Compute the mean of independent figures. Half-widths of intervals add as roots of sums of squares."""
    spans = [_span(score) for score in scores]
    value = math.fsum(span.value for span in spans) / len(spans)
    below = math.hypot(*(span.value - span.low for span in spans)) / len(spans)
    above = math.hypot(*(span.high - span.value for span in spans)) / len(spans)
    return Span(value, value - below, value + above)
