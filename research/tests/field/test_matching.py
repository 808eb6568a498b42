"""Mechanisms at an equal recovery: what is found is true of what is built."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wordveil.embeddings.embedding import check_embedding
from wordveil.mechanisms.settings import MechanismSettings
from wordveil_research.field.matching import Candidate, Matcher, make_settings

SIZE = 120


def make_response(loss: float) -> MechanismSettings:
    """Plain randomised response: the staircase whose lists hold the word alone."""
    return make_settings("staircase", alpha=0.0, floor_mass=SIZE / (math.exp(loss) + SIZE - 1))(loss)


CANDIDATES = [
    Candidate("exponential", "exponential", make_settings("exponential"), by_loss=False),
    Candidate("TEM", "exponential", make_settings("exponential", gamma=3.0, neighbours=8, tight=True), by_loss=False),
    Candidate("SynTF", "syntf", make_settings("syntf", neighbours=16), by_loss=False),
    Candidate("staircase", "staircase", make_settings("staircase"), by_loss=True),
    Candidate("response", "staircase", make_response, by_loss=True, rebuilt=True),
    Candidate("tree", "tree", make_settings("tree", sizes=(10,), output="member"), by_loss=True),
]


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    vectors = np.random.default_rng(5).standard_normal((SIZE, 6)).astype(np.float32)
    return Matcher(check_embedding([f"w{number}" for number in range(SIZE)], vectors, "made"), draws=20_000)


@pytest.mark.parametrize("prior", ["uniform", "public"])
@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.label)
def test_the_recovery_of_what_is_built_is_the_target(matcher, candidate, prior):
    wanted = 0.45
    found = matcher.at_recovery(candidate, prior, wanted)
    if candidate.label == "tree":
        # Ten words of a cluster are drawn alike: at most a tenth of them is recovered where all are equally likely.
        assert (found is None) == (prior == "uniform")
    if found is not None:
        law = matcher.law(prior)
        mechanism = matcher.load(candidate, found.built)
        table = np.stack([law[word] * mechanism.probabilities(word) for word in range(SIZE)])
        assert table.max(axis=0).sum() == pytest.approx(wanted, rel=0.08)
