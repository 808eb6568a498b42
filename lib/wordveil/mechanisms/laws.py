"""The laws of all words at once, for attackers that weigh them against each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WordLaws:
    """What each word becomes: a law that all words share, and what a word has beyond it.

    Word ``x`` becomes ``y`` with probability ``shares[x] * common[y]``, plus ``extras[j]`` where ``y`` is the output
    ``ids[j]`` of an entry ``j`` of ``x``.

    Attributes
    ----------
    common
        float64 ``(outputs,)``: adds up to 1. An output that is 0 here comes from entries alone.
    shares
        float64 ``(size,)``, from 0 to 1.
    offsets
        int64 ``(size + 1,)``: word ``x`` has the entries ``offsets[x]`` up to ``offsets[x + 1]``.
    ids
        int32 ``(entries,)``: outputs, each once in a word's entries.
    extras
        float64 ``(entries,)``, positive.
    """

    common: NDArray[np.float64]
    shares: NDArray[np.float64]
    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    extras: NDArray[np.float64]
