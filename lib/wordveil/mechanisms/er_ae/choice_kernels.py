"""Loops of :mod:`wordveil.mechanisms.er_ae.symbol_choice`: from integer weights and random words to chosen columns.

Every number is an unsigned 64-bit integer or a float64 of few, correctly rounded operations in a fixed order, so that
every machine chooses the same columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Int32, Int64, UInt64
from wordveil.compiled import compiled

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@compiled
def scale_word(word: np.uint64, limit: np.uint64) -> np.uint64:
    """Compute ``floor(word * limit / 2**64)``, the upper half of a product of 128 bits."""
    high, low = word >> _HALF, word & _LOW
    upper, lower = limit >> _HALF, limit & _LOW
    first = high * lower + ((low * lower) >> _HALF)
    second = low * upper + (first & _LOW)
    return np.uint64(high * upper + (first >> _HALF) + (second >> _HALF))


@compiled
def find_step(share: float, items: int, columns: int, last: int) -> int:
    """Find the step, of a table of ``last + 1`` coins, for a set of ``items`` of ``columns`` columns.

    ``share``: the part of the row that the set holds.

    The step is the set's mean probability less that of the other columns, between -1 and 1, mapped to 0 .. ``last``. It
    rises with ``share``, rounding included, since each operation does.
    """
    rating = share / items - (1.0 - share) / (columns - items)
    return min(max(int((rating + 1.0) * (0.5 * last) + 0.5), 0), last)


@compiled
def draw_columns(row: NDArray[np.uint32], words: UInt64, drawn: Int64) -> np.uint64:
    """Draw a column for each word with probabilities proportional to the weights of ``row``, uniformly where all are 0.

    ``drawn``: receives the columns, rising. Returns the sum of the weights.
    """
    total = np.uint64(0)
    for weight in row:
        total += np.uint64(weight)
    if total == np.uint64(0):
        for index in range(len(words)):
            drawn[index] = np.int64(scale_word(words[index], np.uint64(len(row))))
        drawn.sort()
        return total
    targets = np.empty(len(words), np.uint64)
    for index in range(len(words)):
        targets[index] = scale_word(words[index], total)
    targets.sort()
    column, below = 0, np.uint64(row[0])
    for index in range(len(words)):
        while below <= targets[index]:
            column += 1
            below += np.uint64(row[column])
        drawn[index] = column
    return total


@compiled
def choose_kept(weights: NDArray[np.uint32], rows: Int64, columns: int, coin: np.uint64, words: UInt64) -> Int32:
    """Draw a column for each token from its row, and keep it if word 1 is below ``coin``. Otherwise draw another one
    uniformly.
    """
    out = np.empty(len(rows), np.int32)
    drawn = np.empty(1, np.int64)
    for token in range(len(rows)):
        draw_columns(weights[rows[token], :columns], words[:1, token].copy(), drawn)
        if words[1, token] >= coin:
            other = np.int64(scale_word(words[2, token], np.uint64(columns - 1)))
            out[token] = other + (other >= drawn[0])
        else:
            out[token] = drawn[0]
    return out


@compiled
def choose_from_sets(
    weights: NDArray[np.uint32], rows: Int64, columns: int, candidates: int, coins: UInt64, words: UInt64
) -> Int32:
    """Draw ``candidates`` columns for each token from its row. A coin decides whether the output is uniform among these
    or among the others.
    """
    out = np.empty(len(rows), np.int32)
    drawn = np.empty(candidates, np.int64)
    for token in range(len(rows)):
        row = weights[rows[token], :columns]
        total = draw_columns(row, words[:candidates, token].copy(), drawn)
        items, held = 0, np.uint64(0)
        for column in drawn:
            if items == 0 or drawn[items - 1] != column:
                drawn[items] = column
                items += 1
                held += np.uint64(row[column])
        share = items / columns if total == np.uint64(0) else np.float64(held) / np.float64(total)
        coin = coins[find_step(share, items, columns, len(coins) - 1)]
        if words[candidates, token] < coin:
            out[token] = drawn[np.int64(scale_word(words[candidates + 1, token], np.uint64(items)))]
            continue
        other = np.int64(scale_word(words[candidates + 1, token], np.uint64(columns - items)))
        for item in range(items):  # they rise: each that is not beyond moves the column by 1
            if drawn[item] <= other:
                other += 1
        out[token] = other
    return out
