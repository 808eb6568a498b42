"""Mechanisms with a table: the law that is drawn is the table's, and the table's exact loss is under what is recorded.

Laws are computed from the whole numbers in the bundle. Faults that such mechanisms are known for are built in and must
be caught: a gamma too small for the unknown word, a forgotten factor 1/2. The fuzz of tables adds lists that miss
neighbours and a tail left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import exact_tables as exact
from support.toys import build, random_embedding, toy_embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.tables.exponential import excess
from wordveil.mechanisms.tables.mechanism import build_certified, symbol_rows
from wordveil.mechanisms.tables.table import MAX_SCORE, AliasTable, Rows, build_table, probabilities
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.lists import NeighbourLists

FloatArray = NDArray[np.float64]
SIZE = 120
UNKNOWN = SIZE + 1
EPSILON = 4.0
SETTINGS: dict[str, dict[str, Any]] = {
    "whole": {},
    "gamma": {"gamma": 1.5},
    "wide gamma": {"gamma": 50.0},
    "neighbours": {"neighbours": 10},
    "both": {"gamma": 1.5, "neighbours": 30},
    "gamma under the nearest": {"gamma": 0.01, "neighbours": 5},
    "tight": {"tight": True},
    "tight neighbours": {"tight": True, "neighbours": 10},
    "tight both": {"tight": True, "neighbours": 10, "gamma": 1.5},
}
CASES = [(name, "euclidean") for name in SETTINGS] + [
    (name, metric)
    for name in ("whole", "both", "tight neighbours")
    for metric in ("manhattan", "angular", "hyperbolic")
]
EVERY_CASE = pytest.mark.parametrize(("name", "metric"), CASES)


@pytest.fixture(scope="module")
def toy() -> Embedding:
    """Clusters, so that lists are of unlike width, and two words in one place."""
    rng = np.random.default_rng(4)
    centres = rng.standard_normal((8, 3)) * 1.5
    vectors = centres[rng.integers(0, 8, SIZE)] + rng.standard_normal((SIZE, 3)) * rng.choice(
        [0.02, 0.3, 1.0], (SIZE, 1)
    )
    vectors[7] = vectors[3]
    return toy_embedding(random_embedding(SIZE, 3).words.to_pylist(), vectors)


def fitting(metric: str, embedding: Embedding) -> Embedding:
    """The embedding, or for hyperbolic distances its vectors so much shorter that they lie in the ball."""
    if metric != "hyperbolic":
        return embedding
    longest = np.float32(np.linalg.norm(embedding.vectors, axis=1).max())
    return replace(embedding, vectors=embedding.vectors * (np.float32(0.95) / longest))


def build_toy(
    embedding: Embedding, name: str, metric: str = "euclidean", epsilon: float = EPSILON
) -> MechanismArtifact:
    settings = {"epsilon": epsilon, "metric": metric, **SETTINGS[name]}
    return build(fitting(metric, embedding), settings, padding=True, mechanism="exponential")


def laws(table: AliasTable) -> FloatArray:
    """Of words, padding and the unknown word."""
    return np.stack([probabilities(table, symbol) for symbol in range(SIZE + 2)])


def losses(law: FloatArray) -> FloatArray:
    """``losses[w, v]``: the largest log ratio of the law of ``w`` to that of ``v``."""
    with np.errstate(divide="ignore"):
        logs = np.log(law)
    return (logs[:, None] - logs[None]).max(axis=2)


@EVERY_CASE
def test_exact_loss_is_near_the_recorded_largest(name: str, metric: str, toy: Embedding):
    """That it is under the bound of every pair is tested of random tables; of half of the bound it is not true."""
    built = build_toy(toy, name, metric)
    guarantee, vectors = built.guarantee, fitting(metric, toy).vectors
    assert guarantee.slack < 1e-5
    assert exact.findings(built.arrays, guarantee, vectors, padding=True) == []
    found = losses(laws(AliasTable.of(built.arrays)))
    assert guarantee.largest is not None
    assert found.max() <= guarantee.largest <= found.max() + 1e-6
    half = replace(guarantee, epsilon=guarantee.epsilon / 2)
    assert any("over the bound" in one for one in exact.findings(built.arrays, half, vectors, padding=True))


@EVERY_CASE
def test_bound_of_a_large_embedding_covers_the_pairwise_one(
    name: str, metric: str, toy: Embedding, monkeypatch: pytest.MonkeyPatch
):
    exhaustive = build_toy(toy, name, metric).guarantee
    monkeypatch.setattr("wordveil.mechanisms.tables.exponential._EXHAUSTIVE", 0)
    by_formula = build_toy(toy, name, metric).guarantee
    assert exhaustive.slack <= by_formula.slack * (1 + 1e-5) + 2e-9
    assert by_formula.slack < 1e-5


def test_tight_gives_words_more_weight_for_the_same_bound(toy: Embedding):
    plain, tight = (build_toy(toy, name) for name in ("whole", "tight"))
    assert tight.parameters["beta"] > 1.1 * plain.parameters["beta"]
    kept = [float(np.diag(laws(AliasTable.of(built.arrays))).mean()) for built in (plain, tight)]
    assert kept[1] > kept[0]


def test_a_larger_beta_than_tight_breaks_the_bound(toy: Embedding):
    """So tight is close to the largest; the bisection's bound of words is an upper one, hence the margin."""
    built = build_toy(toy, "tight")
    assert faulty_excess(toy, beta=1.3 * built.parameters["beta"], lists=full_lists(toy)) > 0.1


