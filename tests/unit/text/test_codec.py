"""What each setting of a text policy does to a text on its way to token ids and back."""

from __future__ import annotations

import itertools
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.toys import unravel
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.text.characters import COPYABLE
from wordveil.text.codec import SCRIPT_REFUSED, Codec
from wordveil.text.policy import TextPolicy
from wordveil.text.tokeniser import Tokeniser

WORDS = ["the", "cat", "sat", "don't", "7up", "Paris", "été", "well-known", "42", "a", "漢"]
VOCABULARY = Vocabulary(pa.array(WORDS))
STOPS = ("42", "don't", "of", "the")
PAD, UNKNOWN = "PAD", "?"
NAMES = [*WORDS, PAD, UNKNOWN]
READABLE = {"punctuation": "keep", "case": "restore", "stop_words": "keep", "digits": "keep", "unknown": "keep"}
COPYING = {"case": "restore", "punctuation": "keep", "controls": "drop"}


def codec(**policy):
    if policy.get("stop_words", "hide") != "hide":
        policy.setdefault("stop_word_list", STOPS)
    return Codec(TextPolicy(**policy), VOCABULARY)


def encode(texts, **policy):
    return codec(**policy).encode(pa.array([texts] if isinstance(texts, str) else texts, pa.string()))


def hidden(text, **policy):
    """The symbols of one text, by name."""
    return [NAMES[number] for number in encode(text, **policy).ids]


def there_and_back(text, words, **policy):
    """The output when the hidden words of ``text`` are replaced by ``words``."""
    toy = codec(**policy)
    encoded = toy.encode(pa.array([text]))
    assert len(encoded.ids) == len(words)
    ids = np.array([NAMES.index(word) for word in words], np.int32)
    return toy.decode(ids, encoded.offsets, encoded.skeleton)[0].as_py()


def copied(text, **policy):
    data, offsets = encode(text, **policy).skeleton.serialise()
    return bytes(data[offsets[0] : offsets[1]])


def test_batch_is_ragged_and_counts_words():
    encoded = encode(["the cat", "", "zebra don't", "!", "漢 the"], unknown="drop", tokeniser="characters")
    assert unravel(encoded.ids, encoded.offsets) == [[0, 1], [], [3], [], [10, 0]]
    assert encoded.words.tolist() == [2, 0, 2, 0, 2]
    assert encoded.unknown.tolist() == [0, 0, 1, 0, 0]
    assert encoded.refused.tolist() == [None] * 5
    assert encoded.skeleton is None
    assert encoded.ids.dtype == np.int32


def test_apostrophes_and_composition_do_not_matter_to_the_lookup():
    assert hidden("don’t don't DON’T") == ["don't"] * 3
    assert hidden(unicodedata.normalize("NFD", "été Été")) == ["été", "été"]


@pytest.mark.parametrize(
    ("text", "policy", "symbols", "output"),
    [
        ("cat Cat CAT Paris", {"case": "lower"}, ["cat", "cat", "cat", UNKNOWN], "a a a a"),
        ("cat Cat CAT Paris", {"case": "restore"}, ["cat", "cat", "cat", UNKNOWN], "a A A A"),
        ("cat Cat CAT Paris", {"case": "exact"}, ["cat", UNKNOWN, UNKNOWN, "Paris"], "a a a a"),
        ("the zebra cat", {"unknown": "mask"}, ["the", UNKNOWN, "cat"], "a a a"),
        ("the zebra cat", {"unknown": "drop"}, ["the", "cat"], "a a"),
        ("the zebra cat", {"unknown": "keep"}, ["the", "cat"], "a zebra a"),
        ("cat 7up x²", {"digits": "hide"}, ["cat", "7up", UNKNOWN], "a a a"),
        ("cat 7up x²", {"digits": "drop"}, ["cat"], "a"),
        ("cat 7up x²", {"digits": "keep"}, ["cat"], "a 7up x²"),
        ("The cat OF don’t", {"stop_words": "hide"}, ["the", "cat", UNKNOWN, "don't"], "a a a a"),
        ("The cat OF don’t", {"stop_words": "drop"}, ["cat"], "a"),
        ("The cat OF don’t", {"stop_words": "keep"}, ["cat"], "The a OF don’t"),
        ("Cat 7 8 9 sat", {"case": "restore", "digits": "drop"}, ["cat", "sat"], "A a"),
        ("CAT Sat", {"case": "exact", "punctuation": "keep"}, [UNKNOWN, UNKNOWN], "a a"),
        ("(The) cat -- SAT.\n", {}, ["the", "cat", "sat"], "a a a"),
        ("(The) cat -- SAT.\n", {"punctuation": "keep"}, ["the", "cat", "sat"], "(a) a -- a.\n"),
        ("well-known", {}, [UNKNOWN, UNKNOWN], "a a"),
        ("Well-known", {"hyphens": "inner"}, ["well-known"], "a"),
        ("漢字the", {"tokeniser": "characters"}, ["漢", UNKNOWN, "the"], "a a a"),
        ("漢字 the", {"tokeniser": "whitespace"}, [UNKNOWN, "the"], "a a"),
        ("the cat sat", {"length": "sample", "n_max": 2}, ["the", "cat", "sat"], "a a a"),
        ("“The zebra”, 42 cats & the CAT: don’t!", READABLE, ["cat"], "“The zebra”, 42 cats & the A: don’t!"),
        ("the 漢the cat", {**COPYING, "stop_words": "keep"}, [UNKNOWN, "cat"], "the a a"),
    ],
)
def test_symbols_and_output_of_a_policy(text, policy, symbols, output):
    assert hidden(text, **policy) == symbols
    assert there_and_back(text, ["a"] * len(symbols), **policy) == output


