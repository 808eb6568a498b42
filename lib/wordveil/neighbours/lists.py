"""Exact lists of the nearest words of every word.

An approximate list breaks the guarantee of a mechanism that draws from it (a missed neighbour gets the weight of a far
word). Here a float32 product (Manhattan: a float32 loop; hyperbolic: a float64 loop) scores all words with a rigorous
bound on its error, and every word that could belong to the list is measured again in float64, in a fixed order of
addition. The lower id wins a tie.

Float32 ends at 2^-126: below it a number keeps fewer digits, or becomes 0 if the processor is set to flush. So each
operation errs by ``_UNIT`` of its result or by ``_MIN_NORMAL``, whichever is more, and a relative bound is wrong if
points lie within 1e-19 of each other. Euclidean and Manhattan points are therefore measured in a power of two that
brings their largest coordinate into [1/2, 1), which changes no digit. Then the rounding that
:meth:`NeighbourSearch._scores` allows for is at least ``2^-26`` more than is used, and what 5 n operations lose at
``_MIN_NORMAL`` is at most ``5 n 2^-125``. Directions have length 1, so this holds for them too. Hyperbolic scores are
computed in float64 and rounded to float32 once, so that ``_MIN_NORMAL`` itself is allowed for.

Rows are independent: any machine can compute a block of them, and a build resumes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, Int64
from wordveil.compiled import compiled, compiled_bounds
from wordveil.geometry.spaces import Space, distances_from, row_squares

_UNIT = 2.0**-24
# The smallest float32 with all its digits.
_MIN_NORMAL = 2.0**-126
# Bytes of one block's scores; two blocks are at work at once on two cores, each with a copy for the selection.
_BLOCK_BYTES = 128 * 2**20
MAX_ROWS = 1024
# No two points of the ball are further apart: float64 ends it at 37.
_MAX_HYPERBOLIC = 80.0
# Nor are two points with all coordinates below 1, in fewer than 2^59 dimensions; its square is a float32.
_MAX_SCALED = 2.0**60


@dataclass(frozen=True)
class NeighbourLists:
    """Lists of neighbours of consecutive words. Each word is in its own list.

    ``offsets``: int64 ``(rows + 1,)``. ``ids``: int32 ``(entries,)``, rising within a list. ``distances``: float64
    ``(entries,)``. ``cut``: float64 ``(rows,)``, the distance of the nearest word outside a list, at most ``within``,
    or infinity. ``farthest``: upper bound of all distances from these words.
    """

    offsets: Int64
    ids: Int32
    distances: Float64
    cut: Float64
    farthest: float

    @classmethod
    def join(cls, parts: list[NeighbourLists]) -> NeighbourLists:
        """Join the lists of consecutive blocks."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.distances for part in parts]),
            np.concatenate([part.cut for part in parts]),
            max(part.farthest for part in parts),
        )


