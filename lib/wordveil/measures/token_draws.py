"""Draws of a mechanism for ids, as records of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wordveil.arrays import Int32, Int64
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import derive_contexts, frame_records, id_payload
from wordveil.mechanisms.base import Mechanism, TokenBatch


def spread_words(size: int, count: int) -> Int32:
    """Spread ids evenly over ``size`` words: int32, rising, at most ``count``."""
    return np.unique(np.arange(count) * size // count).astype(np.int32)


def draw_tokens(mechanism: Mechanism[Any], ids: Int32, name: bytes, keys: ReleaseKeys) -> Int32:
    """Draw outputs for ids as one record of that name: int32 ``(tokens,)`` for int32 ``(tokens,)``."""
    return mechanism.draw(as_record(ids, name, keys), keys).ids


def write_tokens(mechanism: Mechanism[Any], ids: Int32, name: bytes, keys: ReleaseKeys) -> Int32:
    """Choose the words to write for the draws. A mechanism that chooses words by those beside them sees ids in this
    order.
    """
    return mechanism.render(mechanism.draw(as_record(ids, name, keys), keys)).ids


def as_record(ids: Int32, name: bytes, keys: ReleaseKeys) -> TokenBatch:
    """Make one record of that name from ids, int32 ``(tokens,)``."""
    return as_records(ids, np.array([0, len(ids)]), [name], keys)


def as_records(ids: Int32, offsets: Int64, names: Sequence[bytes], keys: ReleaseKeys) -> TokenBatch:
    """Make records of those names from ragged ids, int32 ``(tokens,)`` with int64 offsets ``(records + 1,)``."""
    return TokenBatch(
        ids, offsets, derive_contexts(keys.context, b"", frame_records(names, [id_payload(ids, offsets)]))
    )
