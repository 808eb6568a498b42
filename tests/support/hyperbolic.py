"""Formulas of hyperbolic space that the package does not need, to compare it with.

Moebius addition: Ungar 2008. Arrays are those of :mod:`wordveil.geometry.hyperbolic`.
"""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float64
from wordveil.geometry.euclidean import inner


def to_ball(points: Float64) -> Float64:
    """Lorentz points ``(n + 1, count)`` in the ball: ``x / (1 + x_0)``, float64 ``(n, count)``.

    Beyond a distance of 37 from the origin the nearest float64 is on the unit sphere.
    """
    return np.asarray(points[1:] / (1.0 + points[0]))


def from_polar(radius: Float64, direction: Float64) -> Float64:
    """Lorentz points at distances ``radius``, ``(count,)``, of the origin in unit directions ``(n, count)``; up to a
    radius of 710.
    """
    return np.concatenate([np.cosh(radius)[None], np.sinh(radius) * direction])


def lorentz_distances(x: Float64, y: Float64) -> Float64:
    """Column-wise distances of Lorentz points ``(n + 1, count)``: ``<x - y, x - y> = 4 sinh^2(d / 2)``.

    Two points near each other and far from the origin lose digits: an absolute error of ``2^-53 cosh^2 r`` in the
    square.
    """
    gap = x - y
    square = inner(gap[1:], gap[1:]) - gap[0] * gap[0]
    return np.asarray(2.0 * np.arcsinh(np.sqrt(np.maximum(square, 0.0)) / 2.0))


def moebius_add(x: Float64, y: Float64) -> Float64:
    """Moebius translation of ball points ``y`` by ``x``, both ``(n, count)``: the isometry that takes the origin to
    ``x``.
    """
    both, xx, yy = inner(x, y), inner(x, x), inner(y, y)
    return np.asarray(((1 + 2 * both + yy) * x + (1 - xx) * y) / (1 + 2 * both + xx * yy))
