"""Tables of a report: the figures of one group, by subject and by measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

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


def make_sections(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Make the tables of all groups that have figures, for a terminal and for the template.

    Few subjects are columns, many are rows. If many subjects have many measures, each task has a separate table, with a
    ``heading``.
    """
    sections = []
    for group, title in TITLES.items():
        chosen = [score for score in scores if score.group == group]
        if not chosen:
            continue
        by_subject = len({score.subject for score in chosen}) > _MOST_COLUMNS
        parts = {"": chosen}
        if by_subject and len({score.key for score in chosen}) > _WIDEST:
            tasks = _unique(score.task for score in chosen)
            parts = {task: [score for score in chosen if score.task == task] for task in tasks}
        sections.append(
            {
                "group": group,
                "title": title,
                "tables": [_make_table(heading, part, by_subject=by_subject) for heading, part in parts.items()],
                "has_intervals": any(show_interval(score.low, score.high) for score in chosen),
                "has_above_chance": any(map(_is_found, chosen)),
            }
        )
    return sections


def _make_table(heading: str, scores: Sequence[Score], *, by_subject: bool) -> dict[str, Any]:
    """Make a table: ``figures`` by measure and subject, None if not measured, with the numbers of ``notes`` from 1.

    ``direction``: what is better for all measures; empty if they differ. ``by_subject``: subjects are rows instead of
    columns.
    """
    keys, subjects = _order(scores), _unique(score.subject for score in scores)
    notes = _unique(score.note for score in scores if score.note)
    by_key: dict[tuple[tuple[str, ...], str], Score] = {(score.key, score.subject): score for score in scores}
    measures = [_describe([score for score in scores if score.key == key]) for key in keys]
    directions = _unique(measure["direction"] for measure in measures)
    return {
        "heading": heading,
        "measures": measures,
        "subjects": subjects,
        "figures": [
            [_show(score, notes) if (score := by_key.get((key, subject))) else None for subject in subjects]
            for key in keys
        ],
        "notes": notes,
        "by_subject": by_subject,
        "direction": directions[0] if len(directions) == 1 else "",
    }


def _order(scores: Sequence[Score]) -> tuple[tuple[str, ...], ...]:
    """Order the measures as the report does, but keep those of one task and method together."""
    methods = _unique((score.task, score.method) for score in scores)
    order = {method: number for number, method in enumerate(methods)}
    tasks = {task: number for number, task in enumerate(_unique(task for task, _ in methods))}
    return _unique(
        score.key for score in sorted(scores, key=lambda score: (tasks[score.task], order[score.task, score.method]))
    )


def _describe(scores: Sequence[Score]) -> dict[str, str]:
    """Describe a measure by its scores. ``definition`` joins those that differ; chance and count are of all, if any."""
    first = scores[0]
    return {
        "task": first.task,
        "method": name_method(first),
        "direction": _DIRECTIONS[first.higher_is_better],
        "definition": " ".join(_unique(score.definition for score in scores)),
        "chance": show_span(score.chance for score in scores),
        "count": show_span(score.count for score in scores if score.count),
    }


def _show(score: Score, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "value": show_number(score.value),
        "interval": show_interval(score.low, score.high),
        "above_chance": _is_found(score),
        "note": notes.index(score.note) + 1 if score.note else None,
    }


def _is_found(score: Score) -> bool:
    """Return whether an attack succeeds: for a task, a figure above chance is what a user of the texts expects."""
    return score.group in (Group.ATTACK, Group.PRIVACY) and bool(score.is_above_chance)


def _unique(values: Iterable[_Value]) -> tuple[_Value, ...]:
    return tuple(dict.fromkeys(values))
