"""The random walk by which hyperbolic noise was first sampled: a reference to measure against, never a mechanism.

Feyisetan, Diethe, Drake 2019 sample the noise of their Eq. 7 by Metropolis and Hastings: a walk starts at the word's
point, proposes Gaussian steps in the ball, accepts each with the ratio of the target's densities, and stops after a
fixed number of steps. :mod:`wordveil.mechanisms.additive.hyperbolic` draws the same law exactly. The registry of
mechanisms does not know this module.

Steps ``y' = y + sd N(0, I)`` are symmetric with respect to Lebesgue measure, so the walk's target, the law that is
stationary where there is one, has with respect to Lebesgue measure just the density whose ratio is taken.
``exp(-epsilon d)`` can be read in two ways:

``lebesgue``: as that density itself (Eq. 7). It is bounded on a bounded set, and so proper for every epsilon.

``volume``: as a density with respect to hyperbolic volume ``dV = (2 / (1 - |y|^2))^n dy``; the ratio then has that
factor. At a gap ``g = 1 - |y|`` from the edge ``exp(-epsilon d)`` falls as ``g^epsilon``, and the integral of
``g^(epsilon - n)`` is finite iff ``epsilon > n - 1``. So this target is proper iff ``epsilon > n - 1``: ``epsilon > n``
is enough and not needed. Below, no law is stationary. The edge attracts: from a gap ``g`` a step lands nearer to it
with a probability of order ``g / sd``, is then accepted, and returns the more rarely; after ``N`` steps the gap is of
order ``sd / N``. The radius ``ln(2 / g)`` grows as ``ln N``, without end, at any ``epsilon < n - 1``: by ``ln 4``
whenever the number of steps is multiplied by four. How far words move then follows from the number of steps and not
from epsilon, and at a radius of 37 the ball ends in float64.

What is wrong with it, whatever the target:

* An atom. A chain that never accepts is still at its word, with a probability ``q^N > 0``, where ``q`` is the chance
  that a proposal from the word is refused (:func:`atom`). No other word's chain is ever there: Gaussian steps hit a
  point with probability 0. So for any two words and any finite number of steps an event has a positive probability at
  one and none at the other: the loss is infinite, and ``delta`` is at least ``q^N``.
* Even at stationarity, what is true depends on the reading. ``lebesgue`` around a word ``w`` is the exponential
  mechanism with respect to Lebesgue measure: its constant ``Z(w)`` depends on the word, and only ``2 epsilon d`` holds.
  Drawn around the origin and moved by Moebius translation it is ``hyperbolic-fdd``, ``(epsilon + n) d``. ``volume`` is
  ``hyperbolic-laplace``, ``epsilon d``.
* The paper's prose accepts a proposal if the ratio is below the uniform number; that walk seeks the places of least
  density. Here it is the other way round.
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
