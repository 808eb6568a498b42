"""gensim as a trainer: what it would do by itself, without its log, refused where it would draw without end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.hypernyms import QUICK, pair_table, tree_pairs
from wordveil.embeddings.training.hypernyms import HypernymGraph, build_hierarchy
from wordveil.embeddings.training.poincare import train
from wordveil.errors import EmbeddingError
from wordveil.neighbours.blocks import BuildContext

GENSIM = replace(QUICK, trainer="gensim", epochs=6)
STAR = pair_table(*((f"w{number}", "hub") for number in range(300)))


@pytest.fixture(scope="module")
def graph() -> HypernymGraph:
    return build_hierarchy(pair_table(*tree_pairs(4)), GENSIM, "tree")


def test_gensim_trains_as_it_does_by_itself(graph):
    """Epoch by epoch, with burn-in done here, the points are those of one call of gensim's own."""
    from gensim.models.poincare import PoincareModel

    pairs = [(str(word), str(hypernym)) for word, hypernym in graph.edges]
    own = PoincareModel(
        pairs, size=2, alpha=0.1, negative=5, burn_in=5, burn_in_alpha=0.1 * 0.1, regularization_coeff=0.0, seed=1
    )
    own.train(6)
    expected = np.stack([own.kv[str(row)] for row in range(len(graph.words))])
    assert np.array_equal(train(graph, GENSIM, "tree", BuildContext()), expected)


def test_draws_without_end_are_refused_for_gensim_alone():
    """Half of all links are those of the hub, which is no word to contrast with: twenty draws hardly ever miss it."""
    star = build_hierarchy(STAR, GENSIM, "star")
    many = replace(GENSIM, epochs=1, burn_in=0, negative=20)
    with pytest.raises(EmbeddingError, match=r"negative = 20: gensim would draw about .*trainer: compiled"):
        train(star, many, "star", BuildContext())
    assert len(train(star, replace(many, trainer="compiled"), "star", BuildContext())) == 301
