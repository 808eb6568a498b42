"""Construction of a tree's arrays from clusters: levels that matter, their numbers, rows of symbols, words written.

Which words are written changes neither draws nor certificate: post-processing (Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Bool, Float32, Float64, Int32, Int64, UInt64
from wordveil.errors import BundleError
from wordveil.mechanisms.tree.levels import Levels, Losses, PadShareError, round_loss, solve_levels
from wordveil.mechanisms.tree.table import Nesting, TreeTable
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

    ``lower_pad_share``: reduce a too large share of paddings to the largest possible. Raises :class:`BundleError`.
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


def certify_table(table: TreeTable, epsilon: float) -> tuple[Losses, float]:
    """Certify a finished table, and round its largest loss up.

    Raises :class:`BundleError` if that is above ``epsilon``.
    """
    losses = table.certify()
    largest = round_loss(losses.largest)
    if not largest <= epsilon:
        raise BundleError(
            f"mechanism.epsilon = {epsilon:g}: the finished numbers lose {largest:g}, which is more. This is a fault "
            "of the build: report it."
        )
    return losses, largest


def _last_of_equal(losses: Sequence[float]) -> list[int]:
    """Find for each level the last one of equal loss: those before it add nothing."""
    last = {loss: level for level, loss in enumerate(losses)}
    return [last[loss] for loss in losses]


def next_levels(losses: Sequence[float]) -> list[int]:
    """Find for each level its index among those that matter."""
    matter = sorted(set(_last_of_equal(losses)))
    return [matter.index(level) for level in _last_of_equal(losses)]


def rows_of(hierarchy: ClusterHierarchy) -> Int32:
    """Compute the row of each symbol: a word's lowest cluster, then padding and the unknown word."""
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
    """Compute weights for clustering in proportion to ``frequencies ** exponent``: int64 ``(size,)``, from 1 to
    :data:`wordveil.neighbours.clusters.HEAVIEST`.
    """
    most = frequencies.max()

    def exact(frequency: Decimal) -> Decimal:
        return HEAVIEST * (frequency / Decimal(float(most))) ** Decimal(exponent)

    weights = HEAVIEST * (frequencies / most) ** exponent
    return np.maximum(_round_surely(weights, frequencies, exact), 1).astype(np.int64)


def add_rarity(vectors: Float32, frequencies: Float64, rarity: float) -> Float32:
    """Compute points for clustering: the directions of vectors, with a word's rarity as one more coordinate.

    The coordinate is ``rarity`` times the standardised logarithm of public frequency, cut at :data:`_FURTHEST`:
    otherwise the most frequent words would share nothing but their frequency. ``frequencies``: float64 ``(size,)``,
    positive. Returns float32 ``(size, n + 1)``, equal on every machine.
    """
    logarithms = _round_surely(_LOGARITHM * np.log(frequencies), frequencies, lambda value: value.ln() * _LOGARITHM)
    centred = logarithms - math.fsum(logarithms) / len(logarithms)
    spread = math.sqrt(math.fsum(centred * centred) / len(centred)) or 1.0
    directions = np.empty(vectors.shape, np.float32)
    whole_directions(vectors, directions)
    rarities = rarity * LONGEST * np.clip(centred / spread, -_FURTHEST, _FURTHEST)
    return np.column_stack([directions, rarities.astype(np.float32)])


def _round_surely(values: Float64, arguments: Float64, exact: Callable[[Decimal], Decimal]) -> Float64:
    """Round ``values`` to whole numbers, equally on every machine.

    Powers and logarithms differ in their last digits, so 25 decimal digits decide near halves (Ziv 1991), by the
    ``exact`` value of an argument.
    """
    whole = np.rint(values)
    with localcontext(prec=25):
        for index in np.flatnonzero(np.abs(np.abs(values - whole) - 0.5) < _NEAR_HALF).tolist():
            whole[index] = float(exact(Decimal(float(arguments[index]))).to_integral_value())
    return whole


