"""What other packages' mechanisms guarantee, against their definitions written out and against draws."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.measures.recovery import guess_outputs
from wordveil_research.peers.laws import (
    epsilon_of_line,
    line_laws,
    line_loss,
    line_recovery,
    list_laws,
    list_nearest,
)

SIZE, EPSILON = 40, 0.3


@pytest.fixture(scope="module")
def order() -> np.ndarray:
    return np.random.default_rng(1).permutation(SIZE)


@pytest.fixture(scope="module")
def table(order) -> np.ndarray:
    return np.stack([line_laws(order, EPSILON, word) for word in range(SIZE)])


def test_line_law_two_geometric_variables_cut_at_the_ends(order, table):
    rng = np.random.default_rng(2)
    draws, word = 200_000, int(order[3])
    noise = rng.geometric(-np.expm1(-EPSILON), draws) - rng.geometric(-np.expm1(-EPSILON), draws)
    places = np.clip(3 + noise, 0, SIZE - 1)
    seen = np.bincount(order[places], minlength=SIZE) / draws
    assert table.sum(axis=1) == pytest.approx(1.0)
    assert np.abs(seen - table[word]).max() < 0.005
    # A law that is not cut at the ends would be far from it.
    assert table[word][order[0]] > 1.5 * table[word][order[1]]


def test_the_loss_of_a_line_is_that_between_its_ends(table):
    logs = np.log(table)
    assert (logs.max(axis=0) - logs.min(axis=0)).max() == pytest.approx(line_loss(SIZE, EPSILON))
    assert line_loss(SIZE, epsilon_of_line(SIZE, 8.0)) == pytest.approx(8.0)


@pytest.mark.parametrize("seed", range(3))
def test_line_recovery_sum_of_largest_joint_probabilities(order, table, seed):
    prior = np.random.default_rng(seed).dirichlet(np.full(SIZE, 0.5))
    assert line_recovery(prior[order], EPSILON) == pytest.approx((prior[:, None] * table).max(axis=0).sum())


def test_lists_nearest_words_weights_fall_with_distance():
    vectors = np.random.default_rng(3).standard_normal((30, 4)).astype(np.float32)
    ids, distances = list_nearest(vectors, 5)
    apart = np.linalg.norm(vectors[:, None].astype(np.float64) - vectors, axis=2)
    assert (ids == np.argsort(apart, axis=1)[:, :5]).all()
    assert distances == pytest.approx(np.sort(apart, axis=1)[:, :5], abs=1e-6)
    laws = list_laws(ids, distances, 4.0)
    weights = laws.extras.reshape(30, 5)
    assert weights.sum(axis=1) == pytest.approx(1.0)
    # The nearest has the score 0 and the farthest 1.
    assert weights[:, 0] / weights[:, -1] == pytest.approx(np.exp(2.0))
    dense = np.zeros((30, 30))
    np.put_along_axis(dense, ids.astype(np.int64), weights, axis=1)
    prior = np.full(30, 1 / 30)
    assert guess_outputs(laws, prior)[1].sum() == pytest.approx((prior[:, None] * dense).max(axis=0).sum())
