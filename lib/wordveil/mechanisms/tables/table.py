"""Tables of exact rational probabilities, drawn from 128 random bits a token.

Each symbol has a row, which mixes three laws: every output alike, the symbol itself, and a list of other outputs. With
the row's 64-bit numbers ``t`` and ``o`` a word ``A`` of 64 random bits says "every output alike" iff ``A < t``,
"itself" iff ``t <= A < t + o``, and "the list" otherwise. Of all outputs alike the second word ``B`` names number
``floor(B N / 2^64)``. In the list an alias table of ``2^c`` columns (Walker 1977, Vose 1991) over whole numbers ``C``
that add up to ``2^64`` takes the column from the first ``c`` bits of ``B`` and decides with the other ``64 - c``. An
output's probability is exactly

    t / 2^64 / N  +  (o / 2^64 if it is the symbol itself)  +  (1 - (t + o) / 2^64) C / 2^64 if it is listed,

except for the first term's rank, which is uniform to within ``2^-64``. An output that is not listed has the first term
alone, the least: the list holds what a weight has beyond it. ``A`` decides most tokens without the list. Only the
weights are rounded, once, at the build: :func:`certify` measures the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32, Int64, UInt64, freeze
from wordveil.compiled import compiled, compiled_part


class Rows(NamedTuple):
    """Weights before they become whole numbers.

    ``offsets``: int64 ``(rows + 1,)``. ``ids``: int32 ``(entries,)``, rising within a row, the row's own symbol
    included if it is an output. ``scores``: float64 ``(entries,)``, from 0 to the row's ``cut``. ``cut``: float64
    ``(rows,)``, at most :data:`MAX_SCORE`. ``own``: int32 ``(rows,)``, the row's symbol, or :data:`NOBODY` if that is
    no output. ``outputs``: their number.
    """

    offsets: Int64
    ids: Int32
    scores: Float64
    cut: Float64
    own: Int32
    outputs: int


class TableArrays(NamedTuple):
    """Arrays of :class:`wordveil.mechanisms.tables.table.AliasTable`, as compiled code takes them."""

    starts: Int64
    bits: UInt64
    ids: Int32
    alias: UInt64
    alike: UInt64
    itself: UInt64
    own: Int32


_BLOCK = 256
_WHOLE = 2.0**64
_BELOW = _WHOLE - 2.0**11  # the largest float64 under 2^64


@compiled_part
def count_bits(columns: int) -> int:
    """Compute the binary logarithm of a power of two."""
    bits = 0
    while (1 << bits) < columns:
        bits += 1
    return bits


@compiled
def fill_rows(rows: Rows, table: TableArrays, beyond: Float64, weight: UInt64, work: Int64) -> None:
    """Fill the rows of ``table``. The last three arrays are buffers for the longest row."""
    offsets, ids, scores, cut, own, outputs = rows
    starts, _, out_ids, alias, alike, itself, _ = table
    for row in range(len(cut)):
        first, last = offsets[row], offsets[row + 1]
        start, columns = starts[row], starts[row + 1] - starts[row]
        # What every output has; nothing where all are listed.
        base = np.exp(-cut[row]) if last - first < outputs else 0.0
        total, listed, mine = outputs * base, 0.0, 0.0
        length = 0
        for j in range(first, last):
            more = max(np.exp(-scores[j]) - base, 0.0)
            total += more
            if ids[j] == own[row]:
                mine = more
            else:
                beyond[length] = more
                out_ids[start + length] = ids[j]
                listed += more
                length += 1
        alike[row], itself[row] = _parts(outputs * base / total, mine / total, listed / total)
        if listed == 0.0:  # the list is drawn with probability 2^-64 at most
            out_ids[start] = max(own[row], 0)
            length = 1
            beyond[0] = 1.0
            listed = 1.0
        arrange_list(beyond, length, listed, weight, alias[start : start + columns], work)


@compiled_part
def arrange_list(beyond: Float64, length: int, listed: float, weight: UInt64, alias: UInt64, work: Int64) -> None:
    """Fill a list's columns ``alias``: the first ``length`` have weights that add up to ``listed``, the others none."""
    columns = len(alias)
    total_weight = np.uint64(0)
    heaviest = 0
    for j in range(columns):
        weight[j] = np.uint64(0)
        if j < length:
            # Slightly less than the share, so that the sum never passes 2^64; the heaviest column gets the rest.
            weight[j] = np.uint64(min(_WHOLE * (beyond[j] / listed) * (1.0 - 2.0**-49), _BELOW))
            total_weight += weight[j]
            if weight[j] > weight[heaviest]:
                heaviest = j
    weight[heaviest] += np.uint64(0) - total_weight
    alias_row(weight, heaviest, count_bits(columns), alias, work)