def test_unknown_words_refuse_their_record_and_no_other():
    encoded = encode(["the cat", "the zebra", "cat"], unknown="quarantine")
    assert encoded.refused.tolist() == [None, "unknown_words", None]
    assert unravel(encoded.ids, encoded.offsets) == [[0, 1], [], [1]]
    # Unless they are dropped or copied.
    assert encode("the zebra7", unknown="quarantine", digits="drop").refused.tolist() == [None]
    assert encode("of cat", unknown="quarantine", stop_words="keep").refused.tolist() == [None]
    assert encode("of cat", unknown="quarantine").refused.tolist() == ["unknown_words"]


@pytest.mark.parametrize("stop_words", ["drop", "keep"])
def test_stop_words_in_capitals_under_replace_are_words(stop_words):
    """By their own form alone: one letter is no abbreviation, and a text in capitals has no stop-words."""
    listed = {"stop_words": stop_words, "stop_word_list": ("a", "don't", "the")}
    texts = ["A the THE The tHE", "DON’T don’t DON'T", "THE CAT SAT"]
    expected = {"match": [[], [], ["cat", "sat"]], "replace": [["the"], ["don't"] * 2, ["the", "cat", "sat"]]}
    for capitals, symbols in expected.items():
        policy = {**listed, "stop_word_capitals": capitals}
        assert [hidden(text, **policy) for text in texts] == symbols
    shown = {**policy, "case": "restore", "punctuation": "keep"}
    assert there_and_back("the THE, The", ["cat"], **shown) == ("the CAT, The" if stop_words == "keep" else " CAT, ")


# 42 is a digit word, a stop-word and in the vocabulary; "of" a stop-word and unknown; "x9" digits and unknown.
@pytest.mark.parametrize("digits", ["hide", "drop", "keep"])
@pytest.mark.parametrize("stop_words", ["hide", "drop", "keep"])
@pytest.mark.parametrize("unknown", ["mask", "drop", "keep"])
def test_digits_go_before_stop_words_before_unknown_words(digits, stop_words, unknown):
    def fate(*rules):
        return next((rule for rule in rules if rule != "hide"), "hide")

    by_unknown = {"mask": "hide"}.get(unknown, unknown)
    expected = {
        "42": fate(digits, stop_words),
        "x9": fate(digits, by_unknown),
        "of": fate(stop_words, by_unknown),
        "zebra": by_unknown,
        "the": stop_words,
        "7up": digits,
        "cat": "hide",
    }
    policy = {"digits": digits, "stop_words": stop_words, "unknown": unknown}
    for word, action in expected.items():
        encoded = encode(word, **policy)
        kept = encoded.skeleton is not None and bytes(encoded.skeleton.serialise()[0]) == word.encode()
        seen = "hide" if len(encoded.ids) else "keep" if kept else "drop"
        assert seen == action, word


def test_case_patterns():
    policy = {"case": "restore", "punctuation": "keep", "tokeniser": "characters"}
    for case, drawn, output in (
        ("cat", "sat", "sat"), ("Cat", "sat", "Sat"), ("CAT", "sat", "SAT"), ("cAT", "sat", "sat"),
        ("CaT", "sat", "Sat"), ("A", "sat", "Sat"), ("Don’t", "sat", "Sat"), ("DON'T", "don't", "DON'T"),
        ("ÉTÉ", "été", "ÉTÉ"), ("Été", "été", "Été"), ("42", "sat", "sat"), ("Cat", "well-known", "Well-known"),
        ("漢", "sat", "sat"),
    ):  # fmt: skip
        assert there_and_back(f"({case})", [drawn], **policy) == f"({output})"


