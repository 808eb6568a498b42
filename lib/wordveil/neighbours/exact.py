"""The true nearest word by a float32 matrix product with a certified float64 re-check.

For a query ``z`` and a point ``w``, the nearest point has the largest score ``z.w - |w|^2/2``. The float32 product
of ``(z, 1)`` with ``(w, -|w|^2/2)`` computes it with an error of at most

    E(z) = gamma(K + 3) * (|z| * max|w| + max|w|^2/2),    gamma(m) = m u / (1 - m u),  u = 2^-24,

for any order of addition, with or without fused multiply-add (Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1; the three extra units cover rounding ``z`` and the bias to float32). The best word's computed
score is therefore within ``2 E`` of the largest computed one. Every word that close is scored again in float64,
coordinate by coordinate in a fixed order; the largest wins, ties go to the lower id. So the answer depends neither on
batch shape nor thread count nor on the BLAS at hand.

The product is taken in tiles that stay in cache; of each tile only the maxima over groups of 16 words are kept. The
groups that can hold the answer (one a query, as a rule) are computed once more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordveil.geometry.euclidean import inner, norms

DEFAULT_SCORE_BYTES = 64 * 2**20
_GROUP = 16
# 1,024 words x 512 queries is a 2 MiB tile: measured fastest of 512 to 8,192 words at 20,000 x 100 and 54,000 x 300.
_TILE_WORDS = 1024
_TILE_QUERIES = 512
# Word ids, scores and flags of a candidate group, as int64, float32 and bool.
_BYTES_A_PAIR = _GROUP * 16
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
        self._groups = -(-candidates // _GROUP)
        self._queries = max(1, min(_TILE_QUERIES, score_bytes // (4 * (2 * self._groups + _TILE_WORDS))))
        # The bias is -|w|^2/2 rounded to float32: undoing that within a millionth spares a float64 copy of all rows.
        self._largest = float(np.sqrt(-2.0 * float(self._rows[:, -1].min()))) * (1 + 1e-6)
        terms = self._rows.shape[1] + 3
        self._gamma = 1.01 * terms * _UNIT / (1 - terms * _UNIT)
        self._floor = terms * _SMALLEST

    def search(self, queries: NDArray[np.float64]) -> NDArray[np.int32]:
        """Ids of the nearest points: int32 ``(count,)`` for float64 queries ``(n, count)``, coordinates first.

        Raises :class:`ValueError` where a query is not finite or too long for float64 squares.
        """
        count = queries.shape[1]
        found = np.empty(count, np.int32)
        tile = np.empty((_TILE_WORDS, self._queries), np.float32)
        maxima = np.empty((self._groups, self._queries), np.float32)
        for start in range(0, count, self._queries):
            block = queries[:, start : start + self._queries]
            found[start : start + self._queries] = self._search_block(block, tile, maxima)
        return found

    def _search_block(
        self, queries: NDArray[np.float64], tile: NDArray[np.float32], maxima: NDArray[np.float32]
    ) -> NDArray[np.int32]:
        count = queries.shape[1]
        length = norms(queries)
        if not length.max() < np.inf:
            raise ValueError("Expected finite queries, shorter than 1e150.")
        # Far queries are scaled down, score and bias alike, so that float32 never overflows; powers of two are exact.
        scale = np.exp2(-np.maximum(np.frexp(length)[1] - 60, 0))
        query32 = np.concatenate([queries * scale, scale[None, :]]).astype(np.float32)
        error = self._gamma * scale * (length * self._largest + 0.5 * self._largest**2) + self._floor
        tile = tile.reshape(-1)[: _TILE_WORDS * count].reshape(_TILE_WORDS, count)
        maxima = maxima.reshape(-1)[: self._groups * count].reshape(self._groups, count)
        self._fill_maxima(query32, tile, maxima)
        near = maxima >= _float32_below(maxima.max(axis=0).astype(np.float64) - 2 * error)
        found = np.empty(count, np.int32)
        for part in self._parts(near):
            group, query = np.nonzero(near[:, part])
            word, query = self._refine(group, query, query32[:, part], error[part])
            found[part] = self._decide(word, query, queries[:, part])
        return found

    def _parts(self, near: NDArray[np.bool_]) -> list[slice]:
        """Ranges of queries whose candidates fit into memory together: all of them, but for strange embeddings."""
        limit = max(1, self._bytes // (8 * _BYTES_A_PAIR))
        if np.count_nonzero(near) <= limit:
            return [slice(0, near.shape[1])]
        parts, start, held = [], 0, 0
        for query, count in enumerate(np.count_nonzero(near, axis=0).tolist()):
            if held and held + count > limit:
                parts.append(slice(start, query))
                start, held = query, 0
            held += count
        return [*parts, slice(start, near.shape[1])]

    def _fill_maxima(self, query32: NDArray[np.float32], tile: NDArray[np.float32], maxima: NDArray[np.float32]) -> None:
        for start in range(0, len(self._rows), _TILE_WORDS):
            rows = self._rows[start : start + _TILE_WORDS]
            scores = np.matmul(rows, query32, out=tile[: len(rows)])
            first = start // _GROUP
            whole = len(rows) // _GROUP
            if whole:
                grouped = scores[: whole * _GROUP].reshape(whole, _GROUP, -1)
                np.maximum.reduce(grouped, axis=1, out=maxima[first : first + whole])
            if whole * _GROUP < len(rows):
                np.maximum.reduce(scores[whole * _GROUP :], axis=0, out=maxima[first + whole])

    def _refine(
        self, group: NDArray[np.intp], query: NDArray[np.intp], query32: NDArray[np.float32], error: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Candidate (word, query) pairs within twice the error of each query's best."""
        word = group[:, None] * _GROUP + np.arange(_GROUP)
        inside = word < len(self._rows)
        score = np.empty(word.shape, np.float32)
        step = max(1, self._bytes // (8 * _GROUP * self._rows.shape[1]))
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

    def _decide(self, word: NDArray[np.intp], query: NDArray[np.intp], queries: NDArray[np.float64]) -> NDArray[np.int32]:
        found = np.empty(queries.shape[1], np.int32)
        found[query] = word
        contested = np.bincount(query, minlength=len(found))[query] > 1
        if contested.any():
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
        return found


def _float32_below(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 not above each value."""
    rounded = values.astype(np.float32)
    return np.where(rounded > values, np.nextafter(rounded, np.float32(-np.inf)), rounded)