@compiled
def _parts(alike: float, itself: float, listed: float) -> tuple[np.uint64, np.uint64]:
    """Compute ``t`` and ``o`` from the shares of a row's three laws. The largest takes the remainder of rounding."""
    first = np.uint64(min(_WHOLE * alike + 0.5, _BELOW))
    second = np.uint64(min(_WHOLE * itself + 0.5, _BELOW))
    third = np.uint64(min(_WHOLE * listed + 0.5, _BELOW))
    if alike >= itself and alike >= listed:
        first = np.uint64(0) - second - third
        first = first if first > 0 else ~np.uint64(0)
    elif itself >= listed:
        second = np.uint64(0) - first - third
        second = second if second > 0 else ~np.uint64(0)
    return first, second


@compiled
def alias_row(weight: UInt64, heaviest: int, bits: int, alias: UInt64, work: Int64) -> None:
    """Arrange columns of ``2^(64 - bits)`` each, from weights that add up to 2^64."""
    columns = len(alias)
    if columns == 1:
        alias[0] = np.uint64(0)
        return
    room = np.uint64(1) << np.uint64(64 - bits)
    shift = np.uint64(bits)
    if weight[heaviest] == 0:  # 2^64, which is 0 here
        alias[:] = np.uint64(heaviest)
        return
    few, many = 0, 0
    for j in range(columns):
        if weight[j] < room:
            work[0, few] = j
            few += 1
        else:
            work[1, many] = j
            many += 1
    while few > 0 and many > 0:
        few -= 1
        small, large = work[0, few], work[1, many - 1]
        alias[small] = (weight[small] << shift) | np.uint64(large)
        weight[large] -= room - weight[small]
        if weight[large] < room:
            many -= 1
            work[0, few] = large
            few += 1
    for j in range(many):
        alias[work[1, j]] = np.uint64(work[1, j])
    for j in range(few):  # none, since the weights add up exactly
        alias[work[0, j]] = np.uint64(work[0, j])


@compiled_part
def decode_row(alias: UInt64, share: Float64) -> None:
    """Decode the share of each column's output among the listed from the columns themselves."""
    columns = len(alias)
    bits = count_bits(columns)
    mask = np.uint64(columns - 1)
    room = 2.0 ** (64 - bits)
    share[:] = 0.0
    for j in range(columns):
        other = alias[j] & mask
        own = np.float64(alias[j] >> np.uint64(bits)) if columns > 1 else 0.0
        share[j] += own
        share[other] += room - own
    share /= _WHOLE


