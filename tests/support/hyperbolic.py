"""Formulas of hyperbolic space to compare the package with (Moebius addition: Ungar 2008)."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float64
from wordveil.geometry.euclidean import inner


def to_ball(points: Float64) -> Float64:
    """Map Lorentz points ``(n + 1, count)`` into the ball: ``x / (1 + x_0)``, float64 ``(n, count)``."""
    return np.asarray(points[1:] / (1.0 + points[0]))


def from_polar(radius: Float64, direction: Float64) -> Float64:
    """Make Lorentz points at distances ``radius`` up to 710 from the origin, in unit directions ``(n, count)``."""
    return np.concatenate([np.cosh(radius)[None], np.sinh(radius) * direction])


def lorentz_distances(x: Float64, y: Float64) -> Float64:
    """Compute column-wise distances of Lorentz points: ``<x - y, x - y> = 4 sinh^2(d / 2)``."""
    gap = x - y
    square = inner(gap[1:], gap[1:]) - gap[0] * gap[0]
    return np.asarray(2.0 * np.arcsinh(np.sqrt(np.maximum(square, 0.0)) / 2.0))


def moebius_add(x: Float64, y: Float64) -> Float64:
    """Translate ball points ``y`` by ``x``, both ``(n, count)``: the isometry that takes the origin to ``x``."""
    both, xx, yy = inner(x, y), inner(x, x), inner(y, y)
    return np.asarray(((1 + 2 * both + yy) * x + (1 - xx) * y) / (1 + 2 * both + xx * yy))
