"""Statistics of all words at once are those of their definitions: by enumeration of the laws, and nearly by draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.toys import build_mechanism, random_embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.calibration import statistics as module
from wordveil.measures.calibration.figures import choose_metric, measure_moves
from wordveil.measures.calibration.statistics import (
    WordCounts,
    WordValues,
    count_block,
    count_words,
    measure_counts,
    measure_laws,
    measure_rows,
    split_words,
)
from wordveil.measures.recovery import require_law
from wordveil.mechanisms.base import Mechanism

SIZE, RUNS, THRESHOLD = 60, 40, 0.02
EMBEDDING = random_embedding(SIZE, 3)
WORDS = np.arange(SIZE, dtype=np.int32)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lists": ("exponential", {"epsilon": 2.0, "neighbours": 12}),
    "all listed": ("exponential", {"epsilon": 2.0}),
    "floors": ("staircase", {"epsilon": 4.0}),
    "members": ("tree", {"epsilon": 4.0, "sizes": [5], "output": "member"}),
    "one written for several": ("tree", {"epsilon": 4.0, "sizes": [5]}),
    "blind": ("exponential", {"epsilon": 1e-9, "gamma": 1e-9}),
}
FIELDS = ("stays", "distinct", "possible", "likeliest", "reaching")


def mechanism_of(case: str, *, padding: bool = False, **changes: Any) -> Mechanism:
    name, settings = CASES[case]
    return build_mechanism(EMBEDDING, settings | changes, padding=padding, mechanism=name)


def enumerate_values(mechanism: Mechanism, threshold: float = THRESHOLD) -> dict[str, np.ndarray]:
    laws = np.stack([require_law(mechanism, word) for word in range(SIZE)])
    return {
        "stays": np.diag(laws),
        "distinct": (1 - (1 - laws) ** RUNS).sum(axis=1),
        "possible": (laws > 0).sum(axis=1),
        "likeliest": laws.max(axis=1),
        "reaching": (laws > threshold).sum(axis=0)[:SIZE],
    }


def measure_both(mechanism: Mechanism) -> list[WordValues]:
    laws = mechanism.word_laws()
    assert laws is not None
    rows = measure_rows(lambda word: require_law(mechanism, word), WORDS, SIZE, RUNS, THRESHOLD)
    return [measure_laws(laws, RUNS, THRESHOLD), rows]


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_figures_are_those_of_the_enumerated_laws(case: str, padding: bool):
    mechanism = mechanism_of(case, padding=padding)
    expected = enumerate_values(mechanism)
    for found in measure_both(mechanism):
        assert found.is_exact
        for name in FIELDS:
            assert getattr(found, name) == pytest.approx(expected[name], rel=1e-9, abs=1e-12), name
    if case != "blind":
        other = enumerate_values(mechanism_of(case, padding=padding, epsilon=6.0))
        assert not np.allclose(other["stays"], expected["stays"])


def test_threads_and_spans_change_nothing(monkeypatch: pytest.MonkeyPatch):
    mechanism = mechanism_of("lists", padding=True)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    one = measure_both(mechanism)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(module, "SPAN_ENTRIES", 50)
    monkeypatch.setattr(module, "COMMON_CELLS", 7)
    for before, after in zip(one, measure_both(mechanism), strict=True):
        for name in FIELDS:
            assert np.array_equal(getattr(before, name), getattr(after, name))


def counted(mechanism: Mechanism, runs: int, words: np.ndarray = WORDS) -> WordCounts:
    return WordCounts.join(list(count_words(lambda: mechanism, words, runs)))


def test_counts_any_blocks_and_threads_those_of_the_draws(monkeypatch: pytest.MonkeyPatch):
    mechanism = mechanism_of("lists", padding=True)
    whole = counted(mechanism, 70)
    assert np.diff(np.add.reduceat(whole.counts, whole.offsets[:-1])).tolist() == [0] * (SIZE - 1)
    assert whole.counts.sum() == SIZE * 70
    assert [whole.words.tolist(), whole.counts.min()] == [WORDS.tolist(), 1]
    monkeypatch.setattr("wordveil.measures.calibration.statistics.DRAWS_OF_BLOCK", 200)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    assert len(split_words(WORDS, 70)) == 30
    for other in (counted(mechanism, 70), counted(mechanism, 70, WORDS[::-1].copy())):
        for name in ("words", "offsets", "ids", "counts"):
            assert np.array_equal(getattr(whole, name), getattr(other, name))


def test_draws_near_their_law_and_no_other():
    mechanism, runs = mechanism_of("lists", padding=True), 4_000
    found = measure_counts([counted(mechanism, runs)], WORDS, SIZE, runs, THRESHOLD)
    exact = enumerate_values(mechanism)
    scatter = np.sqrt(exact["stays"] * (1 - exact["stays"]) / runs)
    assert np.abs((found.stays - exact["stays"]) / scatter).max() < 5
    other = enumerate_values(mechanism_of("lists", padding=True, epsilon=2.4))
    assert np.abs((found.stays - other["stays"]) / scatter).max() > 5
    assert not found.is_exact
    assert found.likeliest == pytest.approx(exact["likeliest"], abs=0.04)
    few = measure_counts([counted(mechanism, RUNS)], WORDS, SIZE, RUNS, THRESHOLD)
    assert few.distinct.mean() == pytest.approx(exact["distinct"].mean(), rel=0.03)
    further = enumerate_values(mechanism_of("lists", padding=True, epsilon=4.0))
    assert few.distinct.mean() != pytest.approx(further["distinct"].mean(), rel=0.06)
    # All but the outputs whose probability is near the threshold are counted alike.
    low, high = (enumerate_values(mechanism, one * THRESHOLD)["reaching"] for one in (1.4, 0.6))
    assert (low <= found.reaching).all()
    assert (found.reaching <= high).all()
    assert high.max() > low.max()


@pytest.mark.parametrize("runs", [0, -1, 2**40])
def test_a_number_of_draws_that_cannot_be_is_refused(runs: int):
    with pytest.raises(ValueError, match="Expected runs="):
        count_block(mechanism_of("lists"), WORDS, runs)


@pytest.mark.parametrize("metric", sorted(SPACES))
def test_moves_are_means_over_the_law(metric: str):
    longest = np.linalg.norm(EMBEDDING.vectors, axis=1).max()
    embedding = replace(EMBEDDING, vectors=EMBEDDING.vectors / np.float32(1.2 * longest))  # in the ball
    mechanism = mechanism_of("lists", padding=True)
    laws = np.stack([require_law(mechanism, word) for word in range(SIZE)])
    words = np.array([0, 17, 59], np.int32)
    found = measure_moves(embedding, metric, [(words[:2], laws[words[:2]]), (words[2:], laws[words[2:]])])
    points = SPACES[metric].points(embedding.vectors)
    directions = points / np.linalg.norm(points, axis=1, keepdims=True)
    for place, word in enumerate(words.tolist()):
        law = laws[word, :SIZE] / laws[word, :SIZE].sum()
        distances = SPACES[metric].distances(points[word], points)
        assert found.distances[place] == pytest.approx(law @ distances, rel=1e-3)
        assert found.cosines[place] == pytest.approx(law @ (directions @ directions[word]), abs=1e-5)


def test_the_metric_is_the_mechanism_s_or_that_of_the_vectors():
    names = ["euclidean-capped", "angular", "discrete", "ratings"]
    assert [choose_metric(name) for name in names] == ["euclidean", "angular", "euclidean", "euclidean"]
