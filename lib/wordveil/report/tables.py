"""Tables of a report: the figures of one group, by subject and by measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wordveil.report.values import name_method, show_interval, show_number, show_span
from wordveil.scores.score import Group, Score

TITLES = {
    Group.PRIVACY: "Privacy",
    Group.ATTACK: "Attacks",
    Group.UTILITY: "Utility",
    Group.TEXT: "Text",
    Group.COST: "Cost",
}
_DIRECTIONS = {True: "higher is better", False: "lower is better", None: ""}
_MOST_COLUMNS = 4
_WIDEST = 6
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Measure:
    """Measure of a score, without the subject.

    ``method`` includes the variant and the figure. ``direction``: the better direction; empty if neither is.
    ``definition``: joins those of subjects that differ. ``chance``, ``count``: for all subjects, as text, if any.
    """

    task: str
    method: str
    direction: str
    definition: str
    chance: str
    count: str


@dataclass(frozen=True)
class Figure:
    """Figure as it is shown, with numbers of notes below the table.

    ``above_chance``: the whole interval of an attack is above its chance level.
    """

    value: str
    interval: str = ""
    above_chance: bool = False
    notes: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScoreTable:
    """Table of scores.

    ``heading``: the task, if a group has a table for each; otherwise empty. ``figures``: by measure and subject; None
    if not measured. ``notes``: texts for the numbers of :attr:`Figure.notes`, from 1. ``by_subject``: subjects are rows
    instead of columns.
    """

    heading: str
    measures: tuple[Measure, ...]
    subjects: tuple[str, ...]
    figures: tuple[tuple[Figure | None, ...], ...]
    notes: tuple[str, ...]
    by_subject: bool

    @property
    def direction(self) -> str:
        """Direction that is better for all measures; empty if they differ."""
        directions = {measure.direction for measure in self.measures}
        return directions.pop() if len(directions) == 1 else ""


@dataclass(frozen=True)
class ScoreSection:
    """Tables of one group."""

    group: Group
    tables: tuple[ScoreTable, ...]
    has_intervals: bool
    has_above_chance: bool

    @property
    def title(self) -> str:
        return TITLES[self.group]


def make_sections(scores: Sequence[Score]) -> tuple[ScoreSection, ...]:
    """Make the tables of all groups that have figures.

    Few subjects are columns, many are rows. If many subjects have many measures, each task has a separate table.
    """
    return tuple(
        _make_section(group, chosen)
        for group in Group
        if (chosen := [score for score in scores if score.group == group])
    )


def _make_section(group: Group, scores: Sequence[Score]) -> ScoreSection:
    by_subject = len({score.subject for score in scores}) > _MOST_COLUMNS
    parts: dict[str, list[Score]] = {"": list(scores)}
    if by_subject and len({score.key for score in scores}) > _WIDEST:
        parts = {
            task: [score for score in scores if score.task == task] for task in _unique(score.task for score in scores)
        }
    tables = tuple(_make_table(heading, part, by_subject=by_subject) for heading, part in parts.items())
    has_intervals = any(show_interval(score.low, score.high) for score in scores)
    return ScoreSection(group, tables, has_intervals, any(_is_found(score) for score in scores))


def _make_table(heading: str, scores: Sequence[Score], *, by_subject: bool) -> ScoreTable:
    keys, subjects = _order(scores), _unique(score.subject for score in scores)
    notes = _unique(score.note for score in scores if score.note)
    number = {note: number for number, note in enumerate(notes, 1)}
    by_key: dict[tuple[tuple[str, ...], str], Score] = {(score.key, score.subject): score for score in scores}
    figures = tuple(
        tuple(_show(score, number) if (score := by_key.get((key, subject))) else None for subject in subjects)
        for key in keys
    )
    measures = tuple(_measure([score for score in scores if score.key == key]) for key in keys)
    return ScoreTable(heading, measures, subjects, figures, notes, by_subject)


def _order(scores: Sequence[Score]) -> tuple[tuple[str, ...], ...]:
    """Order the measures as the report does, but keep those of one task and method together."""
    methods = _unique((score.task, score.method) for score in scores)
    order = {method: number for number, method in enumerate(methods)}
    tasks = {task: number for number, task in enumerate(_unique(task for task, _ in methods))}
    return _unique(
        score.key for score in sorted(scores, key=lambda score: (tasks[score.task], order[score.task, score.method]))
    )


def _measure(scores: Sequence[Score]) -> Measure:
    first = scores[0]
    return Measure(
        task=first.task,
        method=name_method(first),
        direction=_DIRECTIONS[first.higher_is_better],
        definition=" ".join(_unique(score.definition for score in scores)),
        chance=show_span(score.chance for score in scores),
        count=show_span(score.count for score in scores if score.count),
    )


def _show(score: Score, number: dict[str, int]) -> Figure:
    notes = (number[score.note],) if score.note else ()
    return Figure(show_number(score.value), show_interval(score.low, score.high), _is_found(score), notes)


def _is_found(score: Score) -> bool:
    """Return whether an attack succeeds: for a task, a figure above chance is what a user of the texts expects."""
    return score.group in (Group.ATTACK, Group.PRIVACY) and bool(score.is_above_chance)


def _unique(values: Iterable[_Value]) -> tuple[_Value, ...]:
    return tuple(dict.fromkeys(values))
