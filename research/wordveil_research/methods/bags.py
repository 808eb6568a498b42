"""Texts as bags of the words that an embedding knows, each once, with its share of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from wordveil.arrays import Float64, Int32, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.evaluation.classifiers import cut_words


@dataclass(frozen=True)
class Bags:
    """Texts as bags.

    ``ids``: int32 ``(entries,)``, the words of each text, rising, each once. ``shares``: float64 ``(entries,)``, the
    share of each among the text's known words. ``offsets``: int64 ``(texts + 1,)``, the entries of each text. A text
    without a known word has none.
    """

    ids: Int32
    shares: Float64
    offsets: Int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Int64:
        """How many different words each text has: int64 ``(texts,)``."""
        return np.diff(self.offsets)

    def words_of(self, text: int) -> tuple[Int32, Float64]:
        """Return the words of a text and their shares."""
        entries = slice(int(self.offsets[text]), int(self.offsets[text + 1]))
        return self.ids[entries], self.shares[entries]

    def average(self, vectors: Float64) -> Float64:
        """Return the mean vector of each text, by shares: float64 ``(texts, dimension)``, zeros for a text without
        words.

        ``vectors``: float64 ``(size, dimension)``.
        """
        matrix = sparse.csr_matrix((self.shares, self.ids, self.offsets), shape=(len(self), len(vectors)))
        return np.asarray(matrix @ vectors)


@dataclass(frozen=True)
class WordVectors:
    """The words and vectors of a public embedding, ready for the lookup of texts."""

    embedding: Embedding

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Its words."""
        return Vocabulary(self.embedding.words)

    @cached_property
    def vectors(self) -> Float64:
        """Its vectors: float64 ``(size, dimension)``."""
        return self.embedding.vectors.astype(np.float64)

    def make_bags(self, texts: Sequence[str]) -> Bags:
        """Make the bags of texts. Words that the embedding lacks are left out."""
        words = cut_words(texts)
        ids = self.vocabulary.lookup(words.words)
        known = ids < self.vocabulary.size
        codes = words.text_of[known] * self.vocabulary.size + ids[known]
        pairs, counts = np.unique(codes, return_counts=True)
        text, word = np.divmod(pairs, self.vocabulary.size)
        offsets = np.searchsorted(text, np.arange(len(texts) + 1))
        totals = np.bincount(text, counts, len(texts))
        return Bags(word.astype(np.int32), counts / totals[text], offsets)

    def average(self, texts: Sequence[str]) -> Float64:
        """Return the mean vector of each text: float64 ``(texts, dimension)``, zeros for a text without a known
        word.
        """
        return self.make_bags(texts).average(self.vectors)
