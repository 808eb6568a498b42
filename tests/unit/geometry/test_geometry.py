"""Sums run in one fixed order, whatever the batch; the diameter is never too small and hardly too large."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from wordveil.geometry.euclidean import diameter, distances, inner, norms, ordered_sum, round_up
from wordveil.geometry.spaces import digest_points

RNG = np.random.default_rng(7)
X = RNG.normal(size=(300, 57)) * np.exp(RNG.normal(size=(300, 1)) * 3)
Y = RNG.normal(size=(300, 57))
ERROR = 300 * 2.0**-53


def assert_near(found, terms):
    """``found`` against exact sums over axis 0, within the bound of any order of adding."""
    exact = [math.fsum(column) for column in terms.T]
    assert (np.abs(found - exact) <= ERROR * np.abs(terms).sum(axis=0) * 1.01).all()
    assert found.dtype == np.float64


def test_sums_are_right_within_rounding_and_change_no_operand():
    given = X.copy()
    assert_near(ordered_sum(X), X)
    assert_near(inner(X, Y), X * Y)
    assert_near(norms(X) ** 2, X * X)
    assert_near(distances(X, Y) ** 2, (X - Y) ** 2)
    assert (given == X).all()


def test_sums_run_from_first_to_last():
    terms = np.array([[1.0], [1.0], [1e16], [-1e16]])
    assert ordered_sum(terms).tolist() == [2.0]
    assert ordered_sum(terms[::-1].copy()).tolist() == [2.0]
    assert ordered_sum(terms[[2, 0, 1, 3]]).tolist() == [0.0]
    assert inner(terms, np.ones((4, 1))).tolist() == [2.0]
    assert inner(terms[[2, 0, 1, 3]], np.ones((4, 1))).tolist() == [0.0]


@pytest.mark.parametrize("cut", [1, 8, 13, 56])
def test_sums_are_the_same_bits_for_any_split_and_layout(cut):
    pairs = (lambda x: inner(x, Y[:, : x.shape[1]])), (lambda x: distances(x, Y[:, : x.shape[1]]))
    for function in (ordered_sum, norms, *pairs):
        whole = function(X)
        assert (function(X[:, :cut]) == whole[:cut]).all()
        assert (function(np.asfortranarray(X)) == whole).all()
        assert (function(np.repeat(X, 2, axis=1)[:, ::2]) == whole).all()
    split = np.concatenate([inner(X[:, :cut], Y[:, :cut]), inner(X[:, cut:], Y[:, cut:])])
    assert (split == inner(X, Y)).all()


def ball(count, dimension, scale=1.0, shift=0.0):
    return RNG.normal(size=(count, dimension)) * scale + shift


ARC = np.linspace(-0.7, 0.7, 5000)
SPHERE = ball(1200, 8)
CLOUDS = {
    # About the origin the far pair is the first block of rows with the second of columns.
    "a cap and a nearer point opposite": np.concatenate([np.stack([np.cos(ARC), np.sin(ARC)], axis=1), [[-0.9, 0.0]]]),
    "random": ball(500, 20),
    "two blocks": ball(1500, 5),
    "many blocks": np.concatenate([ball(4500, 3), [[30, 0, 0]], [[-30, 1, 0]]]),
    "far from the origin": ball(400, 10, shift=1e3),
    "tiny": ball(300, 10, scale=1e-6),
    "huge": ball(300, 10, scale=1e6),
    "one dimension": ball(300, 1),
    "two points": np.array([[0.0, 1.0], [3.0, 5.0]]),
    "two near points": np.array([[1.0, 1.0], [1.0, 1.0 + 1e-4]]),
    "on a sphere": SPHERE / np.linalg.norm(SPHERE, axis=1, keepdims=True),
    "on a line": np.outer(np.arange(1300.0), [1, 2, 3]),
    "simplex": np.eye(40),
    "one outlier": np.concatenate([np.zeros((1500, 4)), [[1, 2, 3, 4]]]),
}


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_diameter_is_an_upper_bound_and_tight(name, offset):
    points = (CLOUDS[name] + offset).astype(np.float32)
    exact = pdist(points.astype(np.float64)).max()
    assert exact <= diameter(points) <= exact * (1 + 1e-5)


def test_digest_of_points_differs_by_label_and_by_each_bit():
    points = CLOUDS["two points"]
    nudged = points.copy()
    nudged[1, 1] = np.nextafter(nudged[1, 1], 9)
    found = [digest_points(*given) for given in (("a", points), ("a", points.copy()), ("b", points), ("a", nudged))]
    assert found[0] == found[1]
    assert len({*found}) == 3


def test_diameter_does_not_depend_on_the_order_of_rows():
    points = CLOUDS["two blocks"]
    assert {diameter(RNG.permutation(points)) for _ in range(5)} == {diameter(points)}


def test_diameter_of_none_of_one_and_of_equal_points():
    assert diameter(np.ones((0, 3), np.float32)) == diameter(np.ones((1, 3), np.float32)) == 0
    assert 0 <= diameter(np.full((1500, 30), 0.1, np.float32)) <= 1e-6


@given(st.floats(1e-300, 1e300), st.integers(1, 15))
def test_rounding_up_is_never_below_and_at_most_a_unit_above(value, digits):
    rounded = round_up(value, digits)
    assert value <= rounded <= value * (1 + 10.0 ** (1 - digits)) * (1 + 1e-15)
    assert rounded == float(f"{rounded:.{digits - 1}e}")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, 0.0), (9.999999, 10.0), (1.0000001, 1.00001), (123456.7, 123457.0), (0.1, 0.1), (7.3e-20, 7.3e-20)],
)
def test_rounding_up_of_known_numbers(value, expected):
    assert round_up(value, 6) == expected
