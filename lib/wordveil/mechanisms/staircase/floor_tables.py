r"""Tables whose rows share a floor for every output, above which each row raises a list of outputs.

**Law.** Outputs ``y`` have floors ``m_y > 0`` that add up to ``M < 1``. Row ``x`` is

    P(y | x) = m_y (1 + (e^E - 1) a_x(y)),   0 <= a <= 1,   sum over y of m_y a_x(y) = B = (1 - M) / (e^E - 1),

so that every probability lies between ``m_y`` and ``e^E m_y``. The best row has ``a = 1`` from the most useful output
down until B is used up, the last one in part (docs/proofs/staircase.md, also for lists that hold less than B, the
unknown word and padding).

**Whole numbers.** All is in units of ``M / 2^64``: the *masses* of outputs, ``f_y``, add up to 2^64, and B is a
*budget* of them. A row of :class:`wordveil.mechanisms.tables.table.AliasTable` has the number ``t = M 2^64`` of the
common law, ``o`` of itself, and its list by falling similarity. The table has one more row than symbols, the common law
itself; ``outputs = 0`` marks that. An output's probability is exactly

    t f / 2^128  +  (o / 2^64 if it is the symbol itself)  +  (1 - (t + o) / 2^64) C / 2^64 if it is listed.

**Certificate.** For each output the greatest probability over all rows against the least, from these whole numbers: one
pass over the lists finds the greatest; the least is at least the least ``t`` of all rows times ``f``. It relies on
nothing but that no output occurs twice in a list.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TypeVar

import numpy as np

from wordveil.arrays import Float64, Int32, Int64, UInt64
from wordveil.compiled import compiled
from wordveil.geometry.euclidean import round_up
from wordveil.mechanisms.tables.table import (
    AliasTable,
    TableArrays,
    alias_row,
    arrange_list,
    columns_of,
    count_bits,
    decode_row,
)

_WHOLE = 2.0**64
_BELOW = _WHOLE - 2.0**11  # the largest float64 under 2^64
_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_SERIES = 12
_TAYLOR = 16


@compiled
def raise_powers(values: Float64, exponent: float, out: Float64) -> None:
    """Compute ``values ** exponent`` of positive numbers to about 15 digits.

    Only adds, multiplies and divides, so that every machine has the same result.
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
    """Count each list's words within the budget, beyond the row's own word, into ``lengths``, int64 ``(rows,)``."""
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
    """Fill the words' rows ``first`` to ``last - 1``. The last three arrays are buffers for the longest row."""
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
    """Decode each column's whole number, of 2^64, in a list; 0 for an output that has all of it."""
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

    Only outputs of which a row has more than the common law count. ``share`` is a buffer for the longest row.
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

    Fills ``offsets``, int64 ``(rows + 1,)``, and returns the number of entries. ``share``: buffer for the longest row.
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


WHOLE = 2**64
UNITS = 2.0**64
FILLER = 2**31 - 1
# No output's floor is below this part of what it would be if all were equal: enough for whole numbers to be exact to
# ten digits.
_LEAST_PART = 1e-3
_RANGES = 64
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Floors:
    """Floors that all rows have in common.

    ``masses``: uint64 ``(outputs,)``, the common law in units of 2^-64, with sum 2^64. ``common``: ``M`` in units of
    2^-64. ``budget``: limit of a list's masses, ``B`` in units of ``M / 2^64``, rounded down.
    """

    masses: UInt64
    common: int
    budget: int


@dataclass(frozen=True)
class PaddingRow:
    """Row of padding: the share ``r`` that stays padding, and the mass of padding's floor."""

    share: float
    mass: int


def reduce_epsilon(epsilon: float) -> Decimal:
    """Reduce ``epsilon`` by what rounding to whole numbers may add to the loss."""
    return Decimal(epsilon) - min(Decimal("1e-8"), Decimal(epsilon) / 10**6)


def find_budget(epsilon: float, common: int) -> int:
    """Compute ``B`` in units of masses, rounded down, for slightly less than ``epsilon``. ``common``: ``M 2^64``."""
    with localcontext(prec=60):
        nats = min(reduce_epsilon(epsilon), Decimal(1000))
        return int(Decimal(WHOLE - common) * WHOLE / (common * (nats.exp() - 1)))


