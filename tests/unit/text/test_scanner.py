"""The compiled scanner gives the ids that Arrow's regular expressions give, whatever the text."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from wordveil.embeddings.vocabulary import Vocabulary, WordIndex
from wordveil.text.codec import Codec
from wordveil.text.encoded import Encoded
from wordveil.text.policy import TextPolicy
from wordveil.text.scanner import Scanner, join_words
from wordveil.text.tokeniser import Tokeniser

WORDS = (  # noqa: SIM905 - easier to read than a list of strings
    "the don't well-known caf\u00e9 na\u00efve a b a'b a\u2010b don t x2 \u00b2 known well The CAF\u00c9 \u00df \u0133 "
    "\u0430 \u03c3 \u0131 i 9 \u00aa \u6f22 straße e\u0301 é"
).split(" ")
VOCABULARY = Vocabulary(pa.array(list(dict.fromkeys(WORDS)), pa.string()))
STOP_WORDS = ("don't", "the", "zzz")
SETTINGS = {
    "plain": {},
    "inner hyphens": {"hyphens": "inner"},
    "exact": {"case": "exact"},
    "drop": {"unknown": "drop", "digits": "drop", "stop_words": "drop", "stop_word_list": STOP_WORDS},
    "quarantine": {"unknown": "quarantine", "digits": "drop"},
    "unseen dropped": {"controls": "drop"},
    "unseen refused": {"controls": "quarantine", "unknown": "drop"},
    "padded": {"length": "pad", "n_max": 5},
}
EVERY = pytest.mark.parametrize("name", list(SETTINGS))
# Letters and signs of every kind that decides: marks inside words, cases that grow, combining and compatibility
# characters.
ALPHABET = [
    *"aBt9' -\n.", "\u2019", "\u2010", "\u2018", "\u00e9", "\u00c9", "\u0130", "\u0131", "\u023a", "\u0301",
    "\u00b2", "\u2003", "\u200b",
    "\u212a", "\u1e9e", "\u03a3", "\u0430", "\u6f22", "\u0e01", "\U0001f600", "\x01", "\x00", "\u00ad", "\u2060",
    "\u01c5",
]  # fmt: skip


def encoded(name: str, texts: list[str], *, compiled: bool) -> Encoded:
    return Codec(TextPolicy(**SETTINGS[name]), VOCABULARY, compiled=compiled).encode(pa.array(texts, pa.string()))


def check(name: str, texts: list[str]) -> None:
    here, there = encoded(name, texts, compiled=True), encoded(name, texts, compiled=False)
    for field in ("ids", "offsets", "words", "unknown", "refused"):
        assert getattr(here, field).tolist() == getattr(there, field).tolist(), field


@EVERY
def test_every_text_of_three_characters(name: str) -> None:
    check(name, ["".join(parts) for count in range(4) for parts in itertools.product(ALPHABET, repeat=count)])


@EVERY
def test_random_texts(name: str) -> None:
    rng = np.random.default_rng(0)
    pieces = [*ALPHABET, *WORDS, " ", " ", " "]
    check(name, ["".join(rng.choice(pieces, rng.integers(0, 40))) for _ in range(4500)])


@EVERY
def test_every_character_that_the_scanner_knows_alone_and_in_a_word(name: str) -> None:
    points = [*range(0x600), *range(0x1FF0, 0x2C10)]
    check(
        name,
        [
            form
            for point in points
            for form in (chr(point), f"a{chr(point)}b", f"{chr(point)}a", f"B{chr(point)}{chr(point)}b")
        ],
    )


def test_texts_of_a_slice_are_those_of_the_slice() -> None:
    codec = Codec(TextPolicy(), VOCABULARY)
    texts = pa.array(["a the", "b \u6f22", "don't a", "", "\u0430 a"], pa.string())
    part = codec.encode(texts.slice(1, 3))
    assert [part.ids[a:b].tolist() for a, b in itertools.pairwise(part.offsets)] == [
        encoded("plain", [text], compiled=False).ids.tolist() for text in texts.slice(1, 3).to_pylist()
    ]


def test_only_texts_with_characters_it_does_not_know_are_left_out() -> None:
    scanner = Scanner(Tokeniser(), VOCABULARY.index, lower=True)
    easy = ["plain \u201cquoted\u201d caf\u00e9\u2026", "\u0430\u0416", "\u2605 \u20ac", "\u023a", ""]
    hard = ["e\u0301", "\u6f22", "\U0001f600", "\u05d0", "a \u212a", "\u20d0"]
    assert scanner.scan(pa.array(easy + hard)).hard.tolist() == [False] * len(easy) + [True] * len(hard)


def test_no_texts_and_no_words() -> None:
    assert encoded("plain", [], compiled=True).ids.tolist() == []
    assert encoded("plain", ["", " ", "?!"], compiled=True).offsets.tolist() == [0, 0, 0, 0]


def test_words_are_joined_and_padding_leaves_no_trace() -> None:
    words = pa.array(["ant", "bee\u00e9", "c"]).slice(0, 3)
    ids = np.array([0, 1, 3, 2, 3, 3, 3, 0], np.int32)
    joined = join_words(WordIndex(words), ids, np.array([0, 4, 4, 6, 8]))
    assert joined is not None
    assert joined.to_pylist() == ["ant bee\u00e9 c", "", "", "ant"]
    joined.validate(full=True)
    part = join_words(WordIndex(words.slice(1, 2)), np.array([0, 1], np.int32), np.array([0, 2]))
    assert part is not None
    assert part.to_pylist() == ["bee\u00e9 c"]


def test_texts_beyond_what_an_array_holds_are_not_joined_here() -> None:
    words = pa.array(["w" * 2**20])
    assert join_words(WordIndex(words), np.zeros(2**11, np.int32), np.array([0, 2**11])) is None
