"""The loss between a word and its nearest neighbour: what hides a word among those that could come out for it."""

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
"""Words whose nearest neighbours are measured, evenly spread over the vocabulary."""
BOUND = "a bound: the loss of the noisy point, before the nearest word is taken"

Pairs = tuple[Int64, Int64, Float64]


def find_neighbours(embedding: Embedding, metric: str, count: int = WORDS) -> Pairs:
    """Some words, the nearest neighbour of each, int64 ``(words,)``, and their distances, float64 ``(words,)``.

    ``embedding``: of two words at least. ``metric``: a name of :data:`wordveil.geometry.spaces.SPACES`. ``count``: how
    many words are measured; all of a smaller vocabulary.
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
    """The median loss over pairs of words, in nats, and what to know of it; empty where it is exact.

    Where probabilities are not known it is the bound of ``guarantee``. ``pairs``: what :func:`find_neighbours`
    returned, in the metric of ``guarantee`` where that is needed.
    """
    words, neighbours, distances = pairs
    if mechanism.probabilities(0) is None:
        return float(np.median([guarantee.bound(distance) for distance in distances.tolist()])), BOUND
    both = zip(words.tolist(), neighbours.tolist(), strict=True)
    return float(np.median([find_loss(mechanism, *pair).nats for pair in both])), ""
