"""Construction of a tree's arrays from clusters: levels that matter, their numbers, rows of symbols, words written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float32, Float64, Int32, Int64
from wordveil.errors import BundleError
from wordveil.mechanisms.tree.levels import Levels, PadShareError, solve_levels
from wordveil.mechanisms.tree.table import Nesting
from wordveil.neighbours.clusters import HEAVIEST, LONGEST, ClusterHierarchy, whole_directions

# Logarithms are taken to one part in this many.
_LOGARITHM = 2**20
# Standard deviations.
_FURTHEST = 3.0
# Doubles below 2^27 are nearer to a power or logarithm than this.
_NEAR_HALF = 1e-6


def solve_nesting(
    bounds: Sequence[NDArray[Any]],
    losses: Sequence[float],
    pad_share: float | None,
    *,
    padding: bool,
    lower_pad_share: bool = False,
) -> tuple[Nesting, Levels]:
    """Build the nested clusters of the levels that matter, and their numbers. ``bounds``: of each level, in positions.

    ``lower_pad_share``: whether a share of paddings that is too large becomes the largest possible one. Raises
    :class:`BundleError`.
    """
    matter = sorted(set(_last_of_equal(losses)))
    nesting = Nesting.of([bounds[0], *(bounds[level] for level in matter)])
    limits = [losses[level] for level in matter]
    try:
        return nesting, solve_levels(nesting.shapes, limits, padding=padding, pad_share=pad_share)
    except PadShareError as error:
        if lower_pad_share:
            return nesting, solve_levels(nesting.shapes, limits, padding=padding)
        raise BundleError(
            f"mechanism.pad_share = {pad_share}: at epsilon {losses[-1]:g} padding stays padding with a probability of "
            f"at most {error.largest:g}. Lower it to that, leave it out, or raise mechanism.epsilon."
        ) from None
    except ValueError as error:
        raise BundleError(
            f"mechanism.losses = {list(losses[:-1])} with epsilon {losses[-1]:g}: {error}. Set losses "
            "further apart, or raise mechanism.epsilon."
        ) from None


def _last_of_equal(losses: Sequence[float]) -> list[int]:
    """Find for each level the last one of the same loss: those before it add nothing."""
    last = {loss: level for level, loss in enumerate(losses)}
    return [last[loss] for loss in losses]


def next_levels(losses: Sequence[float]) -> list[int]:
    """Find for each level its index among those that matter."""
    matter = sorted(set(_last_of_equal(losses)))
    return [matter.index(level) for level in _last_of_equal(losses)]


def rows_of(hierarchy: ClusterHierarchy) -> Int32:
    """Compute the row of each symbol: that of a word's lowest cluster, then those of padding and unknown word."""
    bounds = hierarchy.bounds[0]
    clusters = len(bounds) - 1
    rows = np.empty(len(hierarchy.order) + 2, np.int32)
    rows[hierarchy.order] = np.repeat(np.arange(clusters, dtype=np.int32), np.diff(bounds))
    rows[-2:] = [clusters, clusters + 1]
    return rows


def count_lowest(bounds: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Convert the bounds of each level from words to lowest clusters."""
    return [np.searchsorted(bounds[0], edges) for edges in bounds]


def weigh_words(frequencies: Float64, exponent: float) -> Int64:
    """Compute weights for clustering: int64 ``(size,)``, in proportion to ``frequencies ** exponent``.

    The largest is :data:`wordveil.neighbours.clusters.HEAVIEST`, and none is below 1.
    """
    most = frequencies.max()

    def exact(frequency: Decimal) -> Decimal:
        return HEAVIEST * (frequency / Decimal(float(most))) ** Decimal(exponent)

    weights = HEAVIEST * (frequencies / most) ** exponent
    return np.maximum(_round_surely(weights, frequencies, exact), 1).astype(np.int64)


def add_rarity(vectors: Float32, frequencies: Float64, rarity: float) -> Float32:
    """Compute points for clustering: the directions of vectors, with a word's rarity as one more coordinate.

    The coordinate is ``rarity`` times the logarithm of public frequency, brought to a mean of 0 and a variance of 1,
    and cut at :data:`_FURTHEST`: otherwise the most frequent words would share nothing but their frequency.
    ``vectors``: float32 ``(size, n)``. ``frequencies``: float64 ``(size,)``, positive. Returns float32 ``(size, n +
    1)``, the same on every machine.
    """
    logarithms = _round_surely(_LOGARITHM * np.log(frequencies), frequencies, lambda value: value.ln() * _LOGARITHM)
    centred = logarithms - math.fsum(logarithms) / len(logarithms)
    spread = math.sqrt(math.fsum(centred * centred) / len(centred)) or 1.0
    directions = np.empty(vectors.shape, np.float32)
    whole_directions(vectors, directions)
    rarities = rarity * LONGEST * np.clip(centred / spread, -_FURTHEST, _FURTHEST)
    return np.column_stack([directions, rarities.astype(np.float32)])


def _round_surely(values: Float64, arguments: Float64, exact: Callable[[Decimal], Decimal]) -> Float64:
    """Round ``values`` to whole numbers, with the same result on every machine. Powers and logarithms differ in their
    last digits, so 25 decimal digits decide near halves (Ziv 1991). ``exact``: a value by its argument.
    """
    whole = np.rint(values)
    with localcontext(prec=25):
        for index in np.flatnonzero(np.abs(np.abs(values - whole) - 0.5) < _NEAR_HALF).tolist():
            whole[index] = float(exact(Decimal(float(arguments[index]))).to_integral_value())
    return whole