@compiled
def list_outputs(table: TableArrays, row: int, share: Float64, ids: Int32, more: Float64) -> int:
    """List a row's outputs, itself included, rising, with their probability beyond ``t``. Return their number.

    ``share``, ``ids`` and ``more`` are buffers for the row's columns and one more output.
    """
    starts, _, table_ids, alias, alike, itself, own = table
    start, columns = starts[row], starts[row + 1] - starts[row]
    decode_row(alias[start : start + columns], share[:columns])
    left = np.uint64(0) - alike[row] - itself[row]
    inside = np.float64(left) / _WHOLE if left > 0 or alike[row] > 0 or itself[row] > 0 else 1.0
    count, mine, output = 0, np.float64(itself[row]) / _WHOLE, own[row]
    for j in range(columns):
        beyond, listed = inside * share[j], table_ids[start + j]
        if beyond <= 0:
            continue
        if mine > 0 and listed >= output:
            ids[count], more[count] = output, mine
            count += 1
            mine = np.float64(0.0)
        if count > 0 and ids[count - 1] == listed:
            more[count - 1] += beyond
        else:
            ids[count], more[count] = listed, beyond
            count += 1
    if mine > 0:
        ids[count], more[count] = output, mine
        count += 1
    return count


@compiled
def largest_gap(rows: Rows, table: TableArrays, share: Float64, law: Float64) -> float:
    """Compute the gap of :func:`certify`. ``share`` and ``law`` are buffers for the longest row."""
    offsets, ids, scores, cut, _, outputs = rows
    starts, _, table_ids, alias, alike, itself, own = table
    largest = 0.0
    for row in range(len(cut)):
        first, last = offsets[row], offsets[row + 1]
        start, columns = starts[row], starts[row + 1] - starts[row]
        decode_row(alias[start : start + columns], share[:columns])
        base = np.float64(alike[row]) / _WHOLE / outputs
        left = np.uint64(0) - alike[row] - itself[row]
        inside = np.float64(left) / _WHOLE if left > 0 or alike[row] > 0 or itself[row] > 0 else 1.0
        total = (outputs - (last - first)) * np.exp(-cut[row]) if last - first < outputs else 0.0
        for j in range(first, last):
            total += np.exp(-scores[j])
        total = np.log(total)
        for j in range(first, last):
            law[j - first] = base
        # What the symbol itself and the columns have beyond that, column after column; an output outside the list has
        # it alone.
        for j in range(-1, columns):
            output = own[row] if j < 0 else table_ids[start + j]
            more = np.float64(itself[row]) / _WHOLE if j < 0 else inside * share[j]
            if more > 0:
                index = first + np.searchsorted(ids[first:last], output)
                if index < last and ids[index] == output:
                    law[index - first] += more
                elif last - first < outputs:
                    largest = max(largest, abs(np.log(base + more) + cut[row] + total))
                else:
                    return np.inf
        for j in range(first, last):
            largest = max(largest, abs(np.log(law[j - first]) + scores[j] + total)) if law[j - first] > 0 else np.inf
        if last - first < outputs:
            largest = max(largest, abs(np.log(base) + cut[row] + total)) if base > 0 else np.inf
    return largest


# Frozen: golden outputs; raise sampler_version.
@compiled
def draw_rows(symbols: Int32, words: UInt64, table: TableArrays, outputs: np.uint64, out: Int32) -> None:
    """Draw one output for each symbol. Blocks and steps let a core wait for many memory reads at once."""
    starts, bits, ids, alias, alike, itself, own = table
    listed, column, entry = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.uint64)
    one, half, low_half = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
    for first in range(0, len(symbols), _BLOCK):
        count = 0
        for token in range(first, min(first + _BLOCK, len(symbols))):
            row = symbols[token]
            choice, word = words[token, 0], words[token, 1]
            if choice < alike[row]:
                low = (word & low_half) * outputs
                out[token] = np.int32(((word >> half) * outputs + (low >> half)) >> half)
            elif choice - alike[row] < itself[row]:
                out[token] = own[row]
            else:
                listed[count] = token
                # Two shifts, since one by 64 is no shift at all.
                column[count] = starts[row] + np.int64((word >> one) >> (np.uint64(63) - bits[row]))
                count += 1
        for j in range(count):
            entry[j] = alias[column[j]]
        for j in range(count):
            row = symbols[listed[j]]
            left = words[listed[j], 1] & ((~np.uint64(0)) >> bits[row])
            if left >= entry[j] >> bits[row]:
                column[j] = starts[row] + np.int64(entry[j] & ((one << bits[row]) - one))
        for j in range(count):
            out[listed[j]] = ids[column[j]]


