"""The search finds the true nearest point, the lower id among equals, whatever its memory and threads."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from wordveil.neighbours.exact import ExactNearest, scoring_rows

Points = NDArray[np.float32]
Queries = NDArray[np.float64]

SIZES = [1, 15, 16, 17, 1023, 1024, 1025, 5000]


def brute_force(points: Points, queries: Queries) -> NDArray[np.int32]:
    """The id with the largest ``z.w - |w|^2/2`` in float64, the lower of equals; queries are ``(n, count)``."""
    wide = points.astype(np.float64)
    found = np.empty(queries.shape[1], np.int32)
    half = 0.5 * _ordered(wide, wide.T)
    for column, query in enumerate(queries.T):
        found[column] = np.argmax(_ordered(wide, np.broadcast_to(query[:, None], wide.T.shape)) - half)
    return found


def _ordered(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    total = left[:, 0] * right[0]
    for column in range(1, left.shape[1]):
        total += left[:, column] * right[column]
    return total


def search(points: Points, queries: Queries, candidates: int | None = None) -> NDArray[np.int32]:
    return ExactNearest(scoring_rows(points), candidates or len(points)).search(queries)


def random_points(rng: np.random.Generator, size: int, n: int) -> Points:
    return rng.standard_normal((size, n)).astype(np.float32)


def clustered_points(rng: np.random.Generator, size: int, n: int) -> Points:
    centres = 3 * rng.standard_normal((7, n))
    return (centres[rng.integers(0, 7, size)] + 0.01 * rng.standard_normal((size, n))).astype(np.float32)


def near_duplicate_points(rng: np.random.Generator, size: int, n: int) -> Points:
    """Few places; around each, points that differ by a few units in the last place of some coordinates."""
    places = rng.standard_normal((max(1, size // 40), n)).astype(np.float32)
    points = places[rng.integers(0, len(places), size)]
    return points * (1 + rng.integers(-3, 4, points.shape) * 2.0**-23).astype(np.float32)


def duplicate_points(rng: np.random.Generator, size: int, n: int) -> Points:
    return random_points(rng, max(1, size // 5), n)[rng.integers(0, max(1, size // 5), size)]


SHAPES: dict[str, Callable[[np.random.Generator, int, int], Points]] = {
    "random": random_points,
    "clustered": clustered_points,
    "near-duplicate": near_duplicate_points,
    "duplicate": duplicate_points,
}


def queries_near(rng: np.random.Generator, points: Points, count: int) -> Queries:
    chosen = points[rng.integers(0, len(points), (2, count))].astype(np.float64)
    noise = rng.standard_normal(chosen[0].shape) * np.array([0.0, 0.0, 0.1, 10.0])[np.arange(count) % 4][:, None]
    middle = (np.arange(count) % 4 == 1)[:, None]
    return np.ascontiguousarray((np.where(middle, chosen.mean(axis=0), chosen[0]) + noise).T)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", list(SHAPES))
def test_nearest_is_the_true_one(shape: str, size: int) -> None:
    rng = np.random.default_rng(size)
    for n in (1, 20, 101):
        points = SHAPES[shape](rng, size, n)
        queries = queries_near(rng, points, 80)
        assert np.array_equal(search(points, queries), brute_force(points, queries))


@pytest.mark.parametrize("size", [17, 1025])
def test_integers_are_exact(size: int) -> None:
    """On a grid with many ties: the least squared distance in integers, the lower id of equals."""
    rng = np.random.default_rng(1)
    points = rng.integers(-3, 4, (size, 3))
    queries = rng.integers(-4, 5, (3, 400))
    squares = ((points[:, :, None] - queries[None]) ** 2).sum(axis=1)
    expected = squares.argmin(axis=0)
    assert ((squares == squares.min(axis=0)).sum(axis=0) > 1).any()
    assert np.array_equal(search(points.astype(np.float32), queries.astype(np.float64)), expected)
    assert np.array_equal(brute_force(points.astype(np.float32), queries.astype(np.float64)), expected)


@pytest.mark.parametrize("length", [1e-30, 1e5, 1e18, 1e30, 1e37, 1e60, 1e150])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_far_and_tiny_queries(shape: str, length: float) -> None:
    rng = np.random.default_rng(3)
    points = SHAPES[shape](rng, 1025, 20)
    queries = rng.standard_normal((20, 60))
    queries *= length / np.sqrt((queries**2).sum(axis=0))
    assert np.array_equal(search(points, queries), brute_force(points, queries))


def one_long(points: Points) -> Points:
    points[100] *= 1e4
    return points


# float32 separates vectors with a long common component badly: the re-check decides.
HARD: dict[str, Callable[[Points], Points]] = {
    **{f"times {scale:g}": lambda points, scale=scale: points * np.float32(scale) for scale in (1e-12, 1e-6, 1e6, 1e9)},
    **{f"plus {common:g}": lambda points, common=common: points + np.float32(common) for common in (30, 1000)},
    "one very long vector": one_long,
}


@pytest.mark.parametrize("change", HARD.values(), ids=list(HARD))
@pytest.mark.parametrize("shape", list(SHAPES))
def test_nearest_of_hard_vectors_is_the_true_one(shape: str, change: Callable[[Points], Points]) -> None:
    rng = np.random.default_rng(4)
    points = change(SHAPES[shape](rng, 1025, 20)).astype(np.float32)
    queries = queries_near(rng, points, 60)
    assert np.array_equal(search(points, queries), brute_force(points, queries))


def test_only_candidates_are_found() -> None:
    points = random_points(np.random.default_rng(7), 40, 5)
    queries = points[30:].astype(np.float64).T
    assert np.array_equal(search(points, queries, candidates=30), brute_force(points[:30], queries))
    assert search(points, queries[:, :0]).shape == (0,)


@pytest.mark.parametrize("shape", list(SHAPES))
def test_result_does_not_depend_on_how_queries_are_split(shape: str) -> None:
    rng = np.random.default_rng(8)
    points = SHAPES[shape](rng, 1500, 30)
    queries = queries_near(rng, points, 700)
    nearest = ExactNearest(scoring_rows(points), len(points))
    whole = nearest.search(queries)
    for cuts in ([0, 1, 2, 700], [0, 7, 511, 513, 700], list(range(0, 701, 100))):
        parts = [nearest.search(queries[:, start:stop]) for start, stop in itertools.pairwise(cuts)]
        assert np.array_equal(np.concatenate(parts), whole)
    alone = [int(nearest.search(queries[:, [column]])[0]) for column in range(0, 700, 35)]
    assert alone == whole[::35].tolist()
    order = rng.permutation(700)
    assert np.array_equal(nearest.search(np.asfortranarray(queries[:, order])), whole[order])


def test_room_for_candidates_runs_out_and_nothing_is_lost() -> None:
    """All points within float32's rounding of each other: every word is a candidate of every query."""
    rng = np.random.default_rng(12)
    points = 100 + rng.integers(0, 3, (6000, 30)).astype(np.float32) * np.float32(2.0**-16)
    queries = 100 + rng.standard_normal((30, 60))
    nearest = ExactNearest(scoring_rows(points), len(points))
    assert len(nearest._notes.query) < 6000 * 60
    assert np.array_equal(nearest.search(queries), brute_force(points, queries))


@pytest.mark.parametrize("shape", list(SHAPES))
def test_result_does_not_depend_on_threads(shape: str) -> None:
    rng = np.random.default_rng(10)
    points = SHAPES[shape](rng, 5000, 100)
    queries = queries_near(rng, points, 600)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            found.append(search(points, queries))
    assert np.array_equal(*found)


@pytest.mark.parametrize("score_bytes", [2**20, 8 * 2**20])
def test_scores_take_no_more_memory_than_allowed(score_bytes: int) -> None:
    """100,000 words against 2,000 queries: a full score matrix would be 800 MB."""
    rng = np.random.default_rng(11)
    rows = scoring_rows(random_points(rng, 100_000, 3))
    queries = rng.standard_normal((3, 2_000))
    tracemalloc.start()
    try:
        ExactNearest(rows, len(rows), score_bytes=score_bytes).search(queries)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Besides scores: half the squared length of each word, the queries once more, the answer, and a block's bounds.
    assert peak < score_bytes + 8 * len(rows) + 2 * queries.nbytes + 100_000
