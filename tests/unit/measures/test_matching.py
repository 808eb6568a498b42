"""Mechanisms at an equal loss: what is found is true of what is built."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wordveil.embeddings.embedding import check_embedding
from wordveil.measures.search import Candidate, Matcher
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings

SIZE = 120
LOSS = 5.0


def make_settings(mechanism: str, **settings: Any) -> Callable[[float], MechanismSettings]:
    return lambda epsilon: MECHANISMS[mechanism].settings_type(epsilon=epsilon, **settings)


def make_response(loss: float) -> MechanismSettings:
    """Plain randomised response: the staircase whose lists hold the word alone."""
    return make_settings("staircase", alpha=0.0, floor_mass=SIZE / (math.exp(loss) + SIZE - 1))(loss)


CANDIDATES = [
    Candidate("exponential", "exponential", make_settings("exponential"), by_loss=False),
    Candidate("TEM", "exponential", make_settings("exponential", gamma=3.0, neighbours=8, tight=True), by_loss=False),
    Candidate("staircase", "staircase", make_settings("staircase"), by_loss=True),
    Candidate("response", "staircase", make_response, by_loss=True),
    Candidate("tree", "tree", make_settings("tree", sizes=(10,), output="member"), by_loss=True),
]


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    vectors = np.random.default_rng(5).standard_normal((SIZE, 6)).astype(np.float32)
    return Matcher(check_embedding([f"w{number}" for number in range(SIZE)], vectors, "made"))


def true_loss(matcher: Matcher, candidate: Candidate, epsilon: float) -> float:
    """The largest log probability ratio between any two words, from the laws themselves."""
    mechanism = matcher.load(candidate, matcher.build(candidate, epsilon))
    laws = np.log(np.stack([mechanism.probabilities(word) for word in range(SIZE)]))
    return float((laws.max(axis=0) - laws.min(axis=0)).max())


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda one: one.label)
def test_matched_loss_target_or_a_little_less(matcher, candidate):
    found = matcher.at_loss(candidate, LOSS)
    assert found is not None
    assert 0.99 * LOSS <= found.built.guarantee.pure <= LOSS * (1 + 1e-6)
    # The certificate covers the unknown word too, so that words alone may lose less; they never lose more.
    assert 0.7 * LOSS <= true_loss(matcher, candidate, found.epsilon) <= LOSS * (1 + 1e-6)


@pytest.mark.parametrize("candidate", CANDIDATES[:2], ids=lambda one: one.label)
def test_an_epsilon_that_is_taken_for_the_loss_misses_it(matcher, candidate):
    """So the test above would fail for a search that returned its target."""
    assert abs(true_loss(matcher, candidate, LOSS) / LOSS - 1) > 0.05


def test_noise_that_no_epsilon_makes_private_enough_is_none():
    ball = np.random.default_rng(6).uniform(-0.5, 0.5, (40, 3)).astype(np.float32)
    matcher = Matcher(check_embedding([f"w{number}" for number in range(40)], ball, "made"))
    noise = Candidate("noise", "hyperbolic-fdd", make_settings("hyperbolic-fdd"), by_loss=False)
    assert matcher.at_loss(noise, 0.5) is None
    assert matcher.at_loss(noise, 60.0) is not None


def test_a_loss_that_has_stopped_growing_ends_the_search(matcher):
    """With uniform floors of mass 0.3 no token loses more than ``ln(1 + 0.7 / 0.3 * words)``, here 5.64."""
    uniform = Candidate("uniform", "staircase", make_settings("staircase", alpha=0.0), by_loss=True)
    found = matcher.at_loss(uniform, 12.0)
    assert found is not None
    assert 5 < found.built.guarantee.pure < 6
    assert found.epsilon < 1_000
