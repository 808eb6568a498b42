"""Counts of each output in many draws of many words, a block of words at a time.

Each word is a record of its own name, drawn with keys that anyone can make: so the counts are the same however the
words are cut into blocks, on however many threads. No key of a release comes from these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from wordveil.arrays import Int32, Int64
from wordveil.measures.recovery import OtherLengthError, make_public_keys
from wordveil.measures.token_draws import as_records
from wordveil.mechanisms.base import Mechanism
from wordveil.neighbours.blocks import start_threads

# So many draws are in memory at once for each thread: more would not be faster.
_DRAWS_OF_BLOCK = 20_000
_KEYS = make_public_keys("calibrate")


@dataclass(frozen=True)
class WordCounts:
    """Counts of each output for some words.

    ``words``: int32 ``(words,)``, ids. ``offsets``: int64 ``(words + 1,)``, word ``i`` of these has the entries
    ``offsets[i]`` up to ``offsets[i + 1]``. ``ids``: int32 ``(entries,)``, outputs, rising for each word. ``counts``:
    int32 ``(entries,)``, how often each came, at least once.
    """

    words: Int32
    offsets: Int64
    ids: Int32
    counts: Int32

    def take(self, rows: Int32) -> WordCounts:
        """Select the words at ``rows``, int32 ``(count,)``, in that order."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return WordCounts(self.words[rows], offsets, self.ids[entries], self.counts[entries])

    @classmethod
    def join(cls, blocks: Sequence[WordCounts]) -> WordCounts:
        """Join the words of all blocks, of which there is at least one, by their ids."""
        words, ids, counts = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in ("words", "ids", "counts")
        )
        lengths = np.concatenate([np.diff(block.offsets) for block in blocks])
        whole = cls(words, np.concatenate([[0], np.cumsum(lengths)]), ids, counts)
        return whole.take(np.argsort(words).astype(np.int32))


def count_block(mechanism: Mechanism[Any], words: Int32, runs: int) -> WordCounts:
    """Draw each word ``runs`` times and count its outputs.

    ``mechanism``: draws each token by its word alone. ``words``: int32 ``(words,)``, ids, few enough for all draws to
    be in memory. Raises :class:`OtherLengthError` if the mechanism does not draw one output for each token, and
    :class:`ValueError` if there is no draw, or if so many of one word would repeat its noise.
    """
    if not 1 <= runs <= mechanism.max_tokens:
        raise ValueError(f"Expected runs={runs} in [1, {mechanism.max_tokens}].")
    names = [b"%d" % word for word in words.tolist()]
    batch = as_records(np.repeat(words, runs), np.arange(len(words) + 1) * runs, names, _KEYS)
    drawn = mechanism.draw(batch, _KEYS).ids
    if len(drawn) != len(words) * runs:
        raise OtherLengthError
    ordered = np.sort(drawn.reshape(len(words), runs), axis=1)
    begins = np.ones(ordered.shape, bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, ordered.size)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(begins.sum(axis=1))]).astype(np.int64)
    return WordCounts(words, offsets, ordered.ravel()[starts], counts)


def split_words(words: Int32, runs: int) -> Sequence[Int32]:
    """Split words, int32 ``(words,)``, into blocks whose draws fit into memory."""
    step = max(1, _DRAWS_OF_BLOCK // runs)
    return [words[start : start + step] for start in range(0, len(words), step)]


@dataclass(frozen=True)
class ThreadedCounter:
    """Draws words on the cores of this machine.

    ``load``: makes one more copy of the mechanism, since each thread needs its own. ``threads``: None for as many as
    there are cores. The counts do not depend on it.
    """

    load: Callable[[], Mechanism[Any]]
    threads: int | None = None

    def __call__(self, words: Int32, runs: int) -> Iterator[WordCounts]:
        """Count ``runs`` draws of each of ``words``, int32 ``(words,)``. Raises as :func:`count_block`."""
        threads = self.threads or len(os.sched_getaffinity(0))
        idle: SimpleQueue[Mechanism[Any]] = SimpleQueue()
        for _ in range(threads):
            idle.put(self.load())

        def count(block: Int32) -> WordCounts:
            mechanism = idle.get()
            try:
                return count_block(mechanism, block, runs)
            finally:
                idle.put(mechanism)

        with start_threads(threads) as pool:
            yield from pool.map(count, split_words(words, runs))
