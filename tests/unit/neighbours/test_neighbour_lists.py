"""Lists of neighbours are the true ones, whatever the metric, the block and the ties; and a build resumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from wordveil.geometry.spaces import SPACES
from wordveil.neighbours.blocks import BuildContext, ListTask, Span, TooManyEntriesError, compute_here
from wordveil.neighbours.lists import NeighbourLists, NeighbourSearch

SIZE = 200
EVERY_METRIC = pytest.mark.parametrize("metric", sorted(SPACES))


def vectors(kind: str) -> NDArray[np.float32]:
    rng = np.random.default_rng(7)
    if kind == "spread":
        return rng.standard_normal((SIZE, 9)).astype(np.float32)
    if kind == "ties":  # whole numbers: many equal distances, and words that stand in the same place
        return (rng.integers(-1, 2, (SIZE, 4)) + np.eye(4)[rng.integers(0, 4, SIZE)] * 3).astype(np.float32)
    if kind == "far":  # differences drown in the rounding of large coordinates
        return (1000 + rng.standard_normal((SIZE, 6)) * 1e-3).astype(np.float32)
    raise KeyError(kind)


def fitting(metric: str, kind: str) -> NDArray[np.float32]:
    """The vectors, or for hyperbolic points so much shorter that they lie in the ball, some of them near its edge."""
    found = vectors(kind)
    return found if metric != "hyperbolic" else found * np.float32(0.99999 / np.linalg.norm(found, axis=1).max())


def brute_force(metric: str, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """All distances by SciPy, except for angles, whose cosines lose digits."""
    if metric == "angular":
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        along = np.linalg.norm(points[:, None] + points[None], axis=2)
        return 2 * np.arctan2(apart, along)
    if metric == "hyperbolic":
        gaps = 1 - np.linalg.norm(points, axis=1) ** 2
        return np.arccosh(1 + 2 * cdist(points, points, "sqeuclidean") / np.outer(gaps, gaps))
    return cdist(points, points, {"euclidean": "euclidean", "manhattan": "cityblock"}[metric])


def check(lists: NeighbourLists, distances: NDArray[np.float64], most: int | None, within: float) -> None:
    size = len(distances)
    most = size if most is None else min(most, size)
    for word in range(size):
        ids = lists.ids[lists.offsets[word] : lists.offsets[word + 1]]
        found = lists.distances[lists.offsets[word] : lists.offsets[word + 1]]
        expected = np.sort(distances[word])
        inside = min(most, int((expected < within).sum()))
        assert len(set(ids.tolist())) == len(ids)
        assert abs(len(ids) - inside) <= int((np.abs(expected - within) < 1e-9).sum())
        assert np.allclose(np.sort(found), expected[: len(ids)], rtol=1e-12, atol=1e-12)
        assert np.allclose(found, distances[word, ids], rtol=1e-12, atol=1e-12)
        assert (np.diff(ids) > 0).all()
        outside = np.setdiff1d(np.arange(size), ids)
        nearest = min(distances[word, outside].min(initial=np.inf), within)
        assert lists.cut[word] == pytest.approx(nearest, rel=1e-12, abs=1e-12)
        assert (found <= lists.cut[word] + 1e-12).all()
    assert distances.max() <= lists.farthest <= distances.max() * 1.01 + 1e-3


@EVERY_METRIC
@pytest.mark.parametrize("kind", ["spread", "ties"])
@pytest.mark.parametrize(("most", "share"), [(5, None), (None, 0.4), (20, 0.4), (1000, None)])
def test_lists_are_those_of_brute_force(metric: str, kind: str, most: int | None, share: float | None):
    points = SPACES[metric].points(fitting(metric, kind))
    distances = brute_force(metric, points)
    within = np.inf if share is None else float(np.quantile(distances, share)) * 1.0000001
    search = NeighbourSearch(SPACES[metric], points, most, within)
    check(
        NeighbourLists.join([search.block(0, 150), search.block(150, 151), search.block(151, SIZE)]),
        distances,
        most,
        within,
    )


@EVERY_METRIC
def test_large_coordinates_lose_no_neighbour(metric: str):
    points = SPACES[metric].points(fitting(metric, "far"))
    distances = brute_force(metric, points)
    lists = NeighbourSearch(SPACES[metric], points, 10, np.inf).block(0, SIZE)
    for word in range(SIZE):
        found = lists.distances[lists.offsets[word] : lists.offsets[word + 1]]
        assert np.allclose(np.sort(found), np.sort(distances[word])[:10], rtol=1e-7, atol=1e-9)


@EVERY_METRIC
def test_ties_go_to_the_lower_id(metric: str):
    points = SPACES[metric].points(fitting(metric, "ties"))
    lists = NeighbourSearch(SPACES[metric], points, 30, np.inf).block(0, SIZE)
    whole = NeighbourSearch(SPACES[metric], points, None, np.inf).block(0, SIZE).distances.reshape(SIZE, SIZE)
    split = 0
    for word in range(SIZE):
        expected = np.lexsort((np.arange(SIZE), whole[word]))
        assert lists.ids[lists.offsets[word] : lists.offsets[word + 1]].tolist() == sorted(expected[:30].tolist())
        split += whole[word, expected[29]] == whole[word, expected[30]]
    assert split > 50


def test_angles_are_exact_near_nought_and_near_pi():
    space = SPACES["angular"]
    small = 1e-9
    points = space.points(np.array([[1.0, 0.0], [1.0, small], [-1.0, small]], np.float32))
    assert space.distances(points[0], points).tolist() == pytest.approx([0.0, small, np.pi - small], rel=1e-7)
    assert np.pi - space.distances(points[0], points)[2] == pytest.approx(small, rel=1e-6)


def test_a_vector_without_direction_has_no_angle():
    with pytest.raises(ValueError, match="number 1 is zero and has no direction"):
        SPACES["angular"].points(np.array([[1.0, 0.0], [0.0, 0.0]], np.float32))


def test_a_build_resumes_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wordveil.neighbours.lists.MAX_ROWS", 25)
    space, points = SPACES["euclidean"], vectors("spread").astype(np.float64)
    computed: list[Span] = []

    def interrupted(task: ListTask, spans: Sequence[Span]) -> Iterator[tuple[Span, NeighbourLists]]:
        for number, pair in enumerate(compute_here(task, spans)):
            if number == 3:
                raise KeyboardInterrupt
            yield pair

    def counted(task: ListTask, spans: Sequence[Span]) -> Iterator[tuple[Span, NeighbourLists]]:
        computed.extend(spans)
        yield from compute_here(task, spans)

    steps: list[tuple[int, int]] = []
    with pytest.raises(KeyboardInterrupt):
        BuildContext(kept=tmp_path, compute=interrupted).lists(space, points, 9, np.inf, 10**6)
    (place,) = tmp_path.iterdir()
    damaged = sorted(place.glob("*.npz"))[1]
    damaged.write_bytes(damaged.read_bytes()[:-100])
    resumed = BuildContext(steps=lambda done, known: steps.append((done, known)), kept=tmp_path, compute=counted).lists(
        space, points, 9, np.inf, 10**6
    )
    assert len(computed) == 6  # of eight blocks three were kept, one of them damaged
    assert steps[0] == (2, 8)
    assert steps[-1] == (8, 8)
    whole = BuildContext().lists(space, points, 9, np.inf, 10**6)
    for name in ("offsets", "ids", "distances", "cut"):
        assert np.array_equal(getattr(resumed, name), getattr(whole, name))


def test_kept_blocks_are_taken_and_forgotten_by_their_own_build(tmp_path: Path):
    space, points = SPACES["euclidean"], vectors("spread").astype(np.float64)
    ours, theirs = BuildContext(kept=tmp_path / "parts"), BuildContext(kept=tmp_path / "parts")
    first = ours.lists(space, points, 9, np.inf, 10**6)
    other = theirs.lists(space, points, 8, np.inf, 10**6)
    assert np.diff(first.offsets).max() == 9
    assert np.diff(other.offsets).max() == 8
    moved = BuildContext(kept=tmp_path).lists(space, points * 2, 9, np.inf, 10**6)
    assert moved.cut[0] == pytest.approx(2 * first.cut[0])
    ours.forget()
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [theirs.used[0].name]
    theirs.forget()
    assert not (tmp_path / "parts").exists()


def test_lists_that_would_not_fit_stop_early():
    points = vectors("spread").astype(np.float64)
    with pytest.raises(TooManyEntriesError, match="over 1,000 entries"):
        BuildContext().lists(SPACES["euclidean"], points, 50, np.inf, 1000)


# Points so near each other that their float32 scores end below 2^-126.


def tiny(metric: str, across: float, size: int = 250) -> NDArray[np.float64]:
    """Points within ``across`` of each other, far from the origin where the metric has a centre."""
    spread = np.random.default_rng(3).uniform(0, across, (size, 2))
    if metric in {"euclidean", "angular"}:
        spread[:, 0] = 1.0
    return SPACES[metric].points(spread.astype(np.float32)) if metric != "manhattan" else spread


@EVERY_METRIC
@pytest.mark.parametrize("across", [1e-18, 1e-20, 1e-22, 1e-38, 1e-44])
def test_lists_hold_where_scores_underflow(metric: str, across: float):
    points = tiny(metric, across)
    distances = np.stack([SPACES[metric].distances(point, points) for point in points])
    ranked = np.sort(distances, axis=1)
    for within in (np.inf, float(np.quantile(distances, 0.015))):
        lists = NeighbourSearch(SPACES[metric], points, 10, within).block(0, 250)
        for word in range(250):
            found = np.sort(lists.distances[lists.offsets[word] : lists.offsets[word + 1]])
            assert np.array_equal(found, ranked[word, ranked[word] < within][:10])
            assert lists.cut[word] == min(ranked[word, 10], within)
        assert lists.farthest >= distances.max()


@EVERY_METRIC
def test_lists_hold_on_a_processor_that_flushes_to_zero(metric: str):
    """Every score below 2^-126 becomes 0 here, and coordinates are flushed before they are multiplied."""

    class Flushing(NeighbourSearch):
        def _scores(self, start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.float64], float]:
            self._rough = np.where(np.abs(self._rough) < 2.0**-126, np.float32(0), self._rough)
            scores, slack, highest = super()._scores(start, stop)
            return np.where(np.abs(scores) < 2.0**-126, np.float32(0), scores), slack, highest

    for across in (1e-20, 1e-38):
        points = tiny(metric, across, 200)
        distances = np.stack([SPACES[metric].distances(point, points) for point in points])
        lists = Flushing(SPACES[metric], points, 10, np.inf).block(0, 200)
        assert np.array_equal(np.sort(lists.distances.reshape(200, 10), axis=1), np.sort(distances, axis=1)[:, :10])
        assert np.array_equal(lists.cut, np.sort(distances, axis=1)[:, 10])