def test_skeletons_of_a_batch_do_not_mix():
    texts = ["The cat.", "", "!?", "SAT", "the, (A)", "été?"]
    toy = codec(**COPYING)
    encoded = toy.encode(pa.array(texts))
    assert toy.decode(encoded.ids, encoded.offsets, encoded.skeleton).to_pylist() == texts
    data, offsets = encoded.skeleton.serialise()
    parts = [bytes(data[start:stop]) for start, stop in itertools.pairwise(offsets.tolist())]
    assert parts == [copied(text, **COPYING) for text in texts]


def test_padding_fills_and_cuts_to_the_public_length():
    texts = ["zebra", "", "the", "the cat sat a"]
    for n_max in (1, 3, 7):
        encoded = encode(texts, length="pad", n_max=n_max)
        padded = [[*map(NAMES.index, hidden(text)), *[NAMES.index(PAD)] * n_max][:n_max] for text in texts]
        assert unravel(encoded.ids, encoded.offsets) == padded
        assert encoded.words.tolist() == [1, 0, 1, 4]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the cat \u00af\\_(\u30c4)_/\u00af", 3),
        ("ok \u30c4", 2),
        ("Ask \u674e\u660e about it.", 4),
        ("the \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 said", 3),
        ("a\u6f22", 1),  # half of it
        ("the \u65e5\u672c\u8a9e.com \U00020000", 4),
        ("\u6f22\u5b57", None),
        ("\u00af\\_(\u30c4)_/\u00af", None),
        ("\u6771\u4eac ok \u6771", None),
        ("\u30b9\u30fc\u30d1\u30fc", None),  # long vowels have no script of their own
        ("\u1019\u103c\u1014\u103a\u1019\u102c a", None),  # nor have marks
    ],
)
@pytest.mark.parametrize("policy", [{}, {"punctuation": "keep"}, {"length": "pad", "n_max": 9, "refused": "empty"}])
def test_a_record_mostly_in_a_script_without_spaces_is_refused(text, words, policy):
    encoded = encode(["the cat", text, "the"], **policy)
    assert encoded.refused.tolist() == [None, SCRIPT_REFUSED if words is None else None, None]
    assert encoded.words.tolist() == [2, words or 0, 1]
    if not policy:
        assert unravel(encoded.ids, encoded.offsets)[::2] == [[0, 1], [0]]
        assert not {"\u30c4", "\u674e\u660e"} & {*NAMES}, "they are unknown"
        assert unravel(encoded.ids, encoded.offsets)[1].count(NAMES.index(UNKNOWN)) == encoded.unknown[1]


# Pairs of which what is copied differs; control characters that are copied are no hidden words.
DIFFERENT = [
    ({"punctuation": "keep"}, [
        ("cat, sat", "cat; sat"), ("cat sat", "cat  sat"), ("cat sat", "cat sat."), ("cat sat", "cat sat cat"),
    ]),
    ({"case": "restore"}, [("cat sat", "cat Sat"), ("cat Sat", "cat SAT")]),
    ({"stop_words": "keep"}, [("the cat", "of cat"), ("the cat", "The cat"), ("the cat", "cat the")]),
    ({"stop_words": "keep", "stop_word_capitals": "replace"}, [("the cat", "THE cat")]),
    ({"digits": "keep"}, [("cat 1", "cat 2")]),
    ({"unknown": "keep"}, [("cat zebra", "cat Zebra"), ("cat zebra", "cat lion")]),
    ({"punctuation": "keep", "digits": "drop"}, [("cat, 1 sat", "cat, sat")]),
    ({**COPYING, "controls": "keep"}, [
        ("Cat \x02", "\x02 Cat"), ("CAT \x03", "\x03 CAT"), ("cat \x01", "\x01 cat"), ("Cat \x03", "CAT \x02"),
    ]),
    (READABLE, [("The cat, 1.", "The cat, 2.")]),
]  # fmt: skip
# Pairs of which only hidden words differ.
ALIKE = [
    ({"punctuation": "keep"}, [("cat, sat", "Zebra, DON'T")]),
    ({"case": "restore"}, [("(Cat) sat", "Dog; zebra!"), ("CAT A", "ZEBRA The")]),
    ({"stop_words": "keep"}, [("the cat", "the, zebra")]),
    ({"stop_words": "keep", "stop_word_capitals": "replace", "case": "restore"}, [("the THE", "the, ZEBRA")]),
    ({"digits": "keep"}, [("cat 1", "sat! 1")]),
    ({"unknown": "keep"}, [("cat zebra", "sat, zebra")]),
    ({"punctuation": "keep", "digits": "drop"}, [("cat 1", "sat 23")]),
    (READABLE, [("The cat, 1.", "The sat, 1.")]),
]  # fmt: skip


