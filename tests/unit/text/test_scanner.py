"""The compiled scanner finds the words that the regular expressions define, whatever the text."""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support.reference_words import PLACEHOLDER, are_refused, cut_pieces, find_case
from support.repository import needs
from support.toys import unravel
from wordveil.embeddings.vocabulary import Vocabulary, view_strings
from wordveil.text.characters import _STABLE, LOOSE, _load_characters, read_bits
from wordveil.text.choices import TokeniserKind
from wordveil.text.language import SEGMENTERS
from wordveil.text.scanner import A_WORD
from wordveil.text.tokeniser import Tokeniser, fold_words, straighten_apostrophes
from wordveil.text.types.classes import TypeSpans

# Words are read by up to 16 bytes and in blocks of 32.
LONG = ["fifteen-letters", "sixteenletters16", "seventeenletters7", "w" * 31, "it's-a-long-word-of-32-characters"]
WORDS = (  # noqa: SIM905 - easier to read than a list of strings
    "the don't well-known caf\u00e9 na\u00efve a b a'b a\u2010b don t x2 \u00b2 known well The CAF\u00c9 \u00df \u0133 "
    "\u0430 \u03c3 \u0131 i 9 \u00aa \u6f22 straße é \u7684 \U0001e922 a\x00"
).split(" ") + LONG
VOCABULARY = Vocabulary(pa.array(list(dict.fromkeys(WORDS)), pa.string()))
# Letters and signs of every kind that decides: marks inside words, cases that grow, combining and compatibility
# characters, scripts without word spaces and their signs, characters of four bytes.
ALPHABET = [
    *"aBt9' -\n.", "\u2019", "\u2010", "\u2018", "\u00e9", "\u00c9", "\u0130", "\u0131", "\u023a", "\u0301",
    "\u00b2", "\u2003", "\u200b", "\u24dc", "\u2192",
    "\u212a", "\u1e9e", "\u03a3", "\u0430", "\u6f22", "\u0e01", "\U0001f600", "\x01", "\x00", "\u00ad", "\u2060",
    "\u01c5", "\u30fc", "\u3007", "\u3005", "\u3042", "\u3099", "\u0e35", "\ud55c", "\u1100", "\u1161", "\U0001e900",
    "\U00020000", "\U000e0100", "\uffff", "\U0010ffff", "\u0f0b",
]  # fmt: skip
KINDS = [
    pytest.param(kind, hyphens, marks=needs(*SEGMENTERS[kind].names) if kind in SEGMENTERS else ())
    for kind in TokeniserKind
    for hyphens in ("split", "inner")
]
EVERY = pytest.mark.parametrize(("kind", "hyphens"), KINDS)


def check(
    kind: str, hyphens: str, texts: list[str], *, is_folded: bool = True, after: str = "", copied: bool = False
) -> None:
    """Compare all that the scanner says of some texts. U+0002 stands for a token that is found already; ``after`` for
    what follows the texts in their buffer.
    """
    tokeniser = Tokeniser(kind, hyphens, copied=copied)
    array = tokeniser.normalise(slice_exactly(["x", *texts, after])[1:-1])
    normal = [unicodedata.normalize("NFC", text).replace("\x01", " ") for text in texts]
    assert array.to_pylist() == normal
    data, offsets = view_strings(array)
    starts = np.flatnonzero(data[offsets[0] : offsets[-1]] == ord(PLACEHOLDER)) + offsets[0]
    spans = TypeSpans(starts, starts + 1, np.full(len(starts), 3, np.int8), np.searchsorted(starts, offsets))
    scanned = tokeniser.cut_words(array, VOCABULARY.index, spans, lower=is_folded)
    pieces = cut_pieces(normal, kind, hyphens, copied=copied)
    words = scanned.words
    assert unravel(words, scanned.offsets) == [some[1::2] for some in pieces]
    gaps = []
    for record, (first, last) in enumerate(itertools.pairwise(scanned.offsets)):
        edges = [offsets[record], *np.stack([scanned.starts, scanned.ends], 1)[first:last].ravel(), offsets[record + 1]]
        gaps.append([bytes(data[a:b]).decode() for a, b in zip(edges[::2], edges[1::2], strict=True)])
    assert gaps == [some[::2] for some in pieces]
    assert scanned.refused.tolist() == are_refused(normal, kind)
    is_word = scanned.kinds == A_WORD
    assert (scanned.kinds[~is_word] == 3).all()
    assert is_word.tolist() == [word != PLACEHOLDER for word in words.to_pylist()]
    looked_up = (fold_words if is_folded else straighten_apostrophes)(words)
    assert scanned.numbers.tolist() == VOCABULARY.index.numbers(looked_up).tolist()
    assert scanned.cases.tolist() == find_case(words).tolist()
    assert scanned.has_digit.tolist() == np.asarray(pc.match_substring_regex(words, r"\p{N}")).tolist()


