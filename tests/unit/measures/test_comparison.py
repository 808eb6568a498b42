"""A sentence is previewed as a run writes it. Mechanisms are compared on it at an equal share of words kept, and at an
equal pure epsilon.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import toys
from support.toys import random_embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.measures.comparison import SENTENCE, SentenceComparison, compare, preview_default, preview_sentence
from wordveil.mechanisms.additive.laplace import LaplaceSettings
from wordveil.mechanisms.registry import SHIPPED
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.mechanisms.staircase.mechanism import StaircaseSettings
from wordveil.mechanisms.tables.exponential import ExponentialSettings
from wordveil.text.policy import TextPolicy, with_profile

TEXT = "Waab waac, waad waae zzz waaf waag."
READABLE = with_profile("readable", stop_word_list=("and", "the"))
CONFIGURED: dict[str, MechanismSettings] = {
    "exponential": ExponentialSettings(epsilon=4.0, gamma=3.0, neighbours=20),
    "laplace": LaplaceSettings(epsilon=3.0),
    "staircase": StaircaseSettings(epsilon=4.0),
}
HYPERBOLIC = {"hyperbolic-laplace", "hyperbolic-fdd"}
# Words alone are compared.
COMPARED = {kind.name for kind in SHIPPED if not (kind.reads_context or kind.draws_texts)}


@pytest.fixture(scope="module")
def embedding() -> Embedding:
    return random_embedding(100, 4)


@pytest.fixture(scope="module", params=sorted(CONFIGURED))
def made(request: pytest.FixtureRequest, embedding: Embedding) -> tuple[str, SentenceComparison]:
    return request.param, compare(embedding, READABLE, request.param, CONFIGURED[request.param], TEXT)


def kinds(lines: list[Any]) -> set[str]:
    return {line.mechanism.split(",")[0] for line in lines}


def test_every_mechanism_is_shown(made: tuple[str, SentenceComparison]):
    name, comparison = made
    shown = [comparison.configured]
    if name == "exponential":  # gamma is the configured one; the others have the order of the registry
        assert comparison.configured.mechanism == "exponential, gamma 3, neighbours 20"
        others = ["staircase", "exponential, neighbours 20", "laplace"]
        assert [line.mechanism for line in comparison.equal_kept] == others
    euclidean = COMPARED - HYPERBOLIC
    # One word of 14 is written for all of them at most, so that no more stay than that.
    few = comparison.configured.kept < 0.05
    assert kinds([*shown, *comparison.equal_kept]) == (euclidean if few else euclidean - {"tree"})
    assert kinds([*shown, *comparison.equal_pure]) == euclidean


def test_lines_are_equal_in_what_they_claim(made: tuple[str, SentenceComparison]):
    name, comparison = made
    kept, pure = comparison.configured.kept, comparison.configured.pure
    for line in comparison.equal_kept:
        # Draws tell shares of laplace to a few percent.
        assert line.kept == pytest.approx(kept, abs=0.06)
    for line in comparison.equal_pure:
        assert 0.9 * pure < line.pure <= pure
    assert comparison.configured.epsilon == CONFIGURED[name].nominal_epsilon


def test_in_hyperbolic_space_its_own_mechanisms_are_shown(embedding: Embedding):
    """At an epsilon at which they exist: in four dimensions laplace costs more than 3 for each unit of distance, or is
    left out.
    """
    ball = replace(embedding, vectors=embedding.vectors * np.float32(0.1))
    settings = ExponentialSettings(epsilon=8.0, metric="hyperbolic", neighbours=20)
    comparison = compare(ball, READABLE, "exponential", settings, TEXT)
    assert kinds([comparison.configured, *comparison.equal_kept]) == COMPARED - {"laplace", "tree"}
    assert all(line.epsilon > 3 for line in comparison.equal_kept if line.mechanism == "hyperbolic-laplace")
    weak = compare(ball, READABLE, "exponential", settings.at_epsilon(1.0), TEXT)
    assert not kinds(weak.equal_pure) & HYPERBOLIC


LINE = toys.toy_embedding(["near", "next", "far"], [1.0, 2.0, 9.0])


def preview(tmp_path, text, **policy):
    policy = TextPolicy(**policy)
    # So large an epsilon leaves every word as it is.
    bundle = toys.laplace_bundle(tmp_path, LINE, 50.0, padding=policy.pads)
    return preview_sentence(bundle, policy, text)


def test_a_sentence_comes_out_as_a_run_writes_it(tmp_path):
    found = preview(tmp_path, "Near, FAR next!", case="restore", punctuation="keep")
    assert (found.text, found.output, found.reason) == ("Near, FAR next!", "Near, FAR next!", None)
    assert (found.words, found.unknown, found.written) == (3, 0, 3)


def test_unknown_words_are_counted_and_a_refusal_says_why(tmp_path):
    dropped = preview(tmp_path, "near zorblax", unknown="drop")
    assert (dropped.output, dropped.words, dropped.unknown) == ("near", 2, 1)
    refused = preview(tmp_path / "refused", "near zorblax", unknown="quarantine")
    assert (refused.output, refused.reason, refused.written) == (None, "unknown_words", 0)


def test_default_sentence_shown_if_most_words_are_known(tmp_path):
    words = [*dict.fromkeys(SENTENCE.lower().replace(",", "").replace(".", "").split())]
    kept = toys.toy_embedding(words[:-3], [float(place) for place in range(1, len(words) - 2)])
    bundle = toys.laplace_bundle(tmp_path / "english", kept, 50.0, padding=False)
    found = preview_default(bundle, TextPolicy())
    assert found is not None
    assert found.text == SENTENCE
    assert found.unknown == 3
    other = toys.laplace_bundle(tmp_path / "other", LINE, 1.0, padding=False)
    assert preview_default(other, TextPolicy()) is None
    assert preview_default(bundle, TextPolicy(unknown="quarantine")) is None
