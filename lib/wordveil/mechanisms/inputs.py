"""Public inputs of a mechanism besides an embedding: frequencies, similarities, classes, bigrams, generators.

:mod:`wordveil.assembly.inputs` reads the files. Mechanisms get arrays, in the order of the embedding's words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.arrays import Bool, Float64, Int32, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.generators.weights import GeneratorWeights

ORDINARY, ANY = "ordinary", "any"
"""Values of a setting ``written``, which name no files."""
SENSITIVE = "sensitive"
"""A value of a setting ``merge``, which names no file."""
WORDNET = "wordnet"
"""A value of a setting ``passages``, which names no file."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of words with a similarity.

    ``words``, ``others``: int32 ``(pairs,)``, the word to replace and a similar word. ``similarities``: float64
    ``(pairs,)``, finite; higher is more similar.
    """

    words: Int32
    others: Int32
    similarities: Float64


@dataclass(frozen=True)
class Groups:
    """Groups of words that must be indistinguishable.

    ``labels``: int32 ``(size,)``, each word's group, or -1. ``names``: int32 ``(groups,)``, the member that names each
    group, or -1 if the embedding lacks it.
    """

    labels: Int32
    names: Int32


DISCOUNT = 0.5
"""Amount that absolute discounting subtracts from each pair's count in :class:`Bigrams`. The usual estimate needs
counts of 1 and 2, which models leave out.
"""


@dataclass(frozen=True)
class Bigrams:
    """Counts of words and of pairs of consecutive words in public text.

    ``words``: string array ``(words,)``, distinct; the first is empty and means the beginning of a text. ``counts``:
    int64 ``(words,)``; the first is the number of texts. ``first``: int64 ``(words + 1,)``, word ``i`` has the
    followers ``first[i]`` up to ``first[i + 1]``. ``followers``: int32 ``(pairs,)``, numbers of words, rising within a
    word. ``pair_counts``: int64 ``(pairs,)``.
    """

    words: pa.StringArray
    counts: Int64
    first: Int64
    followers: Int32
    pair_counts: Int64


@dataclass(frozen=True)
class PublicPassages:
    """Short public texts: all from which subjects are made, and those that may be written.

    ``ids``: int32 ``(tokens,)``, the words of the passages, without those outside the embedding. ``offsets``: int64
    ``(passages + 1,)``. ``texts``: string array ``(texts,)``, passages and sentences of passages that may be written,
    distinct and on one line each: they name no person, number or the like. ``text_ids``, ``text_offsets``: their words.
    ``whole``: string array ``(passages,)``, the passages as they stand. ``read``: what encoders
    made of them, for builds with other numbers of subjects.
    """

    ids: Int32
    offsets: Int64
    texts: pa.StringArray
    text_ids: Int32
    text_offsets: Int64
    whole: pa.StringArray
    read: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class PublicInputs:
    """Public data that a mechanism is built from, and that its attackers know.

    ``frequencies``: float64 ``(size,)``, positive, sum 1; default :func:`rank_frequencies`. ``similarity``: another
    embedding, whose cosines replace those of the embedding. ``pairs``: pairs of similar words, preferred to cosines.
    ``classes``: int32 ``(size,)``, each word's class. ``groups``: words that share a cluster. ``writable``: bool
    ``(size,)``, words that may be written; default all. ``bigrams``: counts of public text, for choices by the word
    before. ``generator``: weights of a generator over the embedding's words. ``passages``: public texts to write.
    """

    frequencies: Float64 | None = None
    similarity: Embedding | None = None
    pairs: Pairs | None = None
    classes: Int32 | None = None
    groups: Groups | None = None
    writable: Bool | None = None
    bigrams: Bigrams | None = None
    generator: GeneratorWeights | None = None
    passages: PublicPassages | None = None

    def frequencies_of(self, size: int) -> Float64:
        """Return the frequencies of ``size`` words, float64 ``(size,)``. Raise :class:`ValueError` for other shapes."""
        if self.frequencies is None:
            return rank_frequencies(size)
        if self.frequencies.shape != (size,):
            raise ValueError(f"Expected frequencies of shape ({size},), got {self.frequencies.shape}.")
        return self.frequencies


NO_INPUTS = PublicInputs()


def rank_frequencies(size: int) -> Float64:
    """Compute frequencies ``1 / rank`` (Zipf's law, 1949): float64 ``(size,)``, sum 1.

    Embeddings in the usual formats list frequent words first.
    """
    shares = 1.0 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())
