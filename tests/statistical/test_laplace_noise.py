"""The noise of the Laplace mechanism has the law that its privacy proof needs.

In dimension n the radius is Gamma(n, 1/epsilon); a direction's squared coordinate is Beta(1/2, (n - 1)/2), with a fair
sign (n = 1: the sign is all there is); radius and direction are independent, and so are coordinates up to their common
radius, positions of one record, and records. The noise comes from the mechanism's own code and keyed stream.

Each check is a function from noise to a p-value. It must accept the real noise (p > 1e-4) and reject noise that is
wrong in the way it is there for (p < 1e-6): so none passes for want of power. Keys and contexts are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from support.toys import KEYS, build_mechanism, counted_contexts, random_embedding
from wordveil.mechanisms.base import Mechanism

DIMENSIONS = [1, 2, 3, 10, 100, 301]
EPSILON = 2.5
POSITIONS = 4
# The radii Gamma(301) and Gamma(302) differ by 0.06 standard deviations: that decides the sample at high n.
RECORDS = {1: 8_000, 2: 8_000, 3: 8_000, 10: 8_000, 100: 12_000, 301: 20_000}
ACCEPT, REJECT = 1e-4, 1e-6
_CHUNK = 1_000
OTHER_DIMENSION = {2: 3, 3: 4, 10: 11, 100: 50, 301: 150}


class Noise(NamedTuple):
    """Radii ``(records, POSITIONS)`` and first, middle and last coordinates ``(3, records, POSITIONS)`` (n = 1: thrice
    the same) of noise in ``n`` dimensions."""

    n: int
    radius: NDArray[np.float64]
    coordinates: NDArray[np.float64]

    @property
    def direction(self) -> NDArray[np.float64]:
        return self.coordinates / self.radius


def summary(vectors: NDArray[np.float64]) -> Noise:
    """The :class:`Noise` of vectors ``(n, records, POSITIONS)``."""
    n = len(vectors)
    return Noise(n, np.sqrt((vectors**2).sum(axis=0)), vectors[[0, n // 2, n - 1]])


def joined(parts: list[Noise]) -> Noise:
    return Noise(
        parts[0].n, np.concatenate([p.radius for p in parts]), np.concatenate([p.coordinates for p in parts], axis=1)
    )


@cache
def mechanism(n: int) -> Mechanism[Any]:
    return build_mechanism(random_embedding(5, n), {"epsilon": EPSILON}, padding=False)


def draw(n: int, contexts: NDArray[np.uint8], positions: NDArray[np.int64]) -> Noise:
    """Real noise, a row of ``positions`` for each context."""
    parts = []
    for start in range(0, len(contexts), _CHUNK):
        context = contexts[start : start + _CHUNK]
        at = np.repeat(context, len(positions), axis=0), np.tile(positions, len(context))
        noise = mechanism(n).noise_at(*at, KEYS)
        assert noise is not None
        parts.append(summary((noise.radii * noise.directions).reshape(n, len(context), len(positions))))
    return joined(parts)


@cache
def real_noise(n: int) -> Noise:
    return draw(n, counted_contexts(RECORDS[n], series=n), np.arange(POSITIONS))


@cache
def wrong_direction(n: int, least: float) -> Noise:
    """The right radius in a direction that is not uniform: a normalised vector of the cube [least, 1]^n."""
    rng = np.random.default_rng(n)
    parts = []
    for start in range(0, RECORDS[n], _CHUNK):
        vectors = rng.uniform(least, 1.0, (n, min(_CHUNK, RECORDS[n] - start), POSITIONS))
        vectors *= rng.gamma(n, 1 / EPSILON, vectors.shape[1:]) / np.sqrt((vectors**2).sum(axis=0))
        parts.append(summary(vectors))
    return joined(parts)


def p_radius(noise: Noise, n: int, epsilon: float) -> float:
    return float(stats.kstest(noise.radius.ravel(), stats.gamma(n, scale=1 / epsilon).cdf).pvalue)


def p_coordinate(noise: Noise, n: int) -> float:
    """The least p-value of three squared coordinates of the direction, times three."""
    law = stats.beta(0.5, (n - 1) / 2).cdf
    return 3 * min(float(stats.kstest((row**2).ravel(), law).pvalue) for row in noise.direction)


def p_sign(noise: Noise) -> float:
    positive = (noise.coordinates > 0).sum(axis=(1, 2))
    return 3 * min(float(stats.binomtest(int(count), noise.radius.size).pvalue) for count in positive)


def p_dependence(noise: Noise) -> float:
    """Chi-square of the table of the radius's eighths against the direction's: signs and, for n > 1, sizes too."""
    least = 1.0
    for row in noise.direction:
        size = (
            np.zeros(row.shape)
            if noise.n == 1
            else np.floor(4 * stats.beta(0.5, (noise.n - 1) / 2).cdf(row**2)).clip(0, 3)
        )
        radius = np.floor(8 * stats.gamma(noise.n, scale=1 / EPSILON).cdf(noise.radius)).clip(0, 7)
        cells = (radius * 8 + size * 2 + (row > 0)).astype(int).ravel()
        table = np.bincount(cells, minlength=64).reshape(8, 8)
        least = min(least, float(stats.chi2_contingency(table[:, table.any(axis=0)]).pvalue))
    return 3 * least


def p_correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    return float(stats.spearmanr(left.ravel(), right.ravel()).pvalue)


def p_coordinates(noise: Noise) -> float:
    first, middle, last = noise.coordinates
    pairs = [(first, last)] if noise.n == 2 else [(first, middle), (first, last), (middle, last)]
    return len(pairs) * min(p_correlation(*pair) for pair in pairs)


def p_positions(noise: Noise) -> float:
    """Rank correlation of each position with the next and the last, in radius and in coordinates."""
    rows = [noise.radius, *noise.coordinates]
    values = [p_correlation(row[:, :-lag], row[:, lag:]) for row in rows for lag in (1, POSITIONS - 1)]
    return len(values) * min(values)


def p_records(noise: Noise) -> float:
    """Rank correlation of each record with the next and with the one half the sample away."""
    rows = [noise.radius, *noise.coordinates]
    values = [p_correlation(row[:-lag], row[lag:]) for row in rows for lag in (1, len(noise.radius) // 2)]
    return len(values) * min(values)


CHECKS: dict[str, tuple[list[int], Callable[[Noise], float]]] = {
    "radius": (DIMENSIONS, lambda noise: p_radius(noise, noise.n, EPSILON)),
    "coordinate": (DIMENSIONS[1:], lambda noise: p_coordinate(noise, noise.n)),
    "sign": (DIMENSIONS, p_sign),
    "dependence": (DIMENSIONS, p_dependence),
    "coordinates": (DIMENSIONS[1:], p_coordinates),
    "positions": (DIMENSIONS, p_positions),
    "records": (DIMENSIONS, p_records),
}


@pytest.mark.parametrize(("check", "n"), [(name, n) for name, (every, _) in CHECKS.items() for n in every])
def test_noise_has_the_law_of_the_proof(check: str, n: int) -> None:
    assert CHECKS[check][1](real_noise(n)) > ACCEPT


def stretch(noise: Noise) -> Noise:
    """Make the radius depend on the direction."""
    factor = 1 + 0.1 * np.sign(noise.coordinates[0])
    return Noise(noise.n, noise.radius * factor, noise.coordinates * factor)


def correlate(noise: Noise) -> Noise:
    coordinates = noise.coordinates.copy()
    coordinates[2] += 0.1 * coordinates[0]
    return noise._replace(coordinates=coordinates)


def share_positions(n: int) -> Noise:
    """Let every position of an even number share the counters of the one after it."""
    return draw(n, counted_contexts(1_000, series=n), np.arange(POSITIONS) // 2)


def share_contexts(n: int) -> Noise:
    """Give every other record the context of the one before it."""
    return draw(n, np.repeat(counted_contexts(500, series=n), 2, axis=0), np.arange(POSITIONS))


# Fernandes, Dras, McIver 2018 can be read as taking the direction from [0, 1]^n.
WRONG: dict[str, tuple[list[int], Callable[[int], float]]] = {
    "radius of half the scale": (DIMENSIONS, lambda n: p_radius(real_noise(n), n, EPSILON / 2)),
    "radius of one dimension less": (DIMENSIONS[1:], lambda n: p_radius(real_noise(n), n - 1, EPSILON)),
    "radius of one dimension more": (DIMENSIONS, lambda n: p_radius(real_noise(n), n + 1, EPSILON)),
    "coordinate of another dimension": (DIMENSIONS[1:], lambda n: p_coordinate(real_noise(n), OTHER_DIMENSION[n])),
    "coordinate of a cube": (DIMENSIONS[1:], lambda n: p_coordinate(wrong_direction(n, -1.0), n)),
    "sign of a positive cube": (DIMENSIONS, lambda n: p_sign(wrong_direction(n, 0.0))),
    "dependent radius": (DIMENSIONS, lambda n: p_dependence(stretch(real_noise(n)))),
    "correlated coordinates": (DIMENSIONS[1:], lambda n: p_coordinates(correlate(real_noise(n)))),
    "shared positions": (DIMENSIONS, lambda n: p_positions(share_positions(n))),
    "shared contexts": (DIMENSIONS, lambda n: p_records(share_contexts(n))),
}


@pytest.mark.parametrize(("wrong", "n"), [(name, n) for name, (every, _) in WRONG.items() for n in every])
def test_wrong_noise_is_rejected(wrong: str, n: int) -> None:
    assert WRONG[wrong][1](n) < REJECT
