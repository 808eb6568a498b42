"""Which positions of a record hold the same word, and one draw for all of them (``text.repeat: same``).

Two words are the same if they have the same form after the look-up's folding. So two words outside the vocabulary are
told apart, although the mechanism sees one symbol for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wordveil.compiled import compiled
from wordveil.crypto.streams import Payload, id_payload


@dataclass(frozen=True, eq=False)
class Pattern:
    """The pattern of equal positions of each record of a batch.

    Attributes
    ----------
    firsts
        int64 ``(tokens,)``: for each token the position in its record, from 0, of the first token with the same form.
    offsets
        int64 ``(records + 1,)``, the tokens of each record.
    """

    firsts: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, forms: NDArray[np.integer], offsets: NDArray[np.int64], count: int) -> Self:
        """The pattern of tokens with these forms: numbers below ``count``, equal where two words are the same."""
        return cls(find_firsts(forms.astype(np.int64, copy=False), offsets, count), offsets)

    @cached_property
    def _leaders(self) -> NDArray[np.int64]:
        """The same positions counted over the batch."""
        return self.firsts + np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @cached_property
    def _leads(self) -> NDArray[np.bool_]:
        leads: NDArray[np.bool_] = self._leaders == np.arange(len(self.firsts))
        return leads

    @cached_property
    def distinct_offsets(self) -> NDArray[np.int64]:
        """The distinct words of each record: int64 ``(records + 1,)``."""
        return self._numbers[self.offsets]

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """How many distinct words there are before each position of the batch: int64 ``(tokens + 1,)``."""
        return np.concatenate([[0], np.cumsum(self._leads)]).astype(np.int64)

    @property
    def payload(self) -> Payload:
        """The pattern as a part of a record's content, for its context and its tag."""
        return id_payload(self.firsts.astype(np.int32), self.offsets)

    def fit(self, width: int) -> Self:
        """The pattern of records that are cut or filled to ``width`` tokens; what fills them is the same as nothing
        else.
        """
        lengths = np.diff(self.offsets)
        position = np.arange(len(self.firsts)) - np.repeat(self.offsets[:-1], lengths)
        fitted = np.tile(np.arange(width, dtype=np.int64), (len(lengths), 1))
        fitted[np.arange(width) < lengths[:, None]] = self.firsts[position < width]
        return type(self)(fitted.reshape(-1), np.arange(len(lengths) + 1, dtype=np.int64) * width)

    def choose(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The ids of the distinct words, in the order in which they come first: int32 ``(distinct,)``, as
        :attr:`distinct_offsets` says.
        """
        return ids[self._leads]

    def spread(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """The inverse: what each position has of ``values``, int32 ``(distinct,)``, one for each distinct word."""
        return values[self._numbers[self._leaders]]

    def unify(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """``ids``, int32 ``(tokens,)``, with that of the first position of its word at every position."""
        return ids[self._leaders]

    def reorder(self, order: NDArray[np.int64]) -> Self:
        """The pattern of the tokens ``order``, int64 ``(tokens,)``, which are each record's own in another order."""
        return type(self).of(self._leaders[order], self.offsets, len(order))


@compiled
def find_firsts(forms: NDArray[np.int64], offsets: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The position in its record of the first token with the same form: int64 ``(tokens,)``.

    ``forms``: int64 ``(tokens,)``, from 0 to ``count - 1``.
    """
    firsts = np.empty(len(forms), np.int64)
    seen = np.full(count, -1, np.int64)
    for record in range(len(offsets) - 1):
        start = offsets[record]
        for token in range(start, offsets[record + 1]):
            form = forms[token]
            # Places only rise, so that one before the record's start was seen in an earlier record.
            if seen[form] < start:
                seen[form] = token
            firsts[token] = seen[form] - start
    return firsts
