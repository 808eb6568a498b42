"""Noise in hyperbolic space has the radial law that its privacy proof needs, and a uniform direction.

The laws come from quadrature of the densities in docs/proofs/hyperbolic.md, by another route than the samplers take: in
the distance ``r`` itself. Each check accepts the real noise and rejects noise of a slightly wrong parameter. Keys and
contexts are fixed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from support.toys import KEYS, build, counted_contexts, random_embedding, token_batch
from wordveil.crypto.streams import KeyedStream
from wordveil.errors import BundleError
from wordveil.geometry.hyperbolic import to_lorentz
from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace

COUNT = 20_000
ACCEPT, REJECT = 1e-4, 1e-6
Floats = NDArray[np.float64]
# Dimension and epsilon: near the bound n - 1 of existence, where radii are long, and well above it.
LAPLACE = [(n, n - 1 + above) for n in (1, 2, 5, 10, 100) for above in (0.3, 5.0)]
FDD = [(n, eps) for n in (1, 2, 5, 10, 100) for eps in (0.5, 1.0, 30.0)]


def mechanism(kind: type[Any], n: int, epsilon: float) -> Any:
    return kind(1, epsilon, to_lorentz(np.zeros((n, 2))).T.copy(), digits=4)


@cache
def noise(kind: type[Any], n: int, epsilon: float) -> tuple[Floats, Floats]:
    """Radii ``(COUNT,)`` and directions ``(n, COUNT)``."""
    contexts, positions = counted_contexts(COUNT, series=n), np.arange(COUNT) % 7
    found = mechanism(kind, n, epsilon).noise_at(contexts, positions, KEYS)
    return found.radii, found.directions


def log_density(kind: type[Any], n: int, epsilon: float, r: Floats) -> Floats:
    """Of the radius: that of the noise times the area of a sphere, ``sinh^{n-1} r``."""
    log_area = (n - 1) * (r + np.log1p(-np.exp(-2 * r)) - np.log(2)) if n > 1 else np.zeros_like(r)
    if kind is HyperbolicLaplace:
        return -epsilon * r + log_area
    return -epsilon * r - 2 * n * (r / 2 + np.log1p(np.exp(-r)) - np.log(2)) + log_area


def p_radius(kind: type[Any], n: int, epsilon: float, claimed: float) -> float:
    radius, _ = noise(kind, n, epsilon)
    grid = np.linspace(1e-9, 400.0, 400_001) if claimed - n < 1 else np.linspace(1e-9, 60.0, 60_001)
    logs = log_density(kind, n, claimed, grid)
    total = integrate.cumulative_simpson(np.exp(logs - logs.max()), x=grid, initial=0)
    return float(stats.kstest(radius, lambda r: np.interp(r, grid, total / total[-1])).pvalue)


@pytest.mark.parametrize(("n", "epsilon"), LAPLACE)
def test_the_radius_of_laplace(n: int, epsilon: float):
    assert p_radius(HyperbolicLaplace, n, epsilon, epsilon) > ACCEPT
    assert p_radius(HyperbolicLaplace, n, epsilon, n - 1 + 1.1 * (epsilon - n + 1)) < REJECT


@pytest.mark.parametrize(("n", "epsilon"), FDD)
def test_the_radius_of_the_published_noise(n: int, epsilon: float):
    assert p_radius(HyperbolicFDD, n, epsilon, epsilon) > ACCEPT
    assert p_radius(HyperbolicFDD, n, epsilon, epsilon + 0.1 * (epsilon + np.sqrt(n))) < REJECT


@pytest.mark.parametrize("kind", [HyperbolicLaplace, HyperbolicFDD])
@pytest.mark.parametrize("n", [2, 5, 10, 100])
def test_directions_are_uniform_and_independent_of_the_radius(kind: type[Any], n: int):
    radius, direction = noise(kind, n, n - 1 + 5.0 if kind is HyperbolicLaplace else 1.0)
    law = stats.beta(0.5, (n - 1) / 2).cdf
    for row in direction[[0, n // 2, n - 1]]:
        assert stats.kstest(row**2, law).pvalue > ACCEPT
        assert stats.binomtest(int((row > 0).sum()), COUNT).pvalue > ACCEPT
        halves = [law(row[radius < np.median(radius)] ** 2), law(row[radius >= np.median(radius)] ** 2)]
        assert stats.ks_2samp(*halves).pvalue > ACCEPT


@pytest.mark.parametrize("n", [1, 2, 10, 100])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0, 3000.0])
def test_more_than_half_of_the_proposals_are_accepted(n: int, epsilon: float):
    """So that a radius takes six uniforms on average at the most, which ``delta`` counts."""
    real = mechanism(HyperbolicFDD, n, epsilon)
    stream = KeyedStream(KEYS.noise, real._blocks)
    uniforms = np.random.default_rng(n).uniform(size=(3, COUNT))
    parts = real._parts(stream, uniforms, counted_contexts(COUNT), np.arange(COUNT), 0)
    assert np.mean(real._propose(*parts)[2]) > (0.49 if n == 1 else 0.64)


def test_no_noise_below_the_bound_of_existence():
    embedding = random_embedding(20, 10)
    for epsilon in (1.0, 9.0):
        with pytest.raises(BundleError, match=r"only for an epsilon above 9\..*exponential"):
            build(embedding, {"epsilon": epsilon}, padding=False, mechanism="hyperbolic-laplace")


def test_the_unknown_word_enters_at_the_origin():
    """Words all around the origin, one at a time nearest in each direction: the unknown word becomes each as likely."""
    points = np.array([[0.9, 0.0], [-0.9, 0.0], [0.0, 0.9], [0.0, -0.9], [0.0, 0.0]])
    real = HyperbolicLaplace(4, 1.5, to_lorentz(points.T).T.copy(), digits=4)
    drawn = real.draw(token_batch([[5] * 8000]), KEYS).ids
    assert stats.chisquare(np.bincount(drawn, minlength=4)).pvalue > ACCEPT
    apart = real.draw(token_batch([[0] * 8000]), KEYS).ids
    assert stats.chisquare(np.bincount(apart, minlength=4)).pvalue < REJECT
