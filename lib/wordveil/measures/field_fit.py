"""Fit of word vectors to the texts of a field: are a word's neighbours words that its texts have, too?

A cluster or a draw near "backup" helps a reader of support tickets if the words near it are of tickets. Vectors of
other texts may have a name there instead, although they know all words of the tickets. From public texts of the field
this counts the frequent words whose neighbours are in one text with them more often than by chance.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix
from scipy.special import pdtrc

from wordveil.arrays import Bool, Float64, Int32, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.measures.suitability import COSINE, measure_rows_of
from wordveil.text.tokeniser import Tokeniser, fold_words

NEIGHBOURS = 10
"""Number of neighbours of a word, by the cosine."""
_WORDS, _TEXTS, _FEWEST = 300, 5, 20
# The chance at which words that have nothing to do with each other are taken for related.
_LEVEL = 0.05
_SEED, _EXAMPLES = 1, 5


@dataclass(frozen=True)
class FieldFit:
    """Fit of vectors to public texts.

    ``words``: number of frequent words that were measured. ``share``: share of them whose neighbours are in one text
    with them more often than by chance. ``shuffled``: this share if the vectors belong to other words. ``misfits``: the
    most frequent of the other words, each with its nearest neighbour.
    """

    words: int
    share: float
    shuffled: float
    misfits: tuple[tuple[str, str], ...]

    def describe(self) -> str:
        """Describe the fit in a sentence."""
        others = ", ".join(f"{word} -> {other}" for word, other in self.misfits)
        shuffled = f"({self.shuffled:.0%} with shuffled vectors)"
        return (
            f"{self.share:.0%} of {self.words} frequent words of mechanism.texts have neighbours that are in one text "
            f"with them more often than by chance {shuffled}"
        ) + f"; the most frequent others, with their nearest words: {others}" * bool(others)


def measure_field_fit(texts: pa.StringArray, embedding: Embedding, stop_words: Collection[str]) -> FieldFit | None:
    """Measure how well vectors fit texts, which are public; None if these have too few frequent words.

    A word fits if the number of texts that have it and one of its neighbours, added up over these, is so large that it
    occurs by chance with a probability of 5% at most. Chance is that of a Poisson variable whose mean takes words as
    independent, and long texts as more likely to have each of them.
    """
    present = _find_words(texts, embedding.words)
    counts = np.asarray(present.sum(axis=0)).ravel()
    is_stop_word = np.isin(embedding.words.to_numpy(zero_copy_only=False), [*stop_words])
    frequent = np.flatnonzero((counts >= _TEXTS) & ~is_stop_word)
    words = frequent[np.argsort(-counts[frequent], kind="stable")][:_WORDS].astype(np.int32)
    if len(words) < _FEWEST:
        return None
    lengths = np.asarray(present.sum(axis=1)).ravel().astype(np.float64)
    together = (present[:, words].T @ present).tocsr()
    expected = np.outer(counts[words], counts) * (lengths**2).sum() / lengths.sum() ** 2

    def find_fitting(neighbours: Int32) -> Bool:
        rows = np.repeat(np.arange(len(words)), neighbours.shape[1])
        found = np.asarray(together[rows, neighbours.ravel()]).reshape(neighbours.shape).sum(axis=1)
        mean = expected[rows, neighbours.ravel()].reshape(neighbours.shape).sum(axis=1)
        return np.asarray((found > 0) & (pdtrc(found - 1, mean) <= _LEVEL))

    neighbours = _find_neighbours(embedding, words)
    fits = find_fitting(neighbours)
    order = np.random.default_rng(_SEED).permutation(embedding.size).astype(np.int32)
    others = np.flatnonzero(~fits)[:_EXAMPLES]
    pairs = zip(words[others].tolist(), neighbours[others, 0].tolist(), strict=True)
    return FieldFit(
        words=len(words),
        share=float(fits.mean()),
        shuffled=float(find_fitting(order[neighbours]).mean()),
        misfits=tuple((embedding.words[word].as_py(), embedding.words[other].as_py()) for word, other in pairs),
    )


def count_texts(texts: pa.StringArray, embedding_words: pa.StringArray) -> Int64:
    """Count the texts that have each of the distinct ``embedding_words``: int64 ``(words,)``."""
    return np.asarray(_find_words(texts, embedding_words).sum(axis=0), np.int64).ravel()


def _find_words(texts: pa.StringArray, words: pa.StringArray) -> csr_matrix:
    """Find which words each text has: a sparse matrix of 0 and 1, ``(texts, words)``."""
    cutter, vocabulary, size = Tokeniser(), Vocabulary(words), len(words)
    cut = cutter.cut_words(cutter.normalise(texts))
    ids = vocabulary.lookup(fold_words(cut.words))
    text = np.repeat(np.arange(len(texts)), np.diff(cut.offsets))
    known = ids < size
    pairs = np.unique(text[known].astype(np.int64) * size + ids[known])
    return csr_matrix((np.ones(len(pairs), np.int64), np.divmod(pairs, size)), shape=(len(texts), size))


def _find_neighbours(embedding: Embedding, words: Int32) -> Int32:
    """Find the nearest other words, int32 ``(words, neighbours)``, the nearest first."""
    apart: Float64 = measure_rows_of(embedding.vectors, COSINE)(words)
    apart[np.arange(len(words)), words] = np.inf
    count = min(NEIGHBOURS, embedding.size - 1)
    nearest = np.argpartition(apart, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(apart, nearest, axis=1), axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1).astype(np.int32)