# Frozen: golden outputs; raise sampler_version.
@compiled
def draw_floor_rows(symbols: Int32, words: UInt64, table: TableArrays, out: Int32) -> None:
    """Draw like :func:`draw_rows`, with the row after the last symbol's as the common law of all rows."""
    starts, bits, ids, alias, alike, itself, own = table
    listed, column, entry = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.uint64)
    source = np.empty(_BLOCK, np.int64)
    one, common = np.uint64(1), np.int64(len(alike))
    for first in range(0, len(symbols), _BLOCK):
        count = 0
        for token in range(first, min(first + _BLOCK, len(symbols))):
            row = np.int64(symbols[token])
            choice = words[token, 0]
            if choice >= alike[row] and choice - alike[row] < itself[row]:
                out[token] = own[row]
            else:
                row = common if choice < alike[row] else row
                listed[count], source[count] = token, row
                column[count] = starts[row] + np.int64((words[token, 1] >> one) >> (np.uint64(63) - bits[row]))
                count += 1
        for j in range(count):
            entry[j] = alias[column[j]]
        for j in range(count):
            row = source[j]
            left = words[listed[j], 1] & ((~np.uint64(0)) >> bits[row])
            if left >= entry[j] >> bits[row]:
                column[j] = starts[row] + np.int64(entry[j] & ((one << bits[row]) - one))
        for j in range(count):
            out[listed[j]] = ids[column[j]]


# Weights under 2^-40 of the largest are raised to it, so that whole numbers below 2^64 hold every weight to enough
# digits. No bound suffers: capping scores keeps them as Lipschitz as they were.
MAX_SCORE = 40 * float(np.log(2.0))
NOBODY = -1
_FILLER = np.int32(2**31 - 1)


