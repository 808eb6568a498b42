"""Statistics of counts: exact bounds on a probability from a number of hits, and histograms.

The bounds are those of Clopper and Pearson 1934. For ``hits`` among ``trials`` independent trials, the lower bound at
``tail`` is the probability under which that many hits or more have the chance ``tail``: the quantile ``tail`` of
Beta(hits, trials - hits + 1). The upper bound is the quantile ``1 - tail`` of Beta(hits + 1, trials - hits). Each bound
is wrong with a probability of at most ``tail``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from wordveil.arrays import Float64, Int64

TAIL = 0.025
"""Probability of each tail of a 95% interval."""
_TINY = float(np.finfo(np.float64).tiny)


def bound_below(hits: ArrayLike, trials: ArrayLike, tail: float | Float64) -> Float64:
    """Compute the lower bound of the probability of a hit: float64 of the broadcast shape, from 0 to 1.

    ``hits`` may be fractions, to evaluate a share at another number of trials. ``tail``: in (0, 1).
    """
    count, total = np.asarray(hits, np.float64), np.asarray(trials, np.float64)
    bound = betaincinv(np.maximum(count, _TINY), total - count + 1, tail)
    # If SciPy's search does not converge for a small tail, use the bound that is always true.
    return np.nan_to_num(np.where(count > 0, bound, 0.0), nan=0.0)


def bound_above(hits: ArrayLike, trials: ArrayLike, tail: float | Float64) -> Float64:
    """Compute the upper bound of the probability of a hit: float64 of the broadcast shape, from 0 to 1."""
    count, total = np.asarray(hits, np.float64), np.asarray(trials, np.float64)
    misses = total - count
    bound = betainccinv(count + 1, np.maximum(misses, _TINY), tail)
    return np.nan_to_num(np.where(misses > 0, bound, 1.0), nan=1.0)


def find_share_interval(hits: float, count: int) -> tuple[float, float]:
    """Compute the 95% interval of the share of ``hits`` among ``count`` texts, also if all texts agree."""
    return float(bound_below(hits, count, TAIL)), float(bound_above(hits, count, TAIL))


def find_detectable(chance: float, count: int) -> float:
    """Find the least share of ``count`` texts whose 95% interval is above ``chance``; infinite if there is none."""
    hits = bisect_left(range(count + 1), 1, key=lambda hits: int(bound_below(hits, count, TAIL) > chance))
    return hits / count if hits <= count else math.inf


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
