"""Keep-rate: the share of words for which a mechanism draws the word itself.

Tokens outside the vocabulary (padding, unknown words) do not count. Repeated words count each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    is_word = ids < size
    return KeepRate(int((is_word & (ids == drawn)).sum()), int(is_word.sum()))
