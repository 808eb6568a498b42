"""First passes of the exact search: approximate scores of all words, with a rigorous bound on their error.

A pass only decides which words are scored again in float64, never the answer, which therefore does not depend on the
machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from wordveil.arrays import Float32, Float64
from wordveil.neighbours.kernels import (
    Notes,
    float32_queries,
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