def least_mass(outputs: int) -> int:
    """Compute the least mass that an output may have."""
    return max(1, int(WHOLE * _LEAST_PART) // outputs)


def share_masses(frequencies: Float64, alpha: float, total: int) -> UInt64:
    """Compute whole numbers in proportion to ``frequencies ** alpha`` that add up to ``total``: uint64 ``(words,)``.

    Frequencies are positive. No number is much under a thousandth of the mean. The first words get one more each until
    the remainder of rounding down is used up.
    """
    powers = np.empty(len(frequencies))
    raise_powers(frequencies, alpha, powers)
    for _ in range(2):  # raising the smallest shares adds to the sum
        powers /= math.fsum(powers)
        np.maximum(powers, _LEAST_PART / len(powers), out=powers)
    powers /= math.fsum(powers)
    masses = (powers * (float(total) * (1 - 2.0**-49))).astype(np.uint64)
    left = total - sum(masses.tolist())
    masses += np.uint64(left // len(masses))
    masses[: left % len(masses)] += np.uint64(1)
    return masses


def build_floor_table(floors: Floors, offsets: Int64, ids: Int32, padding: PaddingRow | None) -> AliasTable:
    """Arrange the rows of words, padding, unknown word, and the common law.

    ``offsets``, ``ids``: int64 ``(words + 1,)``, int32: each word's list by falling similarity, without itself, of any
    length; the budget cuts it. ``padding``: None if it is no output: its row is then the unknown word's, and never
    drawn from.
    """
    size, outputs = len(offsets) - 1, len(floors.masses)
    common, budget = np.uint64(floors.common), np.uint64(floors.budget)
    lengths = np.empty(size, np.int64)
    cut_lists(floors.masses, budget, offsets, ids, lengths)
    columns = np.concatenate([columns_of(lengths), [1, 1], columns_of(np.array([outputs]))])
    starts = np.concatenate([[0], np.cumsum(columns)])
    table = AliasTable(
        starts,
        np.full(starts[-1], FILLER, np.int32),
        np.zeros(starts[-1], np.uint64),
        np.zeros(size + 2, np.uint64),
        np.zeros(size + 2, np.uint64),
        np.zeros(size + 2, np.int32),
        np.zeros(1, np.int64),
    )
    longest = int(columns[:-1].max())

    def fill(first: int, last: int) -> None:
        room = np.empty(longest), np.empty(longest, np.uint64), np.empty((2, longest), np.int64)
        fill_floor_rows(first, last, floors.masses, common, budget, offsets, ids, lengths, table.writable, *room)

    for _ in _in_ranges(size, fill):
        pass
    _fill_symbols(table, floors, padding)
    return table


def _fill_symbols(table: AliasTable, floors: Floors, padding: PaddingRow | None) -> None:
    """Fill the rows of padding and of the unknown word, and the common law."""
    size, outputs = len(table.own) - 2, len(floors.masses)
    most = int(np.argmax(floors.masses))
    for row in (size, size + 1):
        table.alike[row], table.itself[row], table.own[row] = WHOLE - 1, 1, most
    if padding:
        rest = (1 - Decimal(padding.share)) / (1 - Decimal(padding.mass) / WHOLE)
        alike = max(floors.common, min(math.ceil(rest * WHOLE), WHOLE - 1))
        table.alike[size], table.itself[size], table.own[size] = alike, WHOLE - alike, size
    table.ids[table.starts[size : size + 2]] = table.own[size:]
    start, columns = int(table.starts[-2]), int(table.starts[-1] - table.starts[-2])
    weight = np.zeros(columns, np.uint64)
    weight[:outputs] = floors.masses
    table.ids[start : start + outputs] = np.arange(outputs, dtype=np.int32)
    work = np.empty((2, columns), np.int64)
    alias_row(weight, int(np.argmax(weight)), columns.bit_length() - 1, table.alias[start:], work)


def _in_ranges(count: int, function: Callable[[int, int], _Result]) -> Iterator[_Result]:
    """Call ``function`` for ranges of numbers under ``count``, on all cores, and yield what it returns."""
    edges = np.linspace(0, count, min(_RANGES, count) + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(function, edges[:-1], edges[1:])


def masses_of(table: AliasTable) -> UInt64:
    """Return the common law's whole numbers: uint64 ``(outputs,)``."""
    last = slice(int(table.starts[-2]), int(table.starts[-1]))
    ids = table.ids[last]
    weight = np.empty(len(ids), np.uint64)
    decode_whole(np.asarray(table.alias[last]), weight)
    masses = np.zeros(int((ids != FILLER).sum()), np.uint64)
    masses[ids[ids != FILLER]] = weight[ids != FILLER]
    return masses


def lists_of(table: AliasTable) -> tuple[Int64, Int32]:
    """Return the lists of all words, by falling similarity: offsets, int64 ``(words + 1,)``, and ids, int32."""
    size = len(table.own) - 2
    begin, end = table.starts[:size], table.starts[1 : size + 1]
    columns = np.asarray(table.ids[: end[-1]])
    # An empty list has one column, with the word itself.
    real = (columns != FILLER) & (columns != np.repeat(np.arange(size, dtype=np.int32), end - begin))
    counts = np.concatenate([[0], np.cumsum(real)])[np.concatenate([begin, end[-1:]])]
    return counts, columns[real]


def certify_floors(table: AliasTable, *, padding: bool) -> float:
    """Bound the loss between any two symbols, in nats, rounded up; infinite if one of them excludes an output."""
    size = len(table.own) - 2
    law = masses_of(table) / UNITS
    used = np.delete(np.arange(size + 2), [] if padding else [size])
    alike = table.alike[used] / UNITS
    largest = alike.max() * law
    longest = int(np.diff(table.starts[:-1]).max())

    def collect(first: int, last: int) -> Float64:
        part, share = np.zeros(len(law)), np.empty(longest)
        collect_largest(first, last, table.compiled, law, part, share)
        return part

    # A loss is the greatest over the least probability of an output. Each probability is at least its row's ``t`` times
    # the common law, and only the rows that list an output can have more of it: one pass over the lists finds the
    # greatest. Where padding is no symbol its row equals the unknown word's, so that reading it adds nothing.
    for part in _in_ranges(size + 2, collect):
        largest = np.maximum(largest, part)
    least = alike.min() * law
    if not least.all():
        return math.inf
    return round_up(float(np.log(largest / least).max()) * (1 + 1e-12) + 1e-9, 12)


def decode(table: AliasTable, rows: Int64) -> tuple[Int64, Int32, Float64]:
    """Decode what rows have beyond the common law: offsets, outputs and probabilities of their entries."""
    columns = np.diff(table.starts)[rows]
    room = int(columns.sum()) + len(rows)
    offsets, ids, extras = np.empty(len(rows) + 1, np.int64), np.empty(room, np.int32), np.empty(room)
    count = decode_rows(rows, table.compiled, np.empty(int(columns.max())), offsets, ids, extras)
    return offsets, ids[:count], extras[:count]
