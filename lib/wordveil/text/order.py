"""Keyed sampling of positions and keyed destruction of order, a batch at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordveil.crypto.keys import Secret
from wordveil.crypto.streams import Contexts, KeyedStream, scale_words


def _stream(
    key: Secret, contexts: Contexts, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Compute the record of each token, and a uniform 64-bit word for it."""
    record = np.repeat(np.arange(len(contexts)), np.diff(offsets))
    return record, KeyedStream(key, 1).record_words(contexts, offsets)[:, 0]


def sample(
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    contexts: Contexts,
    key: Secret,
    count: int,
    unknown: int,
    *,
    first: int = 0,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Draw ``count`` ids of each record i.i.d. with replacement (Fernandes, Dras, McIver 2018, section 5.2).

    A record without ids becomes ``unknown``, ``count`` times. Returns ids and offsets of the same number of records.
    ``first``: the number of positions of each record's stream that other texts of the record use.
    """
    drawn_offsets = np.arange(len(offsets), dtype=np.int64) * count
    record, word = _stream(key, contexts, np.arange(len(offsets), dtype=np.int64) * (first + count))
    if first:
        own = np.tile(np.arange(first + count) >= first, len(contexts))
        record, word = record[own], word[own]
    length = np.diff(offsets)
    pick = offsets[record] + scale_words(word, np.maximum(length, 1)[record].astype(np.uint64))
    symbols = np.append(ids, np.int32(unknown))
    return symbols[np.where(length[record] > 0, pick, len(ids))], drawn_offsets


def draw_order(
    offsets: NDArray[np.int64], contexts: Contexts, key: Secret, bounds: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Draw a uniformly random order of each record's tokens, independent of their values: int64 ``(tokens,)``.

    Entry ``i`` is the index in the batch of the token that comes ``i``-th. ``bounds``, int64 ``(texts + 1,)``, if
    records have several texts: the tokens of each text, which stay in their text.
    """
    record, word = _stream(key, contexts, offsets)
    text = record if bounds is None else np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.lexsort((word, text))


def shuffle(ids: NDArray[np.int32], offsets: NDArray[np.int64], contexts: Contexts, key: Secret) -> NDArray[np.int32]:
    """Shuffle ``ids`` within each record into the order of :func:`draw_order`."""
    return ids[draw_order(offsets, contexts, key)]
