"""Scores, made from measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wordveil.scores.score import Accuracy, Group, Score


@dataclass(frozen=True)
class Measurement:
    """Subject, texts and method of a measurement (:class:`wordveil.scores.score.Score`)."""

    subject: str
    task: str
    method: str
    group: Group = Group.UTILITY
    variant: str = ""

    def make_score(
        self,
        figure: str,
        value: float | None,
        interval: tuple[float, float] | None,
        count: int,
        definition: str,
        *,
        chance: float | None = None,
        higher_is_better: bool | None = True,
        note: str = "",
        detectable: float | None = None,
    ) -> Score:
        """Make one figure. ``interval``: None if it is exact or was not measured."""
        low, high = interval or (None, None)
        return Score(
            subject=self.subject,
            group=self.group,
            task=self.task,
            method=self.method,
            variant=self.variant,
            figure=figure,
            value=value,
            low=low,
            high=high,
            chance=chance,
            count=count,
            definition=definition,
            higher_is_better=higher_is_better,
            note=note,
            detectable=detectable,
        )

    def make_accuracy(self, accuracy: Accuracy, definition: str, note: str = "") -> Score:
        """Make the figure ``accuracy``."""
        interval = (accuracy.low, accuracy.high)
        return self.make_score(
            "accuracy",
            accuracy.value,
            interval,
            accuracy.count,
            definition,
            chance=accuracy.chance,
            note=note,
            detectable=accuracy.detectable,
        )


def require_pairs(originals: Sequence[str], sanitised: Sequence[str]) -> None:
    """Raise :class:`ValueError` if there are no texts, or the numbers differ."""
    if not originals or len(originals) != len(sanitised):
        raise ValueError(f"Expected as many originals as sanitised texts, got {len(originals)} and {len(sanitised)}.")
