"""The published random walk has the defects that its module states, and no release can choose it.

Chains are independent, so that fractions and radii of chains are samples. Each check also rejects the wrong case: the
atom of another number of steps, growth where there is a stationary law, the radius of another law and of a chain that
is too short. Seeds are fixed.
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from reference.metropolis import Target, atom, log_target, stayed, walk
from support.repository import ROOT
from support.toys import KEYS, counted_contexts
from wordveil.geometry.hyperbolic import ball_distances, to_lorentz
from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.registry import SHIPPED

ACCEPT, REJECT = 1e-4, 1e-6
CHAINS = 4_000
# Improper: volume at epsilon <= n - 1. 2.5 lies between n - 1 and n.
IMPROPER = [(2, 0.5), (3, 0.5), (5, 1.0)]
PROPER: list[tuple[int, float, Target]] = [
    (2, 0.5, "lebesgue"),
    (5, 1.0, "lebesgue"),
    (2, 3.0, "volume"),
    (3, 2.5, "volume"),
]


def origins(n: int, count: int) -> NDArray[np.float64]:
    return np.zeros((n, count))


def seeded(*numbers: int) -> np.random.Generator:
    return np.random.default_rng([7, *numbers])


@cache
def radii(n: int, epsilon: float, target: Target, steps: int, count: int = CHAINS) -> NDArray[np.float64]:
    """Distances of chains from the origin, where they start."""
    found = walk(origins(n, count), epsilon, steps, 0.5, seeded(n, steps), target)
    return ball_distances(found, origins(n, count))


@cache
def exact(law: type[HyperbolicFDD | HyperbolicLaplace], n: int, epsilon: float) -> NDArray[np.float64]:
    """Radii of the mechanism's own noise."""
    real = law(1, epsilon, to_lorentz(origins(n, 2)).T, digits=4)
    return real.noise_at(counted_contexts(20_000, series=n), np.zeros(20_000, np.int64), KEYS).radii


def p_same(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    return float(stats.ks_2samp(left, right).pvalue)


@pytest.mark.parametrize("target", ["lebesgue", "volume"])
@pytest.mark.parametrize(("n", "epsilon", "sd", "steps"), [(2, 4.0, 0.5, 3), (10, 6.0, 0.1, 3), (50, 8.0, 0.03, 3)])
def test_some_chains_never_move(n: int, epsilon: float, sd: float, steps: int, target: Target) -> None:
    start = origins(n, 20_000)
    count = int(stayed(walk(start, epsilon, steps, sd, seeded(n), target), start).sum())
    expected = [atom(n, epsilon, number, sd, target) for number in (steps, steps + 1)]
    assert 0 < count < len(start.T)
    assert stats.binomtest(count, len(start.T), expected[0]).pvalue > ACCEPT
    assert stats.binomtest(count, len(start.T), expected[1]).pvalue < REJECT


def test_the_atom_never_goes() -> None:
    sizes = [atom(100, 1.0, steps, 0.05) for steps in (1, 100)]
    assert all(0 < size < 1 for size in sizes)
    assert sizes[1] == pytest.approx(sizes[0] ** 100)
    assert atom(2, 1.0, 0, 0.5) == 1.0


def test_where_one_word_stays_no_other_comes() -> None:
    """So the loss between any two is infinite."""
    start = np.full((2, 20_000), 0.3)
    other = -start
    found, moved = (walk(points, 4.0, 5, 0.5, seeded(number)) for number, points in enumerate((start, other)))
    assert stayed(found, start).mean() > 0.01
    assert not stayed(moved, start).any()
    assert stayed(moved, other).mean() > 0.01


@pytest.mark.parametrize(("n", "epsilon"), IMPROPER)
def test_without_a_stationary_law_the_radius_grows_by_ln_4(n: int, epsilon: float) -> None:
    for steps in (100, 400):
        grown = radii(n, epsilon, "volume", 4 * steps).mean() - radii(n, epsilon, "volume", steps).mean()
        assert grown == pytest.approx(math.log(4), abs=0.25)


@pytest.mark.parametrize(("n", "epsilon", "target"), PROPER)
def test_with_a_stationary_law_the_radius_stays(n: int, epsilon: float, target: Target) -> None:
    grown = radii(n, epsilon, target, 1_600).mean() - radii(n, epsilon, target, 400).mean()
    assert abs(grown) < 0.1


@pytest.mark.parametrize(("n", "epsilon", "target"), PROPER)
def test_a_long_chain_has_the_exact_law(n: int, epsilon: float, target: Target) -> None:
    law, other = (HyperbolicFDD, HyperbolicLaplace) if target == "lebesgue" else (HyperbolicLaplace, HyperbolicFDD)
    long = radii(n, epsilon, target, 1_600)
    assert p_same(long, exact(law, n, epsilon)) > ACCEPT
    assert p_same(radii(n, epsilon, target, 4), exact(law, n, epsilon)) < REJECT
    assert p_same(long, exact(law, n, epsilon + 0.3)) < REJECT
    if target == "volume":  # the other exists for any epsilon
        assert p_same(long, exact(other, n, epsilon)) < REJECT


def test_chains_climb_towards_their_words() -> None:
    """The paper's prose has the inequality the other way round."""
    start = np.full((2, CHAINS), 0.4)
    found = ball_distances(walk(start, 6.0, 200, 0.3, seeded(1)), start)
    away = exact(HyperbolicFDD, 2, 6.0)
    assert found.mean() < 1.5 * away.mean()
    assert log_target(start, start, 6.0, "lebesgue")[0] == 0.0


def naming(files: list[Path]) -> list[str]:
    """Files in which the walk is named."""
    return [file.name for file in files if re.search("metropolis", file.read_text("utf-8"), re.IGNORECASE)]


def test_no_release_can_choose_it() -> None:
    assert all(law.__module__.startswith("wordveil.mechanisms.") for law in SHIPPED)
    library = [*(ROOT / "lib").rglob("*.py")]
    settings = [*(ROOT / "conf").rglob("*.yaml"), *(ROOT / "jobs").rglob("*.py")]
    assert len(library) > 50
    assert len(settings) > 5
    assert naming([*library, *settings]) == []
    assert naming([ROOT / "tests" / "reference" / "metropolis.py"]) == ["metropolis.py"]
