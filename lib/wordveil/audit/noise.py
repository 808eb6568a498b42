"""Tests of the law of additive noise: its radius, its direction, and its independence.

In many dimensions draws of words have no power: the noise decides the words, and no event of words has visibly
different probabilities for two neighbours. The proof of such a mechanism rests on its noise: a radius of one law, a
uniform direction that is independent of the radius, and new noise for each token. Each of these is tested on the noise
that the mechanism's own code draws.

* ``radius``: Kolmogorov and Smirnov against the law of the claimed epsilon
  (:attr:`wordveil.mechanisms.base.Mechanism.radial_law`).
* ``direction``: a coordinate ``u`` of a uniform point of the sphere in ``n`` dimensions has ``(1 + u)/2 ~ Beta((n -
  1)/2, (n - 1)/2)``, for any axis. The axes of the space are tested, and random ones. In one dimension the direction is
  a sign, and both signs are equally likely.
* ``independence``: rank correlations of radius and direction, of positions, of records; and how often two coordinates
  have the same sign, which is a fair coin.
* ``repetition``: no value of the noise occurs twice, at positions up to the last that a record may have.

The p-value of a finding is that of its best test, times the number of its tests. A finding refutes at ``alpha`` over
the number of findings (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from wordveil.arrays import Float64
from wordveil.audit.findings import Finding, Verdict
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import derive_contexts, frame_records
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import RadialLaw

RECORDS = 4_000
_NEAR = (0, 1, 2, 3)
_FAR = (2**8, 2**16, 2**16 + 1, 2**24, 2**31, 2**32)
_CHUNK, _AXES = 1_000, 3
# The chance that a pair of values of 52 random bits is equal.
_COLLISION = 2.0**-52
_TESTS = 4


@dataclass(frozen=True)
class NoiseSample:
    """Sample of noise of ``dimension`` at some positions of some records.

    ``radii``: float64 ``(records, positions)``. ``axes``, ``random``: float64 ``(axes, records, positions)``,
    coordinates of the direction along some of the space's own axes, and along random ones.
    """

    dimension: int
    radii: Float64
    axes: Float64
    random: Float64


@dataclass(frozen=True)
class _Result:
    """Least p-value of some tests, times their number, and the evidence of that test."""

    p_value: float
    seen: str


def sample_noise(
    mechanism: Mechanism[Any], keys: ReleaseKeys, *, records: int = RECORDS, seed: int = 0
) -> NoiseSample | None:
    """Sample the noise of a mechanism at near and far positions of records. Return None if it adds none.

    ``keys``: those of no release. ``records``: number of records, each at about ten positions: the first four, and some
    up to the last that it may have. ``seed``: for the records and the random axes.
    """
    last = mechanism.max_tokens - 1
    positions = np.array([*_NEAR, *(far for far in _FAR if far < last), last])
    parts: list[NoiseSample] = []
    for start in range(0, records, _CHUNK):
        names = [b"noise %d %d" % (seed, record) for record in range(start, min(start + _CHUNK, records))]
        contexts = np.repeat(derive_contexts(keys.context, b"", frame_records(names, [])), len(positions), axis=0)
        noise = mechanism.noise_at(contexts, np.tile(positions, len(names)), keys)
        if noise is None:
            return None
        parts.append(_reduce(noise.radii, noise.directions, len(names), seed))
    return NoiseSample(
        parts[0].dimension,
        np.concatenate([part.radii for part in parts]),
        np.concatenate([part.axes for part in parts], axis=1),
        np.concatenate([part.random for part in parts], axis=1),
    )


def _reduce(radii: Float64, directions: Float64, records: int, seed: int) -> NoiseSample:
    n = len(directions)
    random = np.random.default_rng(seed).standard_normal((_AXES, n))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    shape = (-1, records, len(radii) // records)
    own_axes = directions[sorted({0, n // 2, n - 1})]
    return NoiseSample(n, radii.reshape(shape[1:]), own_axes.reshape(shape), (random @ directions).reshape(shape))


def audit_noise(sample: NoiseSample, law: RadialLaw, epsilon: float, *, alpha: float) -> Iterator[Finding]:
    """Yield four findings about noise: ``radius``, ``direction``, ``independence`` and ``repetition``.

    ``sample``: at least a hundred records. ``epsilon``: as claimed, in the unit of the radius's ``law``. ``alpha``: the
    probability that any of the four refutes noise of the claimed law.
    """

    def judge(test: str, claim: str, result: _Result) -> Finding:
        verdict = Verdict.REFUTED if result.p_value <= alpha / _TESTS else Verdict.NOT_REFUTED
        return Finding(test, verdict, claim, result.seen, p_value=result.p_value, draws=sample.radii.size)

    yield judge("radius", f"The noise is as long as epsilon {epsilon:g} needs.", _test_radius(sample, law, epsilon))
    yield judge("direction", "The noise points everywhere alike.", _test_direction(sample))
    claim = "Radius, direction, positions and records are independent."
    yield judge("independence", claim, _test_independence(sample))
    yield judge("repetition", "Each position of each record has noise of its own.", _test_repetition(sample))


def _combine(results: Sequence[_Result]) -> _Result:
    best = min(results, key=lambda result: result.p_value)
    return _Result(min(best.p_value * len(results), 1.0), best.seen)


def _test_radius(sample: NoiseSample, law: RadialLaw, epsilon: float) -> _Result:
    radii = sample.radii.ravel()
    quantiles = law(radii, sample.dimension, epsilon)
    test = stats.kstest(quantiles, "uniform")
    return _Result(
        float(test.pvalue),
        f"{len(radii):,} radii in {sample.dimension} dimensions: the largest distance from the law is "
        f"{test.statistic:.4f}, and their median is its quantile {np.median(quantiles):.3f}.",
    )


def _test_direction(sample: NoiseSample) -> _Result:
    families = (("axis", sample.axes), ("random axis", sample.random))
    return _combine(
        [
            _test_axis(f"{name} {axis}", row, sample.dimension)
            for name, coordinates in families
            for axis, row in enumerate(coordinates)
        ]
    )


def _test_axis(name: str, coordinate: Float64, n: int) -> _Result:
    values = coordinate.ravel()
    positive = int((values > 0).sum())
    seen = f"{name} of {n}: {positive / len(values):.3f} of {len(values):,} coordinates are positive"
    if n == 1:
        return _Result(float(stats.binomtest(positive, len(values)).pvalue), f"{seen}.")
    shape = (n - 1) / 2
    test = stats.kstest((1 + values) / 2, stats.beta(shape, shape).cdf)
    return _Result(float(test.pvalue), f"{seen}, and the largest distance from the law is {test.statistic:.4f}.")


def _test_independence(sample: NoiseSample) -> _Result:
    named_axes = {f"axis {axis}": row for axis, row in enumerate(sample.axes)}
    results = []
    for name, row in named_axes.items():
        results.append(_correlate(f"radius and {name}", sample.radii, row))
        if sample.dimension > 1:
            results.append(_correlate(f"radius and the size of {name}", sample.radii, np.abs(row)))
    for name, row in {"radius": sample.radii, **named_axes}.items():
        half = len(row) // 2
        results.append(_correlate(f"{name} of a position and the next", row[:, :-1], row[:, 1:]))
        results.append(_correlate(f"{name} of the first position and the last", row[:, 0], row[:, -1]))
        results.append(_correlate(f"{name} of a record and the next", row[:-1], row[1:]))
        results.append(_correlate(f"{name} of a record and one far away", row[:half], row[-half:]))
    for first, second in combinations(range(len(sample.axes)), 2):
        signs = sample.axes[[first, second]] > 0
        pairs, same = signs[0].size, int((signs[0] == signs[1]).sum())
        seen = f"axes {first} and {second}: {same / pairs:.4f} of {pairs:,} pairs have the same sign."
        results.append(_Result(float(stats.binomtest(same, pairs).pvalue), seen))
    return _combine(results)


def _correlate(name: str, left: Float64, right: Float64) -> _Result:
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return _Result(1.0, f"{name}: one of them is constant.")
    test = stats.spearmanr(left.ravel(), right.ravel())
    return _Result(float(test.pvalue), f"{name}: rank correlation {test.statistic:.4f} of {left.size:,} pairs.")


def _test_repetition(sample: NoiseSample) -> _Result:
    """Test for equal values of 52 random bits; the mean number of chance pairs bounds the chance of any."""
    values = sample.radii.ravel()
    repeated = len(values) - len(np.unique(values))
    chance = len(values) * (len(values) - 1) / 2 * _COLLISION
    p_value = float(stats.poisson.sf(repeated - 1, chance)) if repeated else 1.0
    return _Result(p_value, f"{repeated:,} of {len(values):,} values of the noise came before; by chance {chance:.1g}.")
