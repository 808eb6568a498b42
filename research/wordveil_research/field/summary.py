"""Means over seeds with their intervals, and the relative gain of each row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from wordveil.evaluation.accuracy import ADAPTIVE
from wordveil.scores.score import Group, Score
from wordveil_research.field.rows import ORIGINAL, SMALL_PARTS
from wordveil_research.papers.repeats import find_t_half

GAIN = "relative-gain"
_GAIN = (
    "U_r/U_o - P_r/P_o (Mattern, Weggenmann, Kerschbaum 2022): the mean over four tasks of accuracy divided by that of "
    "the original, minus the adaptive attacker's accuracy divided by that on the original. Above 0 more is left of the "
    "tasks than of the attack; the original has 0."
)
SEEDS = "mean of {} draws"
SMALL_NOTE = "on small parts of the corpora"
"""The note of a score that was measured there."""
Key = tuple[str, tuple[str, ...]]


def average_seeds(scores: Iterable[Score]) -> list[Score]:
    """Return one score for each subject and figure: the mean, and the 95% t-interval over seeds.

    Figures that were measured once stay as they are, with the interval over texts if they have one.
    """
    groups: dict[Key, list[Score]] = {}
    for score in scores:
        groups.setdefault((score.subject, score.key), []).append(score)
    return [_average(group) for group in groups.values()]


def _average(group: Sequence[Score]) -> Score:
    first = group[0]
    values = [score.value for score in group if score.value is not None]
    if len(values) < 2:
        return first
    low, mean, high = find_t_interval(values)
    note = "; ".join(part for part in (first.note, SEEDS.format(len(values))) if part)
    return replace(first, value=mean, low=low, high=high, note=note)


def find_t_interval(values: Sequence[float]) -> tuple[float | None, float, float | None]:
    """Find the lower end of the 95% t-interval of the mean, the mean, and the upper end; no ends where one is
    infinite.
    """
    sample = np.array(values, np.float64)
    mean = float(sample.mean())
    if not np.isfinite(sample).all():
        return None, mean, None
    half = find_t_half(sample)
    return mean - half, mean, mean + half


def add_gains(scores: Sequence[Score]) -> list[Score]:
    """Add the scores, and the relative gain of each subject on each author corpus.

    The interval takes the means of tasks and attack as independent. A subject on small parts is divided by the
    original on small parts.
    """
    table = {(score.subject, score.key): score for score in scores}
    subjects = dict.fromkeys(score.subject for score in scores)
    return [*scores, *(gain for subject in subjects for gain in _find_gains(subject, table))]


def is_on_small_parts(score: Score) -> bool:
    """Return whether it was measured on small parts of the corpora."""
    return SMALL_NOTE in score.note


def name_small_parts(scores: Sequence[Score]) -> list[Score]:
    """Name the scores, where the names of subjects on small parts of the corpora say so: tables show all side by
    side.
    """
    small = {score.subject for score in scores if is_on_small_parts(score)}
    return [
        replace(score, subject=score.subject.removesuffix(SMALL_PARTS) + SMALL_PARTS)
        if score.subject in small
        else score
        for score in scores
    ]


def is_task(score: Score) -> bool:
    """Return whether it is the accuracy of a task."""
    return score.group == Group.UTILITY and score.figure == "accuracy"


def is_attack(score: Score, variant: str = ADAPTIVE) -> bool:
    """Return whether it is the accuracy of an attacker who names authors."""
    return score.group == Group.ATTACK and score.figure == "accuracy" and score.variant == variant


def _find_gains(subject: str, table: Mapping[Key, Score]) -> list[Score]:
    mine = [score for (whose, _), score in table.items() if whose == subject and score.value is not None]
    is_small = any(map(is_on_small_parts, mine))
    originals = ORIGINAL + SMALL_PARTS if is_small or subject.endswith(SMALL_PARTS) else ORIGINAL
    tasks = [score for score in mine if is_task(score) and (originals, score.key) in table]
    gains = []
    for attack in (score for score in mine if is_attack(score)):
        original = table.get((originals, attack.key))
        if original is None or not original.value or attack.value is None or not tasks:
            continue
        ratios = [(task.value or 0.0) / (table[originals, task.key].value or 1.0) for task in tasks]
        halves = [_half(task) / (table[originals, task.key].value or 1.0) / len(tasks) for task in tasks]
        value = find_relative_gain(float(np.mean(ratios)), 1.0, attack.value, original.value)
        half = math.hypot(*halves, _half(attack) / original.value)
        gains.append(
            replace(
                attack,
                group=Group.UTILITY,
                figure=GAIN,
                value=value,
                low=value - half,
                high=value + half,
                chance=None,
                definition=_GAIN,
                higher_is_better=True,
            )
        )
    return gains


def _half(score: Score) -> float:
    return 0.0 if score.low is None or score.high is None else (score.high - score.low) / 2


def find_relative_gain(utility: float, original_utility: float, attack: float, original_attack: float) -> float:
    """``U_r / U_o - P_r / P_o``: how much more of the utility than of the attack is left.

    Mattern, Weggenmann and Kerschbaum 2022, "The limits of word level differential privacy", call it the trade-off.
    Above 0 a mechanism takes more from the attacker than from the task; 0 is what the original has.

    Parameters
    ----------
    utility, original_utility
        a figure of a task on sanitised and on original text, such as its accuracy.
    attack, original_attack
        the same of an attacker.

    Raises
    ------
    ValueError
        where an original figure is not positive.
    """
    if not (original_utility > 0 and original_attack > 0):
        raise ValueError(f"Expected positive figures of the original, got {original_utility=}, {original_attack=}.")
    return utility / original_utility - attack / original_attack
