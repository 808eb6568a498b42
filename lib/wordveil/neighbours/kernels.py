"""Compiled loops of the exact search, which scan scores for candidates and decide between candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, Int64
from wordveil.compiled import compiled, compiled_bounds, compiled_part, larger

Rows = Float32 | Float64

# Scores between two checks of the threshold: few enough to find a score above it soon, enough for vector instructions.
CHUNK = 128
_LOWEST = np.float32(-3e38)


class Notes(NamedTuple):
    """The words of a block of queries that may be nearest.

    ``query``, ``word``, ``upper``: the noted words and the upper bounds of their scores, the first ``size[0]`` entries.
    For each query, ``best``: the largest lower bound of a score so far; ``slack``: the most that rounding may add to a
    difference of bounds; ``scale``: the power of two by which its scores are scaled down.
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
    """Set ``out[w]`` to half the squared length of row ``w`` without its last column.

    Coordinates are added from first to last.
    """
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
    """Return the power of two that brings a length over 2^60 under it; 1 for others."""
    scale = 1.0
    while length * scale > 2.0**60:
        scale *= 2.0**-16
    return scale


@compiled_bounds
def scan_float32(scores: Float32, start: int, first: int, notes: Notes) -> int:
    """Note the words of a tile that may be nearest. ``notes.best``: the largest score so far.

    Returns the query at which the notes were full, to continue from there, or the number of queries.
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
    """Note words as :func:`scan_float32` does, from products whose error is at most ``gaps`` times ``row_gap``.

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
    """Return a float32 not above ``best - slack``, and close to it."""
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

    Coordinates are added from first to last. ``score`` and ``nearest``: the best so far, -inf and -1 if there is none.
    The lower id wins a tie. The word with the largest upper bound comes first: its score rules out most of the others.
    If no more words are to come (``last``), a word without a rival needs no score. ``rivals`` and ``top`` are working
    memory.
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
