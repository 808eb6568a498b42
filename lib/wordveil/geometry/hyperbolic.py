"""Hyperbolic space of curvature -1: the Poincare ball and the Lorentz model.

Nickel and Kiela 2017 (ball) and 2018 (Lorentz model). A point at distance ``r`` from the origin in direction ``u`` is
``tanh(r/2) u`` in the ball and ``(cosh r, sinh r u)`` on the hyperboloid. The ball ends at ``r = 37`` in float64, where
its radius rounds to 1, and the hyperboloid at 710, where ``cosh`` overflows. Arrays are coordinate-first, as in
:mod:`wordveil.geometry.euclidean`: ball points ``(n, count)``, Lorentz points ``(n + 1, count)``, time first.
"""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float64
from wordveil.compiled import compiled
from wordveil.geometry.euclidean import inner, norms, round_up


def conformal(ball: Float64) -> Float64:
    """Compute ``1 - |x|^2`` of ball points ``(n, count)``, factored to lose little near the edge."""
    length = norms(ball)
    return np.asarray((1.0 - length) * (1.0 + length))


def to_lorentz(ball: Float64) -> Float64:
    """Map ball points ``(n, count)`` to the hyperboloid: ``(1 + |x|^2, 2 x) / (1 - |x|^2)``, ``(n + 1, count)``.

    Raises :class:`ValueError` for a point outside the open ball.
    """
    gap = conformal(ball)
    if not (gap > 0).all():
        raise ValueError(
            "Expected points of the open unit ball: at least one has a length of 1 or more, or is not finite."
        )
    points = np.empty((len(ball) + 1, ball.shape[1]))
    points[0] = (2.0 - gap) / gap
    points[1:] = 2.0 * ball / gap
    return points


def ball_distances(x: Float64, y: Float64) -> Float64:
    """Compute column-wise distances of ball points, ``2 arsinh(|x - y| / sqrt((1 - |x|^2)(1 - |y|^2)))``."""
    return np.asarray(2.0 * np.arcsinh(norms(x - y) / np.sqrt(conformal(x) * conformal(y))))


def boost(by: Float64, vectors: Float64) -> Float64:
    """Apply the Lorentz boost that takes the origin to ``by`` to ``vectors``; both ``(n + 1, count)``.

    It is Moebius translation, but linear, so that vectors may be scaled:
    ``(w_0 v_0 + w.v, v + w (v_0 + w.v / (1 + w_0)))``.
    """
    along = inner(by[1:], vectors[1:])
    moved = np.empty_like(vectors)
    moved[0] = by[0] * vectors[0] + along
    moved[1:] = vectors[1:] + by[1:] * (vectors[0] + along / (1.0 + by[0]))
    return moved


def diameter(points: Float64) -> float:
    """Bound from above the largest distance among the origin and ball points ``(count, n)``, rows here.

    In falling order of radius the triangle inequality ends each row early. Rounded up at the sixth digit.
    """
    radii = ball_distances(points.T, np.zeros_like(points.T))
    order = np.argsort(-radii, kind="stable")
    most = largest_distance(np.ascontiguousarray(points[order]), radii[order], conformal(points.T)[order])
    return round_up(most * (1 + 1e-9) + 1e-9, 6)


@compiled
def largest_distance(points: Float64, radii: Float64, gaps: Float64) -> float:
    """Compute the largest distance among the origin and ball points ``(count, n)`` in falling order of ``radii``."""
    best = radii[0]
    for i in range(len(points)):
        if 2.0 * radii[i] <= best:
            break
        for j in range(i + 1, len(points)):
            if radii[i] + radii[j] <= best:
                break
            square = 0.0
            for k in range(points.shape[1]):
                gap = points[i, k] - points[j, k]
                square += gap * gap
            best = max(best, 2.0 * np.arcsinh(np.sqrt(square / (gaps[i] * gaps[j]))))
    return float(best)
