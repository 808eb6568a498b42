"""Exponential mechanism: the recorded loss is nearly reached, half of it is refuted, and known faults are caught.

That no loss is over the bound of its pair is tested of random tables, as are lists that miss neighbours and a tail left
out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.exact_tables import findings, law_of, losses, symbols
from support.toys import build, random_embedding, toy_embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.tables.exponential import excess
from wordveil.mechanisms.tables.mechanism import build_certified, symbol_rows
from wordveil.mechanisms.tables.table import MAX_SCORE, AliasTable, Rows, build_table
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.lists import NeighbourLists

SIZE = 120
EPSILON = 4.0
SETTINGS: list[dict[str, Any]] = [
    {},
    {"gamma": 1.5},
    {"gamma": 50.0},
    {"gamma": 0.01, "neighbours": 5},
    {"tight": True},
    *(
        {**settings, "metric": metric}
        for settings in ({"gamma": 1.5, "neighbours": 30}, {"tight": True, "neighbours": 10})
        for metric in SPACES
    ),
]


@pytest.fixture(scope="module")
def toy() -> Embedding:
    """Clusters, so that lists are of unlike width, and two words in one place."""
    rng = np.random.default_rng(4)
    places = rng.standard_normal((8, 3))[rng.integers(0, 8, SIZE)] * 1.5
    vectors = places + rng.standard_normal((SIZE, 3)) * rng.choice([0.02, 0.3, 1.0], (SIZE, 1))
    vectors[7] = vectors[3]
    return toy_embedding(random_embedding(SIZE, 3).words.to_pylist(), vectors)


def build_toy(embedding: Embedding, **settings: Any) -> MechanismArtifact:
    return build(embedding, {"epsilon": EPSILON, **settings}, padding=True, mechanism="exponential")


def losses_of(table: AliasTable) -> NDArray[np.float64]:
    """The loss of every two symbols: words, padding and the unknown word."""
    return losses([law_of(table.arrays, symbol) for symbol in symbols(SIZE, padding=True)])[0]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_recorded_loss_is_reached_and_half_of_it_refuted(settings: dict[str, Any], toy: Embedding):
    if settings.get("metric") == "hyperbolic":  # shorter, so that the vectors lie in the ball
        longest = np.float32(np.linalg.norm(toy.vectors, axis=1).max())
        toy = replace(toy, vectors=toy.vectors * (np.float32(0.95) / longest))
    built = build_toy(toy, **settings)
    guarantee = built.guarantee
    assert guarantee.slack < 1e-5
    assert findings(built.arrays, guarantee, toy.vectors, padding=True) == []
    largest = losses_of(AliasTable.of(built.arrays)).max()
    assert guarantee.largest is not None
    assert largest <= guarantee.largest <= largest + 1e-6
    half = replace(guarantee, epsilon=guarantee.epsilon / 2)
    assert any("over the bound" in one for one in findings(built.arrays, half, toy.vectors, padding=True))


def full_lists(embedding: Embedding, most: int | None = None) -> NeighbourLists:
    return BuildContext().lists(SPACES["euclidean"], embedding.vectors.astype(np.float64), most, math.inf, 10**7)


def faulty_excess(embedding: Embedding, *, beta: float, lists: NeighbourLists, most: float = 50.0) -> float:
    table = build_table(symbol_rows(lists, beta, most, padding=True))
    return excess(table, SPACES["euclidean"], embedding.vectors.astype(np.float64), EPSILON, most, padding=True)


def test_tight_gives_words_nearly_the_largest_weight(toy: Embedding):
    """The bisection's bound of words is an upper one, hence the margin."""
    plain, tight = (build_toy(toy, tight=tight) for tight in (False, True))
    assert tight.parameters["beta"] > 1.1 * plain.parameters["beta"]
    assert faulty_excess(toy, beta=1.3 * tight.parameters["beta"], lists=full_lists(toy)) > 0.1
    kept = [np.mean([law_of(built.arrays, word)[word] for word in range(SIZE)]) for built in (plain, tight)]
    assert kept[1] > kept[0]


@pytest.mark.parametrize("most", [None, 10, 40])
def test_excess_is_small_unless_the_half_is_forgotten(most: int | None, toy: Embedding):
    assert faulty_excess(toy, beta=EPSILON / 2, lists=full_lists(toy, most)) < 1e-6
    assert faulty_excess(toy, beta=EPSILON, lists=full_lists(toy, most)) > 0.5


def test_a_gamma_under_half_of_the_largest_score_is_caught(toy: Embedding):
    """The unknown word at 0.3 from words whose scores are not capped there."""
    lists, near = full_lists(toy, 40), 0.3
    assert np.quantile(lists.cut, 0.5) > 2 * near
    table, capped = (build_table(symbol_rows(lists, EPSILON / 2, most, padding=True)) for most in (50.0, near))
    assert losses_of(table)[-1, :SIZE].max() > EPSILON * near + 0.5
    assert losses_of(capped)[-1, :SIZE].max() <= EPSILON * near + 1e-6


def test_scores_beyond_whole_numbers_are_capped_within_bound(toy: Embedding):
    built = build_toy(toy, epsilon=200.0)
    assert 100.0 * built.guarantee.diameter > 2 * MAX_SCORE
    assert findings(built.arrays, built.guarantee, toy.vectors, padding=True) == []
    assert losses_of(AliasTable.of(built.arrays)).max() <= 2 * MAX_SCORE + math.log(SIZE + 1) + 1e-3


def test_a_table_that_cannot_be_certified_is_refused(toy: Embedding, monkeypatch: pytest.MonkeyPatch):
    def forgetful(lists: NeighbourLists, scale: float, most: float, *, padding: bool) -> Rows:
        return symbol_rows(lists, 2 * scale, most, padding=padding)

    monkeypatch.setattr("wordveil.mechanisms.tables.exponential.symbol_rows", forgetful)
    with pytest.raises(BundleError, match="cannot be certified"):
        build_toy(toy)
    monkeypatch.setattr("wordveil.mechanisms.tables.table.MAX_SCORE", 100.0)
    monkeypatch.setattr("wordveil.mechanisms.tables.mechanism.MAX_SCORE", 100.0)
    with pytest.raises(BundleError, match=r"cannot be certified.*Lower mechanism\.epsilon"):
        build_certified(symbol_rows(full_lists(toy), 100.0, 50.0, padding=True), 0.0)
