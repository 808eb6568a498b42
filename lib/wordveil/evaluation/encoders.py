"""Sentence encoders: a vector for each text, so that close vectors mean texts on the same subject.

The default needs no download: means of word vectors with the weights ``a / (a + p(w))`` of smooth inverse frequency
(Arora, Liang, Ma, "A simple but tough-to-beat baseline for sentence embeddings", ICLR 2017). The paper then removes the
first principal component of all sentences. Here the removed direction is that of words drawn by their public frequency,
``sum of p(w) weight(w)^2 v v^T``, so that a text's vector does not depend on the other texts. Others are available by
name if their library is installed.

Semantic similarity is the cosine between a text's vector and that of its sanitised form: one of the three measures of
Bo, Ding, Fung, Iqbal 2021 (ER-AE), who use a trained encoder. Cosines of different encoders must not be compared with
each other, so each has its own chance level: the cosine with another original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from wordveil.arrays import Float32, Float64
from wordveil.artifacts.ngram_model import DEMO, bigrams_of, open_named
from wordveil.embeddings.embedding import Embedding, load
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.evaluation.classifiers import cut_words
from wordveil.mechanisms.inputs import Bigrams
from wordveil.scores.methods import (
    ENCODERS,
    MEAN_VECTOR,
    SENTENCE_TRANSFORMERS,
    WEIGHTED_BAG,
    find_model,
    load_sentence_model,
)
from wordveil.scores.score import Measurement, Score, find_mean_interval, require_pairs

SMOOTHING = 1e-3
"""Parameter ``a`` of the weights: 1e-4 to 1e-3 are best in Arora et al."""


class SentenceEncoder(Protocol):
    """Encoder with a vector for each text, as a rule a frozen dataclass."""

    @property
    def name(self) -> str:
        """Name in configurations and reports."""

    def encode(self, texts: Sequence[str]) -> Float32:
        """Compute the vectors: float32 ``(texts, dimension)``, zeros for a text without known words."""


@dataclass(frozen=True)
class WeightedBag:
    """Encoder by weighted means of word vectors: zeros for a text without words of the embedding.

    ``words``: string array ``(size,)``, in lower case. ``vectors``: float32 ``(size, dimension)``, times the weights.
    ``direction``: float32 ``(dimension,)``, of length 1: the component that is removed from each mean, if any.
    """

    name: str
    words: pa.StringArray = field(repr=False)
    vectors: Float32 = field(repr=False)
    direction: Float32 | None = field(default=None, repr=False)

    @classmethod
    def of(cls, embedding: Embedding, frequencies: Float64, smoothing: float = SMOOTHING) -> Self:
        """Make with weights of smooth inverse frequency over a public embedding.

        ``frequencies``: float64 ``(size,)``, the public frequency of each word; they add up to 1.
        """
        weighted = embedding.vectors * (smoothing / (smoothing + frequencies))[:, None]
        _, directions = np.linalg.eigh((weighted * frequencies[:, None]).T @ weighted)
        return cls(WEIGHTED_BAG, embedding.words, weighted.astype(np.float32), directions[:, -1].astype(np.float32))

    @classmethod
    def plain(cls, embedding: Embedding) -> Self:
        """Make with plain means: all weights are 1, and nothing is removed."""
        return cls(MEAN_VECTOR, embedding.words, np.asarray(embedding.vectors, np.float32))

    @cached_property
    def _index(self) -> WordIndex:
        return WordIndex(self.words)

    def encode(self, texts: Sequence[str]) -> Float32:
        """Compute the vectors (:class:`SentenceEncoder`)."""
        words = cut_words(texts)
        numbers = self._index.numbers(words.words)
        text = words.text_of[numbers >= 0]
        known_ids = numbers[numbers >= 0]
        lengths = np.bincount(text, minlength=len(texts))
        shares = (1 / lengths[text]).astype(np.float32)
        means = sparse.csr_array((shares, (text, known_ids)), shape=(len(texts), len(self.words))) @ self.vectors
        if self.direction is not None:
            # A sum for each row: a matrix product adds in an order that depends on the number of rows.
            means -= (means * self.direction).sum(axis=1, keepdims=True) * self.direction
        return np.asarray(means, np.float32)


@dataclass(frozen=True)
class SentenceTransformer:
    """Encoder of the library sentence-transformers. ``model``: a name, which the library may download, or a path."""

    model: str

    @property
    def name(self) -> str:
        return f"{SENTENCE_TRANSFORMERS}{self.model}"

    @cached_property
    def _model(self) -> Any:
        return load_sentence_model("evaluation.encoder", self.name, WEIGHTED_BAG)

    def encode(self, texts: Sequence[str]) -> Float32:
        """Compute the vectors. Raises :class:`PlatformError` if the library or the model is missing."""
        return np.asarray(self._model.encode(list(texts), show_progress_bar=False, convert_to_numpy=True), np.float32)


def find_frequencies(words: pa.StringArray, bigrams: Bigrams) -> Float64:
    """Compute the share of each word in a bigram model, with one added to each count: float64 ``(words,)``."""
    numbers = WordIndex(bigrams.words).numbers(words)
    counts = np.where(numbers >= 0, bigrams.counts[numbers], 0) + 1.0
    return np.asarray(counts / counts.sum())


def make_encoder(name: str = WEIGHTED_BAG, embedding: Embedding | None = None) -> SentenceEncoder:
    """Make the encoder of a name: :data:`WEIGHTED_BAG`, :data:`MEAN_VECTOR`, or ``sentence-transformers:MODEL``.

    The first two use the embedding, by default that of the demo, and its frequencies. Raises :class:`ValueError`.
    """
    if model := find_model(name):
        return SentenceTransformer(model)
    if name not in (WEIGHTED_BAG, MEAN_VECTOR):
        raise ValueError(f"encoder = {name}: expected {ENCODERS}.")
    embedding = embedding or load(DEMO)
    if name == MEAN_VECTOR:
        return WeightedBag.plain(embedding)
    return WeightedBag.of(embedding, find_frequencies(embedding.words, bigrams_of(open_named(DEMO))))


TASK, FIGURE = "similarity", "cosine"


def find_cosines(left: NDArray[np.floating], right: NDArray[np.floating]) -> Float64:
    """Compute cosines row by row, both ``(texts, dimension)``: float64 ``(texts,)``, 0 for zero vectors."""
    first, second = np.asarray(left, np.float64), np.asarray(right, np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    return np.asarray(np.divide(products, lengths, out=np.zeros(len(lengths)), where=lengths > 0))


def measure_similarity(
    originals: Sequence[str], sanitised: Sequence[str], encoder: SentenceEncoder, subject: str, seed: int = 0
) -> list[Score]:
    """Measure the mean cosine between texts and their sanitised forms, with other originals as chance level.

    Raises :class:`ValueError` if there are no texts, or the numbers differ.
    """
    require_pairs(originals, sanitised)
    vectors = encoder.encode(originals)
    cosines = find_cosines(vectors, encoder.encode(sanitised))
    # Each text is compared with the next one in a random circle, so none with itself.
    circle = np.random.default_rng(seed).permutation(len(originals))
    chance = float(find_cosines(vectors[circle], vectors[np.roll(circle, -1)]).mean()) if len(circle) > 1 else None
    return [
        Measurement(subject, TASK, encoder.name).make_score(
            FIGURE,
            float(cosines.mean()),
            find_mean_interval(cosines, seed),
            len(cosines),
            f"Mean cosine between the vectors of a text and of its sanitised form, by the encoder {encoder.name}; the "
            "chance level is that of two different originals.",
            chance=chance,
        )
    ]