def slice_exactly(texts: list[str]) -> pa.StringArray:
    """The texts in a buffer that ends where they do."""
    parts = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(parts)))


@EVERY
@pytest.mark.sweep
def test_every_text_of_two_characters(kind: str, hyphens: str) -> None:
    check(kind, hyphens, ["".join(parts) for count in range(3) for parts in itertools.product(ALPHABET, repeat=count)])


@EVERY
@pytest.mark.sweep
def test_random_texts(kind: str, hyphens: str) -> None:
    rng = np.random.default_rng(0)
    pieces = [*ALPHABET, *WORDS, PLACEHOLDER, PLACEHOLDER, " ", " ", " "]
    texts = ["".join(rng.choice(pieces, rng.integers(0, 40))) for _ in range(80)]
    check(kind, hyphens, texts)
    check(kind, hyphens, texts[::2], copied=True)
    check(kind, hyphens, texts[:50], is_folded=False, after="don't")
    for text in texts[:8]:
        check(kind, hyphens, [text], after="xé"[: len(text) % 3])


@EVERY
def test_words_at_every_place_of_a_block(kind: str, hyphens: str) -> None:
    """What decides may be cut by the end of a block, a text or a buffer, and by a token that is found already."""
    pieces = [*LONG, *map(str.upper, LONG), "don't", "a", "Ab9", *"'-\x00é\u6f22\u0301\U0001f600", PLACEHOLDER, ""]
    ends = ["", " ", "b", "'b", "''b", "'é", "-é", "'", "\u0301", "'\x00", PLACEHOLDER, f"'{PLACEHOLDER}b"]
    before = ["", "a", "Don't ", "é", f"{PLACEHOLDER}'"]
    texts = [
        before[lead % 5] + " x" * (lead // 2) + " " * (lead % 2) + piece + end
        for piece, end in itertools.product(pieces, ends)
        for lead in range(len(piece) % 5, 34, 5)
    ]
    check(kind, hyphens, texts)
    check(kind, hyphens, texts[::7], is_folded=False, after="b")


@EVERY
def test_placeholder_that_marks_no_token_is_a_control_character(kind: str, hyphens: str) -> None:
    texts = [f"{'a' * size}{sign}\x02{end}" for size in range(18) for sign in ("", "'", " ") for end in ("", "b", "é")]
    others = [text.replace("\x02", "\x03") for text in texts]
    cut = [Tokeniser(kind, hyphens).cut_words(pa.array(some), VOCABULARY.index) for some in (texts, others)]
    for field in ("starts", "ends", "offsets", "numbers", "kinds", "forms"):
        assert getattr(cut[0], field).tolist() == getattr(cut[1], field).tolist()


@pytest.mark.parametrize("kind", ["words", "whitespace", "characters"])
def test_every_character_in_a_word(kind: str) -> None:
    points = [point for point in [*range(3, 0x3100), *range(0x3100, 0x110000, 977)] if not 0xD800 <= point < 0xE000]
    text = " ".join(f"a{chr(point)}b {chr(point)} B{chr(point)}{chr(point)}c" for point in points)
    for copied in (False, True):
        check(kind, "split", [text], copied=copied)


def test_characters_beyond_the_table_are_in_no_word() -> None:
    beyond = "".join(map(chr, [*range(0x40000, 0xE0000), *range(0xE1000, 0x110000)]))
    assert (
        pc.replace_substring_regex(pa.array([beyond]), r"[^\p{L}\p{M}\p{N}\p{Cc}\p{Cf}\p{Z}\s]+", "")[0].as_py() == ""
    )
    assert unicodedata.is_normalized("NFC", beyond)


def test_texts_changed_by_the_form_are_known_by_their_characters() -> None:
    """No two characters that are stable on their own become another one together."""
    seconds = {
        unicodedata.normalize("NFD", chr(point))[1:] for point in range(0x110000) if not 0xD800 <= point < 0xE000
    }
    texts = pa.array(sorted({character for some in seconds for character in some}), pa.string())
    assert (read_bits(texts) & LOOSE != 0).all()
    stable = [chr(point) for first, end in _STABLE for point in range(first, end)]
    bits = _load_characters().bits[[ord(character) for character in stable]]
    assert unicodedata.is_normalized("NFC", "".join(itertools.compress(stable, bits & LOOSE == 0)))
