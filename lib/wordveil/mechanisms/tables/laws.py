"""Laws of all words of a table, decoded from its whole numbers."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.mechanisms.laws import WordLaws
from wordveil.mechanisms.tables.kernels import TableArrays, decode_row
from wordveil.mechanisms.tables.table import Table

MAX_ENTRIES = 50_000_000
"""Laws with more entries are not made: each takes 12 bytes, and an attacker needs as much again."""
_WHOLE = 2.0**64


def laws_of_table(table: Table, size: int) -> WordLaws | None:
    """Decode the laws of a table's first ``size`` rows, those of words, exact except for rounding to float64.

    A row's law is ``t`` for every output alike, and what its list and itself have beyond that. If all outputs are
    listed, and ``t`` is 0, the common part is the least of them.

    None if there are more than :data:`MAX_ENTRIES` entries.
    """
    outputs = int(table.outputs[0])
    longest = int(np.diff(table.starts[: size + 1]).max())
    room = np.empty(longest), np.empty(longest + 1, np.int32), np.empty(longest + 1)
    shares, lengths = np.empty(size), np.empty(size, np.int64)
    nothing = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
    _decode_rows(table.compiled, outputs, shares, lengths, *nothing, *room)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    entries = int(offsets[-1])
    if entries > MAX_ENTRIES:
        return None
    ids, extras = np.empty(entries, np.int32), np.empty(entries)
    _decode_rows(table.compiled, outputs, shares, lengths, offsets, ids, extras, *room)
    return WordLaws(np.full(outputs, 1 / outputs), shares, offsets, ids, extras)


@compiled
def _decode_rows(
    table: TableArrays,
    outputs: int,
    shares: Float64,
    lengths: Int64,
    offsets: Int64,
    ids: Int32,
    extras: Float64,
    share: Float64,
    listed: Int32,
    more: Float64,
) -> None:
    """Fill ``shares`` and ``lengths``, and the entries if there are ``offsets``. ``share``, ``listed`` and ``more`` are
    buffers for the longest row.
    """
    starts, _, table_ids, alias, alike, itself, own = table
    for row in range(len(shares)):
        start, columns = starts[row], starts[row + 1] - starts[row]
        decode_row(alias[start : start + columns], share[:columns])
        left = np.uint64(0) - alike[row] - itself[row]
        inside = np.float64(left) / _WHOLE if left > 0 or alike[row] > 0 or itself[row] > 0 else 1.0
        count, mine = 0, np.float64(itself[row]) / _WHOLE
        for j in range(columns):
            beyond = inside * share[j]
            if table_ids[start + j] == own[row] and mine > 0:
                mine += beyond
            elif beyond > 0:
                listed[count], more[count] = table_ids[start + j], beyond
                count += 1
        if mine > 0:
            listed[count], more[count] = own[row], mine
            count += 1
        shares[row] = np.float64(alike[row]) / _WHOLE
        least = more[:count].min() if alike[row] == 0 and count == outputs else 0.0
        shares[row] += outputs * least
        length = 0
        for j in range(count):
            if more[j] > least:
                if len(offsets) > 0:
                    ids[offsets[row] + length], extras[offsets[row] + length] = listed[j], more[j] - least
                length += 1
        lengths[row] = length