@dataclass(frozen=True)
class AliasTable:
    """Arrays of a table, which workers map into memory.

    ``starts``: int64 ``(rows + 1,)``, the columns of each row, a power of two. ``ids``: int32 ``(columns,)``; unused
    columns hold 2^31 - 1 and are never drawn. ``alias``: uint64 ``(columns,)``, a column's threshold in the first ``64
    - c`` bits, the other column in the last ``c``. ``alike``, ``itself``: uint64 ``(rows,)``, ``t`` and ``o``. ``own``:
    int32 ``(rows,)``, the output that "itself" is. ``outputs``: int64 ``(1,)``, ``N``; 0 in a table of
    :mod:`wordveil.mechanisms.staircase.floor_tables`.
    """

    starts: Int64
    ids: Int32
    alias: UInt64
    alike: UInt64
    itself: UInt64
    own: Int32
    outputs: Int64

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for a bundle."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def compiled(self) -> TableArrays:
        """Arrays as compiled code reads them."""
        return TableArrays._make(freeze(array) for array in self.writable)

    @property
    def writable(self) -> TableArrays:
        """Arrays as compiled code fills them."""
        return TableArrays(self.starts, self.bits, self.ids, self.alias, self.alike, self.itself, self.own)

    @cached_property
    def bits(self) -> UInt64:
        """Binary logarithm ``c`` of each row's columns: uint64 ``(rows,)``."""
        return np.asarray(np.round(np.log2(np.diff(self.starts))), np.uint64)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make from what :attr:`arrays` returned."""
        return cls(**{name: arrays[name] for name in cls.__dataclass_fields__})

    def draw(self, symbols: Int32, words: UInt64) -> Int32:
        """Draw one output for each symbol, int32 ``(count,)``. ``words``: uint64 ``(count, 2)`` of random bits."""
        drawn = np.empty(len(symbols), np.int32)
        if outputs := int(self.outputs[0]):
            draw_rows(symbols, words, self.compiled, np.uint64(outputs), drawn)
        else:
            draw_floor_rows(symbols, words, self.compiled, drawn)
        return drawn


def columns_of(lengths: Int64) -> Int64:
    """Count the columns that lists of these lengths take, without the symbol itself: the next power of two."""
    return np.asarray(2 ** np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64))


def build_table(rows: Rows) -> AliasTable:
    """Round weights to whole numbers and arrange them for drawing."""
    lengths = np.diff(rows.offsets)
    own = np.concatenate([[0], np.cumsum(rows.ids == np.repeat(rows.own, lengths))])
    starts = np.concatenate([[0], np.cumsum(columns_of(lengths - np.diff(own[rows.offsets])))])
    ids = np.full(starts[-1], _FILLER, np.int32)
    alias = np.zeros(starts[-1], np.uint64)
    alike, itself = np.zeros(len(lengths), np.uint64), np.zeros(len(lengths), np.uint64)
    longest = int(np.diff(starts).max())
    table = AliasTable(starts, ids, alias, alike, itself, np.maximum(rows.own, 0), np.array([rows.outputs]))
    room = np.empty(longest), np.empty(longest, np.uint64), np.empty((2, longest), np.int64)
    fill_rows(rows, table.writable, *room)
    return table


def certify(table: AliasTable, rows: Rows) -> float:
    """Compute the largest ``|ln(p / q)|`` of a table's probability ``p`` (infinite for 0) and the intended ``q``.

    With exact scores a bound of ``epsilon d`` on the intended law becomes ``epsilon d`` plus twice this on the table's.
    """
    # A ratio of two rows' probabilities is p/q of the first, times the intended ratio, times q/p of the second: so a
    # bound on every |ln(p / q)| enters twice. The compiled loop reads p from the finished whole numbers and not from
    # the weights that made them, so that no error of rounding or of arranging escapes it.
    longest = max(int(np.diff(table.starts).max()), int(np.diff(rows.offsets).max()))
    gap = largest_gap(rows, table.compiled, np.empty(longest), np.empty(longest))
    # What the logarithms above err by, and the rank's 2^-64.
    return float(gap) + 1e-12 + rows.outputs * 2.0**-64


def listed_probabilities(table: AliasTable, row: int) -> tuple[Int32, Float64, float]:
    """Decode a row's listed outputs, itself included, int32 rising, with log probabilities, and that of any other."""
    columns = int(table.starts[row + 1] - table.starts[row])
    ids, more = np.empty(columns + 1, np.int32), np.empty(columns + 1)
    count = list_outputs(table.compiled, row, np.empty(columns), ids, more)
    base = int(table.alike[row]) / 2**64 / int(table.outputs[0])
    with np.errstate(divide="ignore"):
        return ids[:count], np.log(base + more[:count]), float(np.log(base))


def probabilities(table: AliasTable, row: int) -> Float64:
    """Compute the law of one row, float64 ``(outputs,)``, from the table's whole numbers."""
    ids, logs, other = listed_probabilities(table, row)
    law = np.full(int(table.outputs[0]), np.exp(other))
    law[ids] = np.exp(logs)
    return law


def scores_of(table: AliasTable, ratio: float) -> Rows:
    """Decode the rows of a table, exactly from whole numbers, each score times ``ratio``."""
    offsets, ids, scores, cut = [0], [], [], np.empty(len(table.own))
    own = np.full(len(table.own), NOBODY, np.int32)
    for row in range(len(table.own)):
        listed, logs, other = listed_probabilities(table, row)
        heaviest = logs.max()
        cut[row] = min(ratio * (heaviest - other), MAX_SCORE)
        ids.append(listed)
        scores.append(np.minimum(ratio * (heaviest - logs), cut[row]))
        offsets.append(offsets[-1] + len(listed))
        if table.itself[row]:
            own[row] = table.own[row]
    return Rows(np.array(offsets), np.concatenate(ids), np.concatenate(scores), cut, own, int(table.outputs[0]))
