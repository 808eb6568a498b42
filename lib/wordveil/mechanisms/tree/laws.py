"""The laws of all words under nested clusters, for attackers."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float64, Int32
from wordveil.mechanisms.laws import WordLaws
from wordveil.mechanisms.tree.levels import WHOLE
from wordveil.mechanisms.tree.table import TreeTable

# Entries take 12 bytes.
_MAX_ENTRIES = 50_000_000


def word_laws(table: TreeTable, clusters: int) -> WordLaws | None:
    """The laws of all words: common is what all words draw alike, and a word's extras are what is in its clusters.

    Where a cluster's words are all written alike, the common law has no other outputs, so that some of it is 0. None
    where there would be more than 50 million extras. ``clusters``: how many lowest clusters there are, which are the
    first rows of ``table``.
    """
    size, written = table.size, table.written
    words = table.rows[:size]
    # Equal outputs stand at consecutive positions.
    run = np.concatenate([[0], np.cumsum(written[1:size] != written[: size - 1])])
    shares = np.array([table.mixture(row).numbers[-1] / WHOLE for row in range(clusters)])
    outer = [_outer_range(table, row) for row in range(clusters)]
    lengths = np.array([run[start + count - 1] - run[start] + 1 for start, count in outer])
    if int(lengths[words].sum()) > _MAX_ENTRIES:
        return None
    # Padding is common as far as the words that share most have it; others have a rest of it beyond.
    pad = table.mixture(0).pad / WHOLE
    ratio = pad / shares.max()
    rests = np.where(shares < shares.max(), pad - ratio * shares, 0.0)
    parts = [_extras(table, row, span, rest) for row, (span, rest) in enumerate(zip(outer, rests, strict=True))]
    common = np.bincount(written, np.full(len(written), 1 / size), len(written)) / (1 + ratio)
    if table.pads:
        common[size] = ratio / (1 + ratio)
    lengths = np.array([len(ids) for ids, _ in parts])
    first = np.concatenate([[0], np.cumsum(lengths)])
    offsets = np.concatenate([[0], np.cumsum(lengths[words])])
    entries = np.repeat(first[words] - offsets[:-1], lengths[words]) + np.arange(offsets[-1])
    ids, extras = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return WordLaws(common, shares[words] * (1 + ratio), offsets, ids[entries], extras[entries])


def _outer_range(table: TreeTable, row: int) -> tuple[int, int]:
    """The largest range of words that are not all words: first position and size."""
    inside = [(size, start) for start, size in table.ranges[row].tolist() if start < table.size and size < table.size]
    size, start = max(inside)
    return start, size


def _extras(table: TreeTable, row: int, span: tuple[int, int], rest: float) -> tuple[Int32, Float64]:
    """What the words of a row have beyond the common law: outputs, and their probabilities.

    ``span``: the range of positions where that is. ``rest``: what padding has.
    """
    start, size = span
    law = np.zeros(size)
    for (first, count), number in zip(table.ranges[row].tolist(), table.numbers(row), strict=True):
        if first < table.size and count < table.size:
            law[first - start : first - start + count] += number / WHOLE / count
    written = table.written[start : start + size]
    edges = np.concatenate([[0], np.flatnonzero(written[1:] != written[:-1]) + 1])
    ids, extras = written[edges], np.add.reduceat(law, edges)
    if rest > 0:
        ids, extras = np.append(ids, np.int32(table.size)), np.append(extras, rest)
    return ids, extras
