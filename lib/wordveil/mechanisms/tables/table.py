"""Tables of exact rational probabilities, drawn from 128 random bits a token.

Each symbol has a row, which mixes three laws: every output alike, the symbol itself, and a list of other outputs. With
the row's 64-bit numbers ``t`` and ``o`` a word ``A`` of 64 random bits says "every output alike" iff ``A < t``,
"itself" iff ``t <= A < t + o``, and "the list" otherwise. Of all outputs alike the second word ``B`` names number
``floor(B N / 2^64)``. In the list an alias table of ``2^c`` columns (Walker 1977, Vose 1991) over whole numbers ``C``
that add up to ``2^64`` takes the column from the first ``c`` bits of ``B`` and decides with the other ``64 - c``. So an
output's probability is exactly

    t / 2^64 / N  +  (o / 2^64 if it is the symbol itself)  +  (1 - (t + o) / 2^64) C / 2^64 if it is listed,

but for the first term's rank, which is uniform to within ``2^-64``. An output that is not listed has the first term
alone, so that it must be the least: the list holds what a weight has beyond it. Most tokens are decided by ``A`` and
never touch the list.

Nothing is approximated but the weights, once, at the build: :func:`certify` measures the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32, Int64, UInt64, freeze
from wordveil.mechanisms.tables.kernels import (
    RowArrays,
    TableArrays,
    draw_floor_rows,
    draw_rows,
    fill_rows,
    largest_gap,
    list_outputs,
)

# Weights under 2^-40 of the largest are raised to it, so that whole numbers below 2^64 hold every weight to enough
# digits. No bound suffers: capping scores keeps them as Lipschitz as they were.
MAX_SCORE = 40 * float(np.log(2.0))
NOBODY = -1
_FILLER = np.int32(2**31 - 1)


@dataclass(frozen=True)
class Rows:
    """Weights before they become whole numbers.

    ``offsets``: int64 ``(rows + 1,)``. ``ids``: int32 ``(entries,)``, rising within a row; a row's own symbol is among
    them if it is an output. ``scores``: float64 ``(entries,)``, from 0 to ``cut`` of the row. ``cut``: float64
    ``(rows,)``, at most :data:`MAX_SCORE`; without effect where all outputs are listed. ``own``: int32 ``(rows,)``, the
    row's own symbol, :data:`NOBODY` if that is no output. ``outputs``: how many outputs there are; their ids are ``0 ..
    outputs - 1``.
    """

    offsets: Int64
    ids: Int32
    scores: Float64
    cut: Float64
    own: Int32
    outputs: int

    @property
    def compiled(self) -> RowArrays:
        """Arrays as compiled code takes them."""
        return RowArrays(self.offsets, self.ids, self.scores, self.cut, self.own)


@dataclass(frozen=True)
class Table:
    """Arrays of a table, which workers map into memory.

    ``starts``: int64 ``(rows + 1,)``, the columns of each row; their number is a power of two. ``ids``: int32
    ``(columns,)``; columns beyond a row's outputs hold 2^31 - 1 and are never drawn. ``alias``: uint64 ``(columns,)``,
    the first ``64 - c`` bits are a column's threshold, the last ``c`` the other column. ``alike``: uint64 ``(rows,)``,
    ``t``. ``itself``: uint64 ``(rows,)``, ``o``. ``own``: int32 ``(rows,)``, the output that "itself" is. ``outputs``:
    int64 ``(1,)``, ``N``; 0 in a table of :mod:`wordveil.mechanisms.staircase.floor_tables`.
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


def build_table(rows: Rows) -> Table:
    """Round weights to whole numbers and arrange them for drawing."""
    lengths = np.diff(rows.offsets)
    own = np.concatenate([[0], np.cumsum(rows.ids == np.repeat(rows.own, lengths))])
    starts = np.concatenate([[0], np.cumsum(columns_of(lengths - np.diff(own[rows.offsets])))])
    ids = np.full(starts[-1], _FILLER, np.int32)
    alias = np.zeros(starts[-1], np.uint64)
    alike, itself = np.zeros(len(lengths), np.uint64), np.zeros(len(lengths), np.uint64)
    longest = int(np.diff(starts).max())
    table = Table(starts, ids, alias, alike, itself, np.maximum(rows.own, 0), np.array([rows.outputs]))
    room = np.empty(longest), np.empty(longest, np.uint64), np.empty((2, longest), np.int64)
    fill_rows(rows.compiled, rows.outputs, table.writable, *room)
    return table


def certify(table: Table, rows: Rows) -> float:
    """Compute the largest ``|ln(p / q)|`` of a table's probability ``p`` and the intended ``q``; infinite if ``p`` is
    0.

    With exact scores a bound of ``epsilon d`` on the intended law becomes ``epsilon d`` plus twice this on the table's.
    """
    # A ratio of two rows' probabilities is p/q of the first, times the intended ratio, times q/p of the second: so a
    # bound on every |ln(p / q)| enters twice. The compiled loop reads p from the finished whole numbers and not from
    # the weights that made them, so that no error of rounding or of arranging escapes it.
    longest = max(int(np.diff(table.starts).max()), int(np.diff(rows.offsets).max()))
    gap = largest_gap(rows.compiled, rows.outputs, table.compiled, np.empty(longest), np.empty(longest))
    # What the logarithms above err by, and the rank's 2^-64.
    return float(gap) + 1e-12 + rows.outputs * 2.0**-64


def listed_probabilities(table: Table, row: int) -> tuple[Int32, Float64, float]:
    """Decode a row's listed outputs, itself among them, int32 rising. Also return logarithms of their probabilities,
    and that of any other output.

    From the table's whole numbers.
    """
    columns = int(table.starts[row + 1] - table.starts[row])
    ids, more = np.empty(columns + 1, np.int32), np.empty(columns + 1)
    count = list_outputs(table.compiled, row, np.empty(columns), ids, more)
    base = int(table.alike[row]) / 2**64 / int(table.outputs[0])
    with np.errstate(divide="ignore"):
        return ids[:count], np.log(base + more[:count]), float(np.log(base))


def probabilities(table: Table, row: int) -> Float64:
    """Compute the law of one row, float64 ``(outputs,)``, from the table's whole numbers."""
    ids, logs, other = listed_probabilities(table, row)
    law = np.full(int(table.outputs[0]), np.exp(other))
    law[ids] = np.exp(logs)
    return law


def scores_of(table: Table, ratio: float) -> Rows:
    """Decode the rows of a table, each score times ``ratio``: as exact as the table's whole numbers are."""
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
