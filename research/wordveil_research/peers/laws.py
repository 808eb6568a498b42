"""What other packages' mechanisms really guarantee, computed from their definitions.

``line``: dp-diffractor's geometric mechanism (Meisenbacher, Chevli, Matthes 2024, 1-Diffractor). Words stand in one
line. The place of a word gets the difference of two geometric variables and is cut at both ends. ``lists``: CusText
(Chen et al. 2023). A word becomes one of its ``k`` nearest words ``y`` with a probability proportional to
``exp(-epsilon s(x, y) / 2)``, where ``s`` is the distance brought to [0, 1] within the list.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64
from wordveil.mechanisms.laws import WordLaws

_BLOCK = 512


def line_loss(words: int, epsilon: float) -> float:
    """Return the largest loss between two words of a line, in nats: that between its ends at an end."""
    return epsilon * (words - 1)


def epsilon_of_line(words: int, loss: float) -> float:
    """Return the inverse of :func:`line_loss`."""
    return loss / (words - 1)


def line_recovery(prior: Float64, epsilon: float) -> float:
    """Return the share of words that the best attacker gets right, who sees what a word on a line became; exact.

    With ``q = exp(-epsilon)`` an inner place ``y`` comes out for the place ``x`` with probability
    ``(1 - q)/(1 + q) q^|x - y|``, and an end at distance ``d`` with ``q^d/(1 + q)``.

    Parameters
    ----------
    prior
        float64 ``(words,)``: of the word at each place of the line; adds up to 1.
    epsilon
        of the mechanism, per place.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(prior)
    places = np.arange(len(prior)) * epsilon
    before = np.maximum.accumulate(logs + places) - places
    after = np.maximum.accumulate((logs - places)[::-1])[::-1] + places
    best = np.exp(np.maximum(before, after))
    q = math.exp(-epsilon)
    inner = -math.expm1(-epsilon) / (1 + q)
    return float(best[1:-1].sum() * inner + (best[0] + best[-1]) / (1 + q))


def line_laws(order: NDArray[np.int64], epsilon: float, word: int) -> Float64:
    """Return the probability of each output, by word, for one word: float64 ``(words,)``.

    ``order``: int64 ``(words,)``: the word at each place. ``word``: a word, not its place.
    """
    place = int(np.flatnonzero(order == word)[0])
    distance = np.abs(np.arange(len(order)) - place)
    q = math.exp(-epsilon)
    law = np.exp(-epsilon * distance) * (-math.expm1(-epsilon)) / (1 + q)
    for end in (0, -1):
        law[end] = math.exp(-epsilon * float(distance[end])) / (1 + q)
    found = np.empty(len(order))
    found[order] = law
    return found


def list_nearest(vectors: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], Float64]:
    """List the ``k`` nearest words of each, itself first, and their Euclidean distances: ``(words, k)`` each."""
    points = vectors.astype(np.float64)
    squares = np.einsum("ij,ij->i", points, points)
    ids = np.empty((len(points), k), np.int32)
    distances = np.empty((len(points), k))
    for start in range(0, len(points), _BLOCK):
        part = slice(start, start + _BLOCK)
        gaps = squares[part, None] + squares - 2 * points[part] @ points.T
        rows = np.arange(len(gaps))
        gaps[rows, start + rows] = -1.0  # the word itself comes first
        nearest = np.argpartition(gaps, k, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(gaps, nearest, 1), axis=1, kind="stable")
        ids[part] = np.take_along_axis(nearest, order, 1)
        distances[part] = np.sqrt(np.maximum(np.take_along_axis(gaps, ids[part].astype(np.int64), 1), 0.0))
    return ids, distances


def list_laws(ids: NDArray[np.int32], distances: Float64, epsilon: float) -> WordLaws:
    """List the laws of CusText from what :func:`list_nearest` found. Two words whose lists differ have an infinite
    loss.
    """
    size, k = ids.shape
    span = distances.max(axis=1, keepdims=True) - distances.min(axis=1, keepdims=True)
    scaled = (distances - distances.min(axis=1, keepdims=True)) / np.where(span > 0, span, 1.0)
    weights = np.exp(-epsilon * scaled / 2)
    weights /= weights.sum(axis=1, keepdims=True)
    return WordLaws(
        common=np.full(size, 1 / size),
        shares=np.zeros(size),
        offsets=np.arange(size + 1, dtype=np.int64) * k,
        ids=ids.ravel(),
        extras=weights.ravel(),
    )
