"""The probabilities of similar words, against laws that look at every set."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.evaluation.experiments.similar_words import Places, draw_sets, weigh_exponential, weigh_softmax_rr
from wordveil.mechanisms.symbol_choice import softmax_rr_law, two_set_law

SIZE, EPSILON = 12, 7.0
RANDOM = np.random.default_rng(5)
ROWS = np.concatenate([RANDOM.dirichlet(np.full(SIZE, 0.2), 5), np.eye(SIZE)[:2], np.full((1, SIZE), 1 / SIZE)])
WANTED = np.array([RANDOM.choice(SIZE, 3, replace=False) for _ in ROWS])
PLACES = Places(ROWS, WANTED)


def sum_wanted(laws):
    return np.array([law[wanted].sum() for law, wanted in zip(laws, WANTED, strict=True)])


def test_softmax_rr_is_its_law():
    laws = [softmax_rr_law(row, EPSILON) for row in ROWS]
    np.testing.assert_allclose(weigh_softmax_rr(PLACES, EPSILON), sum_wanted(laws), rtol=1e-12)


def test_two_set_is_its_law_and_that_of_no_other_number_of_candidates():
    found = draw_sets(PLACES, 3, 20_000, seed=0).weigh(EPSILON)
    np.testing.assert_allclose(found, sum_wanted([two_set_law(row, 3, EPSILON) for row in ROWS]), atol=0.005)
    others = sum_wanted([two_set_law(row, 2, EPSILON) for row in ROWS])
    assert np.abs(found - others).max() > 0.015


def test_the_exponential_mechanism_costs_its_loss_between_any_rows():
    loss = 3.0
    every = np.arange(SIZE)[:, None]
    laws = np.array([weigh_exponential(Places(np.tile(row, (SIZE, 1)), every), loss) for row in ROWS])
    np.testing.assert_allclose(laws.sum(axis=1), 1)
    ratios = np.log(laws[:, None] / laws[None])
    assert ratios.max() == pytest.approx(loss)
    np.testing.assert_allclose(weigh_exponential(PLACES, loss), sum_wanted(list(laws)), rtol=1e-12)
