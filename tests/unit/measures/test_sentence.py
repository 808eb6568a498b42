"""A public sentence before and after is what a run would write, and counts its words."""

from __future__ import annotations

import pytest

from support import toys
from wordveil.measures.comparison import SENTENCE, preview_default, preview_sentence
from wordveil.text.policy import TextPolicy

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


def test_padding_and_cutting_show(tmp_path):
    cut = preview(tmp_path, "near near far", length="pad", n_max=2)
    assert (cut.output, cut.words, cut.written) == ("near near", 3, 2)
    sampled = preview(tmp_path / "sampled", "far", length="sample", n_max=5)
    assert (sampled.output, sampled.words, sampled.written) == ("far far far far far", 1, 5)


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


@pytest.mark.parametrize("text", ["", "!"])
def test_a_sentence_without_words_becomes_the_empty_text(tmp_path, text):
    found = preview(tmp_path, text)
    assert (found.output, found.words, found.written) == ("", 0, 0)
