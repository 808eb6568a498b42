"""The true nearest word by a float32 matrix product with a certified float64 re-check.

For a query ``z`` and a point ``w``, the nearest point has the largest score ``z.w - |w|^2/2``. The float32 product
of ``(z, 1)`` with ``(w, -|w|^2/2)`` computes it with an error of at most

    E(z) = gamma(K + 3) * (|z| * max|w| + max|w|^2/2),    gamma(m) = m u / (1 - m u),  u = 2^-24,

for any order of addition, with or without fused multiply-add (Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1; the three extra units cover rounding ``z`` and the bias to float32). The best word's computed
score is therefore within ``2 E`` of the largest computed one. Every word that close is scored again in float64,
coordinate by coordinate in a fixed order; the largest wins, ties go to the lower id. So the answer depends neither on
batch shape nor thread count nor on the BLAS at hand.

The product is taken in tiles that stay in cache. Of each tile only the maxima over groups of 8 words are kept, words that
lie an equal step apart, so that the maxima are taken over long contiguous rows, and the maximum of the whole tile. The tiles,
and in them the groups, that can hold the answer (one a query, as a rule) are looked at again, and the group computed once more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wordveil.geometry.euclidean import inner, norms

DEFAULT_SCORE_BYTES = 64 * 2**20
_GROUP = 8
# Words and queries of a tile, 1.5 MiB: measured best, by 1 to 5 percent, of 256 to 2,048 words and 192 to 2,048 queries at
# 20,000 x 100 and 54,000 x 300.
_TILE_WORDS = 512
_TILE_QUERIES = 768
# Word ids, scores and flags of a candidate group, as int64, float32 and bool; with room for the search of its tile.
_BYTES_A_PAIR = _GROUP * 16
# Candidate rows gathered at once: they are multiplied while they are still in cache.
_GATHERED_BYTES = 2**19
_UNIT = 2.0**-24
_SMALLEST = 2.0**-149


def scoring_rows(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """``points`` (float32 ``(count, n)``) with the column ``-|w|^2/2`` appended: float32 ``(count, n + 1)``."""
    coordinates = points.astype(np.float64).T
    bias = -0.5 * inner(coordinates, coordinates)
    return np.concatenate([points, bias.astype(np.float32)[:, None]], axis=1)


class ExactNearest:
    """Nearest of the first ``candidates`` rows of ``rows``.

    ``rows``: float32 ``(count, n + 1)`` from :func:`scoring_rows`; it may be memory-mapped. ``score_bytes`` bounds the
    memory that scores take, whatever the vocabulary and however many queries come.
    """

    def __init__(self, rows: NDArray[np.float32], candidates: int, score_bytes: int = DEFAULT_SCORE_BYTES) -> None:
        self._rows = rows[:candidates]
        self._bytes = score_bytes
        # Groups of a tile; a small vocabulary makes a small tile.
        self._slots = min(_TILE_WORDS, -(-candidates // _GROUP) * _GROUP) // _GROUP
        self._tiles = -(-candidates // (self._slots * _GROUP))
        self._queries = max(1, min(_TILE_QUERIES, score_bytes // (4 * self._slots * (4 * self._tiles + _GROUP))))
        # Kept between calls: fresh pages for them would cost more than some of the steps. So an instance serves one thread.
        groups = self._tiles * self._slots
        self._tile = np.empty(self._slots * _GROUP * self._queries, np.float32)
        self._maxima = np.empty(groups * self._queries, np.float32)
        self._tops = np.empty(self._tiles * self._queries, np.float32)
        # The bias is -|w|^2/2 rounded to float32: undoing that within a millionth spares a float64 copy of all rows.
        self._largest = float(np.sqrt(-2.0 * float(self._rows[:, -1].min()))) * (1 + 1e-6)
        terms = self._rows.shape[1] + 3
        self._gamma = 1.01 * terms * _UNIT / (1 - terms * _UNIT)
        self._floor = terms * _SMALLEST

    def search(self, queries: NDArray[np.float64]) -> NDArray[np.int32]:
        """Ids of the nearest points: int32 ``(count,)`` for float64 queries ``(n, count)``, coordinates first.

        Raises :class:`ValueError` where a query is not finite or too long for float64 squares.
        """
        found = np.empty(queries.shape[1], np.int32)
        for start in range(0, len(found), self._queries):
            part = slice(start, start + self._queries)
            found[part] = self._search_block(queries[:, part])
        return found

    def _search_block(self, queries: NDArray[np.float64]) -> NDArray[np.int32]:
        count = queries.shape[1]
        tile = self._tile[: len(self._tile) // self._queries * count]
        maxima = self._maxima[: len(self._maxima) // self._queries * count].reshape(self._tiles, self._slots, count)
        tops = self._tops[: self._tiles * count].reshape(self._tiles, count)
        length = norms(queries)
        if not length.max() < np.inf:
            raise ValueError("Expected finite queries, shorter than 1e150.")
        # Far queries are scaled down, score and bias alike, so that float32 never overflows; powers of two are exact.
        scale = np.exp2(-np.maximum(np.frexp(length)[1] - 60, 0))
        query32 = np.concatenate([queries * scale, scale[None, :]]).astype(np.float32)
        error = self._gamma * scale * (length * self._largest + 0.5 * self._largest**2) + self._floor
        self._fill_maxima(query32, tile.reshape(-1, count), maxima, tops)
        threshold = _float32_below(tops.max(axis=0).astype(np.float64) - 2 * error)
        number, query = np.nonzero(tops >= threshold)
        found = np.empty(count, np.int32)
        for part in self._parts(query):
            pair, slot = np.nonzero(maxima[number[part], :, query[part]] >= threshold[query[part], None])
            word, asked = self._refine(number[part][pair], slot, query[part][pair], query32, error)
            self._decide(word, asked, queries, found)
        return found

    def _fill_maxima(
        self, query32: NDArray[np.float32], tile: NDArray[np.float32], maxima: NDArray[np.float32], tops: NDArray[np.float32]
    ) -> None:
        """``maxima[i, g]``: of group ``g`` of tile ``i``, its words ``g``, ``g + slots``, ...; ``tops[i]``: of the whole tile."""
        words = len(tile)
        for number, out in enumerate(maxima):
            rows = self._rows[number * words : (number + 1) * words]
            np.matmul(rows, query32, out=tile[: len(rows)])
            tile[len(rows) :] = -np.inf
            np.maximum.reduce(tile.reshape(_GROUP, *out.shape), axis=0, out=out)
            np.maximum.reduce(out, axis=0, out=tops[number])

    def _parts(self, query: NDArray[np.intp]) -> Sequence[slice | NDArray[np.intp]]:
        """The candidate tiles, cut between queries so that each part's scores fit into memory. One part, but for
        strange embeddings in which most words are candidates."""
        limit = max(1, self._bytes // (4 * _BYTES_A_PAIR * self._slots))
        if len(query) <= limit:
            return [slice(None)]
        order = np.argsort(query, kind="stable")
        first = np.flatnonzero(np.diff(query[order], prepend=-1))
        cuts = first[np.flatnonzero(np.diff(first // limit, prepend=-1))]
        return np.split(order, cuts[1:])

    def _refine(
        self,
        number: NDArray[np.intp],
        slot: NDArray[np.intp],
        query: NDArray[np.intp],
        query32: NDArray[np.float32],
        error: NDArray[np.float64],
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Candidate (word, query) pairs within twice the error of each query's best, in group ``slot`` of tile ``number``."""
        word = (number * self._slots * _GROUP + slot)[:, None] + np.arange(_GROUP) * self._slots
        inside = word < len(self._rows)
        score = np.empty(word.shape, np.float32)
        step = max(1, min(self._bytes, _GATHERED_BYTES) // (4 * _GROUP * self._rows.shape[1]))
        for start in range(0, len(word), step):
            part = slice(start, start + step)
            rows = self._rows[np.where(inside[part], word[part], 0)]
            score[part] = np.matmul(rows, query32.T[query[part]][:, :, None])[:, :, 0]
        score[~inside] = -np.inf
        best = np.full(len(error), -np.inf, np.float32)
        np.maximum.at(best, query, score.max(axis=1))
        threshold = _float32_below(best.astype(np.float64) - 2 * error)
        pair, member = np.nonzero(score >= threshold[query][:, None])
        return word[pair, member], query[pair]

    def _decide(
        self, word: NDArray[np.intp], query: NDArray[np.intp], queries: NDArray[np.float64], found: NDArray[np.int32]
    ) -> None:
        """Write the best word of each query that has candidates here."""
        found[query] = word
        contested = np.bincount(query, minlength=len(found))[query] > 1
        if not contested.any():
            return
        word, query = word[contested], query[contested]
        score = np.empty(len(word))
        step = max(1, self._bytes // (32 * self._rows.shape[1]))
        for start in range(0, len(word), step):
            part = slice(start, start + step)
            points = self._rows[word[part], :-1].astype(np.float64).T
            score[part] = inner(points, queries[:, query[part]]) - 0.5 * inner(points, points)
        order = np.lexsort((word, -score, query))
        first = np.unique(query[order], return_index=True)[1]
        found[query[order][first]] = word[order][first]


def _float32_below(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each value."""
    rounded = values.astype(np.float32)
    return np.where(rounded > values, np.nextafter(rounded, np.float32(-np.inf)), rounded)
