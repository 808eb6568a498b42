"""Draws of a mechanism: for ids as separate records, and for whole texts with throwaway keys."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from wordveil.arrays import Int32, Int64
from wordveil.crypto.keys import ReleaseKeys, make_throwaway_keys
from wordveil.crypto.streams import derive_contexts, frame_records, id_payload
from wordveil.mechanisms.base import Mechanism, TokenBatch


def spread_words(size: int, count: int) -> Int32:
    """Spread ids evenly over ``size`` words: int32, rising, at most ``count``."""
    return np.unique(np.arange(count) * size // count).astype(np.int32)


def draw_tokens(mechanism: Mechanism[Any], ids: Int32, name: bytes, keys: ReleaseKeys) -> Int32:
    """Draw outputs for ids as one record of that name: int32 ``(tokens,)`` for int32 ``(tokens,)``."""
    return mechanism.draw(as_record(ids, name, keys), keys).ids


def write_tokens(mechanism: Mechanism[Any], ids: Int32, name: bytes, keys: ReleaseKeys) -> Int32:
    """Choose the words to write for the draws of ids, as one record in this order."""
    return mechanism.render(mechanism.draw(as_record(ids, name, keys), keys)).ids


def as_record(ids: Int32, name: bytes, keys: ReleaseKeys) -> TokenBatch:
    """Make one record of that name from ids, int32 ``(tokens,)``."""
    return as_records(ids, np.array([0, len(ids)]), [name], keys)


def as_records(ids: Int32, offsets: Int64, names: Sequence[bytes], keys: ReleaseKeys) -> TokenBatch:
    """Make records of those names from ragged ids, int32 ``(tokens,)`` with int64 offsets ``(records + 1,)``."""
    return TokenBatch(
        ids, offsets, derive_contexts(keys.context, b"", frame_records(names, [id_payload(ids, offsets)]))
    )


def fit_texts(ids: Int32, columns: Int64, widths: Int64, padding: int) -> tuple[Int32, Int64]:
    """Cut and fill the texts of records as a run does.

    ``ids``: int32 ``(tokens,)``, by record and then by column. ``columns``: int64 ``(records, columns)``, the tokens of
    each text. ``widths``: int64 ``(columns,)``, the public number of tokens of each text column; 0 if lengths are
    visible. ``padding``: the symbol to fill with. Returns the tokens to draw, int32, and the offsets of records, int64
    ``(records + 1,)``.
    """
    if not widths.any():
        return ids, np.concatenate([[0], np.cumsum(columns.sum(axis=1))])
    lengths, width = columns.ravel(), int(widths.sum())
    text = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    record, column = np.divmod(text, len(widths))
    inside = position < widths[column]
    fitted = np.full(len(columns) * width, padding, np.int32)
    fitted[(record * width + (np.cumsum(widths) - widths)[column] + position)[inside]] = ids[inside]
    return fitted, np.arange(len(columns) + 1) * width


def choose_records(ids: Int32, columns: Int64, count: int) -> tuple[Int32, Int64]:
    """Choose at most ``count`` records, evenly spread: their tokens and ``columns``, as in :func:`fit_texts`."""
    number = len(columns)
    chosen = np.unique(np.linspace(0, max(number - 1, 0), min(count, number)).astype(np.int64))
    is_chosen = np.zeros(number, bool)
    is_chosen[chosen] = True
    return ids[np.repeat(is_chosen, columns.sum(axis=1))], columns[is_chosen]


def draw_texts(mechanism: Mechanism[Any], ids: Int32, offsets: Int64, seconds: float) -> tuple[Int32, float]:
    """Draw records one after another, as many as ``seconds`` of processor time allow, at least one.

    ``ids``: int32 ``(tokens,)``, with int64 offsets ``(records + 1,)``. Returns
    the outputs of the first of ``ids``, int32, and the tokens drawn per second.
    """
    keys = make_throwaway_keys()
    mechanism.draw(_batch(ids, offsets, 0, 1, keys), keys)  # the first call compiles the loops
    drawn: list[Int32] = []
    spent, first, step = 0.0, 0, 8
    while first < len(offsets) - 1 and (not drawn or spent < seconds):
        last = min(first + step, len(offsets) - 1)
        started = time.process_time()
        drawn.append(mechanism.draw(_batch(ids, offsets, first, last, keys), keys).ids)
        spent += time.process_time() - started
        first, step = last, 2 * step if spent < seconds / 8 else step
    outputs = np.concatenate(drawn)
    return outputs, len(outputs) / max(spent, 1e-9)


def _batch(ids: Int32, offsets: Int64, first: int, last: int, keys: ReleaseKeys) -> TokenBatch:
    """Make a batch of some of the records, each with a context for its number."""
    starts = offsets[first : last + 1]
    names = [b"%d" % number for number in range(first, last)]
    return as_records(ids[starts[0] : starts[-1]], starts - starts[0], names, keys)
