"""The page of an evaluation: one file that loads nothing from elsewhere, for light and dark screens of any width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wordveil.report.frontier import Frontier, find_frontiers
from wordveil.report.headline import write_headline
from wordveil.report.heatmap import MOST_LABELS, draw_heatmap
from wordveil.report.numbers import show_interval, show_number
from wordveil.report.picture import Picture, describe_point, draw_frontier
from wordveil.report.tables import make_sections
from wordveil.report.templates import render_page
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Score


def render_evaluation(evaluation: Evaluation) -> str:
    """The page of an evaluation, in HTML.

    It has what the figures say in sentences, the frontier of each task of attacks, a table of each group with every
    figure's interval, chance level and definition, maps of confusions, examples, notes, and the facts. All names are
    escaped.
    """
    return render_page(
        "evaluation.html",
        title=evaluation.title,
        evaluation=evaluation,
        headline=write_headline(evaluation.scores),
        frontiers=draw_frontiers(evaluation.scores),
        sections=make_sections(evaluation.scores),
        maps=[draw_heatmap(confusion) for confusion in evaluation.confusions],
        most_labels=MOST_LABELS,
    )


def draw_frontiers(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """What the template of a frontier shows: its pictures, its words, and its figures as a table."""
    return [_describe(frontier, draw_frontier(frontier)) for frontier in find_frontiers(scores)]


def _describe(frontier: Frontier, pictures: tuple[Picture, Picture]) -> dict[str, Any]:
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
        "pictures": pictures,
        "rows": rows,
        "has_static": not all(point.is_bound for point in frontier.points),
        "chance": show_number(frontier.chance) if frontier.chance is not None else "",
        "label": f"Attack {frontier.figure} on {frontier.task} against utility. "
        + "; ".join(describe_point(point) for point in frontier.points),
    }
