"""How fluent texts are: their perplexity under a public bigram model.

Ney, Essen, Kneser 1994, "On structuring probabilistic dependences in stochastic language modelling": absolute
discounting takes 0.75 off the count of every pair, and what that and pairs which the model does not list leave goes to
single words by their frequency, with one added to each count. So all words that may follow a word add up to 1.

Words that the model lacks are not predicted, since any probability for them would be arbitrary; a word after one is
predicted from its frequency. The first word of a text is predicted from the beginning. A mechanism writes words of its
vocabulary alone, so a figure goes with the share of words that it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Float64, Int64
from wordveil.artifacts.ngram_model import DEMO, bigrams_of, open_named
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.evaluation.classifiers import Words, cut_words
from wordveil.mechanisms.inputs import Bigrams
from wordveil.scores.score import Group, Measurement, Score, find_ratio_interval
from wordveil.text.slots import START

DISCOUNT = 0.75
METHOD = "bigrams"


@dataclass(frozen=True)
class TextSurprise:
    """What a model makes of texts.

    Attributes
    ----------
    bits
        float64 ``(texts,)``: minus the sum of base-2 logarithms of the probabilities of each text's words.
    words
        int64 ``(texts,)``: how many words that sum counts.
    unknown
        how many words of all texts the model lacks.
    """

    bits: Float64
    words: Int64
    unknown: int

    @property
    def perplexity(self) -> float:
        """Two to the power of the mean bits of a word. Raises :class:`ValueError` where no word is known."""
        if not self.words.sum():
            raise ValueError("Expected at least one word that the bigram model knows.")
        return float(2 ** (self.bits.sum() / self.words.sum()))


@dataclass(frozen=True)
class BigramLaw:
    """The probability of a word after another one.

    Attributes
    ----------
    words
        string array ``(words,)``; the first is empty and stands for the beginning of a text.
    index
        finds them.
    singles
        float64 ``(words,)``: their probabilities by frequency alone; 0 for the first.
    codes
        int64 ``(pairs,)``, rising: the listed pairs, ``before * words + after``.
    shares
        float64 ``(pairs,)``: the discounted probability of each listed pair.
    left
        float64 ``(words,)``: what remains after each word for the single words' probabilities.
    """

    words: pa.StringArray
    index: WordIndex
    singles: Float64
    codes: Int64
    shares: Float64
    left: Float64

    @classmethod
    def of(cls, bigrams: Bigrams) -> Self:
        """Make the law of counted bigrams. Pairs that were too rare to be listed count as discounted wholly."""
        size = len(bigrams.words)
        before = np.repeat(np.arange(size), np.diff(bigrams.first))
        listed = np.bincount(before, bigrams.pair_counts, size)
        # The last word of a text precedes none, so a word has at most as many followers as occurrences.
        context = np.maximum(np.maximum(bigrams.counts, listed), 1.0)
        shares = np.maximum(bigrams.pair_counts - DISCOUNT, 0) / context[before]
        singles = bigrams.counts + 1.0
        singles[START] = 0
        return cls(
            bigrams.words,
            WordIndex(bigrams.words),
            singles / singles.sum(),
            before * size + bigrams.followers,
            shares,
            np.asarray(1 - np.bincount(before, shares, size), np.float64),
        )

    @classmethod
    def open(cls, place: str = DEMO) -> Self:
        """Open the law of an n-gram model: the package's own, or the one at a path. Raises :class:`NgramError`."""
        return cls.of(bigrams_of(open_named(place, "bigram model")))

    @classmethod
    def fit(cls, texts: Sequence[str]) -> Self:
        """Fit the law of public texts. Raises :class:`ValueError` where they have no word."""
        found = cut_words(texts)
        if not len(found.words):
            raise ValueError("Expected at least one word to count.")
        # A text without words does not begin.
        filled = Words(found.words, np.unique(found.offsets))
        return cls.of(count_bigrams(filled, pc.unique(found.words)))

    def find_shares(self, before: Int64, after: Int64) -> Float64:
        """Find the probability of each word after another: float64 ``(pairs,)``.

        ``before``, ``after``: int64 ``(pairs,)``, numbers of words; -1 before a word stands for one that is unknown.
        """
        wanted = before * len(self.words) + after
        place = np.minimum(np.searchsorted(self.codes, wanted), max(len(self.codes) - 1, 0))
        listed = (self.codes[place] == wanted) & (before >= 0) if len(self.codes) else np.zeros(len(wanted), np.bool_)
        pair = np.where(listed, self.shares[place] if len(self.codes) else 0.0, 0.0)
        return np.asarray(pair + np.where(before >= 0, self.left[before], 1.0) * self.singles[after])

    def measure(self, texts: Sequence[str]) -> TextSurprise:
        """Measure how surprising each text is."""
        found = cut_words(texts)
        numbers = self.index.numbers(found.words).astype(np.int64)
        known = numbers >= 0
        shares = self.find_shares(_precede(numbers, found.offsets)[known], numbers[known])
        text = found.text_of[known]
        bits = np.bincount(text, -np.log2(shares), len(texts)).astype(np.float64)
        return TextSurprise(bits, np.bincount(text, minlength=len(texts)), int(np.count_nonzero(~known)))


