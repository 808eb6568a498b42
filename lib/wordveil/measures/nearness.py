"""Nearness of neighbours, for a sample of words: distances in a metric, or cosines.

Distances are from float32 products, good to about three digits: for people who choose, and for no bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wordveil.arrays import Float32, Float64, Int32
from wordveil.geometry.spaces import SPACES

COSINE = "cosine"
"""What nearness is where no distance enters the price: the cosine of two vectors, 1 for the same direction."""
_BLOCK_BYTES = 32 * 2**20


def measure_neighbours(vectors: Float32, measure: str, words: Int32, rank: int) -> tuple[Float64, Float64]:
    """Measure how far the nearest neighbour and the ``rank``-th are: float64 ``(words,)`` each, distances or cosines.

    ``vectors``: float32 ``(size, n)``. For ``hyperbolic`` they lie in the open unit ball. ``measure``: the name of a
    metric of :data:`wordveil.geometry.spaces.SPACES`, or :data:`COSINE`. ``words``: int32 ``(words,)``, whose
    neighbours are measured. ``rank``: 1 for the nearest, up to ``size - 1``.
    """
    distances = measure_rows_of(vectors, measure)
    nearest, far = np.empty(len(words)), np.empty(len(words))
    step = max(1, _BLOCK_BYTES // (8 * len(vectors)))
    for start in range(0, len(words), step):
        part = slice(start, start + step)
        apart = distances(words[part])
        apart[np.arange(len(apart)), words[part]] = -np.inf  # the word itself comes first
        ordered = np.partition(apart, (1, rank), axis=1)
        nearest[part], far[part] = ordered[:, 1], ordered[:, rank]
    return (-nearest, -far) if measure == COSINE else (nearest, far)


def measure_rows_of(vectors: Float32, measure: str) -> Callable[[Int32], Float64]:
    """Return a function that computes the distances of some words, int32 ``(words,)``, from all: float64 ``(words,
    size)``. Cosines are negated. ``vectors``, ``measure``: as in :func:`measure_neighbours`.
    """
    if measure == "manhattan":
        points = vectors.astype(np.float64)
        return lambda words: np.stack([SPACES[measure].distances(points[word], points) for word in words])
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    if measure in (COSINE, "angular"):
        directions = vectors / np.sqrt(np.where(squares > 0, squares, 1.0))[:, None].astype(np.float32)

        def turn(words: Int32) -> Float64:
            cosines = np.clip((directions[words] @ directions.T).astype(np.float64), -1, 1)
            return -cosines if measure == COSINE else np.arccos(cosines)

        return turn

    def measure_rows(words: Int32) -> Float64:
        products = (vectors[words] @ vectors.T).astype(np.float64)
        gaps = np.maximum(squares[words][:, None] + squares - 2 * products, 0.0)
        if measure == "hyperbolic":
            return np.asarray(2 * np.arcsinh(np.sqrt(gaps / ((1 - squares[words])[:, None] * (1 - squares)))))
        return np.asarray(np.sqrt(gaps))

    return measure_rows
