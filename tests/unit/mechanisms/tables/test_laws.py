"""The laws of all words at once, and what tables refuse."""

from __future__ import annotations

import pytest

from support.toys import build_mechanism, law_of_word, random_embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.tables import mechanism as module

SIZE = 40
EMBEDDING = random_embedding(SIZE, 3)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 2.0, "neighbours": 9},
        {"epsilon": 60.0},
        {"epsilon": 2.0, "neighbours": 9, "gamma": 1.5, "tight": True},
        {"epsilon": 1e-6, "neighbours": 5},
        {"epsilon": 3.0, "neighbours": 1},
        {"epsilon": 1e-9, "gamma": 1e-9},
    ],
    ids=str,
)
def test_laws_of_all_words_are_those_of_the_rows(
    settings: dict[str, float], padding: bool, monkeypatch: pytest.MonkeyPatch
):
    mechanism = build_mechanism(EMBEDDING, settings, padding=padding, mechanism="exponential")
    laws = mechanism.word_laws()
    assert laws is not None
    assert laws.common.sum() == pytest.approx(1, abs=1e-12)
    assert (laws.extras > 0).all()
    for word in range(SIZE):
        law = mechanism.probabilities(word)
        assert law_of_word(laws, word) == pytest.approx(law, rel=1e-12, abs=1e-18)
        assert law.sum() == pytest.approx(1, abs=1e-12)
    monkeypatch.setattr(module, "MAX_ENTRIES", len(laws.ids) - 1)
    assert mechanism.word_laws() is None, "they would be too large"


def test_lists_of_more_words_than_there_are_are_refused():
    settings = {"epsilon": 2.0, "neighbours": SIZE}
    assert build_mechanism(EMBEDDING, settings, padding=False, mechanism="exponential")
    settings["neighbours"] += 1
    with pytest.raises(BundleError, match=r"mechanism.neighbours = 41: the embedding has 40 words. Give at most 40"):
        build_mechanism(EMBEDDING, settings, padding=False, mechanism="exponential")