def block_rows(count: int) -> int:
    """Compute how many of ``count`` words make a block, by the memory that its scores take."""
    return max(1, min(MAX_ROWS, _BLOCK_BYTES // (4 * count)))


class NeighbourSearch:
    """Search for the lists of words whose points are ``points``, float64 ``(count, n)`` of ``space``, for one thread.

    ``max_length``: that of a list, the word itself included, or None. ``within``: only words nearer than this.
    """

    def __init__(self, space: Space, points: Float64, max_length: int | None, within: float) -> None:
        self._space = space
        self._points = points
        self._max_length = len(points) if max_length is None else min(max_length, len(points))
        self._within = within
        scaled, self._scale = points_for_scores(space, points)
        self._rough = scaled.astype(np.float32)
        self._squares = row_squares(scaled)
        self._longest = float(np.sqrt(self._squares.max()))
        # How far rounding to float32 moves a point, in units of the last place. Only for Manhattan distance.
        self._sums = np.abs(scaled).sum(axis=1) if space.name == "manhattan" else np.empty(0)
        self._gaps, self._relative, self._error = np.empty(0), 0.0, 0.0
        if space.name == "hyperbolic":
            # If all words have the same point, all scores are exactly 0.
            self._error = _MIN_NORMAL if (points != points[0]).any() else 0.0
            lengths = np.sqrt(self._squares)
            self._gaps = (1.0 - lengths) * (1.0 + lengths)
            # Twice what float64 loses in a gap, of two points, and what float32 loses in the result.
            self._relative = 8 * (points.shape[1] + 8) * 2.0**-53 / float(self._gaps.min()) + 2 * _UNIT

    def block(self, start: int, stop: int) -> NeighbourLists:
        """Find the lists of the words ``start`` to ``stop - 1``."""
        scores, slack, highest = self._scores(start, stop)
        limit = self._limits(scores, slack)
        counts = count_below(scores, limit)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        near = np.empty(offsets[-1], np.int32)
        gather_below(scores, limit, offsets, near)
        return self._measure(start, offsets, near, highest)

    def _scores(self, start: int, stop: int) -> tuple[Float32, Float64, float]:
        """Compute rough monotone scores ``(rows, count)``, a bound on each row's error, and an upper bound of all
        distances.

        Scores are squared distances of vectors and directions, distances for Manhattan, ``sinh^2(d / 2)`` for
        hyperbolic points; the first two in units of ``_scale``.

        The bounds: a product of n coordinates errs by ``(n + 2) |x| |y|`` units, twice that by half of
        ``(n + 2) reach^2``, and the squares and the two sums by 3 ``reach^2``. So ``(n + 8) reach^2`` is more than
        ``4 reach^2 >= 1`` too many, in units. For Manhattan ``moved`` is twice what the two points move, so that half
        of it, at least 1/2, is too many.
        """
        n = self._rough.shape[1]
        if self._space.name == "hyperbolic":
            scores = np.empty((stop - start, len(self._points)), np.float32)
            rough_hyperbolic(self._points, self._gaps, start, scores)
            highest = 2.0 * float(
                np.arcsinh(np.sqrt((np.float64(scores.max()) + self._error) * (1 + 2 * self._relative)))
            )
            return scores, np.full(len(scores), self._error), highest
        if self._space.name == "manhattan":
            scores = np.empty((stop - start, len(self._rough)), np.float32)
            rough_manhattan(self._rough[start:stop], self._rough, scores)
            # Summing errs by n units of the result; rounding the two points by a unit of their lengths.
            moved = 2 * (self._sums[start:stop] + self._sums.max())
            slack = 1.1 * _UNIT * ((n + 2) * scores.max(axis=1).astype(np.float64) + moved)
            return scores, slack, self._scale * float((scores.max(axis=1) + slack).max())
        scores = self._rough[start:stop] @ self._rough.T
        bias = self._squares.astype(np.float32)
        squares_from_products(scores, bias[start:stop], bias)
        reach = np.sqrt(self._squares[start:stop]) + self._longest
        slack = 1.1 * _UNIT * (n + 8) * reach * reach
        highest = self._scale * float(np.sqrt(max((scores.max(axis=1) + slack).max(), 0.0)))
        if self._space.name == "angular":
            highest = 2.0 * float(np.arcsin(min(1.0, highest / 2))) * (1 + 1e-9)
        return scores, slack, highest

    def _limits(self, scores: Float32, slack: Float64) -> Float32:
        """Compute the largest scores with which a word may belong to a list, or be the nearest outside it.

        The last factor exceeds what rounding to float32 takes off: a limit other than 0 is at least
        ``2 slack >= 2 _MIN_NORMAL``.
        """
        last = min(self._max_length, scores.shape[1] - 1)
        limit = np.full(len(scores), np.inf)
        if self._max_length < scores.shape[1]:
            for row, values in enumerate(scores):
                limit[row] = np.partition(values, last)[last]
        if np.isfinite(self._within):
            # The nearest word outside is needed, too, wherever it is, since `cut` is its distance.
            limit = np.minimum(limit, self._as_score(self._within))
        wide = (limit * (1 + 4 * self._relative) + 2 * slack) * (1 + 1e-6)
        return wide.astype(np.float32)

    def _as_score(self, distance: float) -> float:
        if self._space.name == "hyperbolic":
            return float(np.sinh(min(distance, _MAX_HYPERBOLIC) / 2) ** 2)
        if self._space.name == "angular":
            return float((2 * np.sin(min(distance, np.pi) / 2)) ** 2)
        scaled = min(distance / self._scale, _MAX_SCALED)
        return scaled if self._space.name == "manhattan" else scaled * scaled

    def _measure(self, start: int, offsets: Int64, near: Int32, highest: float) -> NeighbourLists:
        """Select the lists among the words ``near``, by their distances in float64."""
        lengths, ids, distances = [], [], []
        cut = np.empty(len(offsets) - 1)
        for row in range(len(cut)):
            which = near[offsets[row] : offsets[row + 1]]
            margins = np.empty(len(which))
            distances_from(self._space.code, self._points[start + row], self._points, which, margins)
            order = np.lexsort((which, margins))
            inside = min(self._max_length, int(np.searchsorted(margins[order], self._within)))
            complete = len(which) == len(self._points)
            cut[row] = min(
                margins[order[inside]] if inside < len(order) else np.inf if complete else self._within, self._within
            )
            chosen = np.sort(order[:inside])
            lengths.append(inside)
            ids.append(which[chosen])
            distances.append(margins[chosen])
        return NeighbourLists(
            np.concatenate([[0], np.cumsum(lengths)]), np.concatenate(ids), np.concatenate(distances), cut, highest
        )


def points_for_scores(space: Space, points: Float64) -> tuple[Float64, float]:
    """Compute the points whose float32 scores are computed, and their unit: see the module.

    Euclidean ones are moved to their mean, where float32 has most digits for their differences.
    """
    if space.name == "euclidean":
        scaled = points - points.mean(axis=0)
        unit = power_of_two_above(scaled)
        scaled /= unit
        return scaled, unit
    unit = power_of_two_above(points) if space.name == "manhattan" else 1.0
    return points if unit == 1.0 else points / unit, unit


def power_of_two_above(values: Float64) -> float:
    """Compute the smallest power of two above the absolute values; 1 if all are 0."""
    largest = max(float(values.max()), -float(values.min()))
    return float(2.0 ** np.frexp(largest)[1])


@compiled_bounds
def rough_manhattan(rows: Float32, words: Float32, out: Float32) -> None:
    """Compute Manhattan distances in float32, in tiles that stay in cache."""
    for first in range(0, len(words), 256):
        last = min(first + 256, len(words))
        for row in range(len(rows)):
            for word in range(first, last):
                total = np.float32(0.0)
                for k in range(rows.shape[1]):
                    total += abs(rows[row, k] - words[word, k])
                out[row, word] = total


@compiled_bounds
def rough_hyperbolic(points: Float64, gaps: Float64, start: int, out: Float32) -> None:
    """Compute ``sinh^2(d / 2)`` between the ball points from ``start`` on and all, in tiles that stay in cache."""
    for first in range(0, len(points), 256):
        last = min(first + 256, len(points))
        for row in range(len(out)):
            scale = 1.0 / gaps[start + row]
            for word in range(first, last):
                total = 0.0
                for k in range(points.shape[1]):
                    gap = points[start + row, k] - points[word, k]
                    total += gap * gap
                out[row, word] = np.float32(total * scale / gaps[word])


@compiled
def squares_from_products(scores: Float32, left: Float32, right: Float32) -> None:
    """Replace inner products by squared distances, from the squares of both sides."""
    for row in range(len(scores)):
        base = left[row]
        values = scores[row]
        for word in range(len(values)):
            values[word] = (base + right[word]) - np.float32(2.0) * values[word]


@compiled
def count_below(scores: Float32, limit: Float32) -> Int64:
    """Count the scores of each row that are at most its limit."""
    counts = np.zeros(len(scores), np.int64)
    for row in range(len(scores)):
        values = scores[row]
        bound = limit[row]
        total = 0
        for word in range(len(values)):
            total += values[word] <= bound
        counts[row] = total
    return counts


@compiled
def gather_below(scores: Float32, limit: Float32, offsets: Int64, out: Int32) -> None:
    """Collect the words of these scores, row after row."""
    for row in range(len(scores)):
        next_slot = offsets[row]
        for word in range(scores.shape[1]):
            if scores[row, word] <= limit[row]:
                out[next_slot] = word
                next_slot += 1
