"""Unbiased counts of what records said, from counts of what was drawn for them, with intervals.

Draws by randomised response are biased towards uniform. Of ``n`` records of which ``x`` came out as a symbol, an
unbiased estimate of how many had it is ``(x - n q) / (p - q)``, where ``p`` is the probability that a symbol stays and
``q`` that another becomes it (Warner 1965). If ``N`` had it, ``x`` has the mean ``N p + (n - N) q`` and the variance
``N p (1 - p) + (n - N) q (1 - q)``. The interval has all ``N`` whose ``x`` lies within ``z`` standard deviations of its
mean (a score interval), which covers far better for few records than a fixed width around the estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from wordveil.arrays import Bool, Float64, Int64


@dataclass(frozen=True)
class Response:
    """Law of randomised response: the probability ``own`` that a symbol stays, and ``other`` of each other symbol."""

    own: float
    other: float

    @classmethod
    def of(cls, epsilon: float, symbols: int) -> Self:
        """Make the law of a loss of ``epsilon`` over so many symbols. Raises :class:`ValueError` for less than two."""
        if symbols < 2 or not 0 < epsilon < math.inf:
            raise ValueError(f"Expected at least 2 symbols and epsilon in (0, inf), got {symbols} and {epsilon}.")
        other = 1 / (math.exp(epsilon) + symbols - 1)
        return cls(1 - (symbols - 1) * other, other)


@dataclass(frozen=True)
class Estimates:
    """Estimated counts of symbols, float64 ``(groups, symbols)``, and the ends of an interval of each.

    ``counts`` add up to the records of a group, and may be negative. ``low``, ``high``: within 0 and these records.
    """

    counts: Float64
    low: Float64
    high: Float64


def estimate_counts(drawn: Int64, response: Response, *, confidence: float = 0.95, together: int = 1) -> Estimates:
    """Estimate how many records had each symbol.

    ``drawn``: int64 ``(groups, symbols)``, how many records of each group came out as each symbol. ``together``: the
    number of intervals that all hold with probability ``confidence`` (Bonferroni); 1: each by itself.
    """
    z2 = NormalDist().inv_cdf(1 - (1 - confidence) / (2 * together)) ** 2
    own, other = response.own, response.other
    gain, base = own - other, other * (1 - other)
    records = drawn.sum(axis=1, keepdims=True).astype(np.float64)
    excess = drawn - records * other
    # All N with (excess - N gain)^2 <= z^2 (records base + N slope).
    slope = own * (1 - own) - base
    middle = excess / gain + z2 * slope / (2 * gain**2)
    spread = np.sqrt(np.maximum(middle**2 - (excess**2 - z2 * records * base) / gain**2, 0.0))
    low, high = (np.clip(end, 0.0, records) for end in (middle - spread, middle + spread))
    return Estimates(excess / gain, low, high)


@dataclass(frozen=True)
class Changes:
    """Changes of the shares of symbols between two groups of records, ``(pairs, symbols)``.

    ``differences``: later less earlier, float64. ``low``, ``high``: an interval of each. ``are_real``: bool, the
    changes that are more than noise, of which a share is false discoveries.
    """

    differences: Float64
    low: Float64
    high: Float64
    are_real: Bool


def compare_shares(before: Int64, after: Int64, response: Response, *, confidence: float = 0.95) -> Changes:
    """Estimate how the share of each symbol changed, from drawn counts of both groups: int64 ``(pairs, symbols)``.

    ``1 - confidence`` is the false discovery rate of ``are_real`` over all pairs and symbols (Benjamini, Hochberg
    1995). The records of a group are those that it has, and no sample: only the draws are noise.
    """
    from scipy.stats import false_discovery_control, norm  # takes a second to load

    shares, variances = [], []
    for drawn in (before, after):
        records = np.maximum(drawn.sum(axis=1, keepdims=True), 1)
        counts = estimate_counts(drawn, response).counts
        had = np.clip(counts, 0, records)
        spread = had * response.own * (1 - response.own) + (records - had) * response.other * (1 - response.other)
        shares.append(counts / records)
        variances.append(spread / ((response.own - response.other) * records) ** 2)
    differences, deviations = shares[1] - shares[0], np.sqrt(variances[0] + variances[1])
    false = false_discovery_control(2 * norm.sf(np.abs(differences) / deviations), axis=None)
    width = norm.isf((1 - confidence) / 2) * deviations
    are_real = false.reshape(differences.shape) <= 1 - confidence
    return Changes(differences, differences - width, differences + width, are_real)


def find_least_count(response: Response, symbols: int, records: int, *, confidence: float = 0.95) -> int:
    """Find the count of a symbol from which its estimate usually stands out from none, among all ``symbols``.

    An estimate of no records lies below it, for all symbols together, with probability ``confidence`` (Bonferroni).
    """
    z = NormalDist().inv_cdf(1 - (1 - confidence) / (2 * symbols))
    noise = math.sqrt(records * response.other * (1 - response.other))
    return math.ceil(z * noise / (response.own - response.other))
