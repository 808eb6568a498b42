"""Which places of a record hold the same word, by the form in which words are looked up."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.toys import ragged, unravel
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.text.codec import Codec, Encoded
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Pattern
from wordveil.text.tokeniser import Tokeniser, fold_words

WORDS = ["the", "cat", "sat", "don't", "7up", "Paris", "été", "well-known", "42", "a", "漢"]
VOCABULARY = Vocabulary(pa.array(WORDS))
LISTS = [[3, 1, 3, 3, 1], [], [1], [0, 1, 2], [4, 4], []]


def firsts(words: Sequence[Hashable]) -> list[int]:
    """By the definition."""
    return [words.index(word) for word in words]


def pattern_of(lists: list[list[int]]) -> Pattern:
    forms, offsets = ragged(lists)
    return Pattern.of(forms, offsets, 5)


def codec(**policy) -> Codec:
    return Codec(TextPolicy(repeat="same", **policy), VOCABULARY)


def encode(texts: list[str], **policy) -> Encoded:
    return codec(**policy).encode(pa.array(texts, pa.string()))


def pattern_in(text: str, **policy) -> list[int]:
    """The pattern of one text."""
    encoded = encode([text], **policy)
    assert len(encoded.pattern.firsts) == len(encoded.ids)
    return encoded.pattern.firsts.tolist()


def test_unify_puts_the_first_value_at_all_places():
    assert pattern_of(LISTS).unify(np.arange(11, dtype=np.int32)).tolist() == [0, 1, 0, 0, 1, 5, 6, 7, 8, 9, 9]


def test_the_pattern_in_another_order_is_that_of_the_words_in_it():
    forms, offsets = ragged(LISTS)
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(offsets.tolist())]).astype(int)
        again = Pattern.of(forms, offsets, 5).reorder(order)
        assert unravel(again.firsts, offsets) == [firsts(part) for part in unravel(forms[order], offsets)]


def test_the_payload_tells_patterns_apart_record_by_record():
    data, offsets = pattern_of([[1, 1, 2], [1, 2, 2], [1, 1, 2], [3, 3, 0]]).payload
    parts = [bytes(data[start:stop]) for start, stop in pairwise(offsets.tolist())]
    assert parts[0] == parts[2] == parts[3] != parts[1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 6), max_size=12), max_size=6))
def test_any_pattern_is_that_of_the_definition(lists):
    """And distinct words, chosen in order, are spread back."""
    forms, offsets = ragged(lists)
    pattern = Pattern.of(forms, offsets, 7)
    assert unravel(pattern.firsts, offsets) == [firsts(part) for part in lists]
    chosen = pattern.choose(forms)
    assert unravel(chosen, pattern.distinct_offsets) == [list(dict.fromkeys(part)) for part in lists]
    assert pattern.spread(chosen).tolist() == forms.tolist()
    assert pattern.spread(chosen).dtype == np.int32


def test_under_each_there_is_no_pattern_and_ids_are_the_same():
    texts = pa.array(["The cat zebra the ZEBRA.", "", "42 x9 42 été"])
    for policy in ({}, {"punctuation": "keep"}, {"length": "pad", "n_max": 4}, {"unknown": "drop"}):
        each = Codec(TextPolicy(**policy), VOCABULARY).encode(texts)
        same = codec(**policy).encode(texts)
        assert each.pattern is None
        assert same.pattern is not None
        assert (each.ids.tolist(), each.offsets.tolist()) == (same.ids.tolist(), same.offsets.tolist())
        assert (each.words.tolist(), each.unknown.tolist()) == (same.words.tolist(), same.unknown.tolist())


def test_unknown_words_are_told_apart_though_they_have_one_id():
    encoded = encode(["Müller met Zorblax, and Müller met Zorblax", "Zorblax Zorblax Müller", "Zorblax"])
    assert unravel(encoded.pattern.firsts, encoded.pattern.offsets) == [[0, 1, 2, 3, 0, 1, 2], [0, 0, 2], [0]]
    assert set(encoded.ids.tolist()) == {VOCABULARY.unknown}


@pytest.mark.parametrize(
    ("text", "policy", "expected"),
    [
        ("Cat CAT cat Zebra ZEBRA", {}, [0, 0, 0, 3, 3]),
        ("Cat CAT cat Zebra ZEBRA zebra", {"case": "restore"}, [0, 0, 0, 3, 3, 3]),
        ("Cat CAT cat Zebra ZEBRA Zebra", {"case": "exact"}, [0, 1, 2, 3, 4, 3]),
        ("O’Neill o'neill O'NEILL don’t don't", {}, [0, 0, 0, 3, 3]),
        ("O’Neill O'Neill o'neill", {"case": "exact"}, [0, 0, 2]),
        (unicodedata.normalize("NFD", "Żółw żółw") + " Żółw", {}, [0, 0, 0]),
        ("Ångström Å ångström å", {}, [0, 1, 0, 1]), ("STRASSE straße strasse", {}, [0, 1, 0]),
        ("Иван иван ИВАН Ивана", {}, [0, 0, 0, 3]), ("x9 X9 7up 7UP 42 42", {}, [0, 0, 2, 2, 4, 4]),
        ("x9 cat X9 cat", {"digits": "drop"}, [0, 0]),
        ("the zebra of the zebra", {"stop_words": "keep", "stop_word_list": ("of", "the")}, [0, 0]),
        ("the zebra cat zebra cat", {"unknown": "keep"}, [0, 1, 1]),
        ("Zebra-cat zebra‐cat", {"hyphens": "inner"}, [0, 1]),
        ("京 京都 都", {"tokeniser": "characters"}, [0, 0, 2, 2]),
        ("ab\u00adc abc ab\u00adc", {"tokeniser": "whitespace"}, [0, 1, 0]),
        ("zebra, Zebra! zebra?", {"punctuation": "keep"}, [0, 0, 0]),
        ("cat zebra cat zebra", {"length": "pad", "n_max": 3}, [0, 1, 0]),
        ("cat zebra cat", {"length": "pad", "n_max": 6}, [0, 1, 0, 3, 4, 5]),
        ("", {"length": "pad", "n_max": 2}, [0, 1]), ("zebra cat zebra", {"unknown": "quarantine"}, []),
    ],
)  # fmt: skip
def test_words_are_the_same_if_their_look_up_forms_are(text, policy, expected):
    assert pattern_in(text, **policy) == expected


def test_a_refused_record_has_no_pattern_and_moves_no_other():
    encoded = encode(["cat cat", "cat zebra cat", "漢字仅限 cat", "sat sat"], unknown="quarantine")
    assert encoded.refused.tolist() == [None, "unknown_words", "script_without_word_spaces", None]
    assert unravel(encoded.pattern.firsts, encoded.pattern.offsets) == [[0, 0], [], [], [0, 0]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8") | st.sampled_from("aA7’' .,\x01\x02"), max_size=40), min_size=1, max_size=4
    )
)
def test_any_text_has_the_pattern_of_its_folded_words(texts):
    encoded = encode(texts, tokeniser="characters")
    tokeniser = Tokeniser("characters")
    pieces = tokeniser.cut_words(tokeniser.normalise(pa.array(texts, pa.string())))
    words = unravel(fold_words(pieces.words), pieces.offsets)
    assert unravel(encoded.pattern.firsts, encoded.pattern.offsets) == [firsts(part) for part in words]
