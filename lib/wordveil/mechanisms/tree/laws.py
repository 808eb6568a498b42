"""Laws of all words under nested clusters, for attackers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.mechanisms.laws import WordLaws
from wordveil.mechanisms.tree.levels import WHOLE
from wordveil.mechanisms.tree.table import TreeTable

# Entries take 12 bytes.
_MAX_ENTRIES = 50_000_000


class Members(NamedTuple):
    """Members of clusters, for trees whose positions are clusters and which draw a member of the drawn one.

    ``order``: int32 ``(size,)``, the words, those of a cluster together. ``bounds``: int64 ``(clusters + 1,)``, those
    of cluster ``c`` are ``order[bounds[c]:bounds[c + 1]]``. ``shares``: float64 ``(size,)``, the probability of each
    within its cluster.
    """

    order: Int32
    bounds: Int64
    shares: Float64


def write_law(table: TreeTable, start: int, law: Float64, members: Members | None) -> tuple[Int32, Float64]:
    """Compute the outputs of positions from ``start`` on, each once, and their probabilities.

    ``law``: float64, the probabilities of these positions. ``members``: None if ``table.written`` has the outputs.
    """
    stop = start + len(law)
    if members is None:
        # Equal outputs stand at consecutive positions.
        first = np.flatnonzero(np.diff(table.written[start:stop], prepend=-1))
        return table.written[start:stop][first], np.add.reduceat(law, first) if len(first) else law
    span = slice(members.bounds[start], members.bounds[stop])
    return members.order[span], np.repeat(law, np.diff(members.bounds[start : stop + 1])) * members.shares[span]


def word_laws(table: TreeTable, clusters: int, members: Members | None) -> WordLaws | None:
    """Compute the laws of all words: the common part is what all draw alike, a word's extras are in its clusters.

    If a cluster's words are all written alike, the common law has no other outputs, so that some of it is 0. None if
    there would be more than 50 million extras. ``clusters``: the number of lowest clusters, which are the first rows of
    ``table``. ``members``: as for :func:`write_law`.
    """
    size, positions = table.size, table.positions
    words = table.rows[:size]
    shares = np.array([_share_of_all(table, row) for row in range(clusters)])
    outer = [_outer_range(table, row) for row in range(clusters)]
    if members is None:
        before = np.concatenate([[0], np.cumsum(np.diff(table.written[:positions], prepend=-1) != 0)])
    else:
        before = members.bounds
    lengths = np.array([before[start + count] - before[start] for start, count in outer])
    if int(lengths[words].sum()) > _MAX_ENTRIES:
        return None
    # Padding is common as far as the words that share most have it; others have a rest of it beyond.
    pad = table.mixture(0).pad / WHOLE
    ratio = pad / shares.max()
    rests = np.where(shares < shares.max(), pad - ratio * shares, 0.0)
    parts = [
        _extras(table, row, span, rest, members) for row, (span, rest) in enumerate(zip(outer, rests, strict=True))
    ]
    ids, everywhere = write_law(table, 0, np.full(positions, 1 / positions), members)
    common = np.bincount(ids, everywhere, size + table.pads) / (1 + ratio)
    if table.pads:
        common[size] = ratio / (1 + ratio)
    lengths = np.array([len(ids) for ids, _ in parts])
    first = np.concatenate([[0], np.cumsum(lengths)])
    offsets = np.concatenate([[0], np.cumsum(lengths[words])])
    entries = np.repeat(first[words] - offsets[:-1], lengths[words]) + np.arange(offsets[-1])
    ids, extras = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return WordLaws(common, shares[words] * (1 + ratio), offsets, ids[entries], extras[entries])


def _share_of_all(table: TreeTable, row: int) -> float:
    """Compute the probability with which a row draws from all positions."""
    spans = zip(table.ranges[row].tolist(), table.numbers(row), strict=True)
    return sum(number for span, number in spans if span == [0, table.positions]) / WHOLE


def _outer_range(table: TreeTable, row: int) -> tuple[int, int]:
    """Find the largest range that is not all positions: first position and size."""
    most = table.positions
    inside = [(size, start) for start, size in table.ranges[row].tolist() if start < most and size < most]
    size, start = max(inside, default=(0, 0))
    return start, size


def _extras(
    table: TreeTable, row: int, span: tuple[int, int], rest: float, members: Members | None
) -> tuple[Int32, Float64]:
    """Compute what the words of a row have beyond the common law: outputs, and their probabilities.

    ``span``: the range of these positions. ``rest``: padding's probability beyond the common law.
    """
    start, size = span
    law = np.zeros(size)
    for (first, count), number in zip(table.ranges[row].tolist(), table.numbers(row), strict=True):
        if first < table.positions and count < table.positions:
            law[first - start : first - start + count] += number / WHOLE / count
    ids, extras = write_law(table, start, law, members)
    if rest > 0:
        ids, extras = np.append(ids, np.int32(table.size)), np.append(extras, rest)
    return ids, extras
