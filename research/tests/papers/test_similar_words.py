"""The probabilities of similar words, against laws that look at every set."""

from __future__ import annotations

import numpy as np
import pytest

from reference.symbol_laws import softmax_rr_law, two_set_law
from wordveil_research.papers.eraee import find_epsilon
from wordveil_research.papers.similar_words import Places, draw_sets, weigh_exponential, weigh_softmax_rr

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


def test_two_set_law_of_its_number_of_candidates_alone():
    found = draw_sets(PLACES, 3, 20_000, seed=0).weigh(EPSILON)
    np.testing.assert_allclose(found, sum_wanted([two_set_law(row, 3, EPSILON) for row in ROWS]), atol=0.005)
    others = sum_wanted([two_set_law(row, 2, EPSILON) for row in ROWS])
    assert np.abs(found - others).max() > 0.015


def test_exponential_mechanism_loss_between_any_rows():
    loss = 3.0
    every = np.arange(SIZE)[:, None]
    laws = np.array([weigh_exponential(Places(np.tile(row, (SIZE, 1)), every), loss) for row in ROWS])
    np.testing.assert_allclose(laws.sum(axis=1), 1)
    ratios = np.log(laws[:, None] / laws[None])
    assert ratios.max() == pytest.approx(loss)
    np.testing.assert_allclose(weigh_exponential(PLACES, loss), sum_wanted(list(laws)), rtol=1e-12)


@pytest.mark.parametrize(
    ("loss", "likely", "exponential", "two_set", "softmax_rr"),
    [
        (11.4, 1, 0.918, 0.918, 0.918),
        (11.4, 5, 0.006, 0.618, 0.918),
        (11.4, 100, 0.001, 0.026, 0.046),
        (20.0, 2, 0.846, 0.996, 1.0),
        (40.0, 10, 0.032, 0.479, 0.5),
    ],
)
def test_the_documented_figures_of_equally_likely_words(loss, likely, exponential, two_set, softmax_rr):
    rows = np.zeros((1, 8_000))
    rows[0, :likely] = 1 / likely
    places = Places(rows, np.arange(min(5, likely))[None])
    epsilon = find_epsilon(loss, 8_000)
    assert weigh_exponential(places, loss)[0] == pytest.approx(exponential, abs=0.0006)
    assert draw_sets(places, 5, 20_000, seed=0).weigh(epsilon)[0] == pytest.approx(two_set, abs=0.0006)
    assert weigh_softmax_rr(places, epsilon)[0] == pytest.approx(softmax_rr, abs=0.0006)
