"""Counts of whole numbers in bins of equal width, with one bin for a long tail."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from wordveil.arrays import Int64

_BINS = 20
# All numbers above this quantile share one bin, so that a few long texts do not flatten the others.
_TAIL = 0.99


@dataclass(frozen=True)
class Bin:
    """Count of numbers from ``low`` to ``high``, both included; ``high`` is None for the open bin."""

    low: int
    high: int | None
    count: int


def count_bins(values: Int64) -> tuple[Bin, ...]:
    """Count ``values``, int64 ``(count,)``, 0 or more, in at most 21 bins from 0 on; empty without values.

    The width is 1, 2 or 5 times a power of ten. If the largest values are far above the 99th percentile, the last bin
    holds all values above the others.
    """
    if not len(values):
        return ()
    tail = int(np.quantile(values, _TAIL, method="inverted_cdf"))
    widths = ((1, 2, 5)[step % 3] * 10 ** (step // 3) for step in count())
    width = next(width for width in widths if _BINS * width > tail)
    edges = np.arange(0, tail // width * width + width + 1, width)
    inside, _ = np.histogram(values[values < edges[-1]], edges)
    bins = [Bin(int(low), int(low) + width - 1, int(number)) for low, number in zip(edges[:-1], inside, strict=True)]
    above = int((values >= edges[-1]).sum())
    return (*bins, Bin(int(edges[-1]), None, above)) if above else tuple(bins)
