"""Whole texts as a black box, of a mechanism that reads them whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Int64
from wordveil.audit.two_phase import Sampler
from wordveil.crypto.keys import ReleaseKeys
from wordveil.measures.output_law import as_records
from wordveil.mechanisms.base import Mechanism

_RECORDS = 10_000


@dataclass(frozen=True)
class TextSampler(Sampler):
    """Draws of short texts of one length. A text of one symbol has that symbol's number, as its outputs have.

    Of longer texts an output is a number whose digits are its symbols, and a text has a number below 0.

    Attributes
    ----------
    mechanism
        any mechanism.
    outputs
        how many symbols there are.
    keys
        no release's keys.
    texts
        the symbols of the longer texts, by their numbers.
    """

    mechanism: Mechanism[Any]
    outputs: int
    keys: ReleaseKeys
    texts: Mapping[int, Sequence[int]]

    def draw(self, word: int, count: int, series: int) -> Int64:
        """Independent outputs for one text: int64 ``(count,)``."""
        text = np.array(self.texts[word] if word < 0 else [word], np.int32)
        drawn = np.empty((count, len(text)), np.int64)
        for start in range(0, count, _RECORDS):
            records = range(start, min(start + _RECORDS, count))
            names = [b"audit %d %d %d" % (word, series, record) for record in records]
            offsets = np.arange(len(records) + 1, dtype=np.int64) * len(text)
            batch = as_records(np.tile(text, len(records)), offsets, names, self.keys)
            drawn[start : records.stop] = self.mechanism.draw(batch, self.keys).ids.reshape(-1, len(text))
        return np.asarray(drawn @ self.outputs ** np.arange(len(text), dtype=np.int64), np.int64)

    def symbols_of(self, number: int) -> list[int]:
        """The symbols of a text of :attr:`texts`, by its own number or by that of an output."""
        if number < 0:
            return list(self.texts[number])
        places = range(len(next(iter(self.texts.values()))))
        return [number // self.outputs**place % self.outputs for place in places]
