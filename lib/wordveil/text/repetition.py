"""Repetition of words in a record, and one draw for all occurrences (``text.repeat: same``).

Words are the same if they are looked up in the same form, so unknown words are distinguished, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Bool, Int32, Int64
from wordveil.compiled import compiled
from wordveil.crypto.streams import Payload, id_payload
from wordveil.text.offsets import fit_records


@dataclass(frozen=True)
class Forms:
    """Forms in which the tokens of a batch are looked up.

    ``codes``: int64 ``(tokens,)``, equal for equal forms: an index in ``strings``, or ``len(strings)`` and more for
    forms that a vocabulary numbers; -1 for padding, which equals nothing. ``strings``: string array, other forms.
    """

    codes: Int64
    strings: pa.StringArray

    @classmethod
    def of(cls, strings: pa.StringArray, numbers: Int32 | None = None) -> Self:
        """Make from ``strings``: the forms, or those for which ``numbers``, int32 ``(tokens,)``, is below 0."""
        encoded = strings.dictionary_encode()
        codes = encoded.indices.to_numpy().astype(np.int64)
        if numbers is not None:
            others, codes = codes, numbers + np.int64(len(encoded.dictionary))
            codes[numbers < 0] = others
        return cls(codes, encoded.dictionary)

    @classmethod
    def unify(cls, columns: Sequence[Self]) -> list[Self]:
        """Give equal forms equal codes in all columns."""
        strings = pa.concat_arrays([column.strings for column in columns]).dictionary_encode()
        sizes = [len(column.strings) for column in columns]
        tables = np.split(strings.indices.to_numpy().astype(np.int64), np.cumsum(sizes[:-1], dtype=np.intp))
        unified = []
        for column, table in zip(columns, tables, strict=True):
            codes, others = column.codes.copy(), (column.codes >= 0) & (column.codes < len(table))
            codes[codes >= len(table)] += len(strings.dictionary) - len(table)
            codes[others] = table[column.codes[others]]
            unified.append(cls(codes, strings.dictionary))
        return unified


@dataclass(frozen=True, eq=False)
class Pattern:
    """Pattern of equal positions of each record of a batch.

    ``firsts``: int64 ``(tokens,)``, position in its record, from 0, of the first token with the same form. ``offsets``:
    int64 ``(records + 1,)``.
    """

    firsts: Int64
    offsets: Int64

    @classmethod
    def of(cls, forms: NDArray[np.integer], offsets: Int64, count: int) -> Self:
        """Make from the forms of tokens: numbers below ``count``, equal if two words are the same."""
        return cls(find_firsts(forms.astype(np.int64, copy=False), offsets, count), offsets)

    @classmethod
    def of_codes(cls, codes: Int64, offsets: Int64) -> Self:
        """Make from the codes of :class:`Forms` of tokens."""
        padding = codes < 0
        count = int(codes.max(initial=-1)) + 1
        if added := int(padding.sum()):
            codes = codes.copy()
            codes[padding] = count + np.arange(added)
        return cls.of(codes, offsets, count + added)

    @cached_property
    def _leaders(self) -> Int64:
        """Positions of :attr:`firsts` counted over the batch."""
        return self.firsts + np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @cached_property
    def _leads(self) -> Bool:
        leads: Bool = self._leaders == np.arange(len(self.firsts))
        return leads

    @cached_property
    def distinct_offsets(self) -> Int64:
        """Bounds of the distinct words of each record: int64 ``(records + 1,)``."""
        return self._numbers[self.offsets]

    @cached_property
    def _numbers(self) -> Int64:
        """Number of distinct words before each position of the batch: int64 ``(tokens + 1,)``."""
        return np.concatenate([[0], np.cumsum(self._leads)]).astype(np.int64)

    @property
    def payload(self) -> Payload:
        """Pattern as a part of a record's content, for its context and its tag."""
        return id_payload(self.firsts.astype(np.int32), self.offsets)

    def fit(self, width: int) -> Self:
        """Cut or fill records to ``width`` tokens, where each added token is a word of its own."""
        return type(self)(*fit_records(self.firsts, self.offsets, width, np.arange(width)))

    def choose(self, ids: Int32) -> Int32:
        """Select the ids of each record's distinct words, in the order of first occurrence: int32 ``(distinct,)``."""
        return ids[np.flatnonzero(self._leads)]  # faster than by the mask

    def spread(self, values: Int32) -> Int32:
        """Spread ``values``, int32 ``(distinct,)``, one for each distinct word, over all positions."""
        return values[self._numbers[self._leaders]]

    def unify(self, ids: Int32) -> Int32:
        """Replace each of ``ids``, int32 ``(tokens,)``, by that of the first position of its word."""
        return ids[self._leaders]

    def reorder(self, order: Int64) -> Self:
        """Reorder the tokens by ``order``, int64 ``(tokens,)``, within each record."""
        return type(self).of(self._leaders[order], self.offsets, len(order))


@compiled
def find_firsts(forms: Int64, offsets: Int64, count: int) -> Int64:
    """Find the position in its record of the first token with an equal form. ``forms``: from 0 to ``count - 1``."""
    firsts = np.empty(len(forms), np.int64)
    seen = np.full(count, -1, np.int64)
    for record in range(len(offsets) - 1):
        start = offsets[record]
        for token in range(start, offsets[record + 1]):
            form = forms[token]
            # Positions only rise: one before the record's start belongs to an earlier record.
            if seen[form] < start:
                seen[form] = token
            firsts[token] = seen[form] - start
    return firsts
