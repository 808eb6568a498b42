"""What a word is, in every script and around every odd character; and that cutting loses nothing."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest

from support.repository import needs
from wordveil.text.choices import TokeniserKind
from wordveil.text.language import SEGMENTERS
from wordveil.text.tokeniser import Tokeniser

KINDS = [
    pytest.param(kind, marks=needs(*SEGMENTERS[kind].names) if kind in SEGMENTERS else ()) for kind in TokeniserKind
]


def words(text, kind="words", hyphens="split"):
    tokeniser = Tokeniser(kind, hyphens)
    pieces = tokeniser.cut_words(tokeniser.normalise(pa.array([text])))
    assert pieces.offsets.tolist() == [0, len(pieces.words)]
    return pieces.words.to_pylist()


CUT = {
    "The cat sat.": "The cat sat", "don't": "don't", "don’t": "don’t", "'tis the dogs' tea": "tis the dogs tea",
    "‘quoted’ “words”": "quoted words", "rock 'n' roll": "rock n roll", "a''b it''s": "a b it s",
    "l'été d’août": "l'été d’août", "y'all'd've": "y'all'd've", "well-known": "well known",
    "a_b c/d e@f.g": "a b c d e f g", "3.14 and 1,000 or 7th": "3 14 and 1 000 or 7th", "x² Ⅷ ½ ٣": "x² Ⅷ ½ ٣",
    "Привет, мир! Γειά שלום नमस्ते": "Привет мир Γειά שלום नमस्ते", "한국어 단어": "한국어 단어",
    "tiếng Việt": "tiếng Việt", "I ❤️ you 😀👍🏽x": "I \ufe0f you x", "a\x01b": "a b",
    "a\x00b\x1bc\x7fd\x85e": "a b c d e", "zero\u200bwidth soft\u00adhyphen": "zero width soft hyphen",
    "a\u00a0b\u2003c\td\ne\r\nf": "a b c d e f", "q\u0307x y\u0335z": "q\u0307x y\u0335z", "one": "one",
    "": "", "   ": "", "?! ... —": "", "'": "", "\x01\x01": "",
}  # fmt: skip


def test_words():
    assert {text: " ".join(words(text)) for text in CUT} == CUT


def test_hyphens_split_words_or_stay_inside():
    for hyphen in "-\u2010":
        text = f"well{hyphen}known {hyphen}x{hyphen} a{hyphen}{hyphen}b it's{hyphen}me"
        assert words(text) == ["well", "known", "x", "a", "b", "it's", "me"]
        assert words(text, hyphens="inner") == [f"well{hyphen}known", "x", "a", "b", f"it's{hyphen}me"]
        assert words(f"well{hyphen}known漢{hyphen}字", "characters", "inner") == [f"well{hyphen}known", "漢", "字"]
    assert words("a–b—c−d", hyphens="inner") == ["a", "b", "c", "d"], "dashes are no hyphens"


@pytest.mark.parametrize("text", ["été naïve Ångström", "한국어", "Việt Nam"])
@pytest.mark.parametrize("kind", KINDS)
def test_composed_and_decomposed_texts_are_equal(text, kind):
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    assert forms[0] != forms[1]
    assert words(forms[0], kind) == words(forms[1], kind) == forms[0].split()


SPACELESS = ["漢字", "ひらがな", "カタカナ", "ㄅㄆ", "ไทย", "ລາວ", "ខ្មែរ", "မြန်မာ", "བོད", "ꦗꦮ", "ᬩᬮᬶ", "ꆈꌠ", "𠀀"]
SPACED = ["plain", "한국어", "tiếng Việt", "Привет", "नमस्ते", "مرحبا", "", "123", "😀", "。、"]


def test_scripts_without_word_spaces_are_refused_by_words_alone():
    texts = pa.array([*SPACED, *SPACELESS, *(f"some {text} inside" for text in SPACELESS)])
    for kind, refused in (("words", True), ("characters", False), ("whitespace", False)):
        found = Tokeniser(kind).cut_words(texts).refused.tolist()
        assert found == [False] * len(SPACED) + [refused] * 2 * len(SPACELESS)


def test_characters_make_each_letter_of_such_a_script_a_word():
    expected = {
        "漢字": "漢 字",
        "漢字 and don't 字": "漢 字 and don't 字",
        "abc漢def": "abc 漢 def",
        "2026年": "2026 年",
        "がんばれ。": "が ん ば れ",
        "กำ": "ก ำ",
        "กี่": "กี่",
        "漢\u0301字": "漢\u0301 字",
        "well-known": "well known",
        # Tibetan marks and tsheg, the baht sign, the Burmese comma, radicals: in the script, but no letters.
        "\u0f01 :\u0f0b \u0e3f:\u104a \u2f00 \ua490": "",
    }
    assert {text: " ".join(words(text, "characters")) for text in expected} == expected


def test_whitespace_takes_whatever_stands_between_spaces():
    text = "don't, (x) 漢字  well-known\t—\u00a0😀\u3000y"
    assert " ".join(words(text, "whitespace")) == "don't, (x) 漢字 well-known — 😀 y"


def test_a_very_long_text_and_a_very_long_word():
    assert len(words("word " * 50_000)) == 50_000
    assert words("x" * 300_000) == ["x" * 300_000]
    assert words("!" * 300_000) == []
    assert len(words("漢" * 50_000, "characters")) == 50_000
