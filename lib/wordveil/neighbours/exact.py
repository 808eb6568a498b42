"""Exact search for the nearest word: a fast pass over all words with a rigorous error bound, then float64.

For a query ``z`` and a point ``w``, the nearest point has the largest score ``z.w - |w|^2/2``. A first pass computes
all scores roughly, with a proved bound on each one's error, in tiles that stay in cache. Every word whose upper bound
reaches the largest lower bound is scored again in float64, in a fixed order of coordinates; the largest wins, then the
lower id. So the answer depends neither on batch shape or thread count nor on the installed libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, Int64, freeze
from wordveil.compiled import compiled, compiled_bounds, compiled_part, larger
from wordveil.geometry.euclidean import inner

Rows = Float32 | Float64

# Scores between two checks of the threshold: few enough to find a score above it soon, enough for vector instructions.
CHUNK = 128
_LOWEST = np.float32(-3e38)


class Notes(NamedTuple):
    """The words of a block of queries that may be nearest.

    ``query``, ``word``, ``upper``: the noted words and the upper bounds of their scores, the first ``size[0]`` entries.
    For each query, ``best``: the largest lower bound of a score; ``slack``: the most that rounding may add to a
    difference of bounds; ``scale``: the power of two that scales its scores down.
    """

    query: Int32
    word: Int32
    upper: Float32
    size: Int64
    best: Float32
    slack: Float64
    scale: Float64

    @classmethod
    def for_queries(cls, count: int, capacity: int) -> Notes:
        """Allocate room for ``capacity`` words of ``count`` queries."""
        return cls(
            np.empty(capacity, np.int32),
            np.empty(capacity, np.int32),
            np.empty(capacity, np.float32),
            np.zeros(1, np.int64),
            np.empty(count, np.float32),
            np.empty(count, np.float64),
            np.empty(count, np.float64),
        )


@compiled
def half_squares(rows: Float32, out: Float64) -> None:
    """Set ``out[w]`` to half the squared length of row ``w`` without its last column, added from first to last."""
    for w in range(len(out)):
        total = 0.0
        for k in range(rows.shape[1] - 1):
            value = np.float64(rows[w, k])
            total += value * value
        out[w] = 0.5 * total


@compiled_bounds
def float32_queries(
    queries: Float64, longest: float, gamma: float, floor: float, out: Float32, slack: Float64, scales: Float64
) -> bool:
    """Write queries as rows of the float32 product, with the factor ``scales`` of the bias.

    ``slack``: twice the bound on a score's error. Returns False if a query is not finite or its length leaves float64.
    """
    n = queries.shape[1]
    for q in range(len(queries)):
        square = 0.0
        for k in range(n):
            square += queries[q, k] * queries[q, k]
        length = np.sqrt(square)
        if not length < np.inf:
            return False
        scale = _scale(length)
        for k in range(n):
            out[q, k] = np.float32(queries[q, k] * scale)
        out[q, n] = np.float32(scale)
        scales[q] = scale
        slack[q] = 2.0 * (gamma * scale * (length * longest + 0.5 * longest * longest) + floor)
    return True


@compiled
def _scale(length: float) -> float:
    """Return the power of two that brings a length over 2^60 under it, or 1."""
    scale = 1.0
    while length * scale > 2.0**60:
        scale *= 2.0**-16
    return scale


@compiled_bounds
def scan_float32(scores: Float32, start: int, first: int, notes: Notes) -> int:
    """Note the words of a tile that may be nearest. ``notes.best``: the largest score so far.

    Returns the query at which the notes were full, to continue there, or the number of queries.
    """
    query, word, upper, size, best, slack, _ = notes
    words = scores.shape[1]
    chunks = (words + CHUNK - 1) // CHUNK
    tops = np.empty(chunks, np.float32)
    for q in range(start, len(scores)):
        if len(query) - size[0] < words:
            return q
        top = _LOWEST
        for chunk in range(chunks):
            part = scores[q, chunk * CHUNK : (chunk + 1) * CHUNK]
            value = _LOWEST
            for w in range(len(part)):
                value = larger(value, part[w])
            tops[chunk] = value
            top = larger(top, value)
        best[q] = larger(best[q], top)
        limit = threshold(best[q], slack[q])
        if top < limit:
            continue
        for chunk in range(chunks):
            if tops[chunk] < limit:
                continue
            for w in range(chunk * CHUNK, min(words, (chunk + 1) * CHUNK)):
                if scores[q, w] >= limit:
                    query[size[0]], word[size[0]], upper[size[0]] = q, first + w, scores[q, w]
                    size[0] += 1
    return len(scores)


@compiled_bounds
def lorentz_queries(
    queries: Float64, gamma: float, out: Float32, gaps: Float32, slack: Float64, scales: Float64
) -> bool:
    """Write queries as rows of the float32 product, and ``gamma`` times their lengths to ``gaps``.

    Returns False if one is not finite or too long.
    """
    for q in range(len(queries)):
        square = 0.0
        for k in range(queries.shape[1]):
            square += queries[q, k] * queries[q, k]
            out[q, k] = np.float32(queries[q, k])
        length = np.sqrt(square)
        if not length < 2.0**60:
            return False
        gaps[q] = np.float32(gamma * length * (1.0 + 1e-6))
        slack[q], scales[q] = 0.0, 1.0
    return True


@compiled_bounds
def scan_lorentz(products: Float32, start: int, first: int, gaps: Float32, row_gap: Float32, notes: Notes) -> int:
    """Note words like :func:`scan_float32`, from products whose error is at most ``gaps`` times ``row_gap``.

    ``notes.best`` holds lower bounds, ``notes.upper`` upper bounds of scores.
    """
    query, word, upper, size, best, slack, _ = notes
    words = products.shape[1]
    chunks = (words + CHUNK - 1) // CHUNK
    tops = np.empty(chunks, np.float32)
    for q in range(start, len(products)):
        if len(query) - size[0] < words:
            return q
        gap, floor, top = gaps[q], best[q], _LOWEST
        for chunk in range(chunks):
            value = _LOWEST
            here, there = chunk * CHUNK, (chunk + 1) * CHUNK
            part, row_gaps = products[q, here:there], row_gap[here:there]
            for w in range(len(part)):
                error = gap * row_gaps[w]
                floor = larger(floor, part[w] - error)
                value = larger(value, part[w] + error)
            tops[chunk] = value
            top = larger(top, value)
        best[q] = floor
        limit = threshold(floor, slack[q])
        if top < limit:
            continue
        for chunk in range(chunks):
            if tops[chunk] < limit:
                continue
            for w in range(chunk * CHUNK, min(words, (chunk + 1) * CHUNK)):
                score = products[q, w] + gap * row_gap[w]
                if score >= limit:
                    query[size[0]], word[size[0]], upper[size[0]] = q, first + w, score
                    size[0] += 1
    return len(products)


@compiled
def threshold(best: float, slack: float) -> np.float32:
    """Return a float32 that is at most ``best - slack``, and close to it."""
    exact = np.float64(best) - slack
    return np.float32(exact - abs(exact) * 2.0**-23 - 1e-40)


@compiled
def decide(
    queries: Float64,
    rows: Rows,
    half: Float64,
    notes: Notes,
    rivals: Int32,
    top: Int64,
    score: Float64,
    nearest: Int32,
    last: bool,  # noqa: FBT001 - compiled code takes no keywords
) -> None:
    """Score the noted words in float64, keep each query's best, and drop the rest.

    Coordinates are added from first to last; the lower id wins a tie. ``score`` and ``nearest``: the best so far, or
    -inf and -1. The word with the largest upper bound comes first, and its score rules out most of the others. If no
    more words are to come (``last``), a word without a rival needs no score. ``rivals`` and ``top`` are buffers.
    """
    query, word, upper, size, best, slack, scale = notes
    rivals[:] = 0
    for i in range(size[0]):
        q = query[i]
        if upper[i] >= threshold(best[q], slack[q]):
            if rivals[q] == 0 or upper[i] > upper[top[q]]:
                top[q] = i
            rivals[q] += 1
    for q in range(len(queries)):
        if rivals[q] > 0:
            w = word[top[q]]
            if last and rivals[q] == 1 and nearest[q] < 0:
                nearest[q] = w
            else:
                _keep_better(q, w, queries, rows, half, score, nearest)
    for i in range(size[0]):
        q = query[i]
        if (
            rivals[q] > 1
            and i != top[q]
            and upper[i] >= threshold(max(np.float64(best[q]), score[q] * scale[q]), slack[q])
        ):
            _keep_better(q, word[i], queries, rows, half, score, nearest)
    size[0] = 0


@compiled_part
def _keep_better(q: int, w: int, queries: Float64, rows: Rows, half: Float64, score: Float64, nearest: Int32) -> None:
    total = 0.0
    query, row = queries[q], rows[w]
    for k in range(len(query)):
        total += np.float64(row[k]) * query[k]
    total -= half[w]
    if total > score[q] or (total == score[q] and w < nearest[q]):
        score[q], nearest[q] = total, w


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
        self._longest = float(np.sqrt(2.0 * half.max())) * (1 + 1e-6)  # bounds the rows' lengths from above
        terms = rows.shape[1] + 3
        self._gamma = _gamma(terms)
        self._floor = terms * _SMALLEST

    def load(self, queries: Float64, notes: Notes) -> bool:
        self._count = len(queries)
        return float32_queries(queries, self._longest, self._gamma, self._floor, self._loaded, notes.slack, notes.scale)

    def scan(self, tile: int, start: int, notes: Notes) -> int:
        return scan_float32(self._tile(tile), start, tile * self.tile_words, notes)


class LorentzPass(FirstPass):
    """Float32 product of Lorentz coordinates, with an individual bound on each word's error.

    ``|fl(z.w) - z.w| <= gamma(K + 8) |z| |w|``, as for :class:`Float32Pass`; the extra units cover rounding both sides
    and the bounds. A word far from the origin has a large error, which must not apply to the others.
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


def _gamma(terms: int) -> float:
    """Bound from above what ``terms`` roundings to float32 add to 1."""
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
    ``(count,)``. ``score_bytes`` bounds the memory of scores. Only one thread at a time may search.
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
        transposed = np.ascontiguousarray(queries.T)
        nearest = np.full(len(transposed), -1, np.int32)
        for start in range(0, len(transposed), self._pass.queries):
            block = slice(start, start + self._pass.queries)
            self._search_block(transposed[block], nearest[block])
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
        scratch = self._rivals, self._top, self._score
        decide(queries, self._rows, self._half, self._notes, *scratch, nearest, last)


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
    ``(count, n + 1)``, points of the hyperboloid, time first. Queries of :meth:`search` are ``(-z_0, z)``, scaled by
    any positive factor.
    """

    def __init__(self, rows: Float64, score_bytes: int = DEFAULT_SCORE_BYTES) -> None:
        super().__init__(rows, np.zeros(len(rows)), LorentzPass(rows, score_bytes // 2), score_bytes)
