"""Compiled loop that draws words from nested clusters; :mod:`wordveil.mechanisms.tree.table` has the arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wordveil.arrays import Int32, Int64, UInt64
from wordveil.compiled import compiled, find_first_from


class TreeArrays(NamedTuple):
    """Arrays that decide draws, as compiled code takes them."""

    rows: Int32
    kinds: Int32
    ranges: Int32
    thresholds: UInt64
    written: Int32


@compiled
def draw_positions(symbols: Int32, words: UInt64, tree: TreeArrays, out: Int32) -> None:
    """Draw one output for each symbol.

    ``words``: uint64 ``(count, 2)`` of random bits. The first word chooses the range. Whether that is the first range,
    the likeliest, is computed without a branch, which no processor could predict. The second word chooses the position:
    ``floor(B s / 2^64)``, from two products of 32 bits, since ranges are shorter than 2^31. Positions are unsigned, so
    that none counts from the end.
    """
    rows, kinds, ranges, thresholds, written = tree
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    for token in range(len(symbols)):
        row = np.uint32(rows[symbols[token]])
        kind = np.uint32(kinds[row])
        choice, word = words[token, 0], words[token, 1]
        turn = np.uint32(choice >= thresholds[kind, 0])
        for j in range(1, thresholds.shape[1]):
            if choice < thresholds[kind, j]:
                break
            turn += np.uint32(1)
        start, size = np.uint64(ranges[row, turn, 0]), np.uint64(ranges[row, turn, 1])
        low = (word & low_half) * size
        out[token] = written[start + (((word >> half) * size + (low >> half)) >> half)]


@compiled
def draw_members(clusters: Int32, words: UInt64, bounds: Int64, order: Int32, edges: UInt64, out: Int32) -> None:
    """Draw a member of each cluster; for cluster -1, ``out`` stays.

    ``words``: uint64 ``(count,)`` of random bits. Members of cluster ``c`` are ``order[bounds[c]:bounds[c + 1]]``, and
    the first whose edge is not below the random word is drawn, or else the last.
    """
    for token in range(len(clusters)):
        cluster = clusters[token]
        if cluster >= 0:
            last = bounds[cluster + 1] - 1
            out[token] = order[find_first_from(words[token], bounds[cluster], last, edges)]
