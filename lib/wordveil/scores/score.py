"""Figures of an evaluation, each with its interval, its chance level and its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Bool, Float64, Int64
from wordveil.scores.documents import UNKNOWN

RESAMPLES = 1_000
CONFIDENCE = 0.95


class Group(StrEnum):
    """What a figure is about."""

    PRIVACY = "privacy"
    ATTACK = "attack"
    UTILITY = "utility"
    TEXT = "text"
    COST = "cost"


@dataclass(frozen=True)
class Score:
    """One figure.

    Attributes
    ----------
    subject
        whose texts: ``release``, ``original``, or a mechanism's row in a table.
    group
        what the figure is about.
    task
        what was done with the texts, such as ``authors`` or the name of a data set.
    method
        by what, such as ``svm-characters``.
    variant
        ``static`` or ``adaptive`` for attackers, else empty.
    figure
        what was counted, such as ``accuracy``.
    value
        the figure; infinite where it has no bound, None where it could not be measured (:attr:`note` says why).
    low, high
        the 95% interval; None where the figure is exact or has none.
    chance
        the figure of a guesser that never looks; None where that has no meaning.
    count
        how many texts, words or records it was measured on.
    definition
        what the figure means, in one sentence.
    higher_is_better
        for a reader who wants useful and private texts; None where neither is better.
    note
        what else a reader must know.
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

    @property
    def key(self) -> tuple[str, ...]:
        """What it measures, without the subject."""
        return (self.group, self.task, self.method, self.variant, self.figure)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; infinity as the text ``"Infinity"``."""
        values = asdict(self)
        return {name: "Infinity" if value == float("inf") else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`. Raises :class:`ValueError` or :class:`TypeError`."""
        if unknown := set(values) - {field.name for field in fields(cls)}:
            raise ValueError(f"Expected the fields of a score, got {', '.join(sorted(unknown))}.")
        made: dict[str, Any] = {name: float("inf") if value == "Infinity" else value for name, value in values.items()}
        return cls(**{**made, "group": Group(made["group"])})


def find_mean_interval(values: NDArray[np.floating] | Bool, seed: int) -> tuple[float, float]:
    """The 95% interval of the mean, by the percentile bootstrap of 1,000 resamples (Efron 1979).

    ``values``: ``(texts,)``, one for each text. One text, or equal values, give an interval of no width.
    """
    sample = np.asarray(values, np.float64)
    if len(sample) < 2 or (sample == sample[0]).all():
        mean = float(sample.mean())
        return mean, mean
    return resample((sample,), np.mean, seed)


def resample(samples: tuple[Float64, ...], statistic: Callable[..., Any], seed: int) -> tuple[float, float]:
    """The 95% interval of a statistic, by the percentile bootstrap of 1,000 resamples of texts (Efron 1979).

    ``samples``: float64 ``(texts,)`` each, resampled together; at least two texts. ``statistic``: takes the samples and
    an ``axis``.
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
    """The share of texts whose label is guessed right, its 95% interval, its chance level, and the number of texts."""

    value: float
    low: float
    high: float
    chance: float
    count: int


def measure_accuracy(guessed: Int64, labels: Int64, seed: int = 0) -> Accuracy:
    """How many of the texts with a known label are guessed right. A refusal to guess is wrong.

    Parameters
    ----------
    guessed, labels
        int64 ``(texts,)``: numbers of names. Texts with the label :data:`wordveil.scores.documents.UNKNOWN` are
        left out.
    seed
        of the bootstrap.

    Raises
    ------
    ValueError
        where no text has a known label.
    """
    known = labels != UNKNOWN
    if not known.any():
        raise ValueError("Expected at least one text with a known label.")
    hits = guessed[known] == labels[known]
    low, high = find_mean_interval(hits, seed)
    chance = float(np.bincount(labels[known]).max() / len(hits))
    return Accuracy(float(hits.mean()), low, high, chance, len(hits))
