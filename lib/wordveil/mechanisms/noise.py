"""Noise of additive mechanisms, for tests and audits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Float64
from wordveil.geometry.euclidean import norms

RadialLaw = Callable[[Float64, int, float], Float64]
"""``law(radii, n, epsilon)``: the probability of a radius of at most each of some, float64 of their shape, for noise in
``n`` dimensions at the configured epsilon.
"""


@dataclass(frozen=True)
class AdditiveNoise:
    """Noise of tokens: the distance and the direction in which it moves a word.

    ``radii``: float64 ``(count,)``, the distance from the word to its noisy point, in the unit of the mechanism's
    metric. ``directions``: float64 ``(n, count)``, unit vectors, in the ``n`` dimensions of the noise.
    """

    radii: Float64
    directions: Float64

    @classmethod
    def of_vectors(cls, vectors: Float64) -> AdditiveNoise:
        """Make from noise vectors in a Euclidean space: float64 ``(n, count)``."""
        radii = norms(vectors)
        return cls(radii, vectors / radii)

    @classmethod
    def of_contractions(cls, t: Float64, rest: Float64, around: Float64) -> AdditiveNoise:
        """Make from noise in hyperbolic space.

        ``t``, ``rest``: ``exp(-2r)`` of a radius ``r`` and ``1 - exp(-2r)``, float64 ``(count,)``, of which the smaller
        one is exact; ``around``: vectors in the noise's directions, float64 ``(n, count)``. A radius beyond float64 is
        infinite.
        """
        with np.errstate(divide="ignore"):
            logs = np.where(t < rest, np.log(t), np.log1p(-rest))
        return cls(-logs / 2, around / norms(around))
