"""Public inputs of a mechanism besides an embedding: frequencies, similarities, classes, bigrams, generators.

:mod:`wordveil.assembly.inputs` reads the files that the configuration names. A mechanism gets arrays alone, in the
order of the embedding's words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.generators.weights import GeneratorWeights

ORDINARY, ANY = "ordinary", "any"
"""Values of a setting ``written``, which name no files."""
SENSITIVE = "sensitive"
"""A value of a setting ``merge``, which names no file."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of words with a similarity.

    ``words``: int32 ``(pairs,)``, the word that is to be replaced. ``others``: int32 ``(pairs,)``, a word that it is
    similar to. ``similarities``: float64 ``(pairs,)``, finite; the larger, the more similar.
    """

    words: Int32
    others: Int32
    similarities: Float64


@dataclass(frozen=True)
class Groups:
    """Groups of words that must be indistinguishable.

    ``labels``: int32 ``(size,)``, the group of each word, -1 of those in none. ``names``: int32 ``(groups,)``, the word
    that names each group, one of its own; -1 where the embedding lacks it.
    """

    labels: Int32
    names: Int32


DISCOUNT = 0.5
"""What absolute discounting takes off the count of each pair of :class:`Bigrams`. The usual estimate needs counts of 1
and 2, which models leave out.
"""


@dataclass(frozen=True)
class Bigrams:
    """Counts of words and of pairs of consecutive words in public text.

    ``words``: string array ``(words,)``, distinct; the first one is empty and stands for the beginning of a text.
    ``counts``: int64 ``(words,)``, how often each occurs; for the first one, how many texts there are. ``first``: int64
    ``(words + 1,)``, the followers of word ``i`` are entries ``first[i]`` up to ``first[i + 1]``. ``followers``: int32
    ``(pairs,)``, numbers of words, rising within a word's entries. ``pair_counts``: int64 ``(pairs,)``, how often each
    follows.
    """

    words: pa.StringArray
    counts: Int64
    first: Int64
    followers: Int32
    pair_counts: Int64


@dataclass(frozen=True)
class PublicInputs:
    """Public data that a mechanism is built from, and that its attackers know.

    ``frequencies``: float64 ``(size,)``, positive, adds up to 1. None: by the words' ranks (:func:`rank_frequencies`).
    ``similarity``: another embedding, whose cosines say which words are similar. None: the cosines of the embedding
    itself. ``pairs``: pairs of similar words, which come before what the cosines say. ``classes``: int32 ``(size,)``,
    the class of each word, 0 and up. None: no classes. ``groups``: words that share a cluster, for mechanisms that draw
    from clusters. None: none do. ``writable``: bool ``(size,)``, which words such a mechanism may write. None: all of
    them. ``bigrams``: counts of a public text, for mechanisms that choose words by what is before them. ``generator``:
    the weights of a generator over the embedding's words, for mechanisms that write texts anew.
    """

    frequencies: Float64 | None = None
    similarity: Embedding | None = None
    pairs: Pairs | None = None
    classes: Int32 | None = None
    groups: Groups | None = None
    writable: NDArray[np.bool_] | None = None
    bigrams: Bigrams | None = None
    generator: GeneratorWeights | None = None

    def frequencies_of(self, size: int) -> Float64:
        """Return the frequencies of ``size`` words: float64 ``(size,)``, adds up to 1.

        Raises :class:`ValueError` if there are frequencies of another number of words.
        """
        if self.frequencies is None:
            return rank_frequencies(size)
        if self.frequencies.shape != (size,):
            raise ValueError(f"Expected frequencies of shape ({size},), got {self.frequencies.shape}.")
        return self.frequencies


NO_INPUTS = PublicInputs()


def rank_frequencies(size: int) -> Float64:
    """Compute frequencies that fall with a word's rank in the embedding: float64 ``(size,)``, adds up to 1.

    Zipf's law (1949), ``1 / rank``. Embeddings in the usual formats list frequent words first.
    """
    shares = 1.0 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())
