"""Intervals of figures that are not means over texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64
from wordveil.scores.score import resample


def find_ratio_interval(parts: NDArray[Any], wholes: NDArray[Any], seed: int) -> tuple[float, float]:
    """Compute the 95% interval of ``sum(parts) / sum(wholes)``, by the percentile bootstrap of 1,000 resamples of
    texts.

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
