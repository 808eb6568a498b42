"""The bigram model that comes with the package, and models by name."""

from __future__ import annotations

import numpy as np
import pytest

from support import ngram_models
from support.repository import ROOT
from wordveil.artifacts import content_store
from wordveil.artifacts.ngram_model import bigrams_of, open_named, read_model
from wordveil.embeddings.embedding import load
from wordveil.errors import NgramError
from wordveil.mechanisms.inputs import Bigrams
from wordveil.text.slots import NgramSettings

STORE = ROOT / "lib" / "wordveil" / "data" / "bigrams"
DIGEST = "30691588c62ec62fa950932f62e20c3fe5aba977f0425c86879648036d85afc1"
TEXTS = ["the cat sat on the mat", "the dog sat", "a cat and 7 dogs", "a cat", "the cat sat", ""]


def test_shipped_model_is_the_recorded_one_over_shipped_words():
    model = open_named("demo")
    assert model.digest == DIGEST == model.path.name
    assert (model.settings.max_n, model.settings.min_count) == (2, 6)
    found = bigrams_of(model)
    words = found.words.to_pylist()
    assert words[0] == ""
    assert set(words[1:]) <= {*load("demo").words.to_pylist(), *load("glove").words.to_pylist()}
    assert len(set(words)) == len(words) > 28_000
    assert found.counts.min() >= 6
    assert found.pair_counts.min() >= 6
    assert model.total > found.counts[1:].sum() > 0.95 * model.total
    assert 3_000_000 < content_store.payload_bytes(read_model(model.path)) < 6_000_000


def test_shipped_pairs_are_ordered_and_no_more_than_their_words():
    found = bigrams_of(open_named("demo"))
    rows = np.repeat(np.arange(len(found.words)), np.diff(found.first))
    same = rows[1:] == rows[:-1]
    assert (np.diff(found.followers)[same] > 0).all()
    assert (np.bincount(rows, found.pair_counts, len(found.words)) <= found.counts).all()
    assert (np.bincount(found.followers, found.pair_counts, len(found.words)) <= found.counts).all()
    assert found.followers.min() > 0, "nothing is followed by the beginning of a text"


def test_the_books_are_in_the_public_domain():
    rows = [line.split("\t") for line in (STORE / "books.tsv").read_text("utf-8").splitlines()]
    assert rows[0] == ["file", "author", "died", "title", "year"]
    assert len(rows) == 94
    for _, author, died, title, year in rows[1:]:
        assert author
        assert title
        assert int(died) < 1955
        assert int(year) < 1929


def read_pairs(found: Bigrams) -> dict[tuple[str, str], int]:
    words = found.words.to_pylist()
    rows = np.repeat(np.arange(len(words)), np.diff(found.first)).tolist()
    entries = zip(rows, found.followers.tolist(), found.pair_counts.tolist(), strict=True)
    return {(words[word], words[follower]): count for word, follower, count in entries}


def test_bigrams_are_those_of_the_counts(tmp_path):
    """Longer n-grams of the model are left out."""
    found = bigrams_of(ngram_models.make_model(tmp_path, TEXTS, NgramSettings(3, 1)))
    counts = ngram_models.count_ngrams(TEXTS, 2)
    words = found.words.to_pylist()
    assert {(word,): count for word, count in zip(words, found.counts.tolist(), strict=True)} == {
        gram: count for gram, count in counts.items() if len(gram) == 1
    }
    assert read_pairs(found) == {gram: count for gram, count in counts.items() if len(gram) == 2}
    assert len(found.first) == len(words) + 1
    assert found.first[-1] == len(found.followers) == len(found.pair_counts)


def test_a_model_without_pairs_has_words_alone(tmp_path):
    found = bigrams_of(ngram_models.make_model(tmp_path, ["a b", "b a", "c c"], NgramSettings(2, 2)))
    assert found.words.to_pylist() == ["", "a", "b", "c"]
    assert found.first.tolist() == [0] * 5
    assert len(found.followers) == 0


def test_model_is_opened_by_path_and_refused_by_setting(tmp_path):
    model = ngram_models.make_model(tmp_path / "one", TEXTS, NgramSettings(2, 1))
    assert open_named(str(model.path)).digest == open_named(str(tmp_path / "one")).digest == model.digest
    ngram_models.make_model(tmp_path / "one", TEXTS[1:], NgramSettings(2, 1))
    two = r"holds 2 n-gram models: .*\(max_n 2, min_count 1\), .*Set mechanism\.ngrams to the directory of one"
    with pytest.raises(NgramError, match=two):
        open_named(str(tmp_path / "one"))
    with pytest.raises(NgramError, match=r"holds no n-gram model\. Make one with `wordveil ngrams`"):
        open_named(str(tmp_path / "none"))
