"""The fit of vectors to texts of a field: high where neighbours share texts, near the level where they do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from support.toys import toy_embedding
from wordveil.measures.field_fit import NEIGHBOURS, count_texts, measure_field_fit

TOPICS, WORDS = 12, 20
NAMES = [f"{chr(97 + topic)}{chr(97 + word)}word" for topic in range(TOPICS) for word in range(WORDS)]
NOISE = np.random.default_rng(1).standard_normal((len(NAMES), TOPICS))
VECTORS = np.repeat(np.eye(TOPICS), WORDS, axis=0) + 0.05 * NOISE


def make_texts(count: int = 400, seed: int = 2) -> pa.StringArray:
    """Texts of one topic each, of very different lengths, with "the" in all of them."""
    rng = np.random.default_rng(seed)
    texts = []
    for length in rng.integers(2, 40, count):
        first = WORDS * int(rng.integers(TOPICS))
        texts.append("The " + ", ".join(NAMES[first + word] for word in rng.integers(0, WORDS, length)))
    return pa.array(texts)


def test_vectors_of_the_field_score_far_above_shuffled_ones():
    texts = make_texts()
    fit = measure_field_fit(texts, toy_embedding(NAMES, VECTORS), [])
    assert fit is not None
    assert (fit.words, fit.share, fit.misfits) == (len(NAMES), 1.0, ())
    assert fit.shuffled < 0.3, "a few shuffled neighbours are of the word's topic"
    shuffled = VECTORS[np.random.default_rng(3).permutation(len(NAMES))]
    other = measure_field_fit(texts, toy_embedding(NAMES, shuffled), [])
    assert other is not None
    assert other.share < 0.3


def test_long_texts_alone_make_no_fit():
    """Words of unrelated texts are together in the long ones, and chance knows it."""
    rng = np.random.default_rng(4)
    lengths = np.where(np.arange(400) % 8 == 0, 120, 3)
    texts = [" ".join(NAMES[word] for word in rng.integers(0, len(NAMES), length)) for length in lengths]
    fit = measure_field_fit(pa.array(texts), toy_embedding(NAMES, VECTORS), [])
    assert fit is not None
    assert max(fit.share, fit.shuffled) < 0.12


def test_a_word_with_neighbours_of_another_field_is_named():
    """The names are near "aaword" in the vectors, and in no text."""
    names = [*NAMES, *(f"name{chr(97 + number)}" for number in range(NEIGHBOURS))]
    vectors = np.vstack([VECTORS, np.tile(5 * np.ones(TOPICS), (NEIGHBOURS, 1))])
    vectors[0] = 5.01
    fit = measure_field_fit(make_texts(), toy_embedding(names, vectors), [])
    assert fit is not None
    ((word, nearest),) = fit.misfits
    assert (word, nearest[:4]) == ("aaword", "name")
    assert fit.share == pytest.approx(1 - 1 / len(NAMES))
    assert "the most frequent others, with their nearest words: aaword -> name" in fit.describe()


def test_stop_words_and_rare_words_are_not_measured():
    texts, embedding = make_texts(), toy_embedding([*NAMES, "the"], np.vstack([VECTORS, np.ones(TOPICS)]))
    fit = measure_field_fit(texts, embedding, ["the", NAMES[0]])
    assert fit is not None
    assert fit.words == len(NAMES) - 1
    assert measure_field_fit(texts[:5], embedding, []) is None
    assert measure_field_fit(pa.array([], pa.string()), embedding, []) is None


def test_count_texts_counts_a_word_once_a_text():
    counts = count_texts(pa.array(["Dog dog, cat", "dog's", "", "DOG x"]), pa.array(["cat", "dog", "cow"]))
    assert counts.tolist() == [1, 2, 0]
