"""The random walk by which hyperbolic noise was first sampled: a reference to measure against, never a mechanism.

Feyisetan, Diethe, Drake 2019 sample the noise of their Eq. 7 by Metropolis and Hastings: a walk starts at the word's
point, proposes Gaussian steps in the ball, accepts each with the ratio of the target's densities, and stops after a
fixed number of steps. :mod:`wordveil.mechanisms.additive.hyperbolic` draws the same law exactly. The registry of
mechanisms does not know this module.

``exp(-epsilon d)`` can be read as a density with respect to Lebesgue measure (``lebesgue``, Eq. 7), which is proper for
every epsilon, or with respect to hyperbolic volume (``volume``), which is proper iff ``epsilon > n - 1``: below, the
radius grows with the logarithm of the number of steps, without end.

Whatever the target, a chain that never accepts is still at its word, with a probability ``q^N > 0`` (:func:`atom`),
where no other word's chain is: the loss is infinite, and ``delta`` is at least ``q^N``. Even at stationarity
``lebesgue`` around a word costs ``2 epsilon d``, since its constant depends on the word; moved from the origin it is
``hyperbolic-fdd``, ``(epsilon + n) d``; ``volume`` is ``hyperbolic-laplace``, ``epsilon d``. The paper's prose
accepts a proposal if the ratio is below the uniform number, a walk that seeks the places of least density; here it is
the other way round.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import gammaln

from wordveil.arrays import Float64 as FloatArray
from wordveil.geometry.hyperbolic import ball_distances, conformal

Target = Literal["lebesgue", "volume"]
"""With respect to which measure ``exp(-epsilon d)`` is the density of the target."""


def log_target(points: FloatArray, centres: FloatArray, epsilon: float, target: Target) -> FloatArray:
    """Logarithm of the target's density with respect to Lebesgue measure, up to a constant: float64 ``(count,)``.

    ``points``, ``centres``: float64 ``(n, count)`` in the open ball; ``epsilon``: per unit of hyperbolic distance.
    Feyisetan, Diethe, Drake 2019, Eq. 7, around any centre.
    """
    density = -epsilon * ball_distances(points, centres)
    if target == "volume":
        density -= len(points) * np.log(conformal(points))
    return density


def walk(
    points: FloatArray, epsilon: float, steps: int, sd: float, rng: np.random.Generator, target: Target = "lebesgue"
) -> FloatArray:
    """Where a chain from each of ``points`` is after ``steps`` proposals: float64 ``(n, count)``, in the open ball.

    ``points``: float64 ``(n, count)`` in the open ball, start and centre of the target of each chain. ``epsilon``: per
    unit of hyperbolic distance. ``sd``: of a proposal's coordinates, in the ball's own coordinates; proposals outside
    the ball are refused, since the target has no mass there. ``target``: see the module. The algorithm of Feyisetan,
    Diethe, Drake 2019.
    """
    here = np.array(points, np.float64)
    density = log_target(here, points, epsilon, target)
    for _ in range(steps):
        proposal = here + sd * rng.standard_normal(here.shape)
        threshold = np.log1p(-rng.random(here.shape[1]))
        inside = np.flatnonzero(conformal(proposal) > 0)
        proposal = proposal[:, inside]
        proposed = log_target(proposal, points[:, inside], epsilon, target)
        accepted = threshold[inside] <= proposed - density[inside]
        moved = inside[accepted]
        here[:, moved] = proposal[:, accepted]
        density[moved] = proposed[accepted]
    return here


def stayed(found: FloatArray, points: FloatArray) -> NDArray[np.bool_]:
    """Which chains are exactly where they started: bool ``(count,)`` for ``found`` and ``points``, both ``(n,
    count)``.
    """
    return np.asarray((found == points).all(axis=0))


def atom(dimension: int, epsilon: float, steps: int, sd: float, target: Target = "lebesgue") -> float:
    """The probability that a chain from the origin never moves: ``q^steps``.

    Until the first proposal is accepted, all come from the same point and are refused independently with the same
    probability ``q``: 1 less the mean of ``min(1, ratio)`` over a Gaussian step, whose length over ``sd`` is chi
    distributed with ``dimension`` degrees of freedom. By quadrature.
    """
    volume = dimension if target == "volume" else 0
    constant = (1 - dimension / 2) * math.log(2) - float(gammaln(dimension / 2)) - dimension * math.log(sd)

    def accepted(length: float) -> float:
        if not 0 < length < 1:
            return 0.0
        ratio = epsilon * (math.log1p(-length) - math.log1p(length)) - volume * math.log1p(-length * length)
        return math.exp(constant + (dimension - 1) * math.log(length) - (length / sd) ** 2 / 2 + min(0.0, ratio))

    # Most of the steps' lengths lie around this one, which may be a small part of the interval.
    typical = sd * math.sqrt(dimension)
    points = [p for p in (typical / 2, typical, 2 * typical) if p < 1]
    return max(0.0, 1.0 - float(quad(accepted, 0.0, 1.0, points=points)[0])) ** steps
