"""The rows of a block with their figures, as tables print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wordveil.scores.score import Score
from wordveil_research.field.rows import SMALL_PARTS, Block, list_rows
from wordveil_research.field.summary import GAIN, is_attack, is_on_small_parts, is_task


@dataclass(frozen=True)
class Line:
    """One row in one block.

    Attributes
    ----------
    label
        of the row.
    scores
        all of its scores.
    """

    label: str
    scores: tuple[Score, ...]

    def find(self, figure: str, task: str = "") -> Score | None:
        """Find the score of a figure, of a task if one is named."""
        return next((score for score in self.scores if score.figure == figure and task in ("", score.task)), None)

    @property
    def is_small(self) -> bool:
        """Whether it was measured on small parts, so that it cannot be compared with the other lines."""
        return any(map(is_on_small_parts, self.scores))

    @property
    def utility(self) -> float | None:
        """The mean accuracy of the tasks."""
        return _mean(score.value for score in self.scores if is_task(score))

    @property
    def attack(self) -> float | None:
        """The mean over the author corpora of the stronger adaptive attacker's accuracy."""
        by_corpus: dict[str, float] = {}
        for score in self.scores:
            if is_attack(score) and score.value is not None:
                by_corpus[score.task] = max(score.value, by_corpus.get(score.task, 0.0))
        return _mean(by_corpus.values())

    @property
    def gain(self) -> float | None:
        """The mean relative gain over attackers and author corpora."""
        return _mean(score.value for score in self.scores if score.figure == GAIN)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def list_lines(scores: Sequence[Score], block: Block | None) -> list[Line]:
    """List the lines of a block; None: the rows that stand in no block."""
    subjects: dict[str, list[Score]] = {}
    for score in scores:
        subjects.setdefault(score.subject, []).append(score)
    lines = []
    for row in list_rows():
        subject = row.label if block is None else row.subject(block)
        if row.is_slow and subject not in subjects:
            subject += SMALL_PARTS
        if row.is_matched == (block is not None) and subject in subjects:
            lines.append(Line(row.label, tuple(subjects[subject])))
    return lines
