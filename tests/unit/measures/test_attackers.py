"""Attackers recover what the definition says, and no attacker recovers more than the best one."""

from __future__ import annotations

import numpy as np
import pytest

from support.toys import KEYS, MASTER_KEY, build_mechanism, random_embedding, token_batch
from wordveil.measures.attackers import MaximumPosterior, NearestWord, attack
from wordveil.mechanisms.tables.mechanism import TableMechanism
from wordveil.mechanisms.tables.table import probabilities

SIZE = 30
BOTH = (KEYS, MASTER_KEY.for_release("another"))
EVEN = np.full(SIZE, 1 / SIZE)
SKEWED = np.arange(1, SIZE + 1) / (SIZE * (SIZE + 1) / 2)


@pytest.fixture(scope="module", params=[False, True])
def mechanism(request: pytest.FixtureRequest) -> TableMechanism:
    settings = {"epsilon": 2.0, "neighbours": 12}
    made = build_mechanism(random_embedding(SIZE, 3), settings, padding=request.param, mechanism="exponential")
    assert isinstance(made, TableMechanism)
    return made


def joint_law(mechanism: TableMechanism, prior: np.ndarray) -> np.ndarray:
    return np.stack([prior[word] * probabilities(mechanism.table, word) for word in range(SIZE)])


@pytest.mark.parametrize("prior", [EVEN, SKEWED], ids=["even", "skewed"])
def test_the_best_attacker_is_exact(mechanism, prior):
    joint = joint_law(mechanism, prior)
    attacker, rate = MaximumPosterior.of_mechanism(mechanism, prior)
    assert rate == pytest.approx(joint.max(axis=0).sum(), abs=1e-12)
    assert attacker.guesses.tolist() == joint.argmax(axis=0).tolist()
    # Nobody does better, whatever the guesses; and one wrong guess costs.
    worse = attacker.guesses.copy()
    worse[0] = joint[:, 0].argmin()
    assert joint[worse, np.arange(len(worse))].sum() < rate - 1e-6
    assert attack(mechanism, prior).rate == rate
    assert attack(mechanism, prior).draws is None


def test_with_an_even_prior_the_nearest_word_is_the_best_guess(mechanism):
    kept = float(np.trace(joint_law(mechanism, EVEN)[:, :SIZE]))
    best = attack(mechanism, EVEN)
    assert (best.baseline, best.draws) == (pytest.approx(1 / SIZE), None)
    assert kept - 1e-12 <= best.rate < kept + 0.05


def test_a_skewed_prior_makes_the_best_attacker_better_than_the_nearest_word():
    """Weak noise hides words well, and then it pays to guess the frequent ones."""
    mechanism = build_mechanism(random_embedding(SIZE, 3), {"epsilon": 0.2}, padding=False, mechanism="exponential")
    best = attack(mechanism, SKEWED)
    assert best.rate > np.trace(joint_law(mechanism, SKEWED)[:, :SIZE]) + 0.01
    assert best.rate >= best.baseline == SKEWED.max()


def test_an_attacker_fitted_on_draws_comes_near_the_best_and_not_above():
    mechanism = build_mechanism(random_embedding(SIZE, 3), {"epsilon": 3.0}, padding=False, mechanism="exponential")
    exact, draws = attack(mechanism, SKEWED).rate, 60_000
    words = np.repeat(np.arange(SIZE, dtype=np.int32), np.rint(SKEWED * draws).astype(int))
    first, second = (mechanism.draw(token_batch([words]), keys).ids for keys in BOTH)
    fitted = MaximumPosterior.fit(words, first, SIZE)
    deviation = np.sqrt(exact * (1 - exact) / len(words))
    rate = np.mean(fitted.predict(second) == words)
    assert exact - 0.02 < rate < exact + 4 * deviation
    assert rate > np.mean(second == words) - 4 * deviation


def test_mechanisms_without_a_table_are_attacked_by_draws():
    mechanism = build_mechanism(random_embedding(SIZE, 3), {"epsilon": 5.0}, padding=False)
    weak = build_mechanism(random_embedding(SIZE, 3), {"epsilon": 0.01}, padding=False)
    strong = attack(mechanism, EVEN, 6_000, BOTH)
    assert strong.draws == 6_000
    assert strong.rate > attack(weak, EVEN, 6_000, BOTH).rate + 0.2


def test_the_guess_is_the_word_that_came_most_often():
    words = np.array([0, 0, 1, 1, 1, 2, 2], np.int32)
    drawn = np.array([0, 1, 1, 1, 0, 3, 0], np.int32)
    attacker = MaximumPosterior.fit(words, drawn, 5)
    # Output 0 came once each from 0, 1 and 2: the lowest. Output 2 and 4 never came, nor padding.
    assert attacker.predict(np.array([0, 1, 2, 3, 4, 5], np.int32)).tolist() == [0, 1, 2, 2, 4, 1]
    assert np.mean(attacker.predict(drawn) == words) == pytest.approx(4 / 7)
    assert NearestWord(1, 5).predict(np.array([0, 4, 5], np.int32)).tolist() == [0, 4, 1]


def test_words_are_in_proportion_to_their_prior(monkeypatch):
    mechanism = build_mechanism(random_embedding(4, 2), {"epsilon": 1e3}, padding=False)
    seen = []

    def fit(words, drawn, size):
        seen.append(np.bincount(words, minlength=size).tolist())
        return NearestWord(0, size)

    monkeypatch.setattr(MaximumPosterior, "fit", fit)
    assert attack(mechanism, np.array([0.5, 0.0, 0.3, 0.2]), 10, BOTH).rate == 1.0
    assert seen == [[5, 0, 3, 2]]


@pytest.mark.parametrize("prior", [EVEN * 2, -EVEN, EVEN[None, :], np.full(SIZE, np.nan)])
def test_what_is_no_prior_is_refused(mechanism, prior):
    with pytest.raises(ValueError, match="prior"):
        attack(mechanism, prior, 10)


@pytest.mark.parametrize(
    ("words", "drawn"), [([], []), ([0], [0, 1]), ([5], [0]), ([-1], [0]), ([0], [6]), ([0], [-1])]
)
def test_pairs_out_of_range_are_refused(words, drawn):
    with pytest.raises(ValueError, match="Expected"):
        MaximumPosterior.fit(np.array(words, np.int32), np.array(drawn, np.int32), 5)
