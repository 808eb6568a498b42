"""Articles follow the words that were drawn, and say nothing about those that were hidden."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.text.articles import find_vowels
from wordveil.text.codec import Codec
from wordveil.text.encoded import Encoded
from wordveil.text.policy import with_profile

WORDS = ["apple", "tree", "hour", "union"]
STOPS = ("a", "an", "and", "the")


def codec(articles: str = "agree", **settings: object) -> Codec:
    chosen = {"stop_word_list": STOPS, "types": {}, "names": "words", **settings}
    return Codec(with_profile("readable", articles=articles, **chosen), Vocabulary(pa.array(WORDS)))


def encode(by: Codec, *texts: str) -> Encoded:
    return by.encode(pa.array(texts))


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
        ("a, tree a  tree a-tree", "a, apple a  apple a-apple", "a, tree a  tree a-tree"),
        ("tree a", "apple a", "tree a"),
        ("a the tree an", "a the apple an", "a the tree an"),
        ("an xylophone", "an apple", "a tree"),
    ],
)
def test_the_article_is_that_of_the_drawn_word(text, vowel, consonant):
    assert write(text, "apple") == vowel
    assert write(text, "tree") == consonant


def test_copied_articles_stay_where_nothing_else_is_asked_for():
    assert write("An apple, a tree", "tree", articles="copy") == "An tree, a tree"


def test_each_article_follows_its_own_word_in_its_own_record():
    by = codec()
    encoded = encode(by, "a tree", "", "tree a", "an hour an apple")
    ids = np.array([WORDS.index(word) for word in ("apple", "tree", "hour", "union")], np.int32)
    texts = by.decode(ids, encoded.offsets, encoded.skeleton).to_pylist()
    assert texts == ["an apple", "", "tree a", "an hour a union"]


def test_texts_that_differ_in_articles_alone_show_the_same():
    def shown(articles: str, text: str, capitals: str = "match") -> bytes:
        skeleton = encode(codec(articles, stop_word_capitals=capitals), text).skeleton
        return skeleton.serialise()[0].tobytes()

    assert shown("agree", "an apple, A tree") == shown("agree", "a tree, A tree")
    assert shown("copy", "an apple, A tree") != shown("copy", "a tree, A tree")
    assert shown("agree", "AN tree") == shown("agree", "A tree") == shown("agree", "An tree")
    assert shown("agree", "AN tree", "replace") == shown("agree", "A tree", "replace")
    assert shown("copy", "AN tree", "replace") != shown("copy", "A tree", "replace")
    different = {shown("agree", text) for text in ("a tree", "A tree", "tree tree", "the tree", "tree a")}
    assert len(different) == 5


def test_dropped_punctuation_leaves_articles_before_their_words():
    assert write("a tree", "apple", punctuation="drop") == "an apple"


@pytest.mark.parametrize("word", ["apple", "egg", "only", "under", "usher", "utter", "unimportant", "hour", "honour"])
def test_these_take_an(word):
    assert find_vowels(pa.array([word, word.upper()])).all()


@pytest.mark.parametrize(
    "word", ["tree", "europe", "ewe", "one", "union", "use", "utility", "ukraine", "honey", "year"]
)
def test_these_take_a(word):
    assert not find_vowels(pa.array([word, word.upper()])).any()
