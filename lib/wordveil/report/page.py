"""Page of an evaluation: one file that loads nothing from elsewhere, for light and dark screens of any width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wordveil.report.attacks import describe_attack, describe_power, draw_bars, list_subjects, rank_attacks
from wordveil.report.frontier import ACCURACY, ORIGINAL, Frontier, find_frontiers, find_strongest
from wordveil.report.heatmap import MOST_LABELS, draw_heatmap
from wordveil.report.picture import describe_point, draw_frontier
from wordveil.report.tables import make_sections
from wordveil.report.templates import render_page
from wordveil.report.values import choose_digits, show_figure, show_interval, show_number
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Group, Score

_MOST_SUBJECTS = 4


def render_evaluation(evaluation: Evaluation) -> str:
    """Render the page of an evaluation, in HTML.

    It has the main results in sentences and as bars, the strongest attack first, the frontier of each task of attacks,
    a table of each group with every figure's interval, chance level and definition, maps of confusions, examples,
    notes, and the facts. All names are escaped.
    """
    return render_page(
        "evaluation.html",
        title=evaluation.title,
        evaluation=evaluation,
        headline=write_headline(evaluation),
        attacks=[
            (subject, draw_bars(rank_attacks(evaluation.scores, subject)))
            for subject in list_subjects(evaluation.scores)[:_MOST_SUBJECTS]
        ],
        frontiers=draw_frontiers(evaluation.scores),
        sections=make_sections(evaluation.scores),
        maps=[draw_heatmap(confusion) for confusion in evaluation.confusions],
        most_labels=MOST_LABELS,
    )


def draw_frontiers(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Compute what the template of each frontier shows: its pictures, its words, and its figures as a table."""
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
    """Return plain values for JSON, with the sentences that a page has first."""
    return {**evaluation.to_dict(), "headline": list(write_headline(evaluation))}


def write_headline(evaluation: Evaluation) -> tuple[str, ...]:
    """Write how much was read, and sentences about each sanitised subject.

    They have the strongest attack of each kind, the strongest of all first, and the best result of each task. If there
    are too many subjects, there are no sentences about them.
    """
    subjects, scores = list_subjects(evaluation.scores), evaluation.scores
    if len(subjects) > _MOST_SUBJECTS:
        return evaluation.scope
    sentences = (sentence for subject in subjects for sentence in _write_sentences(subject, scores))
    return (*evaluation.scope, *sentences)


def _write_sentences(subject: str, scores: Sequence[Score]) -> list[str]:
    attacks = rank_attacks(scores, subject)
    sentences = [_say(attack, scores) if attack.figure == ACCURACY else describe_attack(attack) for attack in attacks]
    chosen = [
        score
        for score in scores
        if (score.subject, score.group, score.figure) == (subject, Group.UTILITY, ACCURACY) and score.value is not None
    ]
    tasks = dict.fromkeys(score.task for score in chosen)
    best = (find_strongest([score for score in chosen if score.task == task]) for task in tasks)
    return [*sentences, *(_say(score, scores) for score in best)]


def _say(best: Score, scores: Sequence[Score]) -> str:
    show = choose_digits(best)
    beside = "" if best.chance is None else f"; chance is {show(best.chance)}{describe_power(best)}"
    same = best.group, best.task, ACCURACY, ORIGINAL
    if clean := [score for score in scores if (score.group, score.task, score.figure, score.subject) == same]:
        found = find_strongest(clean)
        beside += f"; on the {ORIGINAL} it is {show_number(found.value)} ({found.method})"
    if best.group == Group.UTILITY:
        verdict = "" if best.is_above_chance is not False else ", not clearly more than by chance"
        return f"{best.subject}: {best.task} by {best.method} has accuracy {show_figure(best, show)}{verdict}{beside}."
    verdict = "still finds" if best.is_above_chance else "is not clearly better than chance on"
    attack = " ".join(filter(None, ("The strongest", best.variant, "attack")))
    figure = f"accuracy {show_figure(best, show)}"
    return f"{best.subject}: {attack.lower()} ({best.method}) {verdict} {best.task}: {figure}{beside}."
