"""Moves of words: the mean distance between a word and its output, and the mean cosine of the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Float64, Int32
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.calibration.drawing import WordCounts
from wordveil.measures.nearness import COSINE, measure_rows_of
from wordveil.privacy.metrics import uncap

WORDS = 1_000
"""Whose moves are measured at most: distances of each to all others are needed."""
_ROWS = 128


@dataclass(frozen=True)
class Moves:
    """Mean moves of some words; padding among the outputs is left out.

    ``words``: int32 ``(words,)``, ids. ``distances``: float64 ``(words,)``, the mean distance between the word and its
    output, in ``metric``. ``cosines``: float64 ``(words,)``, the mean cosine of their vectors. ``metric``: a name of
    :data:`wordveil.geometry.spaces.SPACES`.
    """

    words: Int32
    distances: Float64
    cosines: Float64
    metric: str


def choose_metric(name: str) -> str:
    """Choose the metric in which moves are measured, by the name of the mechanism's. It is the same without its cap, or
    the Euclidean one if the mechanism's is no metric of vectors.
    """
    name = uncap(name)
    return name if name in SPACES else "euclidean"


def measure_moves(embedding: Embedding, metric: str, rows: Iterable[tuple[Int32, Float64]]) -> Moves:
    """Measure how far words move in a metric of :func:`choose_metric`, to about three digits.

    ``rows``: words, int32 ``(count,)``, with the probability or count of each output, float64 ``(count, outputs)``;
    outputs beyond the words of the vocabulary are padding. A word that always becomes padding has no distance (NaN).
    """
    distances, cosines = measure_rows_of(embedding.vectors, metric), measure_rows_of(embedding.vectors, COSINE)
    parts: list[tuple[Int32, Float64, Float64]] = []
    for words, weights in rows:
        inside = weights[:, : embedding.size]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = inside / inside.sum(axis=1, keepdims=True)
        apart, alike = distances(words), -cosines(words)
        # Products in float32 leave a word a little away from itself.
        apart[np.arange(len(words)), words] = 0.0
        parts.append((words, _mean(inside, apart), _mean(inside, alike)))
    words, apart, alike = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Moves(words, apart, alike, metric)


def _mean(weights: Float64, values: Float64) -> Float64:
    return np.asarray(np.einsum("ij,ij->i", weights, values))


def split_rows(words: Int32) -> Iterator[Int32]:
    """Split words, int32 ``(words,)``, into blocks whose rows fit into memory."""
    for start in range(0, len(words), _ROWS):
        yield words[start : start + _ROWS]


def spread_counts(blocks: Iterable[WordCounts], size: int) -> Iterator[tuple[Int32, Float64]]:
    """Spread counts into rows, float64 ``(words, size + 1)``, of as many words at a time as fit into memory."""
    for block in blocks:
        for indices in split_rows(np.arange(len(block.words), dtype=np.int32)):
            part = block.take(indices)
            rows = np.zeros((len(indices), size + 1))
            rows[np.repeat(np.arange(len(indices)), np.diff(part.offsets)), part.ids] = part.counts
            yield part.words, rows
