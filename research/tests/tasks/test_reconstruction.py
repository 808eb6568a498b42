"""How well points reconstruct the pairs that they were trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.hypernyms import ALL, QUICK, both_trainers, pair_table, tree_pairs
from wordveil.embeddings.training.hypernyms import HypernymGraph, build_hierarchy
from wordveil.embeddings.training.poincare import embed, project_to_ball
from wordveil.neighbours.blocks import BuildContext
from wordveil_research.tasks.reconstruction import measure_reconstruction


@pytest.fixture(scope="module")
def graph() -> HypernymGraph:
    return build_hierarchy(pair_table(*tree_pairs(4)), ALL, "tree")


@both_trainers
def test_a_trained_tree_is_reconstructed_better_than_by_chance(graph, trainer):
    points = embed(graph, replace(QUICK, trainer=trainer, dimension=4, epochs=60), "tree", BuildContext()).vectors
    random = [np.random.default_rng(seed).uniform(-0.5, 0.5, points.shape) for seed in range(5)]
    chance = max(measure_reconstruction(graph, drawn).mean_average_precision for drawn in random)
    assert measure_reconstruction(graph, points).mean_average_precision > chance + 0.2


def test_reconstruction_of_tree_general_words_near_centre(graph):
    points = embed(graph, replace(QUICK, epochs=100, dimension=4), "tree", BuildContext()).vectors
    norms = np.linalg.norm(points.astype(np.float64), axis=1)
    depth = np.array([len(word) for word in graph.words])
    assert np.argmin(norms) == graph.words.index("r")
    assert [norms[depth == level].mean() for level in (1, 2, 4)] == sorted(
        norms[depth == level].mean() for level in (1, 2, 4)
    )
    after = measure_reconstruction(graph, points)
    untrained = measure_reconstruction(graph, np.random.default_rng(1).uniform(-0.001, 0.001, points.shape))
    assert after.mean_average_precision > 0.85 > 0.5 > untrained.mean_average_precision
    assert after.mean_rank < 2 < untrained.mean_rank


def test_reconstruction_is_that_of_the_definition(graph, monkeypatch):
    monkeypatch.setattr("wordveil_research.tasks.reconstruction._BLOCK", 100)
    points = project_to_ball(np.random.default_rng(5).uniform(-0.55, 0.55, (len(graph.words), 3))).astype(np.float64)
    room = 1 - (points**2).sum(1)
    squares = ((points[:, None] - points) ** 2).sum(-1)
    distance = np.arccosh(1 + 2 * squares / np.outer(room, room))
    ranks, precisions = [], []
    for word in sorted(set(graph.edges[:, 0])):
        hypernyms = set(graph.edges[graph.edges[:, 0] == word, 1])
        others = [row for row in range(len(points)) if row not in hypernyms and row != word]
        mine = sorted(
            1 + sum(distance[word, row] < distance[word, hypernym] for row in others) for hypernym in hypernyms
        )
        ranks += mine
        precisions.append(np.mean([(place + 1) / (place + rank) for place, rank in enumerate(mine)]))
    found = measure_reconstruction(graph, points)
    assert found.mean_rank == pytest.approx(np.mean(ranks))
    assert found.mean_average_precision == pytest.approx(np.mean(precisions))


def test_words_as_near_do_not_count_as_nearer():
    star = build_hierarchy(pair_table(("a", "hub"), ("b", "hub"), ("c", "hub")), ALL, "star")
    found = measure_reconstruction(star, np.full((4, 2), 0.5))
    assert (found.mean_rank, found.mean_average_precision) == (1.0, 1.0)
