"""How many words texts come out with is what drawing gives, and a suggested public length is a round one."""

from __future__ import annotations

import numpy as np
import pytest

from support import toys
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.measures.text_lengths import Suggestion, forecast_lengths, round_length, share_padding, suggest_length
from wordveil.measures.token_draws import draw_tokens
from wordveil.text.policy import TextPolicy

SIZE = 60
WORDS = toys.random_embedding(SIZE, 5)


@pytest.mark.parametrize(
    ("tokens", "rounded"), [(0, 8), (8, 8), (9, 12), (12, 12), (13, 16), (33, 48), (48, 48), (49, 64), (412, 512)]
)
def test_a_suggested_length_is_a_round_one(tokens: int, rounded: int):
    assert round_length(tokens) == rounded


def test_a_suggested_length_is_one_that_can_be_drawn():
    lengths = np.array([3, 12, 13, 40])
    assert suggest_length(lengths, 12, 100) == Suggestion(12, 2)
    assert suggest_length(lengths, 12, 11) == Suggestion(11, 3)


@pytest.mark.parametrize("name", ["tree", "staircase", "exponential", "laplace"])
def test_a_padded_text_comes_out_as_forecast(name: str):
    settings = {"epsilon": 5.0, **({"sizes": (3,)} if name == "tree" else {})}
    mechanism = toys.build_mechanism(WORDS, settings, padding=True, mechanism=name)
    policy, keys = TextPolicy(length="pad", n_max=40), make_throwaway_keys()
    empty, ten, hundred = forecast_lengths(policy, mechanism, SIZE)
    assert [line.words for line in (empty, ten, hundred)] == [0, 10, 100]
    assert (empty.draws is None) == (name != "laplace")
    for line, words in ((empty, 0), (ten, 10), (hundred, 40)):  # the hundred are cut
        counts = [
            int((draw_tokens(mechanism, text_of(words, number), b"%d" % number, keys) != SIZE).sum())
            for number in range(300)
        ]
        error = 4 * max(float(np.std(counts)), 0.1) / 300**0.5 + (0 if line.draws is None else 5.0)
        assert np.mean(counts) == pytest.approx(line.mean, abs=error)
        assert np.std(counts) == pytest.approx(line.deviation, rel=0.25, abs=0.3)


@pytest.mark.parametrize("name", ["tree", "exponential", "laplace"])
def test_share_padding_that_of_draws_or_none(name: str):
    settings = {"epsilon": 2.0, **({"sizes": (3,)} if name == "tree" else {})}
    mechanism = toys.build_mechanism(WORDS, settings, padding=True, mechanism=name)
    assert share_padding(TextPolicy(), mechanism, SIZE) is None
    share = share_padding(TextPolicy(length="pad", n_max=40), mechanism, SIZE)
    if name == "laplace":  # which knows no law
        assert share is None
        return
    drawn = draw_tokens(mechanism, np.full(20_000, SIZE, np.int32), b"padding", make_throwaway_keys())
    assert float(np.mean(drawn != SIZE)) == pytest.approx(share, abs=0.02)
    assert 0 < share < 1


def text_of(words: int, seed: int) -> np.ndarray:
    chosen = np.random.default_rng(seed).integers(0, SIZE, words)
    return np.concatenate([chosen, np.full(40 - words, SIZE)]).astype(np.int32)


def test_other_lengths_are_certain():
    mechanism = toys.build_mechanism(WORDS, {"epsilon": 5.0}, padding=False)
    assert [line.mean for line in forecast_lengths(TextPolicy(), mechanism, SIZE)] == [0, 10, 100]
    drawn = forecast_lengths(TextPolicy(length="sample", n_max=16), mechanism, SIZE)
    assert [(line.mean, line.deviation) for line in drawn] == [(16, 0)] * 3
