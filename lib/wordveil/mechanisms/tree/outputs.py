"""Choice of the words that may be written for each lowest cluster, and of the one that stands for it.

Only public data decide, so that draws and their certificate do not depend on it: post-processing (Dwork and Roth 2014,
proposition 2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float32, Float64, Int32, Int64, UInt64
from wordveil.neighbours.clusters import ClusterHierarchy, whole_directions


@dataclass(frozen=True)
class Outputs:
    """The words that may be written for lowest clusters.

    ``representatives``: int32 ``(clusters,)``, distinct: the word that stands for each. ``order``: int32
    ``(members,)``, the words that may be written, grouped by cluster. ``starts``: int64 ``(clusters + 1,)``, cluster
    ``c`` has ``order[starts[c]:starts[c + 1]]``, one word at least.
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
        writable: NDArray[np.bool_] | None,
        preferred: Int32,
    ) -> Self:
        """Choose the most frequent writable word of each cluster to stand for it; the lower id wins a tie.

        A cluster without one takes the nearest writable word that stands for no cluster.

        ``frequencies``: float64 ``(size,)``. ``vectors``: float32 ``(size, n)``. ``writable``: bool ``(size,)``; None:
        all words. ``preferred``: words that stand for their clusters if they may be written. Raises
        :class:`ValueError` if too few words may be written.
        """
        bounds, order = hierarchy.bounds[0], hierarchy.order
        clusters = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        rank = -frequencies
        rank[preferred] = -np.inf
        ranked = order[np.lexsort((order, rank[order], clusters))]
        if writable is None:
            return cls(np.asarray(ranked[bounds[:-1]]), order, np.asarray(bounds, np.int64))
        kept = writable[ranked]
        found, first = np.unique(clusters[kept], return_index=True)
        representatives = np.full(len(bounds) - 1, -1, np.int32)
        representatives[found] = ranked[kept][first]
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

        Shares of 2^64 are in proportion to public frequency, and at least about ``2^-40``. The last member of a cluster
        gets the remainder. ``frequencies``: float64 ``(size,)``, positive.
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

        The cluster's representative, next to itself, replaces members that may not be written.
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
