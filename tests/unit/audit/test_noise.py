"""Tests of noise accept the noise of the shipped mechanisms in few and many dimensions, and reject other noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.audits import derive_keys
from support.toys import build_mechanism, random_embedding
from wordveil.audit.findings import Verdict
from wordveil.audit.noise import NoiseSample, audit_noise, sample_noise
from wordveil.crypto.streams import CounterOverflowError
from wordveil.mechanisms.additive.tails import euclidean_laplace, hyperbolic_fdd, hyperbolic_laplace
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.mechanisms.registry import MECHANISMS

RECORDS = 1_000
LAWS = {"laplace": euclidean_laplace, "hyperbolic-laplace": hyperbolic_laplace, "hyperbolic-fdd": hyperbolic_fdd}
CASES = [
    ("laplace", 1, 2.0),
    ("laplace", 2, 2.0),
    ("laplace", 3, 2.0),
    ("laplace", 50, 20.0),
    ("hyperbolic-laplace", 1, 0.5),
    ("hyperbolic-laplace", 3, 4.0),
    ("hyperbolic-fdd", 1, 0.5),
    ("hyperbolic-fdd", 3, 2.0),
]


def mechanism_of(name: str, n: int, epsilon: float) -> Mechanism[Any]:
    embedding = random_embedding(12, n)
    if name != "laplace":
        longest = float(np.linalg.norm(embedding.vectors, axis=1).max())
        embedding = replace(embedding, vectors=embedding.vectors * np.float32(0.6 / longest))
    return build_mechanism(embedding, {"epsilon": epsilon}, padding=False, mechanism=name)


def sample_of(name: str, n: int, epsilon: float) -> NoiseSample:
    found = sample_noise(mechanism_of(name, n, epsilon), derive_keys(0), records=RECORDS)
    assert found is not None
    return found


def refuted(sample: NoiseSample, name: str, epsilon: float) -> set[str]:
    found = list(audit_noise(sample, LAWS[name], epsilon, alpha=1e-3))
    assert [finding.test for finding in found] == ["radius", "direction", "independence", "repetition"]
    return {finding.test for finding in found if finding.verdict is Verdict.REFUTED}


@pytest.mark.parametrize(("name", "n", "epsilon"), CASES)
def test_noise_passes_at_the_claimed_epsilon_alone(name: str, n: int, epsilon: float):
    sample = sample_of(name, n, epsilon)
    assert sample.dimension == n
    assert refuted(sample, name, epsilon) == set()
    assert refuted(sample, name, epsilon * 1.25) == {"radius"}
    assert refuted(sample, name, epsilon / 1.25 + (n - 1) * (name == "hyperbolic-laplace")) == {"radius"}


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_what_is_wrong_is_named(n: int):
    sound = sample_of("laplace", n, 2.0)
    assert "direction" in refuted(replace(sound, axes=np.abs(sound.axes)), "laplace", 2.0)
    bound = replace(sound, radii=np.where(sound.axes[0] > 0, sound.radii, np.sort(sound.radii, axis=1)))
    assert "independence" in refuted(replace(sound, radii=np.sort(bound.radii, axis=1)), "laplace", 2.0)
    again = replace(sound, radii=np.tile(sound.radii[: RECORDS // 2], (2, 1)))
    assert {"independence", "repetition"} <= refuted(again, "laplace", 2.0)


def test_laws_of_radii_are_those_of_their_densities():
    """Each is compared with a quadrature in the radius."""
    grid = np.linspace(1e-9, 60.0, 400_001)
    for n, epsilon in ((1, 0.7), (2, 3.0), (5, 9.0)):
        area = np.sinh(grid) ** (n - 1)
        densities = {
            euclidean_laplace: np.exp(-epsilon * grid) * grid ** (n - 1),
            hyperbolic_laplace: np.exp(-epsilon * grid) * area,
            hyperbolic_fdd: np.exp(-epsilon * grid) * np.cosh(grid / 2) ** (-2 * n) * area,
        }
        for law, density in densities.items():
            below = np.cumsum(density)
            for quantile in (0.01, 0.5, 0.99):
                place = np.searchsorted(below, quantile * below[-1])
                assert law(grid[[place]], n, epsilon)[0] == pytest.approx(quantile, abs=2e-3)


def test_noise_is_what_is_added_before_the_search():
    """A word on a line that is far from all others changes where its noise is longer than half of the way."""
    mechanism: Any = mechanism_of("laplace", 1, 2.0)
    contexts, positions = np.zeros((500, 12), np.uint8), np.arange(500)
    noise = mechanism.noise_at(contexts, positions, derive_keys(0))
    noisy = mechanism._index[3, :-1] + (noise.radii * noise.directions)[0]
    nearest = np.abs(noisy[:, None] - mechanism._index[:12, 0]).argmin(axis=1)
    drawn = mechanism.draw(TokenBatch(np.full(500, 3, np.int32), np.array([0, 500]), contexts[:1]), derive_keys(0))
    assert np.mean(drawn.ids == nearest) > 0.99


def test_what_adds_noise_tells_the_law_of_its_radius():
    assert {name for name, kind in MECHANISMS.items() if kind.noise_at is not Mechanism.noise_at} == set(LAWS)
    assert {name: mechanism_of(name, 3, 4.0).radial_law for name in LAWS} == LAWS
    other = build_mechanism(random_embedding(12, 3), {"epsilon": 2.0}, padding=False, mechanism="exponential")
    assert (sample_noise(other, derive_keys(0)), other.radial_law) == (None, None)


def test_no_noise_beyond_the_last_position():
    mechanism = mechanism_of("laplace", 3, 2.0)
    with pytest.raises(CounterOverflowError):
        mechanism.noise_at(np.zeros((1, 12), np.uint8), np.array([mechanism.max_tokens]), derive_keys(0))
