"""Figures of an evaluation, each with its interval, its chance level and its definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Bool, Float64, Int64
from wordveil.scores.documents import UNKNOWN

RESAMPLES = 1_000
_ROUNDING = 1e-9
ABOVE_CHANCE = "above_chance"
"""Key of :attr:`Score.is_above_chance` among plain values."""
CONFIDENCE = 0.95


class Group(StrEnum):
    """Topic of a figure."""

    PRIVACY = "privacy"
    ATTACK = "attack"
    UTILITY = "utility"
    TEXT = "text"
    COST = "cost"


@dataclass(frozen=True)
class Score:
    """Figure of an evaluation.

    ``subject``: ``release``, ``original``, or a mechanism's row in a table. ``task``: such as ``authors`` or the name
    of a data set. ``method``: such as ``svm-characters``. ``variant``: ``static`` or ``adaptive`` for attackers, else
    empty. ``figure``: such as ``accuracy``. ``value``: infinite if it has no bound, None if it could not be measured,
    for the reason in ``note``. ``low``, ``high``: 95% interval; None if the value is exact or has none. ``chance``: the
    figure without reading a text; None if that has no meaning. ``count``: number of texts, words or records.
    ``definition``: one sentence. ``higher_is_better``: for useful and private texts; None if neither is better.
    ``detectable``: the least figure that would have been above chance on as many texts; infinite if none would have
    been, None if not known.
    """

    subject: str
    group: Group
    task: str
    method: str
    variant: str
    figure: str
    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    count: int
    definition: str
    higher_is_better: bool | None = None
    note: str = ""
    detectable: float | None = None

    @property
    def is_above_chance(self) -> bool | None:
        """True if the whole interval, or an exact figure, is above the chance level; None without one of both."""
        if self.value is None or self.chance is None:
            return None
        # A sum of probabilities that is chance itself may be rounded upwards.
        return (self.value if self.low is None else self.low) > self.chance * (1 + _ROUNDING)

    @property
    def key(self) -> tuple[str, ...]:
        return (self.group, self.task, self.method, self.variant, self.figure)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinity as the text ``"Infinity"``."""
        values = {**asdict(self), ABOVE_CHANCE: self.is_above_chance}
        return {name: "Infinity" if value == float("inf") else value for name, value in values.items()}


def find_mean_interval(values: NDArray[np.floating] | Bool, seed: int) -> tuple[float, float]:
    """Compute the 95% interval of the mean, by the percentile bootstrap of 1,000 resamples (Efron 1979).

    ``values``: ``(texts,)``, one for each text. One text, or equal values, give an interval of no width.
    """
    sample = np.asarray(values, np.float64)
    if len(sample) < 2 or (sample == sample[0]).all():
        mean = float(sample.mean())
        return mean, mean
    return resample((sample,), np.mean, seed)


def resample(samples: tuple[Float64, ...], statistic: Callable[..., Any], seed: int) -> tuple[float, float]:
    """Compute the 95% interval of a statistic, by the percentile bootstrap of 1,000 resamples of texts (Efron 1979).

    ``samples``: float64 ``(texts,)`` each, resampled together; at least two texts. ``statistic``: takes these and
    ``axis``.
    """
    from scipy import stats  # takes 2 s to load, and pages do not need it

    resampled = stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        batch=max(1, 2**22 // (len(samples) * len(samples[0]))),
        vectorized=True,
        paired=len(samples) > 1,
        method="percentile",
        confidence_level=CONFIDENCE,
        rng=seed,
    )
    return float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)


@dataclass(frozen=True)
class Accuracy:
    """Share of texts whose label is guessed right, with its exact 95% interval and :attr:`Score.detectable`."""

    value: float
    low: float
    high: float
    chance: float
    count: int
    detectable: float


def measure_accuracy(guessed: Int64, labels: Int64) -> Accuracy:
    """Measure the share of texts with a known label that are guessed right. A refusal to guess is wrong.

    ``guessed``, ``labels``: int64 ``(texts,)``, numbers of names. Labels that are
    :data:`wordveil.scores.documents.UNKNOWN` are left out. Raises :class:`ValueError` if no text has a known label.
    """
    is_known = labels != UNKNOWN
    if not is_known.any():
        raise ValueError("Expected at least one text with a known label.")
    from wordveil.scores.counts import find_detectable, find_share_interval  # SciPy, which pages do not need

    hits = guessed[is_known] == labels[is_known]
    chance = float(np.bincount(labels[is_known]).max() / len(hits))
    low, high = find_share_interval(int(hits.sum()), len(hits))
    return Accuracy(float(hits.mean()), low, high, chance, len(hits), find_detectable(chance, len(hits)))


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
            **vars(self),
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


def find_ratio_interval(parts: NDArray[Any], wholes: NDArray[Any], seed: int) -> tuple[float, float]:
    """Compute the 95% interval of ``sum(parts) / sum(wholes)``, by the percentile bootstrap of 1,000 resamples.

    ``parts``, ``wholes``: ``(texts,)``, numbers of each text; the wholes are 0 or more, and not all 0.
    """

    def divide(part: Float64, whole: Float64, axis: int) -> Float64:
        total = whole.sum(axis=axis)
        return np.asarray(np.divide(part.sum(axis=axis), total, out=np.zeros_like(total), where=total > 0))

    samples = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    if len(parts) < 2:
        ratio = float(divide(*samples, axis=-1))
        return ratio, ratio
    return resample(samples, divide, seed)
