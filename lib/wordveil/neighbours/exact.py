"""Exact search for the nearest word: a fast pass over all words with a rigorous error bound, then float64.

For a query ``z`` and a point ``w``, the nearest point has the largest score ``z.w - |w|^2/2``. A first pass
(:mod:`wordveil.neighbours.first_pass`) computes all scores roughly, with a proved bound on each one's error. Every word
whose upper bound reaches the largest lower bound is scored again in float64, coordinate by coordinate in a fixed order;
the largest wins, and the lower id wins a tie. So the answer depends neither on batch shape or thread count nor on the
installed libraries.

The product is taken in tiles that stay in cache, and each tile is scanned for candidates while it is there.
"""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, freeze
from wordveil.geometry.euclidean import inner
from wordveil.neighbours.first_pass import FirstPass, Float32Pass, LorentzPass
from wordveil.neighbours.kernels import Notes, Rows, decide, half_squares

DEFAULT_SCORE_BYTES = 64 * 2**20
# A noted word takes 12 bytes, and most queries note few. The words of one tile must fit.
_NOTES_A_QUERY = 256
_BYTES_A_NOTE = 12


def scoring_rows(points: Float32) -> Float32:
    """Append the column ``-|w|^2/2`` to ``points``, float32 ``(count, n)``: float32 ``(count, n + 1)``."""
    coordinates = points.astype(np.float64).T
    bias = -0.5 * inner(coordinates, coordinates)
    return np.concatenate([points, bias.astype(np.float32)[:, None]], axis=1)


class CertifiedSearch:
    """Exact search for the row with the largest ``z.w - half``; float64 decides between candidates of a first pass.

    ``rows``: ``(count, columns)``; a query's coordinates are multiplied with the first columns. ``half``: float64
    ``(count,)``. ``score_bytes`` bounds the memory of scores, for any vocabulary and any number of queries. Only one
    thread at a time may search.
    """

    def __init__(self, rows: Rows, half: Float64, chosen: FirstPass, score_bytes: int) -> None:
        self._rows = freeze(rows)
        self._half = half
        self._pass = chosen
        block = self._pass.queries
        capacity = min(block * _NOTES_A_QUERY, score_bytes // (2 * _BYTES_A_NOTE))
        self._notes = Notes.for_queries(block, max(capacity, self._pass.tile_words))
        self._rivals = np.empty(block, np.int32)
        self._top = np.empty(block, np.int64)
        self._score = np.empty(block)

    def search(self, queries: Float64) -> Int32:
        """Return ids of the nearest points: int32 ``(count,)`` for float64 queries ``(n, count)``, coordinates first.

        Raises :class:`ValueError` if a query is not finite or too long for float64 squares.
        """
        rows = np.ascontiguousarray(queries.T)
        nearest = np.full(len(rows), -1, np.int32)
        for start in range(0, len(rows), self._pass.queries):
            part = slice(start, start + self._pass.queries)
            self._search_block(rows[part], nearest[part])
        return nearest

    def _search_block(self, queries: Float64, nearest: Int32) -> None:
        notes = self._notes
        if not self._pass.load(queries, notes):
            raise ValueError("Expected finite queries, shorter than 1e150.")
        notes.best.fill(-np.inf)
        self._score.fill(-np.inf)
        for tile in range(self._pass.tiles):
            self._pass.multiply(tile)
            stopped = self._pass.scan(tile, 0, notes)
            while stopped < len(queries):
                self._decide(queries, nearest, last=False)
                stopped = self._pass.scan(tile, stopped, notes)
        self._decide(queries, nearest, last=True)

    def _decide(self, queries: Float64, nearest: Int32, *, last: bool) -> None:
        work = self._rivals, self._top, self._score
        decide(queries, self._rows, self._half, self._notes, *work, nearest, last)


class ExactNearest(CertifiedSearch):
    """Exact search among the first ``candidates`` of ``rows`` by Euclidean distance.

    ``rows``: float32 ``(count, n + 1)`` from :func:`scoring_rows`; it may be memory-mapped.
    """

    def __init__(self, rows: Float32, candidates: int, score_bytes: int = DEFAULT_SCORE_BYTES) -> None:
        rows = rows[:candidates]
        half = np.empty(candidates)
        half_squares(rows, half)
        super().__init__(rows, half, Float32Pass(rows, half, score_bytes // 2), score_bytes)


class LorentzNearest(CertifiedSearch):
    """Exact search among ``rows`` by hyperbolic distance.

    ``cosh d(z, w) = z_0 w_0 - z.w`` is least for the largest ``(-z_0, z).(w_0, w)``. ``rows``: float64
    ``(count, n + 1)``, points of the hyperboloid, time first. Queries of :meth:`search` are ``(-z_0, z)``, each scaled
    by any positive factor.
    """

    def __init__(self, rows: Float64, score_bytes: int = DEFAULT_SCORE_BYTES) -> None:
        super().__init__(rows, np.zeros(len(rows)), LorentzPass(rows, score_bytes // 2), score_bytes)
