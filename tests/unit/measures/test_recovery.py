"""What an attacker recovers is what the definition says: by brute force, in closed form, over all pairs of draws."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from support.toys import build, build_mechanism, random_embedding
from wordveil.measures.recovery import (
    DRAWS,
    WordScores,
    find_recovered,
    guess_densely,
    guess_outputs,
    load_built,
    measure_recovery,
)
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.privacy.recovery import PriorRecovery, Recovery

SIZE = 60
EMBEDDING = random_embedding(SIZE, 3)
UNIFORM = np.full(SIZE, 1 / SIZE)
SKEWED = np.arange(1, SIZE + 1)[::-1] / (SIZE * (SIZE + 1) / 2)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lists": ("exponential", {"epsilon": 2.0, "neighbours": 12}),
    "all listed": ("exponential", {"epsilon": 2.0}),
    "tight": ("exponential", {"epsilon": 1.5, "neighbours": 12, "gamma": 1.5, "tight": True}),
    "weak": ("exponential", {"epsilon": 0.1, "neighbours": 12}),
    "blind": ("exponential", {"epsilon": 1e-9, "gamma": 1e-9}),
}


class _Dense(Mechanism):
    """A mechanism that knows its probabilities, and not the laws of all words at once."""

    name = "dense"
    build = load = examples = None  # type: ignore[assignment]

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism

    @property
    def max_tokens(self) -> int:
        return 1_000

    def draw(self, batch, keys):
        return self._mechanism.draw(batch, keys)

    def probabilities(self, symbol):
        return self._mechanism.probabilities(symbol)


class _Unknown(_Dense):
    """The same without its probabilities."""

    name = "unknown"

    def probabilities(self, symbol):
        return None


def mechanism_of(case: str, *, padding: bool = False) -> Mechanism:
    name, settings = CASES[case]
    return build_mechanism(EMBEDDING, settings, padding=padding, mechanism=name)


def joint_law(mechanism: Mechanism, prior: np.ndarray) -> np.ndarray:
    return np.stack([prior[word] * mechanism.probabilities(word) for word in range(len(prior))])


def after_two(mechanism: Mechanism, prior: np.ndarray) -> float:
    """The share that is recovered after two draws, over all pairs of outputs."""
    laws = np.stack([mechanism.probabilities(word) for word in range(len(prior))])
    pairs = product(range(laws.shape[1]), repeat=2)
    return sum(float((prior * laws[:, first] * laws[:, second]).max()) for first, second in pairs)


def measured(mechanism: Mechanism, prior: np.ndarray) -> Recovery:
    found = measure_recovery(mechanism, prior)
    assert found is not None
    return found


@pytest.mark.parametrize("prior", [UNIFORM, SKEWED], ids=["uniform", "skewed"])
@pytest.mark.parametrize("kind", [lambda mechanism: mechanism, _Dense, _Unknown], ids=["listed", "dense", "unknown"])
def test_one_share_is_exact_or_a_little_less(prior: np.ndarray, kind: Any):
    mechanism, draws = mechanism_of("lists", padding=True), 40_000
    exact = joint_law(mechanism, prior).max(axis=0).sum()
    share, counted = find_recovered(kind(mechanism), prior, draws)
    assert find_recovered(kind(mechanism), np.eye(SIZE)[3], 200)[0] == pytest.approx(1), "the most frequent word"
    if kind is not _Unknown:
        assert (share, counted) == (pytest.approx(exact, abs=1e-12), None)
        return
    assert counted == draws
    assert exact - 0.02 < share < exact + 4 * np.sqrt(exact * (1 - exact) / draws)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_one_draw_is_that_of_brute_force(case: str, padding: bool):
    mechanism = mechanism_of(case, padding=padding)
    laws = mechanism.word_laws()
    assert laws is not None
    for found in (measured(mechanism, SKEWED), measured(_Dense(mechanism), SKEWED)):
        for prior, its in ((UNIFORM, found.uniform), (SKEWED, found.frequency)):
            exact = joint_law(mechanism, prior).max(axis=0).sum()
            assert its.after[0].at_least == its.after[0].at_most == pytest.approx(exact, rel=1e-5)
            assert its.before == pytest.approx(prior.max(), rel=1e-5)
    for prior in (UNIFORM, SKEWED, np.eye(SIZE)[3]):
        joint = joint_law(mechanism, prior)
        guesses, best = guess_outputs(laws, prior)
        dense = guess_densely(mechanism, [prior], [np.empty((0, 1), np.int32)], [1])[0]
        assert best == pytest.approx(joint.max(axis=0), rel=1e-12, abs=1e-18)
        assert dense.joint == pytest.approx(joint.max(axis=0), rel=1e-12, abs=1e-18)
        every = np.arange(joint.shape[1])
        assert joint[guesses, every] == pytest.approx(joint.max(axis=0), rel=1e-12, abs=1e-18)
        assert joint[dense.outputs, every] == pytest.approx(joint.max(axis=0), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("prior", [UNIFORM, SKEWED], ids=["uniform", "skewed"])
@pytest.mark.parametrize("case", CASES)
def test_guesses_after_several_draws_are_the_likeliest_words(case: str, prior: np.ndarray):
    """Both ways of scoring, against the sum of logarithms."""
    mechanism = mechanism_of(case, padding=True)
    drawn = np.random.default_rng(1).integers(0, SIZE, (50, 6)).astype(np.int32)
    laws = mechanism.word_laws()
    assert laws is not None
    listed = WordScores.of(laws).guess(prior, drawn, (1, 3, 6))
    dense = guess_densely(mechanism, [prior], [drawn], (1, 3, 6))[0].words
    logs = np.log(np.stack([mechanism.probabilities(word)[:SIZE] for word in range(SIZE)]))
    for column, mark in enumerate((1, 3, 6)):
        scores = np.log(prior) + logs[:, drawn[:, :mark]].sum(axis=2).T
        for guesses in (listed, dense):
            chosen = scores[np.arange(len(drawn)), guesses[:, column]]
            assert chosen == pytest.approx(scores.max(axis=1), abs=1e-7)
        if case != "blind":  # where there is a worst guess
            assert (scores.min(axis=1) < scores.max(axis=1) - 1e-3).all()


@pytest.mark.parametrize("padding", [False, True])
def test_of_random_words_looking_tells_nothing(padding: bool):
    found = measured(mechanism_of("blind", padding=padding), SKEWED)
    for its in (found.uniform, found.frequency):
        assert its.after[0].at_least == pytest.approx(its.before, rel=1e-5)
        assert its.leakage_at_least == pytest.approx(1, rel=1e-4)
        for item in its.after[1:]:
            assert item.at_most is not None
            assert item.at_least <= its.before * 1.0001 <= item.at_most * 1.0002


TINY = random_embedding(7, 2, seed=3)
TINY_PRIOR = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04])


def tiny(epsilon: float) -> Mechanism:
    return build_mechanism(TINY, {"epsilon": epsilon, "neighbours": 3}, padding=True, mechanism="exponential")


@pytest.mark.parametrize("kind", [lambda mechanism: mechanism, _Dense], ids=["listed", "dense"])
@pytest.mark.parametrize("epsilon", [1.0, 2.5])
def test_two_draws_are_those_of_all_pairs_of_outputs(epsilon: float, kind: Any):
    found = measured(kind(tiny(epsilon)), TINY_PRIOR)
    for prior, its in ((np.full(7, 1 / 7), found.uniform), (TINY_PRIOR, found.frequency)):
        two = its.after[1]
        assert (two.draws, two.at_most is not None) == (2, True)
        assert two.at_least <= after_two(tiny(epsilon), prior) <= two.at_most
        # Another law is told from this one.
        assert not two.at_least <= after_two(tiny(epsilon * 1.3), prior) <= two.at_most
        assert not two.at_least <= joint_law(tiny(epsilon), prior).max(axis=0).sum() <= two.at_most


@pytest.mark.parametrize("kind", [lambda mechanism: mechanism, _Dense, _Unknown], ids=["listed", "dense", "unknown"])
@pytest.mark.parametrize("case", ["lists", "blind"])
def test_more_draws_never_recover_less_and_figures_come_back(case: str, kind: Any):
    mechanism = kind(mechanism_of(case))
    found = measured(mechanism, SKEWED)
    assert measured(mechanism, SKEWED) == found
    for its in (found.uniform, found.frequency):
        least = [item.at_least for item in its.after]
        assert least == sorted(least)
        assert its.before <= least[0] * 1.00001
        assert [item.draws for item in its.after] == list(DRAWS)


@pytest.mark.parametrize("case", ["lists", "weak", "blind"])
def test_fitted_attacker_on_draws_near_best_and_not_above(case: str):
    mechanism = mechanism_of(case, padding=True)
    exact, found = measured(mechanism, SKEWED), measured(_Unknown(mechanism), SKEWED)
    for best, its in ((exact.uniform, found.uniform), (exact.frequency, found.frequency)):
        for one, fitted in zip(best.after, its.after, strict=True):
            assert fitted.at_most is None
            assert fitted.at_least <= one.at_most + 1e-6
            assert fitted.at_least > 0.6 * one.at_least - 0.03
        assert its.leakage_at_most is None


def test_what_was_built_is_measured_before_it_is_in_a_bundle():
    for name, settings in (("exponential", {"epsilon": 2.0}), ("laplace", {"epsilon": 5.0})):
        built = build(EMBEDDING, settings, padding=True, mechanism=name)
        mechanism = build_mechanism(EMBEDDING, settings, padding=True, mechanism=name)
        with load_built(MECHANISMS[name], built, len(SKEWED)) as loaded:
            found = measure_recovery(loaded, SKEWED)
        assert found == measured(mechanism, SKEWED)
        assert (found.frequency.leakage_at_most is None) == (name == "laplace")


@pytest.mark.parametrize("wrong", [SKEWED * 2, -SKEWED, SKEWED[None, :], np.full(SIZE, np.nan)])
def test_what_is_no_prior_is_refused(wrong: np.ndarray):
    with pytest.raises(ValueError, match="prior"):
        measure_recovery(mechanism_of("blind"), wrong)
    with pytest.raises(ValueError, match="prior"):
        find_recovered(mechanism_of("blind"), wrong, 10)


def test_figures_survive_json_and_bad_ones_are_refused():
    for kind in (mechanism_of("lists"), _Unknown(mechanism_of("lists"))):
        found = measured(kind, SKEWED)
        assert Recovery.from_dict(found.to_dict()) == found
    known = measured(mechanism_of("lists"), SKEWED)
    assert known.to_dict()["frequency"]["leakage_at_most"] == known.to_dict()["frequency"]["leakage_at_least"]
    values = known.frequency.to_dict()
    for change in (
        {"before": 0.0},
        {"before": 1.5},
        {"after": []},
        {"after": values["after"][1:]},
        {"after": values["after"][::-1]},
        {"after": [{"draws": 1, "at_least": 0.5, "at_most": 0.4}]},
        {"after": [{"draws": 1, "at_least": float("nan"), "at_most": None}]},
    ):
        with pytest.raises(ValueError, match="Expected"):
            PriorRecovery.from_dict({**values, **change})