@dataclass(frozen=True)
class Outputs:
    """Words that may be written for lowest clusters.

    ``representatives``: int32 ``(clusters,)``, distinct. ``order``: int32 ``(members,)``, the writable words; cluster
    ``c`` has ``order[starts[c]:starts[c + 1]]``, at least one. ``starts``: int64 ``(clusters + 1,)``.
    """

    representatives: Int32
    order: Int32
    starts: Int64

    @classmethod
    def choose(
        cls,
        hierarchy: ClusterHierarchy,
        frequencies: Float64,
        vectors: Float32,
        writable: Bool | None,
        preferred: Int32,
    ) -> Self:
        """Choose the most frequent writable word of each cluster as representative; the lower id wins a tie.

        A cluster without one takes the nearest writable word that represents no cluster. ``frequencies``: float64
        ``(size,)``. ``vectors``: float32 ``(size, n)``. ``writable``: bool ``(size,)``; None: all words. ``preferred``:
        represent their clusters if writable. Raises :class:`ValueError` if too few words may be written.
        """
        bounds, order = hierarchy.bounds[0], hierarchy.order
        clusters = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        rank = -frequencies
        rank[preferred] = -np.inf
        ranked = order[np.lexsort((order, rank[order], clusters))]
        if writable is None:
            return cls(np.asarray(ranked[bounds[:-1]]), order, np.asarray(bounds, np.int64))
        is_writable = writable[ranked]
        found, first = np.unique(clusters[is_writable], return_index=True)
        representatives = np.full(len(bounds) - 1, -1, np.int32)
        representatives[found] = ranked[is_writable][first]
        free = np.setdiff1d(np.flatnonzero(writable), representatives)
        missing = np.flatnonzero(representatives < 0)
        representatives[missing] = _stand_ins(hierarchy, vectors, missing, free)
        written = writable.copy()
        written[representatives[missing]] = False
        is_own = written[order]
        counts = np.bincount(clusters[is_own], minlength=len(representatives))
        counts[missing] = 1
        starts = np.concatenate([[0], np.cumsum(counts)])
        chosen = np.empty(starts[-1], np.int32)
        is_given = np.zeros(len(chosen), np.bool_)
        is_given[starts[missing]] = True
        chosen[is_given] = representatives[missing]
        chosen[~is_given] = order[is_own]
        return cls(representatives, chosen, starts)

    def share_members(self, frequencies: Float64) -> UInt64:
        """Return the last random word that draws each of ``order``: uint64 ``(members,)``, rising within a cluster.

        Shares of 2^64 are in proportion to public frequency, and at least about ``2^-40``; a cluster's last member gets
        the remainder.
        """
        edges = np.empty(len(self.order), np.uint64)
        for start, stop in pairwise(self.starts.tolist()):
            chosen = frequencies[self.order[start:stop]]
            shares = np.maximum(chosen / math.fsum(chosen), 2.0**-40)
            # Slightly less than 2^64 leaves slack for the rounding of shares.
            whole = np.floor(shares / math.fsum(shares) * (1 - 2.0**-50) * 2.0**64).astype(np.uint64)
            edges[start:stop] = np.cumsum(whole) - np.uint64(1)
        return edges

    def write_members(self, hierarchy: ClusterHierarchy) -> Int32:
        """Return the word to write at each position, where positions are words: int32 ``(size,)``.

        The cluster's representative replaces members that may not be written.
        """
        written = np.empty(len(hierarchy.order), np.int32)
        spans = zip(pairwise(hierarchy.bounds[0].tolist()), pairwise(self.starts.tolist()), strict=True)
        for cluster, ((start, stop), (first, last)) in enumerate(spans):
            words = self.order[first:last]
            missing = stop - start - (last - first)
            place = int(np.argmax(words == self.representatives[cluster]))
            written[start:stop] = np.insert(words, place, np.full(missing, self.representatives[cluster], np.int32))
        return written


def _stand_ins(hierarchy: ClusterHierarchy, vectors: Float32, clusters: Int64, free: Int64) -> Int32:
    """Find for each cluster the word of ``free`` nearest to its mean direction, each word once: int32."""
    if len(free) < len(clusters):
        raise ValueError(
            f"{len(clusters):,} clusters have no word that may be written, and {len(free):,} others may be written."
        )
    chosen = np.empty(len(clusters), np.int32)
    if not len(clusters):
        return chosen
    # Whole numbers, so that products are the same on every machine.
    directions = np.empty(vectors.shape, np.float32)
    whole_directions(vectors, directions)
    middles, bounds = np.empty((len(clusters), vectors.shape[1]), np.float32), hierarchy.bounds[0]
    for place, cluster in enumerate(clusters.tolist()):
        words = hierarchy.order[bounds[cluster] : bounds[cluster + 1]]
        middles[place] = directions[words].sum(axis=0, dtype=np.float64)
    centres = np.empty(middles.shape, np.float32)
    whole_directions(middles, centres)
    nearness = directions[free] @ centres.T
    for place in range(len(clusters)):
        nearest = int(np.argmax(nearness[:, place]))
        chosen[place] = free[nearest]
        nearness[nearest] = -np.inf
    return chosen
