"""The loops of :mod:`wordveil.mechanisms.er_ae.symbol_choice`: from integer weights and random words to chosen columns.

Every number is an unsigned 64-bit integer or a float64 of few, correctly rounded operations in a fixed order, so that
every machine chooses the same columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import UInt64
from wordveil.compiled import compiled

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@compiled
def scale_word(word: np.uint64, limit: np.uint64) -> np.uint64:
    """``floor(word * limit / 2**64)``, the upper half of a product of 128 bits."""
    high, low = word >> _HALF, word & _LOW
    upper, lower = limit >> _HALF, limit & _LOW
    first = high * lower + ((low * lower) >> _HALF)
    second = low * upper + (first & _LOW)
    return np.uint64(high * upper + (first >> _HALF) + (second >> _HALF))


@compiled
def find_step(share: float, items: int, columns: int, last: int) -> int:
    """The step of a table of ``last + 1`` coins for a set of ``items`` of ``columns`` columns that holds ``share``.

    The set's mean probability less that of the other columns, which is between -1 and 1, as a number from 0 to
    ``last``. It rises with ``share``, rounding included, since each operation does.
    """
    rating = share / items - (1.0 - share) / (columns - items)
    return min(max(int((rating + 1.0) * (0.5 * last) + 0.5), 0), last)


@compiled
def draw_columns(row: NDArray[np.uint32], words: UInt64, found: NDArray[np.int64]) -> np.uint64:
    """Draw a column for each word with probabilities proportional to the weights of ``row``, uniformly where all are 0.

    ``found``: gets the columns, rising. Returns the sum of the weights.
    """
    total = np.uint64(0)
    for weight in row:
        total += np.uint64(weight)
    if total == np.uint64(0):
        for place in range(len(words)):
            found[place] = np.int64(scale_word(words[place], np.uint64(len(row))))
        found.sort()
        return total
    targets = np.empty(len(words), np.uint64)
    for place in range(len(words)):
        targets[place] = scale_word(words[place], total)
    targets.sort()
    column, below = 0, np.uint64(row[0])
    for place in range(len(words)):
        while below <= targets[place]:
            column += 1
            below += np.uint64(row[column])
        found[place] = column
    return total


@compiled
def choose_kept(
    weights: NDArray[np.uint32], rows: NDArray[np.int64], columns: int, coin: np.uint64, words: UInt64
) -> NDArray[np.int32]:
    """A column is drawn from the row and kept where word 1 is below ``coin``; else another one is drawn uniformly."""
    out = np.empty(len(rows), np.int32)
    found = np.empty(1, np.int64)
    for place in range(len(rows)):
        draw_columns(weights[rows[place], :columns], words[:1, place].copy(), found)
        if words[1, place] >= coin:
            other = np.int64(scale_word(words[2, place], np.uint64(columns - 1)))
            out[place] = other + (other >= found[0])
        else:
            out[place] = found[0]
    return out


@compiled
def choose_from_sets(
    weights: NDArray[np.uint32], rows: NDArray[np.int64], columns: int, candidates: int, coins: UInt64, words: UInt64
) -> NDArray[np.int32]:
    """``candidates`` columns are drawn from the row. A coin says whether the output is one of them or one of the
    others, and it is uniform among those.
    """
    out = np.empty(len(rows), np.int32)
    found = np.empty(candidates, np.int64)
    for place in range(len(rows)):
        row = weights[rows[place], :columns]
        total = draw_columns(row, words[:candidates, place].copy(), found)
        items, held = 0, np.uint64(0)
        for column in found:
            if items == 0 or found[items - 1] != column:
                found[items] = column
                items += 1
                held += np.uint64(row[column])
        share = items / columns if total == np.uint64(0) else np.float64(held) / np.float64(total)
        coin = coins[find_step(share, items, columns, len(coins) - 1)]
        if words[candidates, place] < coin:
            out[place] = found[np.int64(scale_word(words[candidates + 1, place], np.uint64(items)))]
            continue
        other = np.int64(scale_word(words[candidates + 1, place], np.uint64(columns - items)))
        for item in range(items):  # they rise: each one that is not beyond moves the place by one
            if found[item] <= other:
                other += 1
        out[place] = other
    return out
