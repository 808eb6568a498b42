"""Sentences that a generator reads word by word, for experiments that look into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.assembly.generator_texts import encode_texts
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import InputError
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.scores.documents import Documents
from wordveil.text.codec import Codec
from wordveil_research.papers.systems import WORDS_ALONE

_FEWEST = 4


@dataclass(frozen=True)
class Sentences:
    """Sentences of known words.

    Attributes
    ----------
    ids
        int32 of each, ``(words,)``.
    words
        of the vocabulary.
    """

    ids: Sequence[NDArray[np.int32]]
    words: pa.StringArray

    @property
    def texts(self) -> list[str]:
        """Their words, separated by a space."""
        return [" ".join(self.words.take(pa.array(ids)).to_pylist()) for ids in self.ids]


def choose_sentences(documents: Documents, embedding: Embedding, length: int, count: int) -> Sentences:
    """Choose the first sentences whose words are all known, of 4 to ``length`` words: of each label in turn, ``count``
    in all.

    Raises :class:`InputError` where there are none.
    """
    found = [
        (place, label, ids)
        for label in range(len(documents.names))
        for place, ids in enumerate(_find_sentences(documents, label, embedding, length))
    ]
    if not found:
        raise InputError(f"Expected texts with sentences of {_FEWEST} to {length} known words; there is none.")
    found.sort(key=lambda one: one[:2])
    return Sentences([ids for _, _, ids in found[:count]], embedding.words)


def _find_sentences(documents: Documents, label: int, embedding: Embedding, length: int) -> Iterator[NDArray[np.int32]]:
    texts = [documents.texts[row] for row in np.flatnonzero(documents.labels == label).tolist()]
    vocabulary = Vocabulary(embedding.words)
    piece = encode_texts(pa.array(texts, pa.string()), Codec(WORDS_ALONE, vocabulary), "sentences", vocabulary.unknown)
    for start, end in zip(piece.offsets[:-1].tolist(), piece.offsets[1:].tolist(), strict=True):
        ids = piece.ids[start:end]
        if _FEWEST <= len(ids) <= length and (ids != vocabulary.unknown).all():
            yield ids


def read_rows(
    generator: WholeNumberGenerator, sentences: Sentences
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]]:
    """Return what a generator says of each word of sentences, where it has read the original words before it.

    That is a look into the generator, and no release, which reads back what was written.

    Yields, for the first words, the second words and so on: the numbers of the sentences that have one, int64
    ``(count,)``; these words, int32 ``(count,)``; and softmaxes over words alone, float64 ``(count, size)``.
    """
    shape, count = generator.shape, len(sentences.ids)
    symbols = np.full((count, shape.length), shape.padding, np.int32)
    for number, ids in enumerate(sentences.ids):
        symbols[number, : len(ids)] = ids
    state, before = generator.begin(symbols), generator.start_symbols(count)
    for place in range(shape.length):
        weights = generator.advance(state, before)[:, : shape.size].astype(np.float64)
        before = symbols[:, place]
        rows = np.flatnonzero(before != shape.padding)
        if not len(rows):
            return
        yield rows, before[rows], weights[rows] / weights[rows].sum(axis=1, keepdims=True)
