"""The noise of Feyisetan, Diethe, Drake 2019 as it is printed, to measure what its Table IV shows. It is no mechanism.

A walk of Metropolis and Hastings starts at the origin, and its places after a burn-in are the noise (Alg. 2). The paper
states neither the steps' size nor the burn-in. The noise is added to a word's point (Alg. 1), and a sum outside the
ball is projected back into it (V-D). What comes out is the nearest word.

The loss is infinite: the walk has made finitely many steps, so that what one word can reach another cannot, and the
projection puts whole regions onto the edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Float64, Int64
from wordveil.geometry.hyperbolic import ball_distances

EDGE = 1 - 1e-5
"""The length of what is projected back into the ball."""


@dataclass(frozen=True)
class Walk:
    """The walk's settings.

    Attributes
    ----------
    epsilon
        per unit of hyperbolic distance.
    sigma
        of each coordinate of a step.
    burn_in
        steps before the first draw.
    """

    epsilon: float
    sigma: float
    burn_in: int

    def draw(self, dimension: int, chains: int, draws: int, random: np.random.Generator) -> Float64:
        """Draw the places of chains at ``draws`` steps after the burn-in: float64 ``(chains, draws, dimension)``.

        A proposal outside the ball is projected back. It is accepted with the ratio of ``exp(-epsilon d)``.
        """
        here, radius = np.zeros((chains, dimension)), np.zeros(chains)
        found = np.empty((chains, draws, dimension))
        for step in range(self.burn_in + draws):
            proposed = project(here + self.sigma * random.standard_normal(here.shape))
            far = ball_distances(proposed.T, np.zeros((dimension, 1)))
            accepted = np.log1p(-random.random(chains)) <= self.epsilon * (radius - far)
            here[accepted], radius[accepted] = proposed[accepted], far[accepted]
            if step >= self.burn_in:
                found[:, step - self.burn_in] = here
        return found


def project(points: Float64) -> Float64:
    """Return points, float64 ``(..., dimension)``, those outside the ball moved to its edge."""
    lengths = np.linalg.norm(points, axis=-1, keepdims=True)
    return np.asarray(np.where(lengths >= 1, points / np.maximum(lengths, 1) * EDGE, points))


def add(point: Float64, noise: Float64) -> Float64:
    """Compute the printed sum of a word's point ``(dimension,)`` and noise ``(draws, dimension)``, projected into the
    ball.
    """
    return project(point + noise)


def translate(point: Float64, noise: Float64) -> Float64:
    """Return the Moebius sum of the same, in which the origin moves to the point and distances stay."""
    products = noise @ point
    own, lengths = float(point @ point), (noise * noise).sum(axis=1)
    top = (1 + 2 * products + lengths)[:, None] * point + (1 - own) * noise
    return np.asarray(top / (1 + 2 * products + own * lengths)[:, None])


def find_nearest(points: Float64, words: Float64) -> Int64:
    """Find the number of the word nearest to each point: int64 ``(points,)``.

    ``points``, ``words``: float64 ``(count, dimension)``. For a given point hyperbolic distance grows with
    ``|x - w|^2 / (1 - |w|^2)``.
    """
    squares = (words * words).sum(axis=1)
    own = (points * points).sum(axis=1)[:, None]
    return np.asarray(np.argmin((own - 2 * points @ words.T + squares) / (1 - squares), axis=1))
