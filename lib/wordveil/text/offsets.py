"""Values of several records in one array: ``offsets``, int64 ``(records + 1,)``, delimit those of each record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Bool, Int64


def keep_offsets(kept: Bool, offsets: Int64) -> Int64:
    """Compute the offsets of records after only the ``kept`` values are left, bool ``(values,)``."""
    return np.searchsorted(np.flatnonzero(kept), offsets)


def count_kept(kept: Bool, offsets: Int64) -> Int64:
    """Count the ``kept`` values of each record: int64 ``(records,)``."""
    return np.diff(keep_offsets(kept, offsets))


def fit_records(values: NDArray[Any], offsets: Int64, width: int, filling: Any) -> tuple[NDArray[Any], Int64]:
    """Cut and fill each record to ``width`` values. ``filling``: the filler, or one value for each position."""
    lengths = np.diff(offsets)
    position = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
    fitted = np.empty((len(lengths), width), values.dtype)
    fitted[:] = filling
    fitted[np.arange(width) < lengths[:, None]] = values[position < width]
    return fitted.reshape(-1), np.arange(len(lengths) + 1, dtype=np.int64) * width
