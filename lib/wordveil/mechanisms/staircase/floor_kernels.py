"""Compiled loops of tables with floors: computing powers, arranging rows, certifying them, reading them back.

:mod:`wordveil.mechanisms.staircase.floor_tables` defines rows.
"""

from __future__ import annotations

import math

import numpy as np

from wordveil.arrays import Float64, Int32, Int64, UInt64
from wordveil.compiled import compiled
from wordveil.mechanisms.tables.kernels import TableArrays, arrange_list, count_bits, decode_row

_WHOLE = 2.0**64
_BELOW = _WHOLE - 2.0**11  # the largest float64 under 2^64
_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_SERIES = 12
_TAYLOR = 16


@compiled
def raise_powers(values: Float64, exponent: float, out: Float64) -> None:
    """Compute ``values ** exponent`` of positive numbers to about 15 digits. It only adds, multiplies and divides, so
    that every machine has the same result.
    """
    for i in range(len(values)):
        mantissa, power = math.frexp(values[i])
        if mantissa < _ROOT_HALF:
            mantissa *= 2.0
            power -= 1
        # ln m = 2 artanh((m - 1) / (m + 1)), |(m - 1) / (m + 1)| < 0.172
        ratio = (mantissa - 1.0) / (mantissa + 1.0)
        square, series = ratio * ratio, 0.0
        for k in range(_SERIES, -1, -1):
            series = series * square + 1.0 / (2 * k + 1)
        log = exponent * (power * _LN2 + 2.0 * ratio * series)
        whole = np.floor(log / _LN2 + 0.5)
        rest, total = log - whole * _LN2, 1.0
        for k in range(_TAYLOR, 0, -1):
            total = 1.0 + total * rest / k
        out[i] = math.ldexp(total, int(whole))


@compiled
def cut_lists(masses: UInt64, budget: np.uint64, offsets: Int64, ids: Int32, lengths: Int64) -> None:
    """Count the words of each list that the budget reaches, beyond the row's own word: ``lengths``, int64
    ``(rows,)``.
    """
    for row in range(len(lengths)):
        left = budget - min(budget, masses[row])
        entry = offsets[row]
        while left > 0 and entry < offsets[row + 1]:
            left -= min(left, masses[ids[entry]])
            entry += 1
        lengths[row] = entry - offsets[row]


@compiled
def fill_floor_rows(
    first: int,
    last: int,
    masses: UInt64,
    common: np.uint64,
    budget: np.uint64,
    offsets: Int64,
    ids: Int32,
    lengths: Int64,
    table: TableArrays,
    beyond: Float64,
    weight: UInt64,
    work: Int64,
) -> None:
    """Fill the rows ``first`` to ``last - 1`` of words. ``beyond``, ``weight`` and ``work`` are buffers for the longest
    row.
    """
    starts, _, out_ids, alias, alike, itself, own = table
    part_of_common, part_of_budget = np.float64(common) / _WHOLE, np.float64(budget) / _WHOLE
    for row in range(first, last):
        start, columns = starts[row], starts[row + 1] - starts[row]
        mine = min(budget, masses[row])
        left = budget - mine
        for j in range(lengths[row]):
            word = ids[offsets[row] + j]
            part = min(left, masses[word])
            left -= part
            beyond[j] = np.float64(part)
            out_ids[start + j] = word
        alike[row] = common
        if left > 0:  # the words of the list do not use up the budget: what is left goes to all outputs
            listed = np.float64(budget - left) / _WHOLE
            share = 1.0 - part_of_common * listed - (1.0 - part_of_common) * (listed / part_of_budget)
            alike[row] = max(common, np.uint64(min(_WHOLE * (share / (1.0 - listed)), _BELOW)))
        rest = np.uint64(0) - alike[row]
        used = budget - left
        own[row] = row
        itself[row] = rest
        if lengths[row] > 0:
            itself[row] = min(rest, np.uint64(min(np.float64(rest) * (np.float64(mine) / np.float64(used)), _BELOW)))
            arrange_list(beyond, lengths[row], np.float64(used - mine), weight, alias[start : start + columns], work)
        else:  # the list is never drawn
            out_ids[start] = row


@compiled
def decode_whole(alias: UInt64, weight: UInt64) -> None:
    """Decode the whole number of 2^64 that each column's output has in a list. An output that has all of it has 0."""
    columns = len(alias)
    bits = np.uint64(count_bits(columns))
    weight[:] = np.uint64(0)
    if columns == 1:
        return
    room, mask = np.uint64(1) << (np.uint64(64) - bits), np.uint64(columns - 1)
    for j in range(columns):
        mine = alias[j] >> bits
        weight[j] += mine
        weight[np.int64(alias[j] & mask)] += room - mine


@compiled
def collect_largest(
    first: int, last: int, table: TableArrays, common: Float64, largest: Float64, share: Float64
) -> None:
    """Raise ``largest``, float64 ``(outputs,)``, to the probabilities that rows ``first`` to ``last - 1`` give.

    Only outputs of which a row has more than of the common law count. ``share`` is a buffer for the longest row.
    """
    starts, _, ids, alias, alike, itself, own = table
    for row in range(first, last):
        start, columns = starts[row], starts[row + 1] - starts[row]
        floor = np.float64(alike[row]) / _WHOLE
        left = np.uint64(0) - alike[row] - itself[row]
        inside = np.float64(left) / _WHOLE
        mine = np.float64(itself[row]) / _WHOLE
        if left > 0:
            decode_row(alias[start : start + columns], share[:columns])
            for j in range(columns):
                if share[j] > 0:
                    output = ids[start + j]
                    more = inside * share[j] + (mine if output == own[row] else 0.0)
                    largest[output] = max(largest[output], floor * common[output] + more)
        if mine > 0:
            largest[own[row]] = max(largest[own[row]], floor * common[own[row]] + mine)


@compiled
def decode_rows(rows: Int64, table: TableArrays, share: Float64, offsets: Int64, ids: Int32, extras: Float64) -> int:
    """Decode what rows have beyond the common law: outputs and probabilities, the row's own output first.

    ``offsets``: int64 ``(rows + 1,)``, is filled. ``share`` is a buffer for the longest row, ``ids`` and ``extras`` for
    all entries. Returns the number of entries.
    """
    starts, _, table_ids, alias, alike, itself, own = table
    count = 0
    for index in range(len(rows)):
        row = rows[index]
        offsets[index] = count
        if itself[row] > 0:
            ids[count], extras[count] = own[row], np.float64(itself[row]) / _WHOLE
            count += 1
        start, columns = starts[row], starts[row + 1] - starts[row]
        left = np.uint64(0) - alike[row] - itself[row]
        if left > 0:
            decode_row(alias[start : start + columns], share[:columns])
            for j in range(columns):
                if share[j] > 0:
                    ids[count], extras[count] = table_ids[start + j], np.float64(left) / _WHOLE * share[j]
                    count += 1
    offsets[len(rows)] = count
    return count
