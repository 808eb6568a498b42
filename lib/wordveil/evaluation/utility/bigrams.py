"""Count the pairs of words of texts, for models of what word follows which."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wordveil.embeddings.vocabulary import WordIndex
from wordveil.evaluation.utility.words import Words
from wordveil.mechanisms.inputs import Bigrams
from wordveil.text.slots import START


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
