"""Page of an evaluation: one file without external resources, for light and dark screens of any width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wordveil.arrays import Int64
from wordveil.privacy.recovery import SUBJECT
from wordveil.report.bars import Bar, draw_bars
from wordveil.report.frontier import ACCURACY, ORIGINAL, STATIC, Frontier, find_frontiers, find_strongest
from wordveil.report.picture import describe_point, draw_frontier, estimate_width, shorten
from wordveil.report.tables import make_sections
from wordveil.report.templates import render_page
from wordveil.report.values import choose_digits, name_method, show_figure, show_interval, show_number
from wordveil.scores.evaluation import Confusion, Evaluation
from wordveil.scores.score import Group, Score

_MOST_SUBJECTS = 4


def render_evaluation(evaluation: Evaluation) -> str:
    """Render the page of an evaluation, in HTML, with all names escaped."""
    scores = evaluation.scores
    subjects = list_subjects(scores)
    is_open = not 0 < len(subjects) <= _MOST_SUBJECTS
    subjects = [] if is_open else subjects
    sections = make_sections(scores)
    return render_page(
        "evaluation.html",
        title=evaluation.title,
        evaluation=evaluation,
        headline=write_headline(evaluation),
        attacks=[(subject, draw_scores(rank_attacks(scores, subject), scores)) for subject in subjects],
        uses=[(subject, draw_scores(list_uses(scores, subject), scores)) for subject in subjects],
        frontiers=draw_frontiers(scores),
        folded=[section for section in sections if section["group"] == Group.ATTACK and not is_open],
        sections=[section for section in sections if section["group"] != Group.ATTACK or is_open],
        is_open=is_open,
        maps=list(filter(None, map(draw_heatmap, evaluation.confusions))),
        least_texts=LEAST_TEXTS,
    )


def draw_frontiers(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Draw the frontiers: their pictures, words, and figures as a table, for the template."""
    return [_describe(frontier) for frontier in find_frontiers(scores)]


def _describe(frontier: Frontier) -> dict[str, Any]:
    rows = [
        {
            "subject": point.subject,
            "utility": show_number(point.utility.value),
            "utility_interval": show_interval(point.utility.low, point.utility.high),
            "attack": show_number(point.attack.value),
            "attack_interval": show_interval(point.attack.low, point.attack.high),
            "attacker": point.attacker,
            "is_optimal": point.is_optimal,
        }
        for point in frontier.points
    ]
    return {
        "frontier": frontier,
        "pictures": draw_frontier(frontier),
        "rows": rows,
        "has_static": not all(point.is_bound for point in frontier.points),
        "chance": show_number(frontier.chance) if frontier.chance is not None else "",
        "label": f"Attack {frontier.figure} on {frontier.task} against utility. "
        + "; ".join(describe_point(point) for point in frontier.points),
    }


def describe_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Return plain values for JSON, with the first sentences of the page."""
    return {**evaluation.to_dict(), "headline": list(write_headline(evaluation))}


def write_headline(evaluation: Evaluation) -> tuple[str, ...]:
    """Write the number of texts read, and sentences about each sanitised subject, unless these are too many.

    They have the strongest attack of each kind, the strongest of all first, and the best result of each task.
    """
    subjects, scores = list_subjects(evaluation.scores), evaluation.scores
    if len(subjects) > _MOST_SUBJECTS:
        return evaluation.scope
    chosen = (score for subject in subjects for score in (*rank_attacks(scores, subject), *list_uses(scores, subject)))
    said = (_say(score, scores) if score.figure == ACCURACY else describe_attack(score) for score in chosen)
    return (*evaluation.scope, *said)


def list_uses(scores: Sequence[Score], subject: str) -> list[Score]:
    """List the best accuracy of each task on ``subject``."""
    chosen = [
        score
        for score in scores
        if (score.subject, score.group, score.figure) == (subject, Group.UTILITY, ACCURACY) and score.value is not None
    ]
    tasks = dict.fromkeys(score.task for score in chosen)
    return [find_strongest([score for score in chosen if score.task == task]) for task in tasks]


def _find_original(score: Score, scores: Sequence[Score]) -> Score | None:
    """Find the strongest figure of an accuracy's task on the originals."""
    same = score.group, score.task, ACCURACY, ORIGINAL
    clean = [one for one in scores if (one.group, one.task, one.figure, one.subject) == same]
    return find_strongest(clean) if clean and score.figure == ACCURACY else None


