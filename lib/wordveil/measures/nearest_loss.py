"""Loss between a word and its nearest neighbour: the protection of a word among its likely outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from wordveil.arrays import Float64, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.exact_loss import find_loss
from wordveil.measures.token_draws import spread_words
from wordveil.mechanisms.base import Mechanism
from wordveil.privacy.guarantees import WordGuarantee

WORDS = 200
"""Number of words whose nearest neighbours are measured, evenly spread over the vocabulary."""
BOUND = "a bound: the loss of the noisy point, before the nearest word is taken"

Pairs = tuple[Int64, Int64, Float64]


def find_neighbours(embedding: Embedding, metric: str, count: int = WORDS) -> Pairs:
    """Find the nearest neighbour of some words, int64 ``(words,)`` each, and their distances, float64 ``(words,)``.

    ``embedding``: of two words at least. ``metric``: a name of :data:`wordveil.geometry.spaces.SPACES`. ``count``: the
    number of words to measure; all of a smaller vocabulary.
    """
    points, distances = SPACES[metric].points(embedding.vectors), SPACES[metric].distances
    words = spread_words(len(points), count).astype(np.int64)
    nearest, least = np.empty(len(words), np.int64), np.empty(len(words))
    for row, word in enumerate(words.tolist()):
        apart = distances(points[word], points)
        apart[word] = np.inf
        nearest[row] = int(np.argmin(apart))
        least[row] = apart[nearest[row]]
    return words, nearest, least


def measure_loss(mechanism: Mechanism[Any], guarantee: WordGuarantee, pairs: Pairs) -> tuple[float, str]:
    """Measure the median loss over pairs of words, in nats, with a remark, which is empty if it is exact.

    If probabilities are not known it is the bound of ``guarantee``. ``pairs``: the result of :func:`find_neighbours`,
    in the metric of ``guarantee`` if that is needed.
    """
    words, neighbours, distances = pairs
    if mechanism.probabilities(0) is None:
        return float(np.median([guarantee.bound(distance) for distance in distances.tolist()])), BOUND
    both = zip(words.tolist(), neighbours.tolist(), strict=True)
    return float(np.median([find_loss(mechanism, *pair).nats for pair in both])), ""
