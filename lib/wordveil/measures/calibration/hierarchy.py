"""``K_w``: number of a word's outputs that lie below the drawn one, in a hierarchy of words.

Feyisetan, Diethe, Drake 2019, section VI-B, have ``K_w = min |{v in S_w : v below y}|`` for a word ``w``, its outputs
``S_w`` and an output ``y``: a reader who takes ``y`` for a generalisation has that many words that it may generalise,
and gamma-deniability asks for gamma of them. The least over all outputs is 0 for every word: in a hierarchy without
cycles some output has no other below it. So here it is the mean over a word's outputs, weighted by how often each is
drawn, and the least value of a vocabulary is that of its worst word.

A word lies below its hypernyms, not below itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from wordveil.arrays import Bool, Float64
from wordveil.embeddings.training.hypernyms import SHIPPED_PAIRS, read_pairs
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.mechanisms.laws import WordLaws

_CELLS = 4_000_000


@dataclass(frozen=True)
class WordHierarchy:
    """Relation of words of a vocabulary: below which others each one lies.

    ``below``: int32 ``(size, size)``, 1 where the word of the column lies below that of the row. ``known``: bool
    ``(size,)``, the words that lie below or above another.
    """

    below: csr_array
    known: Bool

    @classmethod
    def of(cls, words: pa.StringArray, pairs: pa.Table) -> Self:
        """Make from the table's columns ``word`` and ``hypernym``. Pairs whose words are not both among ``words`` are
        left out. Pairs are taken as they are, and not followed from word to word.
        """
        index, size = WordIndex(words), len(words)
        ends = [index.numbers(pairs[name].combine_chunks()) for name in ("word", "hypernym")]
        kept = (ends[0] >= 0) & (ends[1] >= 0) & (ends[0] != ends[1])
        low, high = ends[0][kept], ends[1][kept]
        below = csr_array((np.ones(len(low), np.int32), (high, low)), shape=(size, size))
        below.data[:] = 1  # a pair that comes twice was added up
        known = np.zeros(size, np.bool_)
        known[low] = known[high] = True
        return cls(below, known)

    @classmethod
    def shipped(cls, words: pa.StringArray) -> Self:
        """Make from the package's pairs."""
        return cls.of(words, read_pairs(SHIPPED_PAIRS))

    def count_below(self, outputs: csr_array) -> Float64:
        """Compute ``K_w`` of the words with these outputs, float64 ``(words,)``. It is NaN for a word without an output
        of the hierarchy; other outputs are left out.

        ``outputs``: of shape ``(words, size)``: positive counts or probabilities.
        """
        placed = outputs.multiply(self.known[None, :]).tocsr()
        placed.eliminate_zeros()
        came = csr_array((np.ones(placed.nnz, np.int32), placed.indices, placed.indptr), shape=placed.shape)
        counts = (came @ self.below.T).multiply(placed)
        with np.errstate(invalid="ignore"):
            return np.asarray(counts.sum(axis=1) / placed.sum(axis=1))


def find_outputs(laws: WordLaws, threshold: float) -> Iterator[csr_array]:
    """Yield the probabilities of words' outputs above ``threshold``, for consecutive words, float64 ``(words, size)``
    each. Padding is no output.
    """
    size = len(laws.shares)
    is_common = laws.common[:size] > threshold
    common = np.flatnonzero(is_common)
    first = 0
    while first < size:
        step = max(1, _CELLS // (len(common) + int(np.diff(laws.offsets).max()) + 1))
        last = min(first + step, size)
        entries = slice(laws.offsets[first], laws.offsets[last])
        own, ids = np.repeat(np.arange(last - first), np.diff(laws.offsets[first : last + 1])), laws.ids[entries]
        is_word = ids < size
        own, ids, extras = own[is_word], ids[is_word], laws.extras[entries][is_word]
        # What all words share is added where it may be above the threshold alone, and to entries elsewhere.
        extras = extras + np.where(is_common[ids], 0.0, laws.shares[first + own] * laws.common[ids])
        shared = laws.shares[first:last, None] * laws.common[common]
        rows = np.concatenate([own, np.repeat(np.arange(last - first), len(common))])
        columns = np.concatenate([ids, np.tile(common, last - first)])
        found = csr_array((np.concatenate([extras, shared.ravel()]), (rows, columns)), shape=(last - first, size))
        found.sum_duplicates()
        found.data[found.data <= threshold] = 0
        found.eliminate_zeros()
        yield found
        first = last