def test_copied_differs_where_a_copied_symbol_does():
    for pairs, alike in ((DIFFERENT, False), (ALIKE, True)):
        for policy, first, second in ((policy, *pair) for policy, some in pairs for pair in some):
            assert (copied(first, **policy) == copied(second, **policy)) == alike, (policy, first, second)


# What cannot be seen, by hand: the ends of the control characters, and format characters of each kind.
CONTROL = ["\x00", "\x01", "\x08", "\x0b", "\x0c", "\x0e", "\x1f", "\x7f", "\x80", "\x85", "\x9f"]
FORMAT = [
    *("\u00ad", "\u061c", "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2060"),
    *("\u2066", "\u2069", "\ufeff", "\U000e0001", "\U000e0061"),
]


def test_a_control_character_that_is_dropped_ends_a_word():
    for character in CONTROL:
        text = f"cat{character}sat"
        assert hidden(text, controls="drop") == hidden(text) == ["cat", "sat"]
        assert there_and_back(text, ["a", "a"], controls="drop", punctuation="keep") == "a a"
        kept = there_and_back(text, ["a", "a"], punctuation="keep")
        assert kept == ("a a" if character == "\x01" else f"a{character}a"), "U+0001 is the tokeniser's own"


def test_a_format_character_that_is_dropped_ends_no_word():
    for character in FORMAT:
        text = f"{character}ca{character}{character}t. {character}"
        assert hidden(text, controls="drop") == ["cat"]
        assert there_and_back(text, ["a"], controls="drop", punctuation="keep") == "a. "
        assert hidden(text) == [UNKNOWN, UNKNOWN]
    assert hidden("e\u200d\u0301te\u0301", controls="drop") == ["été"], "composed after it"
    for policy in ({}, {"tokeniser": "whitespace"}):
        assert there_and_back("ze\u200bbra", [], controls="drop", unknown="keep", **policy) == "zebra"


@pytest.mark.parametrize("policy", [{}, {"punctuation": "keep"}, {"length": "pad", "n_max": 2}, {"repeat": "same"}])
def test_what_cannot_be_seen_refuses_its_record_and_no_other(policy):
    unseen = [*CONTROL, *FORMAT]
    encoded = encode(
        [text for character in unseen for text in ("cat\t\r\n sat", f"cat{character}", "", "cat")],
        controls="quarantine",
        **policy,
    )
    refused = dict(zip(unseen, np.reshape(encoded.refused.tolist(), (-1, 4)).tolist(), strict=True))
    assert refused == {character: [None, "control_characters", None, None] for character in unseen}
    assert np.reshape(encoded.words, (-1, 4)).tolist() == [[2, 0, 0, 1]] * len(unseen)


def test_white_space_of_a_text_is_no_control_character():
    text = "the\tcat\r\n\u00a0sat\u2028\u2003a"
    for controls in ("keep", "drop", "quarantine"):
        policy = {"controls": controls, "punctuation": "keep"}
        assert there_and_back(text, ["the", "cat", "sat", "a"], **policy) == text


def is_unseen(character):
    """By Python's own tables."""
    return unicodedata.category(character) in ("Cc", "Cf") and character not in "\t\r\n"


ODD_TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("aA7’' .,\x01\x02"), max_size=30)
# Characters that Python's tables do not know yet may be format characters in newer ones.
KNOWN_CHARACTERS = st.characters(codec="utf-8", exclude_categories=("Cs", "Cn"))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(KNOWN_CHARACTERS | st.sampled_from([*"aA7’' .,", *CONTROL, *FORMAT]), max_size=30),
        min_size=1,
        max_size=14,
    )
)
def test_what_cannot_be_seen_is_never_copied_where_it_is_dropped(texts):
    array = pa.array(texts, pa.string())
    for policy in (
        {**READABLE, "tokeniser": "characters"},
        {**READABLE, "tokeniser": "whitespace"},
        {"punctuation": "keep", "unknown": "quarantine", "repeat": "same"},
    ):
        toy = codec(**policy, controls="drop")
        encoded = toy.encode(array)
        out = toy.decode(np.zeros_like(encoded.ids), encoded.offsets, encoded.skeleton)
        assert not any(map(is_unseen, "".join(out.to_pylist())))
        refused = codec(**policy, controls="quarantine").encode(array).refused
        assert [reason == "control_characters" for reason in refused] == [any(map(is_unseen, text)) for text in texts]


