"""Intervals of figures that are no means over texts: shares of sums, and correlations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64
from wordveil.scores.score import CONFIDENCE, RESAMPLES


def find_ratio_interval(parts: NDArray[Any], wholes: NDArray[Any], seed: int) -> tuple[float, float]:
    """The 95% interval of ``sum(parts) / sum(wholes)``, by the percentile bootstrap of 1,000 resamples of texts.

    ``parts``, ``wholes``: ``(texts,)``, numbers of each text; the wholes are not negative and not all 0.
    """

    def divide(part: Float64, whole: Float64, axis: int) -> Float64:
        total = whole.sum(axis=axis)
        return np.asarray(np.divide(part.sum(axis=axis), total, out=np.zeros_like(total), where=total > 0))

    return _resample((np.asarray(parts, np.float64), np.asarray(wholes, np.float64)), divide, seed)


def find_correlation_interval(first: Float64, second: Float64, seed: int) -> tuple[float, float]:
    """The 95% interval of Pearson's correlation of pairs, by the percentile bootstrap. Of ranks it is that of
    Spearman's, where the ranks are not made again.
    """

    def correlate(left: Float64, right: Float64, axis: int) -> Float64:
        left = left - left.mean(axis=axis, keepdims=True)
        right = right - right.mean(axis=axis, keepdims=True)
        spread = np.sqrt((left * left).sum(axis=axis) * (right * right).sum(axis=axis))
        products = (left * right).sum(axis=axis)
        return np.asarray(np.divide(products, spread, out=np.zeros_like(spread), where=spread > 0))

    return _resample((first, second), correlate, seed)


def _resample(samples: tuple[Float64, Float64], statistic: Callable[..., Float64], seed: int) -> tuple[float, float]:
    count = len(samples[0])
    if count < 2:
        value = float(statistic(*samples, axis=-1))
        return value, value
    from scipy import stats  # takes longer to load than the rest of a command

    resampled = stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        batch=max(1, 2**21 // count),
        vectorized=True,
        paired=True,
        method="percentile",
        confidence_level=CONFIDENCE,
        rng=seed,
    )
    return float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)
