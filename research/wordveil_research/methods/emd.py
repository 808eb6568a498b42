"""The Earth Mover's distance of texts: exact, with bounds that avoid most of the work.

Kusner, Sun, Kolkin, Weinberger 2015, "From word embeddings to document distances", as Fernandes, Dras, McIver 2019 use
it for topics. Each word of a text has its share as mass, and moving mass between two words costs the Euclidean distance
of their vectors. The distance of two texts is the least cost of moving one onto the other. POT's network simplex finds
it exactly.

Two bounds never exceed the distance: that of the mean vectors (their section 4, word centroid distance), and the cost
of moving each word to the nearest word of the other text, whatever its mass (relaxed word mover's distance), in either
direction. A text whose bound exceeds the distance of the k-th nearest text so far is not among the k nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil_research.methods.bags import Bags

# Bounds and distances are sums of the same costs in another order, and costs have an error of about 1e-7 of the norms.
_SLACK = 1e-6
_BATCH = 64
_ITERATIONS = 10_000_000


def measure_emd(first: Float64, second: Float64, costs: Float64) -> float:
    """Measure the Earth Mover's distance.

    Parameters
    ----------
    first, second
        float64 ``(n,)`` and ``(m,)``: masses of 0 or more that add up to 1.
    costs
        float64 ``(n, m)``: the cost of moving a unit of mass.
    """
    if min(len(first), len(second)) == 1:  # there is only one way to move
        return float(first @ costs @ second)
    import ot

    # POT accepts only masses of equal sums. Its `emd2` takes four times as long for texts of ten words.
    scaled = second * (first.sum() / second.sum())
    whole = np.ascontiguousarray(costs)
    plan = ot.emd(first, scaled, whole, numItermax=_ITERATIONS, center_dual=False, check_marginals=False)
    return float(np.vdot(plan, whole))


@dataclass(frozen=True)
class Nearest:
    """The texts nearest to a text.

    Attributes
    ----------
    texts
        int64 ``(count,)``: indices of known texts, the nearest first; of equal distances the lower index first.
    distances
        float64 ``(count,)``: their Earth Mover's distances.
    solved
        how many distances were computed; bounds excluded the others.
    """

    texts: Int64
    distances: Float64
    solved: int


@dataclass(frozen=True)
class MoverIndex:
    """An index of known texts for nearest-text searches. It never returns a text without words.

    ``vectors``: float64 ``(size, dimension)``.
    """

    bags: Bags
    vectors: Float64

    @cached_property
    def _filled(self) -> Int64:
        """The known texts that have words."""
        return np.flatnonzero(self.bags.sizes > 0)

    @cached_property
    def _used(self) -> Int64:
        """The words that known texts have."""
        return np.unique(self.bags.ids).astype(np.int64)

    @cached_property
    def _columns(self) -> Int64:
        """The index of each entry's word among the used ones."""
        return np.searchsorted(self._used, self.bags.ids)

    @cached_property
    def _starts(self) -> Int64:
        return np.asarray(self.bags.offsets[self._filled])

    @cached_property
    def _means(self) -> Float64:
        return np.asarray(self.bags.average(self.vectors)[self._filled])

    @cached_property
    def _norms(self) -> Float64:
        return np.asarray(np.einsum("ij,ij->i", self.vectors, self.vectors))

    def search(self, ids: Int32, shares: Float64, count: int) -> Nearest:
        """Search for the ``count`` nearest known texts of a text, or all where there are fewer.

        ``ids``, ``shares``: its words and their shares, from :meth:`Bags.words_of`; at least one word.
        """
        costs = self._measure_costs(ids)
        bounds = self._bound_all(ids, shares, costs)
        order = np.argsort(bounds, kind="stable")
        best: list[tuple[float, int]] = []
        solved = 0
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            if len(best) == count:
                batch = batch[bounds[batch] <= _loosen(best[-1][0])]
                if not len(batch):
                    break
            tighter = np.maximum(bounds[batch], self._bound_back(batch, shares, costs))
            for row in np.argsort(tighter, kind="stable").tolist():
                if len(best) == count and tighter[row] > _loosen(best[-1][0]):
                    break
                solved += 1
                text = int(batch[row])
                best = sorted([*best, (self._solve(text, shares, costs), text)])[:count]
        texts = self._filled[np.array([text for _, text in best], np.int64)]
        return Nearest(texts, np.array([distance for distance, _ in best]), solved)

    def _measure_costs(self, ids: Int32) -> Float64:
        """Measure distances from a text's words to the used words: float64 ``(words, used)``."""
        products = self.vectors[ids] @ self.vectors[self._used].T
        squares = self._norms[ids][:, None] + self._norms[self._used] - 2 * products
        costs = np.sqrt(np.maximum(squares, 0))
        # A word is at distance 0 from itself, despite rounding.
        costs[ids[:, None] == self._used[None, :]] = 0
        return np.asarray(costs)

    def _bound_all(self, ids: Int32, shares: Float64, costs: Float64) -> Float64:
        """Compute a lower bound for each known text that has words: the larger of the centroids' distance and the cost
        of
        moving its words to the nearest ones of this text.
        """
        if not len(self._filled):
            return np.empty(0)
        centroid = np.linalg.norm(self._means - shares @ self.vectors[ids], axis=1)
        moved = np.add.reduceat(self.bags.shares * costs.min(axis=0)[self._columns], self._starts)
        return np.asarray(np.maximum(centroid, moved))

    def _bound_back(self, texts: Int64, shares: Float64, costs: Float64) -> Float64:
        """Bound the cost of moving this text's words to the nearest ones of each of these known texts."""
        starts, sizes = self._starts[texts], self.bags.sizes[self._filled[texts]]
        firsts = np.cumsum(sizes) - sizes
        entries = np.repeat(starts - firsts, sizes) + np.arange(int(sizes.sum()))
        nearest = np.minimum.reduceat(costs[:, self._columns[entries]], firsts, axis=1)
        return np.asarray(shares @ nearest)

    def _solve(self, text: int, shares: Float64, costs: Float64) -> float:
        entries = slice(int(self._starts[text]), int(self.bags.offsets[self._filled[text] + 1]))
        return measure_emd(shares, self.bags.shares[entries], costs[:, self._columns[entries]])


def _loosen(distance: float) -> float:
    return distance + _SLACK * (1 + distance)
