"""Public knowledge about a language: frequencies of words, and a bigram model of public text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from wordveil.arrays import Float64, Int32
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.evaluation.attacks.context_kernels import STEPS, LanguageCosts
from wordveil.evaluation.utility.encoders import find_frequencies
from wordveil.mechanisms.inputs import DISCOUNT, Bigrams, rank_frequencies
from wordveil.text.slots import START


@dataclass(frozen=True)
class PublicLanguage:
    """Model of a language for attackers: frequencies of words, and of pairs of words.

    The probability of ``b`` after ``a`` (absolute discounting; Ney, Essen and Kneser, "On structuring probabilistic
    dependences in stochastic language modelling", Computer Speech and Language 8, 1994) is

        p(b | a) = max(c(a, b) - D, 0) / C(a) + g(a) p(b),     g(a) = 1 - sum over b of max(c(a, b) - D, 0) / C(a),

    with ``c(a, b)`` the count of the pair, ``C(a)`` that of ``a``, and ``p(b)`` the share of ``b``. ``D`` is
    ``n1 / (n1 + 2 n2)`` where ``n1`` pairs occur once and ``n2`` twice, as the paper estimates it, and
    :data:`wordveil.mechanisms.inputs.DISCOUNT` where the model leaves such pairs out.

    ``frequencies``: float64 ``(size,)``, the share of each word, above 0; adds up to 1. ``costs``: of words and of
    pairs, by ids of words. A word that the vocabulary lacks follows by its back-off, whatever its share, and words
    follow it by their shares.
    """

    frequencies: Float64
    costs: LanguageCosts

    @classmethod
    def of(cls, bigrams: Bigrams, words: pa.StringArray, frequencies: Float64 | None = None) -> PublicLanguage:
        """Make from public text.

        ``bigrams``: counts of public text. Words that the vocabulary lacks are left out, with their pairs. ``words``:
        string array ``(size,)``, the vocabulary, usually with the most frequent words first. ``frequencies``: float64
        ``(size,)``, public shares of words, above 0. None: the mean of those by the counts of ``bigrams`` and those by
        the words' ranks, since the bigrams may come from another kind of text than the embedding.
        """
        size = len(words)
        if frequencies is None:
            frequencies = (find_frequencies(words, bigrams) + rank_frequencies(size)) / 2
        numbers = WordIndex(bigrams.words).numbers(words)
        known = np.flatnonzero(numbers >= 0)
        counts = np.zeros(size + 2)
        counts[known], counts[size] = bigrams.counts[numbers[known]], bigrams.counts[0]
        id_of = np.full(len(bigrams.words), -1, np.int32)
        id_of[numbers[known]], id_of[START] = known, size
        before = np.repeat(id_of, np.diff(bigrams.first))
        after = np.where(bigrams.followers == START, np.int32(-1), id_of[bigrams.followers])
        used = np.flatnonzero((before >= 0) & (after >= 0))
        used = used[np.lexsort((after[used], before[used]))]
        before, after, pairs = before[used], after[used], bigrams.pair_counts[used].astype(np.float64)
        totals = np.maximum(counts, np.bincount(before, pairs, size + 2))
        listed = np.maximum(pairs - _find_discount(pairs), 0.0) / totals[before]
        left = np.clip(1.0 - np.bincount(before, listed, size + 2), 2.0**-50, 1.0).astype(np.float64)
        costs = LanguageCosts(
            first=np.searchsorted(before, np.arange(size + 3)).astype(np.int64),
            followers=after.astype(np.int32),
            costs=_costs_of(np.asarray(listed + left[before] * frequencies[after])),
            words=np.append(_costs_of(frequencies), np.zeros(2, np.int32)),
            beyond=_costs_of(left),
        )
        return cls(frequencies, costs)

    @property
    def size(self) -> int:
        """Number of words of the vocabulary."""
        return len(self.frequencies)


def _find_discount(pairs: Float64) -> float:
    once, twice = (int(np.count_nonzero(pairs == times)) for times in (1, 2))
    return once / (once + 2 * twice) if once and twice else DISCOUNT


def _costs_of(chances: Float64) -> Int32:
    return np.asarray(np.rint(-np.log2(chances) * STEPS), np.int32)
