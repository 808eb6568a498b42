"""Encoders and cosines: by the formula, at the ends of the scale, and by name."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from support.toys import install_sentence_transformers, toy_embedding
from wordveil.errors import PlatformError
from wordveil.evaluation.encoders import WeightedBag, find_frequencies, make_encoder, measure_similarity
from wordveil.mechanisms.inputs import Bigrams

EMBEDDING = toy_embedding(["the", "cat", "dog", "car"], [[1, 1, 1], [0, 2, 0.1], [0, 1.8, 0.3], [3, 0, 0.2]])
SHARES = np.array([0.9, 0.04, 0.04, 0.02])
BAG = WeightedBag.of(EMBEDDING, SHARES, smoothing=0.01)


def test_a_weighted_bag_is_the_formula():
    weights = 0.01 / (0.01 + SHARES)
    vectors = EMBEDDING.vectors.astype(np.float64)
    mean = (weights[0] * vectors[0] + 2 * weights[1] * vectors[1]) / 3
    moment = sum(SHARES[word] * weights[word] ** 2 * np.outer(vectors[word], vectors[word]) for word in range(4))
    direction = np.linalg.svd(moment)[0][:, 0]
    assert BAG.encode(["The cat, stranger: CAT"])[0] == pytest.approx(mean - direction @ mean * direction, abs=1e-6)
    assert not BAG.encode(["stranger", ""]).any()
    assert WeightedBag.plain(EMBEDDING).encode(["the car"])[0] == pytest.approx((vectors[0] + vectors[3]) / 2)


def test_similarity_has_its_ends_and_its_chance_level():
    texts = ["cat", "the dog", "car the", "the cat dog", "car"] * 8
    plain = WeightedBag.plain(EMBEDDING)
    same = measure_similarity(texts, texts, plain, "original")[0]
    other = measure_similarity(texts, texts[1:] + texts[:1], plain, "random")[0]
    close = measure_similarity(texts, [text.replace("cat", "dog") for text in texts], plain, "release")[0]
    assert same.value == pytest.approx(1)
    assert same.value > close.value > other.value
    assert close.low <= close.value <= close.high
    assert same.chance == close.chance < 0.95
    assert close.method == "mean-vector"
    assert measure_similarity(texts[:1], texts[:1], plain, "one")[0].chance is None
    with pytest.raises(ValueError, match="as many originals"):
        measure_similarity(texts, texts[:1], plain, "release")


def test_frequencies_are_those_of_the_public_text():
    bigrams = Bigrams(pa.array(["", "dog", "the"]), np.array([5, 3, 9]), *(np.zeros(4, np.int64),) * 3)
    assert find_frequencies(EMBEDDING.words, bigrams) == pytest.approx(np.array([10, 1, 4, 1]) / 16)


def test_others_are_used_by_name_where_they_are_installed(monkeypatch):
    asked = install_sentence_transformers(monkeypatch)
    encoder = make_encoder("sentence-transformers:some/model")
    assert encoder.encode(["ab", "c"]).tolist() == [[2, 1], [1, 1]]
    assert encoder.encode(["abc"]).dtype == np.float32
    assert asked == ["some/model"]  # loaded once
    assert measure_similarity(["a"], ["b"], encoder, "x")[0].method == "sentence-transformers:some/model"
    with pytest.raises(PlatformError, match=r"evaluation.encoder = sentence-transformers:missing: .* \(OSError\)"):
        make_encoder("sentence-transformers:missing").encode(["a"])


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(PlatformError, match="pip install sentence-transformers"):
        make_encoder("sentence-transformers:some/model").encode(["a"])
    for name in ("other", "sentence-transformers:"):
        with pytest.raises(ValueError, match=f"encoder = {name}: expected weighted-bag"):
            make_encoder(name)
