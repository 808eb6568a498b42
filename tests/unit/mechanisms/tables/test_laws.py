"""The laws of all words say of each word what its row of the table says."""

from __future__ import annotations

import pytest

from support.toys import build_mechanism, law_of_word, random_embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.tables import mechanism as module

SIZE = 40
EMBEDDING = random_embedding(SIZE, 3)
CASES = {
    "lists": ("exponential", {"epsilon": 2.0, "neighbours": 9}),
    "all listed": ("exponential", {"epsilon": 2.0}),
    "all listed, strong": ("exponential", {"epsilon": 60.0}),
    "tight": ("exponential", {"epsilon": 2.0, "neighbours": 9, "gamma": 1.5, "tight": True}),
    "weak": ("exponential", {"epsilon": 1e-6, "neighbours": 5}),
    "one neighbour": ("exponential", {"epsilon": 3.0, "neighbours": 1}),
    "blind": ("exponential", {"epsilon": 1e-9, "gamma": 1e-9}),
}


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_they_are_those_of_the_rows(case: str, padding: bool):
    name, settings = CASES[case]
    mechanism = build_mechanism(EMBEDDING, settings, padding=padding, mechanism=name)
    laws = mechanism.word_laws()
    assert laws is not None
    assert laws.offsets.shape == (SIZE + 1,)
    assert laws.common.sum() == pytest.approx(1, abs=1e-12)
    assert (laws.extras > 0).all()
    for word in range(SIZE):
        law = mechanism.probabilities(word)
        assert law is not None
        assert law_of_word(laws, word) == pytest.approx(law, rel=1e-12, abs=1e-18)
        assert law.sum() == pytest.approx(1, abs=1e-12)


def test_lists_of_more_words_than_there_are_are_refused():
    settings = {"epsilon": 2.0, "neighbours": SIZE}
    assert build_mechanism(EMBEDDING, settings, padding=False, mechanism="exponential")
    settings["neighbours"] += 1
    with pytest.raises(BundleError, match=r"mechanism.neighbours = 41: the embedding has 40 words. Give at most 40"):
        build_mechanism(EMBEDDING, settings, padding=False, mechanism="exponential")


def test_laws_that_are_too_large_are_not_made(monkeypatch: pytest.MonkeyPatch):
    mechanism = build_mechanism(EMBEDDING, {"epsilon": 2.0, "neighbours": 9}, padding=False, mechanism="exponential")
    laws = mechanism.word_laws()
    assert laws is not None
    monkeypatch.setattr(module, "MAX_ENTRIES", len(laws.ids) - 1)
    assert mechanism.word_laws() is None
    monkeypatch.setattr(module, "MAX_ENTRIES", len(laws.ids))
    assert mechanism.word_laws() is not None