@settings(max_examples=60, deadline=None)
@given(ODD_TEXTS)
def test_a_policy_that_copies_every_word_copies_the_text(text):
    policy = TextPolicy(tokeniser="characters", punctuation="keep", unknown="keep")
    toy, array = Codec(policy, Vocabulary(pa.array(["\x00never"]))), pa.array([text], pa.string())
    encoded = toy.encode(array)
    assert len(encoded.ids) == 0
    assert toy.decode(encoded.ids, encoded.offsets, encoded.skeleton).equals(Tokeniser().normalise(array))


@pytest.mark.parametrize("kind", ["words", "characters", "whitespace"])
def test_what_is_copied_has_no_letter_and_no_digit(kind: str):
    """Of every character, with what normalisation makes of it beside others; of large uniform blocks one in 13."""
    blocks = [*range(0x3400, 0xA000, 13), *range(0xAC00, 0xD7A4, 13), *range(0x20000, 0x110000, 13)]
    points = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xD7A4, 0xD800), *range(0xE000, 0x20000), *blocks]
    signs = [*map(chr, points)]
    texts = [
        " ".join(f"{sign} k{sign}k {sign}\u0301" for sign in signs[i : i + 200]) for i in range(0, len(signs), 200)
    ]
    toy = codec(**COPYING, tokeniser=kind)
    encoded = toy.encode(pa.array(texts))
    out = toy.decode(np.full(len(encoded.ids), WORDS.index("cat"), np.int32), encoded.offsets, encoded.skeleton)
    left = {*re.sub("(?i)cat", "", "".join(out.to_pylist()))}
    assert len(left) > (15 if kind == "whitespace" else 120)
    assert re.fullmatch(f"[{COPYABLE}]*", "".join(left))
    decomposed = {unicodedata.category(part)[0] for sign in left for part in unicodedata.normalize("NFKD", sign)}
    assert decomposed <= {"P", "S", "Z", "M", "C"}
    assert {sign for sign in left if unicodedata.category(sign)[0] == "C"} <= {*"\t\n\r"}


LOOKALIKES = [
    "\u24c2\u24d0\u24e1\u24e3\u24d4\u24dd",  # circled
    "\U0001f130\U0001f131", "\U0001f170\U0001f171", "\U0001f15c\U0001f150",  # squared, and negative ones
    "\u249c\u24a8", "\U0001f110", "\U0001f12b",  # in parentheses and brackets
    "\U0001f1f2\U0001f1e6\U0001f1f7", "\U000e006d\U000e0061",  # regional indicators, tags
    "\U0001d40c\U0001d41a", "\uff2d\uff41", "\u1d39\u1d43", "\u029f\u1d00", "\u2132\u214e",
    "\u041c\u0430", "\u039c\u03b1",  # confusables of other scripts
    "\u20a5\u20b3\u20ae", "\u0e3f", "\u00d7", "\u00a9\u00ae\u2117", "\u2122\u2120", "\u2116", "\u2121",
    "5\ufe0f\u20e3", "\u2784", "\u2780", "\u24f5", "\u2161", "\u00bd", "\u2488", "\U0001f100",
    "\u3240", "\u3314", "\u337f", "\u33c2", "\u2f00", "\U0001f200",  # enclosed and squared words, radicals
    "\u280d\u2801", "\u2554\u2566", "\u2588", "\U0001fbf5", "\U0001d161", "\u2621", "\u2721",
    "M\u20dd", "M\u2063a\u200dr\u00adt\ufe0fe\u034fn", "\ue000\U000f0000", "\u0378\U0010ffff", "\ufffd",
]  # fmt: skip


def test_signs_that_people_read_as_letters_are_hidden():
    toy = codec(**COPYING, stop_words="keep", stop_word_list=("the",))
    for text in (text for name in LOOKALIKES for text in (f"Ask {name} now", f"Ask x{name}the now")):
        encoded = toy.encode(pa.array([text]))
        out = toy.decode(np.full(len(encoded.ids), 1, np.int32), encoded.offsets, encoded.skeleton)[0].as_py()
        assert re.fullmatch("Cat (?:(?i:cat))? ?cat", out), (text, out)