# Faults.


def full_lists(embedding: Embedding, most: int | None = None) -> NeighbourLists:
    return BuildContext().lists(SPACES["euclidean"], embedding.vectors.astype(np.float64), most, math.inf, 10**7)


def faulty_excess(embedding: Embedding, *, beta: float, lists: NeighbourLists, most: float = 50.0) -> float:
    points = embedding.vectors.astype(np.float64)
    table = build_table(symbol_rows(lists, beta, most, padding=True))
    return excess(table, SPACES["euclidean"], points, EPSILON, most, padding=True)


@pytest.mark.parametrize("most", [None, 10, 40])
def test_excess_is_small_unless_the_half_is_forgotten(most: int | None, toy: Embedding):
    assert faulty_excess(toy, beta=EPSILON / 2, lists=full_lists(toy, most)) < 1e-6
    assert faulty_excess(toy, beta=EPSILON, lists=full_lists(toy, most)) > 0.5


def test_a_gamma_under_half_of_the_largest_score_is_caught(toy: Embedding):
    """The unknown word at 0.3 from words whose scores are not capped there."""
    lists, near = full_lists(toy, 40), 0.3
    assert np.quantile(lists.cut, 0.5) > 2 * near
    table = build_table(symbol_rows(lists, EPSILON / 2, 50.0, padding=True))
    assert losses(laws(table))[UNKNOWN, :SIZE].max() > EPSILON * near + 0.5
    capped = build_table(symbol_rows(lists, EPSILON / 2, near, padding=True))
    assert losses(laws(capped))[UNKNOWN, :SIZE].max() <= EPSILON * near + 1e-6


def test_scores_beyond_whole_numbers_are_capped_within_bound(toy: Embedding):
    epsilon = 200.0
    built = build_toy(toy, "whole", epsilon=epsilon)
    found = losses(laws(AliasTable.of(built.arrays)))
    assert epsilon / 2 * built.guarantee.diameter > 2 * MAX_SCORE
    assert exact.findings(built.arrays, built.guarantee, toy.vectors, padding=True) == []
    assert found.max() <= 2 * MAX_SCORE + math.log(SIZE + 1) + 1e-3


def test_a_table_that_cannot_be_certified_is_refused(toy: Embedding, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wordveil.mechanisms.tables.table.MAX_SCORE", 100.0)
    monkeypatch.setattr("wordveil.mechanisms.tables.mechanism.MAX_SCORE", 100.0)
    with pytest.raises(BundleError, match=r"cannot be certified.*Lower mechanism\.epsilon"):
        build_certified(symbol_rows(full_lists(toy), 100.0, 50.0, padding=True), 0.0)


def test_a_small_vocabulary_with_wrong_weights_is_refused(toy: Embedding, monkeypatch: pytest.MonkeyPatch):
    def forgetful(lists: NeighbourLists, scale: float, most: float, *, padding: bool) -> Rows:
        return symbol_rows(lists, 2 * scale, most, padding=padding)

    monkeypatch.setattr("wordveil.mechanisms.tables.exponential.symbol_rows", forgetful)
    with pytest.raises(BundleError, match="cannot be certified"):
        build_toy(toy, "whole")


def test_slack_of_a_small_vocabulary_covers_rounded_distances(toy: Embedding):
    """Directions are rounded; at this epsilon that is more than the logarithms' tolerance."""
    epsilon = 1e7
    built = build_toy(toy, "whole", "angular", epsilon)
    space = SPACES["angular"]
    assert built.guarantee.slack >= 2 * epsilon * space.error(space.points(toy.vectors)) > 1e-7
