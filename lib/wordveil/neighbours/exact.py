"""Exact search for the nearest word: a fast pass over all words with a rigorous error bound, then float64.

For a query ``z`` and a point ``w``, the nearest point has the largest score ``z.w - |w|^2/2``. A first pass computes
all scores roughly, with a proved bound on each one's error. Every word whose upper bound reaches the largest lower
bound is scored again in float64, coordinate by coordinate in a fixed order; the largest wins, and the lower id wins a
tie. So the answer depends neither on batch shape or thread count nor on the installed libraries.

The product is taken in tiles that stay in cache, and each tile is scanned for candidates while it is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, freeze
from wordveil.geometry.euclidean import inner
from wordveil.neighbours.kernels import (
    Notes,
    Rows,
    decide,
    float32_queries,
    half_squares,
    lorentz_queries,
    scan_float32,
    scan_lorentz,
)

_UNIT = 2.0**-24
_SMALLEST = 2.0**-149
# Words and queries of a tile: measured best, by 1 to 25 percent, of tiles of 0.5 to 4 MiB at 20,000 x 100 and 54,000 x
# 300.
_WORDS, _QUERIES = 512, 768


class FirstPass(ABC):
    """Float32 scores of a block of ``queries``, a tile of ``tile_words`` words at a time, by NumPy's BLAS."""

    def __init__(self, rows: Float32, bytes_allowed: int) -> None:
        self._rows = rows
        self.tile_words = min(len(rows), _WORDS)
        self.queries = max(1, min(_QUERIES, bytes_allowed // (4 * self.tile_words)))
        self.tiles = -(-len(rows) // self.tile_words)
        # Kept between calls: new pages for them would cost more than some of the steps. So an instance serves one
        # thread.
        self._loaded = np.empty((self.queries, rows.shape[1]), np.float32)
        self._scores = np.empty(self.queries * self.tile_words, np.float32)
        self._count = 0

    @abstractmethod
    def load(self, queries: Float64, notes: Notes) -> bool:
        """Take a block, float64 ``(count, n)``; return False if a query is not finite or too long."""

    def multiply(self, tile: int) -> None:
        """Compute the scores of a tile of words for the block."""
        np.matmul(self._loaded[: self._count], self._rows[self._words(tile)].T, out=self._tile(tile))

    @abstractmethod
    def scan(self, tile: int, start: int, notes: Notes) -> int:
        """Note the tile's words that may be nearest, from query ``start`` on.

        Returns the query at which the room ran out, or the number of queries.
        """

    def _words(self, tile: int) -> slice:
        return slice(tile * self.tile_words, min((tile + 1) * self.tile_words, len(self._rows)))

    def _tile(self, tile: int) -> Float32:
        words = self._words(tile)
        return self._scores[: self._count * (words.stop - words.start)].reshape(self._count, -1)


class Float32Pass(FirstPass):
    """The float32 matrix product by NumPy's BLAS.

    For any order of addition, with or without fused multiply-add, the error of a score is at most

        E(z) = gamma(K + 3) * (|z| * max|w| + max|w|^2/2),    gamma(m) = m u / (1 - m u),  u = 2^-24

    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1; the three extra units cover rounding ``z`` and
    the bias to float32).
    """

    def __init__(self, rows: Float32, half: Float64, bytes_allowed: int) -> None:
        super().__init__(rows, bytes_allowed)
        self._longest = _longest(half)
        terms = rows.shape[1] + 3
        self._gamma = _gamma(terms)
        self._floor = terms * _SMALLEST

    def load(self, queries: Float64, notes: Notes) -> bool:
        self._count = len(queries)
        return float32_queries(queries, self._longest, self._gamma, self._floor, self._loaded, notes.slack, notes.scale)

    def scan(self, tile: int, start: int, notes: Notes) -> int:
        return scan_float32(self._tile(tile), start, tile * self.tile_words, notes)


class LorentzPass(FirstPass):
    """The float32 product of Lorentz coordinates, with an individual bound on each word's error.

    ``|fl(z.w) - z.w| <= gamma(K + 8) |z| |w|``, as for :class:`Float32Pass`; the extra units cover rounding both sides
    and the bounds themselves. A word far from the origin has long coordinates and a large error, which must not
    apply to the others.
    """

    def __init__(self, rows: Float64, bytes_allowed: int) -> None:
        super().__init__(rows.astype(np.float32), bytes_allowed)
        self._gaps = np.empty(self.queries, np.float32)
        self._factor = _gamma(rows.shape[1] + 8)
        self._row_gap = (np.sqrt(np.einsum("ij,ij->i", rows, rows)) * (1 + 1e-6)).astype(np.float32)

    def load(self, queries: Float64, notes: Notes) -> bool:
        self._count = len(queries)
        return lorentz_queries(queries, self._factor, self._loaded, self._gaps, notes.slack, notes.scale)

    def scan(self, tile: int, start: int, notes: Notes) -> int:
        row_gap = self._row_gap[self._words(tile)]
        return scan_lorentz(self._tile(tile), start, tile * self.tile_words, self._gaps, row_gap, notes)


def _longest(half: Float64) -> float:
    """Upper bound of the rows' lengths."""
    return float(np.sqrt(2.0 * half.max())) * (1 + 1e-6)


def _gamma(terms: int) -> float:
    """Upper bound of what ``terms`` roundings to float32 add to 1."""
    return 1.01 * terms * _UNIT / (1 - terms * _UNIT)


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
