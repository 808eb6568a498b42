"""Compiled loops of lists of similar words: measuring lists, writing them in order, copying them."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float32, Int32, Int64, UInt64
from wordveil.compiled import compiled

# Products of two directions are whole numbers from -2^24 to 2^24.
MAX_PRODUCT = 2**24
# Less than any product: words that come after all others; words that are left out.
LAST = -(2**25)
_EXCLUDED = -(2**26)
# Products are counted in bins of 2^15, from the excluded ones in bin 0 up.
_SHIFT = 15
_BINS = ((MAX_PRODUCT - _EXCLUDED) >> _SHIFT) + 1


@compiled
def measure_rows(
    scores: Float32,
    own: Int64,
    masses: UInt64,
    budget: np.uint64,
    starts: Int64,
    partners: Int32,
    limit: Float32,
    room: Int64,
) -> None:
    """Find which scores may be in the list of each row, and how long it is at most.

    ``scores``: float32 ``(rows, words)``, whole numbers; the row's own word and its partners are struck out in place.
    ``own``: int64 ``(rows,)``; partners of row ``r`` are entries ``starts[r]`` up to ``starts[r + 1]`` of ``partners``.
    A list holds words whose masses, the own word's included, add up to ``budget`` if there are enough of them.
    """
    mass, count = np.zeros(_BINS, np.uint64), np.zeros(_BINS, np.int64)
    for row in range(len(scores)):
        values = scores[row]
        values[own[row]] = _EXCLUDED
        left = budget - min(budget, masses[own[row]])
        for j in range(starts[row], starts[row + 1]):
            values[partners[j]] = _EXCLUDED
            left -= min(left, masses[partners[j]])
        room[row] = starts[row + 1] - starts[row]
        limit[row] = np.inf
        if left == 0:
            continue
        mass[:] = 0
        count[:] = 0
        for word in range(len(values)):
            bin_ = (np.int64(values[word]) - _EXCLUDED) >> _SHIFT
            mass[bin_] += masses[word]
            count[bin_] += 1
        bin_ = np.int64(_BINS - 1)
        room[row] += count[bin_]
        while bin_ > 1 and mass[bin_] < left:
            left -= mass[bin_]
            bin_ -= 1
            room[row] += count[bin_]
        limit[row] = (bin_ << _SHIFT) + _EXCLUDED


@compiled
def take_rows(
    scores: Float32,
    own: Int64,
    masses: UInt64,
    budget: np.uint64,
    starts: Int64,
    partners: Int32,
    limit: Float32,
    offsets: Int64,
    ids: Int32,
    lengths: Int64,
) -> None:
    """Write the list of each row until the budget is used up.

    Partners come first in their order, then words by falling score, the lower number first among equals. The own word
    is left out.

    ``scores`` and ``limit`` are results of :func:`measure_rows`. Row ``r`` writes from ``ids[offsets[r]]`` on.
    """
    for row in range(len(scores)):
        values = scores[row]
        slot = offsets[row]
        left = budget - min(budget, masses[own[row]])
        for j in range(starts[row], starts[row + 1]):
            if left == 0:
                break
            ids[slot] = partners[j]
            slot += 1
            left -= min(left, masses[partners[j]])
        if left > 0:
            keys = np.empty(offsets[row + 1] - offsets[row], np.int64)
            count = 0
            for word in range(len(values)):
                if values[word] >= limit[row]:
                    keys[count] = ((MAX_PRODUCT - np.int64(values[word])) << 32) | word
                    count += 1
            for key in np.sort(keys[:count]):
                if left == 0:
                    break
                word = key & 0xFFFFFFFF
                ids[slot] = word
                slot += 1
                left -= min(left, masses[word])
        lengths[row] = slot - offsets[row]


@compiled
def copy_lists(rows: Int64, list_offsets: Int64, listed: Int32, offsets: Int64, ids: Int32) -> None:
    """Copy list ``j`` of ``listed`` to where the list of word ``rows[j]`` begins."""
    for j in range(len(rows)):
        length = list_offsets[j + 1] - list_offsets[j]
        for k in range(length):
            ids[offsets[rows[j]] + k] = listed[list_offsets[j] + k]
