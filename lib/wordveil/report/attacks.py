"""Ranking of attacks for reports: the strongest of each kind, the strongest of all first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from wordveil.report.frontier import ACCURACY, ORIGINAL, STATIC
from wordveil.report.values import choose_digits, name_method, show_figure, show_number
from wordveil.scores.score import Group, Score

LINKED, RECOVERED = "linked", "recovered"
_SHARES = (LINKED, ACCURACY, RECOVERED)
_WHAT = {
    LINKED: "who holds the candidate originals links this share of the records to the right one",
    RECOVERED: "who knows the mechanism gets this share of the hidden words right",
}


def rank_attacks(scores: Sequence[Score], subject: str) -> list[Score]:
    """Rank the strongest attack on ``subject`` of each task by how far it is above its chance level.

    The strongest is first. Within a task one that is clearly above chance is stronger than one that is not, and then an
    adaptive one than a static one, whose failure proves nothing. Only shares are compared: of records linked, authors
    named, words recovered.
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
    return (
        f"{score.subject}: {_WHAT[score.figure]}: {show_figure(score, show)}, {verdict} ({name_method(score)}; chance "
        f"is {show(score.chance)}{describe_power(score)})."
    )


def describe_power(score: Score) -> str:
    """Describe which figures would have been above chance on as many texts, as part of a sentence.

    Return an empty string if that is not known.
    """
    if score.detectable is None:
        return ""
    if score.chance == 1:
        return "; no share is above it"
    if math.isinf(score.detectable):
        return f"; so few texts ({score.count:,}) could have shown none above it"
    return f"; {score.count:,} texts show one above it from {choose_digits(score)(score.detectable)} on"


def draw_bars(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Compute what the template of a bar shows of each attack."""
    return [
        {
            "label": f"{score.task}: {name_method(score)}; chance {show_number(score.chance)}",
            "share": score.value,
            "highest": score.value if score.high is None else score.high,
            "value": show_figure(score),
        }
        for score in scores
    ]


def _find_strength(score: Score) -> tuple[bool, bool, float]:
    return bool(score.is_above_chance), score.variant != STATIC, _find_gain(score)


def _find_gain(score: Score) -> float:
    """Return ``(score - chance) / (1 - chance)``."""
    assert score.value is not None
    assert score.chance is not None
    return (score.value - score.chance) / (1 - score.chance) if score.chance < 1 else 0.0
