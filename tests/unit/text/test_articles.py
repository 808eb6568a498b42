"""Articles follow the words that were drawn, and say nothing about those that were hidden."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.text.articles import find_vowels
from wordveil.text.codec import Codec, Encoded
from wordveil.text.policy import with_profile
from wordveil.text.types.classes import CLASSES, newest_version, readable_actions
from wordveil.text.types.lists import PublicLists

WORDS = ["apple", "tree", "hour", "union"]
STOPS = ("a", "an", "and", "of", "the")
LISTS = PublicLists.load("en")


def codec(articles: str = "agree", **settings: object) -> Codec:
    chosen = {"stop_word_list": STOPS, "types": {}, "names": "words", **settings}
    policy = with_profile("readable", articles=articles, **chosen)
    return Codec(policy, Vocabulary(pa.array(WORDS)), lists=LISTS if policy.draws_types else None)


def encode(by: Codec, *texts: str) -> Encoded:
    return by.encode(pa.array(texts))


def split_skeleton(encoded: Encoded) -> list[bytes]:
    """What of each record is copied."""
    data, offsets = encoded.skeleton.serialise()
    return [bytes(data[start:end]) for start, end in itertools.pairwise(offsets)]


def write(text: str, drawn: str, **settings: object) -> str:
    """The text where each hidden word becomes the same one."""
    by = codec(**settings)
    encoded = encode(by, text)
    ids = np.full(len(encoded.ids), WORDS.index(drawn), np.int32)
    return by.decode(ids, encoded.offsets, encoded.skeleton)[0].as_py()


@pytest.mark.parametrize(
    ("text", "vowel", "consonant"),
    [
        ("a tree and an apple", "an apple and an apple", "a tree and a tree"),
        ("An apple. A tree.", "An apple. An apple.", "A tree. A tree."),
        ("AN APPLE, A TREE", "An APPLE, An APPLE", "A TREE, A TREE"),
        ("an, tree an  tree an-tree", "a, apple an  apple a-apple", "a, tree a  tree a-tree"),
        ("an (tree) an \u201ctree\u201d an\ntree", "an (apple) an \u201capple\u201d an\napple",
         "a (tree) a \u201ctree\u201d a\ntree"),
        ("an) tree, an: tree, an. Tree an \u2013 tree", "a) apple, a: apple, a. Apple a \u2013 apple",
         "a) tree, a: tree, a. Tree a \u2013 tree"),
        ("an\u00a0tree an *tree* an *-tree", "an\u00a0apple an *apple* a *-apple", "a\u00a0tree a *tree* a *-tree"),
        ("tree a", "apple a", "tree a"),
        ("a the tree an", "a the apple an", "a the tree an"),
        ("an xylophone", "an apple", "a tree"),
    ],
)  # fmt: skip
def test_the_article_is_that_of_the_drawn_word(text, vowel, consonant):
    assert write(text, "apple") == vowel
    assert write(text, "tree") == consonant


def test_other_punctuation_and_copied_articles():
    assert write("An apple, a tree", "tree", articles="copy") == "An tree, a tree"
    assert write("a tree", "apple", punctuation="drop") == "an apple"


def test_each_article_follows_its_own_word_in_its_own_record():
    by = codec()
    encoded = encode(by, "a tree", "", "tree a", "an hour an apple")
    ids = np.array([WORDS.index(word) for word in ("apple", "tree", "hour", "union")], np.int32)
    texts = by.decode(ids, encoded.offsets, encoded.skeleton).to_pylist()
    assert texts == ["an apple", "", "tree a", "an hour a union"]


def test_texts_that_differ_in_articles_alone_show_the_same():
    def shown(articles: str, text: str, capitals: str = "match") -> bytes:
        return split_skeleton(encode(codec(articles, stop_word_capitals=capitals), text))[0]

    assert shown("agree", "an apple, A tree") == shown("agree", "a tree, A tree")
    assert shown("copy", "an apple, A tree") != shown("copy", "a tree, A tree")
    assert shown("agree", "AN tree") == shown("agree", "A tree") == shown("agree", "An tree")
    assert shown("agree", "AN tree", "replace") == shown("agree", "A tree", "replace")
    assert shown("copy", "AN tree", "replace") != shown("copy", "A tree", "replace")
    for gap in (", ", ") ", "-", " \u2013 ", "  ", "\n"):
        assert shown("agree", f"an{gap}tree") == shown("agree", f"a{gap}tree")
    assert len({shown("agree", text) for text in ("a tree", "A tree", "tree tree", "the tree", "tree a")}) == 5


TEXTS = (
    "an 8% raise", "an 11th tree",
    "An 18-year-old tree", "an 80", "AN $8 bill", "an 800 tree", "an (8%)", "an \u201c8\u201d",
    "an\n8 tree", "an <b>8</b>", "an 8:30 tree", "an 8 May 2020", "an 11/12/2019", "an 1815 tree", "an AB12345678",
    "an Austrian tree", "an Alice tree", "an Ohio tree", "an (800) 555-0100", "an epq@b.org", "an @apple", "an #apple",
    "an <apple>", "an <IBM>, 8", "an <apple> of a tree", "an <8px> and", "an &aelig;", "an <!-- apple -->", "an <p><b>",
    "an 8.8.8.8", "an \U0001f600 tree", "an &quot;8&quot;", "an EUR 8", "an  8", "an ... 8", "an, 8", "an-8", "an - 8",
)  # fmt: skip


@pytest.mark.parametrize("action", ["resample", "mask", "tag", "surrogate", "words"])
def test_the_article_before_a_token_says_nothing_of_it(action: str):
    """Whatever happens to the token, and whichever the article was."""
    types = {kind: action for kind, entry in CLASSES.items() if action in entry.allowed}
    by = codec(types=types, names="gazetteer", types_version=newest_version())
    for text in TEXTS:
        both = encode(by, text, f"{text[0]}{text[2:]}")
        one, other = split_skeleton(both)
        assert one == other, text
        count = len(both.shown.kinds) if both.shown else 0
        for drawn, value in (("tree", "5"), ("apple", "80")):
            ids = np.full(len(both.ids), WORDS.index(drawn), np.int32)
            values = pa.array([value] * count, pa.string())
            first, second = by.decode(ids, both.offsets, both.skeleton, values).to_pylist()
            assert first == second
            assert drawn == "apple" or not first.lower().startswith("an")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("an 8% raise", "1%", "a 1% tree"), ("a 5% raise", "11%", "an 11% tree"),
        ("A 51-year-old", "18", "An 18-tree-tree"), ("a (5)", "80", "an (80)"),
        ("an <b>8</b>", "811", "an <b>811</b>"), ("a $5 bill", "$8,000", "an $8,000 tree"),
        ("an Austrian", "Dutch", "a Dutch"), ("a Dutch", "Austrian", "an Austrian"), ("an Alice", "Una", "an Una"),
        ("a (212) 555-0147", "(800) 555-0147", "an (800) 555-0147"), ("a BC12345678", "FB12345678", "an FB12345678"),
        ("a $5", "USD 5", "a USD 5"), ("a $5", "+8%", "a +8%"), ("a 5 May 2020", "8 May 2020", "an 8 May 2020"),
        ("a 5/12/2019", "11/12/2019", "an 11/12/2019"), ("a 5:30", "18:30", "an 18:30"), ("a, 5", "8", "a, 8"),
    ],
)  # fmt: skip
def test_the_article_before_a_token_is_that_of_its_value(text: str, value: str, expected: str):
    by = codec(types=readable_actions(), names="gazetteer")
    encoded = encode(by, text)
    values = [shape if shape.startswith("<") else value for shape in encoded.shown.shapes.to_pylist()]
    if "<b>" in text:
        values = ["<b>", value, "</b>"]
    ids = np.full(len(encoded.ids), WORDS.index("tree"), np.int32)
    assert by.decode(ids, encoded.offsets, encoded.skeleton, pa.array(values))[0].as_py() == expected


@pytest.mark.parametrize(
    "settings", [{"unknown": "drop"}, {"digits": "drop"}, {"punctuation": "drop", "unknown": "drop"}]
)
def test_the_article_before_a_dropped_word_says_nothing_of_it(settings: dict[str, str]):
    by = codec(**settings)
    for rest in ("8x8", " 8x8", " of", " 8x8 of", " 8x8 tree", " (8x8) tree", " 8x8, tree", " 8x8 and"):
        both = encode(by, *(f"tree {article}{rest}" for article in ("a", "an")))
        one, other = split_skeleton(both)
        assert one == other
        ids = np.full(len(both.ids), WORDS.index("apple"), np.int32)
        first, second = by.decode(ids, both.offsets, both.skeleton).to_pylist()
        assert first == second


SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def name_number(number: int) -> str:
    """The first word of a number in English."""
    while number >= 1000:
        number //= 1000
    number = number // 100 if number >= 100 else number
    return SMALL[number] if number < 20 else TENS[number // 10 - 2]


@pytest.mark.parametrize("form", ["{}", "{:,}", "(${}"])
def test_the_article_before_a_number_is_that_of_its_words(form: str):
    numbers = [*range(20_000), *range(20_000, 1_000_001, 89)]
    vowels = [word[0] in "aeiou" and word != "one" for word in map(name_number, numbers)]
    assert find_vowels(pa.array(map(form.format, numbers), pa.string())).tolist() == vowels


def test_the_article_before_a_word_is_that_of_its_sound():
    an = ["apple", "egg", "only", "under", "usher", "utter", "unimportant", "hour", "honour"]
    a = ["tree", "europe", "ewe", "one", "union", "use", "utility", "ukraine", "honey", "year"]
    for words, expected in ((an, True), (a, False)):
        assert find_vowels(pa.array([*words, *map(str.upper, words)])).tolist() == [expected] * 2 * len(words)
