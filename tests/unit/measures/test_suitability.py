"""How an embedding suits a mechanism: distances, epsilons, digits and coverage, against exact figures."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from support.toys import build, build_mechanism, load_built, random_embedding, toy_embedding
from wordveil.embeddings.embedding import Embedding, check_embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.recovery import measure_recovery
from wordveil.measures.suitability import COSINE, Suitability, measure_neighbours, measure_suitability
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.mechanisms.registry import MECHANISMS

SIZE = 200
EMBEDDING = random_embedding(SIZE, 8)
PRIOR = rank_frequencies(SIZE)
TREE = {"epsilon": 4.0, "sizes": (8,)}
NEAR = {"epsilon": 3.0, "neighbours": 20}


def scaled(factor: float) -> Embedding:
    return check_embedding(EMBEDDING.words.to_pylist(), (EMBEDDING.vectors * factor).astype(np.float32), "scaled")


def measure(
    name: str, settings: dict[str, Any], embedding: Embedding = EMBEDDING, *, padding: bool = False
) -> Suitability:
    built = build(embedding, settings, padding=padding, mechanism=name)
    mechanism = load_built(MECHANISMS[name], embedding.size, built)
    made = MECHANISMS[name].settings_type(**settings)
    return measure_suitability(mechanism, embedding, made, built.guarantee, rank_frequencies(embedding.size))


@pytest.mark.parametrize("name", [*SPACES, COSINE])
def test_neighbours_are_as_far_as_the_space_says(name):
    vectors = EMBEDDING.vectors * np.float32(0.05)  # inside the ball
    words = np.array([0, 17, 199], np.int32)
    nearest, far = measure_neighbours(vectors, name, words, 30)
    if name == COSINE:
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        exact = -np.sort(-(unit[words] @ unit.T).astype(np.float64), axis=1)
    else:
        points = SPACES[name].points(vectors)
        exact = np.sort([SPACES[name].distances(points[word], points) for word in words], axis=1)
    assert nearest == pytest.approx(exact[:, 1], rel=1e-3)
    assert far == pytest.approx(exact[:, 30], rel=1e-3)


def test_an_epsilon_without_a_mechanism_has_no_figure():
    mechanism = build_mechanism(EMBEDDING, {"epsilon": 4.0}, padding=False, mechanism="staircase")
    assert np.isnan(mechanism.stays_at([0.01], np.arange(3, dtype=np.int32))).all()


@pytest.mark.parametrize(("name", "settings"), [("tree", TREE), ("exponential", NEAR), ("laplace", {"epsilon": 8.0})])
def test_the_share_that_stays_bounds_what_is_recovered(name, settings):
    found = measure(name, settings)
    recovery = measure_recovery(build_mechanism(EMBEDDING, settings, padding=False, mechanism=name), PRIOR)
    own = next(one for one in found.epsilons if one.epsilon == settings["epsilon"])
    for share, prior in ((own.stays, recovery.uniform), (own.recovered, recovery.frequency)):
        assert share <= (prior.after[0].at_most or 1.0) + 0.05
        assert share >= prior.after[0].at_least - 0.1
    assert [one.stays for one in found.epsilons] == sorted(one.stays for one in found.epsilons)
    shares = {one.epsilon: one.stays for one in found.epsilons}
    most = 1 / 8 if name == "tree" else 1.0  # of a cluster one word is written
    low, high = (shares[epsilon] / most for epsilon in found.epsilon)
    assert (0.04 < low < 0.2, 0.8 < high < 0.97) == (True, True), "where words begin and cease to change"
    assert json.loads(json.dumps(asdict(found)))["measure"] == found.measure
    assert measure(name, settings) == found


def test_warnings_bad_values_say_what_to_take():
    base = measure("exponential", NEAR, random_embedding(400, 8))
    assert [said for said in base.warnings if "mechanism." in said] == []
    low, high = base.epsilon
    close = measure("exponential", {"epsilon": 3.0, "gamma": 4.5, "neighbours": 20}, scaled(0.1))
    gamma, epsilon = (said for said in close.warnings if said.startswith("mechanism."))
    assert gamma.startswith("mechanism.gamma = 4.5: half of the words have 199 words nearer than ")
    assert gamma.endswith(f"Begin with {close.gamma:g}.")
    assert epsilon.startswith("mechanism.epsilon = 3: 0.")
    assert epsilon.endswith(f"Look at epsilons from {close.epsilon[0]:g} to {close.epsilon[1]:g}.")
    small = measure("exponential", {"epsilon": 3.0, "gamma": 0.1, "neighbours": 20})
    assert "have no other word nearer than" in small.warnings[0]
    assert "less epsilon hides more" in measure("exponential", {**NEAR, "epsilon": 20 * high}).warnings[0]
    assert low < high


def test_suitability_context_mechanism_not_drawn_from(monkeypatch):
    """Single words say nothing of a text, and at full size their draws take minutes."""
    monkeypatch.setattr(MECHANISMS["er-ae"], "draw", None)
    words = [f"word{number}" for number in range(30)]
    embedding = toy_embedding(words, np.random.default_rng(2).standard_normal((30, 4)))
    found = measure("er-ae", {"epsilon": 8.0, "model": "generator.npz"}, embedding)
    assert (found.epsilon, found.epsilons) == (None, ())
    assert found.digits.words == 30
    assert found.digits.stays is None
