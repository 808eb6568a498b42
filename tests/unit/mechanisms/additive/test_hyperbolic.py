"""Hyperbolic space: three coordinates of one point agree, far from the origin too, and the search finds the true
nearest word.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from support.hyperbolic import from_polar, lorentz_distances, moebius_add, to_ball
from wordveil.geometry.hyperbolic import ball_distances, boost, diameter, to_lorentz
from wordveil.geometry.spaces import SPACES
from wordveil.neighbours.exact import LorentzNearest

Floats = NDArray[np.float64]
DIMENSIONS = pytest.mark.parametrize("n", [1, 2, 3, 10, 100])


def directions(n: int, count: int, seed: int = 0) -> Floats:
    found = np.random.default_rng(seed).standard_normal((n, count))
    return found / np.sqrt((found**2).sum(axis=0))


def ball_points(n: int, count: int, seed: int = 0, longest: float = 0.999) -> Floats:
    return directions(n, count, seed) * np.random.default_rng(seed + 1).uniform(0, longest, count)


@DIMENSIONS
def test_coordinates_agree(n: int):
    x, y = ball_points(n, 200), ball_points(n, 200, seed=5)
    left, right = to_lorentz(x), to_lorentz(y)
    assert np.allclose(to_ball(left), x, atol=1e-14)
    assert np.allclose(left[0] ** 2 - (left[1:] ** 2).sum(axis=0), 1.0, rtol=1e-7)
    found = ball_distances(x, y)
    assert np.allclose(found, np.arccosh(left[0] * right[0] - (left[1:] * right[1:]).sum(axis=0)), rtol=1e-6)
    assert np.allclose(found, lorentz_distances(left, right), rtol=1e-7)
    length = np.sqrt((x**2).sum(axis=0))
    assert np.allclose(from_polar(2 * np.arctanh(length), x / length), left, rtol=1e-9)
    assert np.allclose(
        found, [SPACES["hyperbolic"].distances(a, b[None])[0] for a, b in zip(x.T, y.T, strict=True)], rtol=1e-12
    )


@DIMENSIONS
def test_a_boost_is_moebius_translation_and_an_isometry(n: int):
    w, x, y = (ball_points(n, 100, seed=seed, longest=0.95) for seed in (1, 2, 3))
    moved = boost(to_lorentz(w), to_lorentz(x))
    assert np.allclose(to_ball(moved), moebius_add(w, x), atol=1e-12)
    assert np.allclose(to_ball(boost(to_lorentz(w), to_lorentz(np.zeros_like(w)))), w, atol=1e-14)
    assert np.allclose(ball_distances(moebius_add(w, x), moebius_add(w, y)), ball_distances(x, y), rtol=1e-8)
    assert np.allclose(boost(to_lorentz(w), 1e-30 * to_lorentz(x)), 1e-30 * moved, rtol=1e-12)


def test_points_outside_the_ball_are_refused():
    for bad in (1.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="open unit ball"):
            to_lorentz(np.array([[0.0, bad]]))
        with pytest.raises(ValueError, match="open unit ball"):
            SPACES["hyperbolic"].points(np.array([[0.0], [bad]], np.float32))


@pytest.mark.parametrize("longest", [0.3, 0.9999999])
def test_diameter_is_the_largest_distance_with_the_origin(longest: float):
    points = ball_points(3, 150, longest=longest)
    points[:, 0] = directions(3, 1)[:, 0] * longest
    both = np.concatenate([points, np.zeros((3, 1))], axis=1)
    largest = max(ball_distances(np.broadcast_to(point[:, None], both.shape), both).max() for point in both.T)
    assert largest <= diameter(points.T) <= largest * (1 + 1e-5)
    assert diameter(points.T[:1]) == pytest.approx(2 * math.atanh(longest), rel=1e-5), "one word and the origin"


@DIMENSIONS
@pytest.mark.parametrize("longest", [0.5, 0.9999999])
@pytest.mark.parametrize("size", [1, 700, 3000])
def test_the_search_is_equal_to_brute_force(n: int, longest: float, size: int):
    """Queries from right at a word to so far out that their time-like part is all but light-like, and pairs of words in
    one place.
    """
    rng = np.random.default_rng(n)
    points = ball_points(n, size, longest=longest)
    points[:, size // 2] = points[:, 0]
    words = to_lorentz(points)
    t = np.exp(-2 * rng.choice([1e-9, 0.1, 2.0, 10.0, 20.0, 300.0], 400))
    noise = np.concatenate([(1 + t)[None], (1 - t) * directions(n, 400, seed=9)]) / 2
    query = boost(words[:, rng.integers(0, size, 400)], noise)
    query[0] = -query[0]
    scores = query[0][:, None] * words[0]
    for left, right in zip(query[1:], words[1:], strict=True):
        scores += left[:, None] * right
    found = LorentzNearest(np.ascontiguousarray(words.T)).search(query)
    assert np.array_equal(found, scores.argmax(axis=1))


def test_a_query_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        LorentzNearest(to_lorentz(np.zeros((2, 3))).T.copy()).search(np.array([[math.nan], [0.0], [0.0]]))