def _say(best: Score, scores: Sequence[Score]) -> str:
    show = choose_digits(best)
    beside = "" if best.chance is None else f"; chance is {show(best.chance)}{describe_power(best)}"
    if found := _find_original(best, scores):
        beside += f"; on the {ORIGINAL} it is {show_number(found.value)} ({found.method})"
    if best.group == Group.UTILITY:
        verdict = "" if best.is_above_chance is not False else ", not clearly more than by chance"
        return f"{best.subject}: {best.task} by {best.method} has accuracy {show_figure(best, show)}{verdict}{beside}."
    verdict = "still finds" if best.is_above_chance else "is not clearly better than chance on"
    attack = " ".join(filter(None, ("The strongest", best.variant, "attack")))
    figure = f"accuracy {show_figure(best, show)}"
    return f"{best.subject}: {attack.lower()} ({best.method}) {verdict} {best.task}: {figure}{beside}."


LINKED, RECOVERED = "linked", "recovered"
_SHARES = (LINKED, ACCURACY, RECOVERED)
_WHAT = {
    LINKED: "anyone with the candidate originals links this share of the records to the right one",
    RECOVERED: "who knows the mechanism gets this share of the hidden words right",
}
_OF_SUBJECTS = "who knows the mechanism gets the subject of this share of the texts right"


def rank_attacks(scores: Sequence[Score], subject: str) -> list[Score]:
    """Rank the strongest attack on ``subject`` of each task by its gain over its chance level.

    Within a task an attack that is clearly above chance is stronger than one that is not, and then an adaptive one than
    a static one, whose failure proves nothing. Only shares are compared: of records linked, authors named, words
    recovered.
    """
    strongest: dict[str, Score] = {}
    for score in scores:
        is_attack = score.group in (Group.ATTACK, Group.PRIVACY) and score.figure in _SHARES
        if not is_attack or score.subject != subject or score.value is None or score.chance is None:
            continue
        if score.task not in strongest or _find_strength(score) > _find_strength(strongest[score.task]):
            strongest[score.task] = score
    return sorted(strongest.values(), key=_find_gain, reverse=True)


def list_subjects(scores: Sequence[Score]) -> list[str]:
    """List the sanitised subjects, in the order of the report."""
    return [name for name in dict.fromkeys(score.subject for score in scores) if name != ORIGINAL]


def describe_attack(score: Score) -> str:
    """Describe links or recovered words of :func:`rank_attacks` in a sentence."""
    verdict = "more than by chance" if score.is_above_chance else "not clearly more than by chance"
    show = choose_digits(score)
    what = _OF_SUBJECTS if score.task == f"{SUBJECT}s" else _WHAT[score.figure]
    return (
        f"{score.subject}: {what}: {show_figure(score, show)}, {verdict} ({name_method(score)}; chance "
        f"is {show(score.chance)}{describe_power(score)})."
    )


def describe_power(score: Score) -> str:
    """Describe the figures that would have been above chance on as many texts; empty if not known."""
    if score.detectable is None:
        return ""
    if score.chance == 1:
        return "; no share is above it"
    if math.isinf(score.detectable):
        return f"; so few texts ({score.count:,}) could have shown none above it"
    return f"; {score.count:,} texts show one above it from {choose_digits(score)(score.detectable)} on"


def draw_scores(shown: Sequence[Score], scores: Sequence[Score]) -> dict[str, Any]:
    """Draw a bar for each measured share in ``shown``, with marks for chance and for its task on the originals."""
    bars = []
    for score in shown:
        found = _find_original(score, scores)
        levels = {"chance": score.chance, ORIGINAL: found.value if found else None}
        said = "".join(f"; {name} {show_number(level)}" for name, level in levels.items() if level is not None)
        label = f"{score.task}: {name_method(score)}{said}"
        bars.append(Bar(label, score.value or 0.0, show_figure(score), low=score.low, high=score.high, **levels))
    return draw_bars(bars)


