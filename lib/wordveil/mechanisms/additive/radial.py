"""Laws that the radius of additive noise must follow for its claimed epsilon to be true.

They are computed from the density that a mechanism claims, by another route than its sampler takes.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincc, gammainc

from wordveil.arrays import Float64

# The density is computed at this many points of the radius's logarithm, from where the density is e^-70 of its height.
_POINTS, _DEPTH = 20_001, 70.0
_LOGARITHMS = np.linspace(-60.0, 60.0, 12_001)


def euclidean_laplace(radii: Float64, n: int, epsilon: float) -> Float64:
    """Compute the law for ``exp(-epsilon |z|)`` in a Euclidean space: Gamma(n, 1/epsilon) (Fernandes, Dras, McIver
    2019, algorithm 2).
    """
    return np.asarray(gammainc(n, epsilon * radii))


def hyperbolic_laplace(radii: Float64, n: int, epsilon: float) -> Float64:
    """Compute the law for ``exp(-epsilon r)`` by hyperbolic volume: ``exp(-2r)`` is Beta((epsilon - n + 1)/2, n)."""
    return np.asarray(betaincc((epsilon - n + 1) / 2, n, np.exp(-2 * radii)))


def hyperbolic_fdd(radii: Float64, n: int, epsilon: float) -> Float64:
    """Compute the law for ``exp(-epsilon r)`` by Lebesgue measure in the ball (Feyisetan, Diethe, Drake 2019, Eq. 7).

    The density of the radius is proportional to ``exp(-epsilon r) sech^{2n}(r/2) sinh^{n-1} r``. It is integrated by
    Simpson's rule.
    """
    from scipy.integrate import cumulative_simpson  # takes longer to load than the rest of this package

    rough = _log_fdd(_LOGARITHMS, n, epsilon)
    inside = _LOGARITHMS[rough > rough.max() - _DEPTH]
    logarithms = np.linspace(inside[0], inside[-1], _POINTS)
    density = np.exp(_log_fdd(logarithms, n, epsilon) - rough.max())
    below = cumulative_simpson(density, x=logarithms, initial=0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.interp(np.log(radii), logarithms, below / below[-1]))


def _log_fdd(logarithms: Float64, n: int, epsilon: float) -> Float64:
    """Compute the logarithm of the density of the radius's logarithm, up to a constant."""
    r = np.exp(np.minimum(logarithms, 600.0))
    area = r + np.log(-np.expm1(-2 * r))
    return np.asarray(logarithms - epsilon * r - n * (r + 2 * np.log1p(np.exp(-r))) + (n - 1) * area)
