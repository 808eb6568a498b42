"""What a report says first: whether texts still identify their authors, and whether they are still useful."""

from __future__ import annotations

from collections.abc import Sequence

from wordveil.report.frontier import ACCURACY, ADAPTIVE, ORIGINAL
from wordveil.report.numbers import show_figure, show_number
from wordveil.report.tables import is_above_chance
from wordveil.scores.score import Group, Score

_MOST_SUBJECTS = 4


def write_headline(scores: Sequence[Score]) -> tuple[str, ...]:
    """Sentences about each sanitised subject: the strongest attack and the best result of each task, in accuracy.

    Empty where there are too many subjects for sentences.
    """
    subjects = [name for name in dict.fromkeys(score.subject for score in scores) if name != ORIGINAL]
    if len(subjects) > _MOST_SUBJECTS:
        return ()
    return tuple(sentence for subject in subjects for sentence in _describe(subject, scores))


def _describe(subject: str, scores: Sequence[Score]) -> list[str]:
    sentences = []
    for group in (Group.ATTACK, Group.UTILITY):
        chosen = [
            score for score in scores if score.group == group and score.figure == ACCURACY and score.value is not None
        ]
        for task in dict.fromkeys(score.task for score in chosen if score.subject == subject):
            best = _best([score for score in chosen if score.task == task and score.subject == subject])
            clean = [score for score in chosen if score.task == task and score.subject == ORIGINAL]
            sentences.append(_say(best, _best(clean) if clean else None))
    return sentences


def _best(scores: Sequence[Score]) -> Score:
    adaptive = [score for score in scores if score.variant == ADAPTIVE]
    return max(adaptive or scores, key=lambda score: score.value or 0.0)


def _say(best: Score, clean: Score | None) -> str:
    beside = "" if best.chance is None else f"; chance is {show_number(best.chance)}"
    if clean is not None:
        beside += f"; on the {ORIGINAL} it is {show_number(clean.value)} ({clean.method})"
    if best.group == Group.UTILITY:
        return f"{best.subject}: {best.task} by {best.method} has accuracy {show_figure(best)}{beside}."
    verdict = "still finds" if is_above_chance(best) else "is not clearly better than chance on"
    attack = " ".join(filter(None, ("The strongest", best.variant, "attack")))
    return (
        f"{best.subject}: {attack.lower()} ({best.method}) {verdict} {best.task}: accuracy {show_figure(best)}{beside}."
    )