def measure_perplexity(law: BigramLaw, texts: Sequence[str], subject: str, task: str, seed: int) -> list[Score]:
    """Measure the perplexity of texts and the share of their words that it counts.

    Parameters
    ----------
    law
        a public one.
    texts
        sanitised texts, or their originals.
    subject, task
        as in :class:`Score`.
    seed
        of the bootstrap.

    Returns
    -------
    list of Score
        the figures ``perplexity``, with the interval over texts, and ``known-words``. The first has no value where no
        word is known.
    """
    found = law.measure(texts)
    known = int(found.words.sum())
    total = known + found.unknown
    definition = (
        "Two to the power of the mean bits of a word given the word before it, under a public bigram model with "
        "absolute discounting (Ney et al. 1994); words that the model lacks are not predicted."
    )
    measurement = Measurement(subject, task, METHOD, Group.TEXT)
    interval = None
    if known:
        low, high = find_ratio_interval(found.bits, found.words, seed)
        interval = (2.0**low, 2.0**high)
    note = f"Counts {known} of {total} words; the model lacks the others."
    value, share = found.perplexity if known else None, known / total if total else None
    shares = "The share of words that the bigram model knows."
    return [
        measurement.make_score("perplexity", value, interval, known, definition, higher_is_better=False, note=note),
        measurement.make_score("known-words", share, None, total, shares, higher_is_better=None),
    ]


def _precede(numbers: Int64, offsets: Int64) -> Int64:
    """Return the number of the word before each word, of the beginning at the start of a text: int64 ``(tokens,)``."""
    before = np.concatenate([[START], numbers[:-1]])[: len(numbers)].astype(np.int64)
    starts = offsets[:-1][np.diff(offsets) > 0]
    before[starts] = START
    return before


def count_bigrams(texts: Words, words: pa.StringArray) -> Bigrams:
    """Count words and pairs of consecutive words of texts, over the words of a vocabulary, string array ``(size,)``.

    A word that the vocabulary lacks separates those around it.
    """
    # Number 0 is the beginning of a text, which stands before each text.
    known = WordIndex(words).numbers(texts.words)
    numbers = np.insert(known + 1, texts.offsets[:-1], START)
    is_unknown = np.insert(known < 0, texts.offsets[:-1], values=False)
    size = len(words) + 1
    before, after = numbers[:-1].astype(np.int64), numbers[1:].astype(np.int64)
    is_pair = ~is_unknown[:-1] & ~is_unknown[1:] & (after != START)
    pairs, counts = np.unique(before[is_pair] * size + after[is_pair], return_counts=True)
    return Bigrams(
        words=pa.concat_arrays([pa.array([""]), words]),
        counts=np.bincount(numbers[~is_unknown], minlength=size).astype(np.int64),
        first=np.searchsorted(pairs, np.arange(size + 1) * size).astype(np.int64),
        followers=(pairs % size).astype(np.int32),
        pair_counts=counts.astype(np.int64),
    )
