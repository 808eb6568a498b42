"""Compiled loops of balanced clustering, for :mod:`wordveil.neighbours.clusters`.

All numbers are whole. Words and centroids have a length of at most 4,095, so that every partial sum of a product of two
of them is below 2^24, by Cauchy and Schwarz: float32 holds it exactly, in any order of addition. Sums of up to 2^28
words keep their products below 2^53, and float64 holds those exactly.
"""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, Int64
from wordveil.compiled import compiled, compiled_bounds, compiled_part

LONGEST = 4095.0
"""Largest length of whole vectors: its square is below 2^24."""


@compiled
def whole_directions(rows: Float32 | Float64, out: Float32, length: float = LONGEST, nearest: bool = False) -> None:  # noqa: FBT001, FBT002 - compiled code takes no keywords
    """Bring each row to ``length`` and make its coordinates whole numbers; a row of zeros stays.

    They are cut, which shortens, so that no row is longer than ``length``; or, with ``nearest``, rounded.
    """
    for row in range(len(rows)):
        square = 0.0
        for k in range(rows.shape[1]):
            square += np.float64(rows[row, k]) * np.float64(rows[row, k])
        scale = length / np.sqrt(square) if square > 0 else 0.0
        for k in range(rows.shape[1]):
            value = np.float64(rows[row, k]) * scale
            out[row, k] = np.float32(np.rint(value) if nearest else np.trunc(value))


@compiled
def best_columns(scores: Float32, ids: Int32, best: Float32) -> None:
    """Find the columns with the greatest scores of each row, in falling order; of equal ones the lower is first.

    ``scores``: ``(rows, columns)``; ``ids``, ``best``: ``(rows, wanted)``, at most as many as there are columns.
    """
    wanted = ids.shape[1]
    for row in range(len(scores)):
        count = 0
        for column in range(scores.shape[1]):
            score = scores[row, column]
            if count < wanted:
                slot = count
                count += 1
            elif score > best[row, wanted - 1]:
                slot = wanted - 1
            else:
                continue
            while slot > 0 and best[row, slot - 1] < score:
                best[row, slot] = best[row, slot - 1]
                ids[row, slot] = ids[row, slot - 1]
                slot -= 1
            best[row, slot] = score
            ids[row, slot] = column


@compiled
def assign_in_turn(turns: Int64, ids: Int32, labels: Int32, room: Int64) -> None:
    """Give each word the first cluster with room whose turn comes. Turn ``t`` is entry ``t`` of ``ids``, ``(words,
    wanted)``. ``labels`` and ``room`` are changed; a word that gets none keeps its label of -1.
    """
    wanted = ids.shape[1]
    for turn in turns:
        word = turn // wanted
        cluster = ids[word, turn % wanted]
        if labels[word] < 0 and room[cluster] > 0:
            labels[word] = cluster
            room[cluster] -= 1


@compiled
def sum_members(words: Float32, weights: Int64, labels: Int32, sums: Float64) -> None:
    """Add each word, times its weight, to the sum of its cluster. ``sums``: float64 ``(clusters, n)``."""
    for word in range(len(words)):
        cluster, weight = labels[word], np.float64(weights[word])
        for k in range(words.shape[1]):
            sums[cluster, k] += weight * np.float64(words[word, k])


@compiled_bounds
def _product(left: Float64, right: Float32) -> float:
    """Compute the inner product of whole vectors, exact in any order."""
    total = 0.0
    for k in range(len(left)):
        total += left[k] * np.float64(right[k])
    return total


@compiled
def swap_words(
    words: Float32, nearest: Int32, labels: Int32, sums: Float64, starts: Int64, order: Int32, position_of: Int32
) -> int:
    """Swap pairs of words of two clusters if that brings the clusters' words together; return how many.

    Each word in turn makes the best of its swaps: with a member of one of the clusters near it, if their members are
    nearer to it than those of its own. ``nearest``: int32 ``(words, clusters)``, the clusters to try. Members of
    cluster ``c`` are ``order[starts[c]:starts[c + 1]]``, and ``position_of`` is the inverse of ``order``. ``labels``,
    ``sums``, ``order`` and ``position_of`` are changed.

    With ``S`` the sums of clusters ``a`` and ``b``, swapping ``w`` of ``a`` for ``v`` of ``b`` raises ``|S_a|^2 +
    |S_b|^2``, which is the sum of all products within the clusters, by twice

        (S_b - S_a).w + |w|^2  +  (S_a - S_b - 2 w).v + |v|^2.
    """
    n = words.shape[1]
    difference = np.empty(n)
    swaps = 0
    for word in range(len(words)):
        own = labels[word]
        square = 0.0
        for k in range(n):
            square += np.float64(words[word, k]) * np.float64(words[word, k])
        there = _product(sums[own], words[word]) - square
        most, partner = 0.0, -1
        for j in range(nearest.shape[1]):
            other = nearest[word, j]
            closer = _product(sums[other], words[word]) - there
            if other == own or closer <= 0:
                continue
            for k in range(n):
                difference[k] = sums[own, k] - sums[other, k] - 2.0 * np.float64(words[word, k])
            for member in order[starts[other] : starts[other + 1]]:
                gain = closer + _gain(difference, words[member])
                if gain > most:
                    most, partner = gain, member
        if partner >= 0:
            _swap(word, partner, words, labels, sums, order, position_of)
            swaps += 1
    return swaps


@compiled_bounds
def _gain(difference: Float64, word: Float32) -> float:
    """Compute ``(d + v).v``, a member's part of a gain, exact in any order."""
    total = 0.0
    for k in range(len(difference)):
        total += (difference[k] + np.float64(word[k])) * np.float64(word[k])
    return total


@compiled_part
def _swap(
    word: int, partner: int, words: Float32, labels: Int32, sums: Float64, order: Int32, position_of: Int32
) -> None:
    own, other = labels[word], labels[partner]
    for k in range(words.shape[1]):
        change = np.float64(words[partner, k]) - np.float64(words[word, k])
        sums[own, k] += change
        sums[other, k] -= change
    here, there = position_of[word], position_of[partner]
    order[here], order[there] = partner, word
    position_of[word], position_of[partner] = there, here
    labels[word], labels[partner] = other, own
