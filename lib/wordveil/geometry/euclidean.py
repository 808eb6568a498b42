"""Euclidean space in float64, summed in a fixed order.

NumPy's reductions choose their order of addition by memory layout and batch shape. Here every sum over coordinates runs
from the first to the last, so that a result depends only on its operands. Arrays are therefore *coordinate-first*:
shape ``(n, count)``.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np

from wordveil.arrays import Float32, Float64

# Rows of one block of the diameter's distance matrix: 1,024 x 4,096 float64 is 32 MiB.
_ROWS = 1024
_COLUMNS = 4096
_FEW = 64


def ordered_sum(terms: Float64) -> Float64:
    """Sum over axis 0 from first to last. ``terms``: float64 ``(n, count)``; returns float64 ``(count,)``."""
    total: Float64 = terms[0].copy()
    for row in terms[1:]:
        total += row
    return total


def inner(x: Float64, y: Float64) -> Float64:
    """Compute column-wise inner products of two float64 ``(n, count)`` arrays; float64 ``(count,)``."""
    if x.shape[1] < _FEW:  # the same additions in the same order, in one call instead of one a coordinate
        return np.asarray(np.add.accumulate(x * y, axis=0)[-1])
    total: Float64 = x[0] * y[0]
    for left, right in zip(x[1:], y[1:], strict=True):
        total += left * right
    return total


def norms(x: Float64) -> Float64:
    """Compute column-wise Euclidean norms of a float64 ``(n, count)`` array; float64 ``(count,)``."""
    return np.asarray(np.sqrt(inner(x, x)))


def distances(x: Float64, y: Float64) -> Float64:
    """Compute column-wise Euclidean distances of two float64 ``(n, count)`` arrays; float64 ``(count,)``."""
    difference = x - y
    return norms(difference)


def diameter(points: Float32 | Float64) -> float:
    """Bound from above, to 1e-5 relative, the largest distance between two rows of ``points``, ``(count, n)``.

    By the triangle inequality a pair further apart than ``best`` has radii about the mean that add up to more than
    ``best``; with the rows in falling order of radius whole blocks drop out. The result is rounded up at the sixth
    digit, so that BLAS's order of addition does not move it.
    """
    if len(points) < 2:
        return 0.0
    centre = np.asarray(np.mean(points, axis=0, dtype=np.float64))
    radii = norms(points.astype(np.float64).T - centre[:, None])
    order = np.argsort(-radii, kind="stable")
    radii = radii[order]
    best = 0.0
    for row in range(0, len(order), _ROWS):
        if radii[row] + radii[row] <= best:
            break
        left = points[order[row : row + _ROWS]].astype(np.float64) - centre
        for column in range(row, len(order), _COLUMNS):
            if radii[row] + radii[column] <= best:
                break
            right = points[order[column : column + _COLUMNS]].astype(np.float64) - centre
            best = max(best, _largest_distance(left, right))
    return round_up(best * (1 + 1e-9), 6)


def _largest_distance(left: Float64, right: Float64) -> float:
    squares = left @ right.T
    squares *= -2.0
    squares += np.einsum("ij,ij->i", left, left)[:, None]
    squares += np.einsum("ij,ij->i", right, right)[None, :]
    return float(np.sqrt(max(squares.max(), 0.0)))


def round_up(value: float, digits: int) -> float:
    """Round to the smallest decimal of ``digits`` significant digits that is not below ``value`` (>= 0)."""
    return float(Context(digits, ROUND_CEILING).create_decimal(repr(float(value))))


def round_down(value: float, digits: int) -> float:
    """Round to the largest decimal of ``digits`` significant digits that is not above ``value`` (> 0)."""
    return float(Context(digits, ROUND_FLOOR).create_decimal(repr(float(value))))