def _find_strength(score: Score) -> tuple[bool, bool, float]:
    return bool(score.is_above_chance), score.variant != STATIC, _find_gain(score)


def _find_gain(score: Score) -> float:
    """Return ``(score - chance) / (1 - chance)``."""
    assert score.value is not None
    assert score.chance is not None
    return (score.value - score.chance) / (1 - score.chance) if score.chance < 1 else 0.0


MOST_LABELS, LEAST_TEXTS = 30, 10
"""Largest number of labels on a map, and least number of texts of each."""
_MOST_PAIRS = 5
_LARGE, _SMALL = 20, 15
_MANY = 15
OTHERS = "all others"
REFUSED = "no guess"


def draw_heatmap(confusion: Confusion) -> dict[str, Any] | None:
    """Draw a confusion for at most :data:`MOST_LABELS` labels: those with the most texts, the first among equals.

    Labels of fewer than :data:`LEAST_TEXTS` texts are left out: the shares of their rows are chance. The result is None
    if this leaves fewer than two. Guesses of other labels share a column. For the template, in pixels: columns are
    numbers of ``rows``, and the last may be :data:`OTHERS` and :data:`REFUSED`; the strength of a shade is its share of
    its row; ``left_out`` counts labels, and ``hit_rate`` is of all.
    """
    counts = np.array(confusion.counts, np.int64).reshape(len(confusion.names), -1)
    labels, texts = len(confusion.names), counts.sum(axis=1)
    order = np.argsort(-texts, kind="stable")[:MOST_LABELS]
    chosen = np.sort(order[texts[order] >= LEAST_TEXTS])
    if len(chosen) < 2:
        return None
    shown = counts[np.ix_(chosen, chosen)]
    names = [confusion.names[label] for label in chosen]
    columns = [str(number) for number in range(1, len(names) + 1)]
    for name, extra in (
        (OTHERS, counts[chosen, :labels].sum(axis=1) - shown.sum(axis=1)[: len(chosen)]),
        (REFUSED, counts[chosen, labels:].sum(axis=1)),
    ):
        if extra.any():
            shown, columns = np.column_stack([shown, extra]), [*columns, name]
    size = _LARGE if len(names) <= _MANY else _SMALL
    rows = [f"{number} {shorten(name)}" for number, name in enumerate(names, 1)]
    left = 8 + max(map(estimate_width, rows), default=0)
    top = 22.0 if columns[-1:] == [str(len(names))] else 8 + max(estimate_width(name) for name in columns)
    totals, guesses = shown.sum(axis=1), [*names, *columns[len(names) :]]
    return {
        "confusion": confusion,
        "rows": rows,
        "columns": columns,
        "shades": [
            {
                "x": left + size * column,
                "y": top + size * row,
                "strength": round(float(shown[row, column] / totals[row]), 3),
                "text": f"{names[row]} taken for {guesses[column]}: {shown[row, column]:,} of {totals[row]:,}",
            }
            for row, column in np.argwhere(shown).tolist()
        ],
        "size": size,
        "left": left,
        "top": top,
        "width": left + size * len(columns) + 2,
        "height": top + size * len(rows) + 2,
        "left_out": labels - len(names),
        "pairs": _describe_pairs(counts, confusion.names),
        "hit_rate": float(np.trace(counts[:, :labels]) / max(1, counts.sum())),
    }


def _describe_pairs(counts: Int64, names: tuple[str, ...]) -> tuple[str, ...]:
    are_enough = counts.sum(axis=1, keepdims=True) >= LEAST_TEXTS
    wrong = counts[:, : len(names)] * (are_enough & ~np.eye(len(names), dtype=bool))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    pairs = [divmod(cell, len(names)) for cell in order.tolist()]
    return tuple(
        f"{names[true]} taken for {names[guess]}: {wrong[true, guess]:,} of {counts[true].sum():,}"
        for true, guess in pairs
        if wrong[true, guess]
    )
