"""Privacy of a table without ids: rows in a secret, uniformly random order, each from one draw of loss e0.

Such a table is (epsilon, delta)-differentially private for replacing one of its n records, even against an attacker who
knows all others. docs/proofs/shuffling.md has the proof, and the error budget of the arithmetic: each figure is rounded
upwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from wordveil.arrays import Float64, Int64
from wordveil.geometry.euclidean import round_up

HIGHEST_LOSS = 30.0
"""Local loss above which shuffling is taken to give nothing: n would have to be in the trillions."""
MAX_ROWS = 10**10
"""Number of rows from which on more are not counted: a larger table is at least as private."""
MAX_SYMBOLS = 10**6
"""Number of symbols above which randomised response counts as any randomiser: rounding would matter."""
MAX_CELLS = 1_000_000
"""Size of the largest array; time and memory are bounded by it."""
MAX_BLOCKS, GROUPS, NODES = 800, 16, 24
"""Resolution: blocks of T, groups of blocks under one law of R, values of R. A coarser bound is larger."""
FACTOR = 1 + 1e-8
"""Covers the relative errors of all sums and products."""
SLACK = 1e-9
"""Excess of the local loss that is computed with: covers exponentials, and probabilities rounded to 2^-64."""


def bound_epsilon(local_epsilon: float, rows: int, delta: float, symbols: int | None = None) -> float:
    """Return the certified epsilon of a shuffled table at ``delta``, rounded up to four digits.

    ``rows``: number of rows that are shuffled together, all drawn by one randomiser of pure loss ``local_epsilon``.
    ``symbols``: the randomiser is randomised response over so many symbols; None for any randomiser.
    """
    _check(local_epsilon, rows, symbols, delta=delta)
    known = closed_form(local_epsilon, rows, delta)
    highest = local_epsilon if known is None else min(known, local_epsilon)
    blanket = _make_blanket(local_epsilon, rows, symbols)
    if blanket is None or blanket.delta(highest) > delta:
        return highest
    lowest = 0.0
    if blanket.delta(lowest) <= delta:
        return lowest
    while highest - lowest > 1e-5 * highest:
        middle = (lowest + highest) / 2
        if blanket.delta(middle) <= delta:
            highest = middle
        else:
            lowest = middle
    return min(round_up(highest, 4), local_epsilon)


def bound_delta(local_epsilon: float, rows: int, epsilon: float, symbols: int | None = None) -> float:
    """Return the certified delta of a shuffled table at ``epsilon``; arguments as of :func:`bound_epsilon`."""
    _check(local_epsilon, rows, symbols, epsilon=epsilon)
    if epsilon >= local_epsilon:
        return 0.0
    blanket = _make_blanket(local_epsilon, rows, symbols)
    return 1.0 if blanket is None else blanket.delta(epsilon)


def closed_form(local_epsilon: float, rows: int, delta: float) -> float | None:
    """Return Theorem 3.1 of Feldman, McMillan, Talwar (FOCS 2021); None where its condition fails."""
    _check(local_epsilon, rows, delta=delta)
    if local_epsilon > math.log(rows / (16 * math.log(2 / delta))) - SLACK:
        return None
    grown = math.exp(local_epsilon)
    spread = 8 * math.sqrt(grown * math.log(4 / delta) / rows) + 8 * grown / rows
    return round_up(FACTOR * math.log1p(math.tanh(local_epsilon / 2) * spread), 4)


@dataclass(frozen=True)
class _Group:
    """Adjacent blocks of T under one law of R, which its nodes stand for."""

    blocks: slice
    nodes: Float64
    weights: Float64


@dataclass(frozen=True)
class _Blanket:
    """Laws of the counts that hide a record: T rows with one of its two symbols, R with others, from the blanket.

    Arrays have an entry for each block of T. ``ends``: its largest T. ``lengths``: largest less smallest. ``weights``:
    probability of the smallest and of the largest, by interpolation. ``at_least``, ``excess``: ``P[H >= k]`` and
    ``E[(H - k)_+]`` for H ~ Bin(end, 1/2), with k from ``end // 2`` on. ``rest``: share of R in what is not T.
    ``tail``: bound on what the tails that are cut off add to delta.
    """

    local_epsilon: float
    rows: int
    rest: float
    ends: Int64
    lengths: Int64
    weights: Float64
    at_least: Float64
    excess: Float64
    groups: tuple[_Group, ...]
    tail: float

    def delta(self, epsilon: float) -> float:
        """Return delta at an epsilon of at most the local loss, rounded upwards."""
        step, rate = math.expm1(self.local_epsilon), math.exp(epsilon)
        slope = step * (1 + rate)
        cost = math.expm1(epsilon) / slope
        drift = cost * ((step + 2) / 2 - self.rest)
        total = 0.0
        for group in self.groups:
            blocks = np.arange(group.blocks.start, group.blocks.stop)
            ends, lengths = self.ends[blocks], self.lengths[blocks]
            others = group.nodes[None, :] - self.rest * (ends - ends[0] + lengths[0])[:, None]
            middles = ends[:, None] * (rate / (1 + rate)) + cost * (ends[:, None] + others)
            middles -= 1e-12 * (1 + ends[:, None] + cost * group.nodes[None, :])  # their own rounding
            for shifts, weights in zip((drift * lengths, 0 * lengths), self.weights[:, blocks], strict=True):
                total += float(weights @ self._expect_above(blocks, middles - shifts[:, None]) @ group.weights)
        return min(FACTOR * (slope / self.rows * total + self.tail), 1.0)

    def _expect_above(self, blocks: Int64, values: Float64) -> Float64:
        """Bound ``E[(H - value)_+]``, a row of values for each block."""
        lows = (self.ends[blocks] // 2)[:, None]
        up = np.ceil(values)
        columns = np.clip(up.astype(np.int64) - lows, 0, self.excess.shape[1] - 1)
        rows = blocks[:, None]
        above: Float64 = self.excess[rows, columns] + (up - values) * self.at_least[rows, columns]
        return np.where(values < lows, self.excess[rows, 0] + (lows - values), above)


def _make_blanket(local_epsilon: float, rows: int, symbols: int | None) -> _Blanket | None:
    """Tabulate what does not depend on epsilon; None where shuffling gives nothing."""
    if local_epsilon > HIGHEST_LOSS:
        return None
    rows, size = min(rows, MAX_ROWS), symbols if symbols and symbols <= MAX_SYMBOLS else 2
    local_epsilon += SLACK + 2.0**-59 * (math.exp(local_epsilon) + size) ** 2 / math.exp(local_epsilon)
    step = math.expm1(local_epsilon)
    exponent = 2 * local_epsilon + 50
    first, chances = _make_binomial(rows, 2 / (step + size - 2), exponent)
    width = math.ceil(math.sqrt((first + len(chances)) * exponent / 2)) + 3
    length = max(math.ceil(len(chances) / MAX_BLOCKS), math.ceil(len(chances) * width / MAX_CELLS))
    starts = np.arange(0, len(chances), length)
    lengths = np.minimum(starts + length, len(chances)) - starts - 1
    before, spans = (np.repeat(values, lengths + 1) for values in (starts, lengths))
    place = (np.arange(len(chances)) - before) / np.maximum(spans, 1)
    weights = np.stack([np.add.reduceat(chances * part, starts) for part in (1 - place, place)])
    ends = first + starts + lengths
    at_least, excess = _make_upper_halves(ends, width)
    edges = np.unique(np.linspace(0, len(ends), GROUPS + 1).astype(np.int64)).tolist()
    groups = tuple(
        _Group(slice(start, stop), *_make_nodes(rows - first - int(starts[start]), (size - 2) / step, exponent))
        for start, stop in pairwise(edges)
    )
    rest = (size - 2) / (step + size - 2)
    tail = (4 + 2 * step * (step + 2) * float(ends[-1]) / rows) * math.exp(-exponent)
    return _Blanket(local_epsilon, rows, rest, ends, lengths, weights, at_least, excess, groups, tail)


def _make_binomial(count: int, odds: float, exponent: float) -> tuple[int, Float64]:
    """Return the first value of a window and its probabilities, too large rather than too small.

    ``odds``: those of one trial, which keep digits that ``1 - share`` would lose. By Bernstein's inequality each side
    outside has a probability of at most ``exp(-exponent)``.
    """
    mean = count * (odds / (1 + odds))
    spread = exponent / 3 + math.sqrt(exponent**2 / 9 + 2 * exponent * mean / (1 + odds)) + 2
    low, high = max(0, math.floor(mean - spread)), min(count, math.ceil(mean + spread))
    mode = min(max(math.floor(mean), low), high)
    up, down = np.arange(mode, high, dtype=np.float64), np.arange(mode, low, -1, dtype=np.float64)
    above = np.cumprod((count - up) / (up + 1) * odds)
    below = np.cumprod(down / (count - down + 1) / odds)
    values = np.concatenate([below[::-1], [1.0], above])
    return low, values / values.sum()


def _make_upper_halves(trials: Int64, width: int) -> tuple[Float64, Float64]:
    """Tabulate ``P[H >= k]`` and ``E[(H - k)_+]`` for ``width`` values of k from ``trials // 2`` on, then zeros.

    A row for each number of trials; H has a probability of 1/2. They are too large rather than too small, but for a
    tail of at most ``E[H; H > trials // 2 + width - 1]``.
    """
    count = trials[:, None].astype(np.float64)
    values = np.floor(count / 2) + np.arange(width - 1)
    chances = np.ones((len(trials), width))
    np.cumprod(np.maximum(count - values, 0) / (values + 1), axis=1, out=chances[:, 1:])
    # The law is symmetric: twice the sum counts the middle value twice, and of an odd number both values beside it.
    chances /= (2 * chances.sum(axis=1) - (1 + trials % 2) * chances[:, 0])[:, None]
    at_least, excess = np.zeros((2, len(trials), width + 1))
    at_least[:, :-1] = np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]
    excess[:, :-1] = np.cumsum(at_least[:, :0:-1], axis=1)[:, ::-1]
    return at_least, excess


def _make_nodes(count: int, odds: float, exponent: float) -> tuple[Float64, Float64]:
    """Spread a binomial law over few nodes with the same mean: convex functions have no smaller expectation."""
    first, chances = _make_binomial(count, odds, exponent)
    values = np.arange(len(chances))
    nodes = np.unique(np.linspace(0, values[-1], min(NODES, len(values))).astype(np.int64))
    left = np.maximum(np.searchsorted(nodes, values) - 1, 0)
    right = np.minimum(left + 1, len(nodes) - 1)
    place = (values - nodes[left]) / np.maximum(nodes[right] - nodes[left], 1)
    weights = np.bincount(left, chances * (1 - place), len(nodes)) + np.bincount(right, chances * place, len(nodes))
    used = weights > 0  # without odds, the first alone
    return (first + nodes[used]).astype(np.float64), weights[used].astype(np.float64)


def _check(
    local_epsilon: float,
    rows: int,
    symbols: int | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> None:
    for name, value in (("local_epsilon", local_epsilon), ("epsilon", epsilon)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"Expected {name} to be a finite number of at least 0, got {value}.")
    for name, count, lowest in (("rows", rows, 1), ("symbols", symbols, 2)):
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < lowest):
            raise ValueError(f"Expected {name} to be a whole number of at least {lowest}, got {count}.")
    if delta is not None and not 0 < delta < 1:
        raise ValueError(f"Expected delta between 0 and 1, got {delta}.")
