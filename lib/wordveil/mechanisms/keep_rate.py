"""Keep-rate: the share of words for which a mechanism draws the word itself.

Tokens outside the vocabulary (padding, unknown words) do not count. Repeated words count each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Int32, Int64
from wordveil.compiled import compiled


@dataclass(frozen=True)
class KeepRate:
    """Numbers of drawn words and of kept ones, which were drawn for themselves."""

    kept: int
    words: int

    @property
    def rate(self) -> float | None:
        """Ratio ``kept / words``; None if there are no words."""
        return self.kept / self.words if self.words else None


def measure_keep_rate(ids: NDArray[np.integer], drawn: NDArray[np.integer], size: int) -> KeepRate:
    """Measure the keep-rate of ids, integers ``(tokens,)``, and the ids drawn for them, in the same order.

    Raises :class:`ValueError` if the two arrays differ in shape.
    """
    if ids.shape != drawn.shape or ids.ndim != 1:
        raise ValueError(f"Expected ids and drawn of one shape (tokens,), got {ids.shape} and {drawn.shape}.")
    original, replaced = np.asarray(ids, np.int32), np.asarray(drawn, np.int32)
    kept = count_kept_words(original, replaced, np.array([0, len(original)], np.int64), size)
    return KeepRate(int(kept[0]), int((original < size).sum()))


@compiled
def count_kept_words(original: Int32, replaced: Int32, offsets: Int64, size: int) -> Int64:
    """Count the kept words of each record, int64 ``(records,)``. Ids of ``size`` and above are not words."""
    counts = np.zeros(len(offsets) - 1, np.int64)
    for record in range(len(counts)):
        count = 0
        for token in range(offsets[record], offsets[record + 1]):
            count += original[token] == replaced[token] and original[token] < size
        counts[record] = count
    return counts
