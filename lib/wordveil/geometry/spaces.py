"""Metric spaces of words: Euclidean, Manhattan, angular, hyperbolic (points of the Poincare ball).

Points are rows, float64 ``(count, n)``. Sums over coordinates run from first to last, so that a distance depends only
on its two points.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from wordveil.arrays import Float32, Float64, Int32
from wordveil.compiled import compiled, compiled_part

_EUCLIDEAN, _MANHATTAN, _ANGULAR, _HYPERBOLIC = 0, 1, 2, 3
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Space:
    """Metric of words: its name in the configuration and the ``privacy`` column, and its code in the compiled loops."""

    name: str
    code: int

    def points(self, vectors: Float32) -> Float64:
        """Convert word vectors ``(count, n)`` to points: themselves, or their directions.

        Raises :class:`ValueError` if a vector needs a direction and is zero, or should be in the ball and is not.
        """
        points = vectors.astype(np.float64)
        if self.code == _ANGULAR:
            squares = row_squares(points)
            if not squares.all():
                raise ValueError(
                    f"Expected vectors of a length over 0: number {int(np.argmin(squares))} is zero and has no "
                    "direction. Remove the word, or set mechanism.metric: euclidean."
                )
            points /= np.sqrt(squares)[:, None]
        elif self.code == _HYPERBOLIC:
            squares = row_squares(points)
            if not (squares < 1).all():
                row = int(np.argmax(~(squares < 1)))
                raise ValueError(
                    f"Expected points of the open unit ball: number {row} has length {np.sqrt(squares[row]):.6g}, so "
                    "this is not a Poincare embedding. Train one from pairs of words and hypernyms, use "
                    "demo-poincare, or set another metric."
                )
        return points

    def distances(self, point: Float64, others: Float64) -> Float64:
        """Compute distances of one point ``(n,)`` from others ``(count, n)``: float64 ``(count,)``."""
        out = np.empty(len(others))
        distances_from(self.code, point, others, np.arange(len(others), dtype=np.int32), out)
        return out

    def error(self, points: Float64) -> float:
        """Bound the rounding error of a distance between two of ``points``.

        Sums of n terms err by at most n + 3 units in the last place (Higham, section 3.1), directions by as many of 1.
        """
        terms: float = 4 * (points.shape[1] + 8) * _UNIT
        if self.code == _ANGULAR:
            return 4 * terms
        if self.code == _HYPERBOLIC:
            # d = 2 arsinh(s) moves by at most twice what s does, relatively; 1 - |x| by what |x| does.
            return 4 * terms / float(1.0 - np.sqrt(row_squares(points).max()))
        gaps = points - points[:1]
        reach = np.abs(gaps).sum(axis=1).max() if self.code == _MANHATTAN else np.sqrt(row_squares(gaps).max())
        return terms * 2 * float(reach)


def digest_points(label: str, points: Float64 | Float32, kind: str = "<f8") -> str:
    """Identify points and the facts in ``label`` by 64 hexadecimal digits. ``kind``: the dtype to hash."""
    digest = sha256(label.encode())
    digest.update(np.ascontiguousarray(points, kind).data)
    return digest.hexdigest()


_CODES = {"euclidean": _EUCLIDEAN, "manhattan": _MANHATTAN, "angular": _ANGULAR, "hyperbolic": _HYPERBOLIC}
SPACES = {name: Space(name, code) for name, code in _CODES.items()}


@compiled
def row_squares(points: Float64) -> Float64:
    """Compute squared lengths of rows, float64 ``(count,)``."""
    squares = np.zeros(len(points))
    for row in range(len(points)):
        for k in range(points.shape[1]):
            squares[row] += points[row, k] * points[row, k]
    return squares


@compiled
def distances_from(code: int, point: Float64, points: Float64, which: Int32, out: Float64) -> None:
    """Fill ``out[j]`` with the distance of ``point`` from ``points[which[j]]``."""
    n = len(point)
    for j in range(len(which)):
        other = points[which[j]]
        if code == _MANHATTAN:
            total = 0.0
            for k in range(n):
                total += abs(point[k] - other[k])
            out[j] = total
        elif code == _EUCLIDEAN:
            total = 0.0
            for k in range(n):
                gap = point[k] - other[k]
                total += gap * gap
            out[j] = np.sqrt(total)
        elif code == _HYPERBOLIC:
            out[j] = 2.0 * np.arcsinh(np.sqrt(half_sinh_square(point, other)))
        else:  # exact near 0 and near pi, unlike the arc cosine of the inner product
            apart, along = 0.0, 0.0
            for k in range(n):
                gap = point[k] - other[k]
                both = point[k] + other[k]
                apart += gap * gap
                along += both * both
            out[j] = 2.0 * np.arctan2(np.sqrt(apart), np.sqrt(along))


@compiled_part
def half_sinh_square(x: Float64, y: Float64) -> float:
    """Compute ``sinh^2(d / 2)`` of two points of the Poincare ball: ``|x - y|^2 / ((1 - |x|^2)(1 - |y|^2))``."""
    apart, left, right = 0.0, 0.0, 0.0
    for k in range(len(x)):
        gap = x[k] - y[k]
        apart += gap * gap
        left += x[k] * x[k]
        right += y[k] * y[k]
    left, right = np.sqrt(left), np.sqrt(right)
    return float(apart / ((1.0 - left) * (1.0 + left) * (1.0 - right) * (1.0 + right)))
