"""Words and their ids, on Arrow arrays.

Words have the ids ``0 .. size - 1``, then come ``pad`` (= size), which fills a text up to its public length, and
``unknown`` (= size + 1), which replaces every word outside the vocabulary.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from wordveil.arrays import Int32, Int64, UInt8, UInt64, freeze
from wordveil.compiled import compiled, compiled_part, inlined

# FNV-1a, 64 bits.
SEED, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_EMPTY = np.int32(-1)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, and without a pattern: 2**64 over the golden ratio
SHORT = 16
"""Maximum bytes of a short word: as many as two numbers hold."""


class Vocabulary:
    """Ordered set of words: a string array that :func:`wordveil.embeddings.embedding.check_embedding` passed."""

    def __init__(self, words: pa.StringArray) -> None:
        self.array = words
        self.size = len(words)
        self.pad = self.size
        self.unknown = self.size + 1
        self.index = WordIndex(words)

    def lookup(self, tokens: pa.StringArray) -> Int32:
        """Find the id of each token, or ``unknown``: int32 ``(len(tokens),)``."""
        numbers = self.index.numbers(tokens)
        numbers[numbers < 0] = self.unknown
        return numbers


class WordIndex:
    """Index of words by their bytes: a hash table built once. Arrow's ``index_in`` builds one at each call.

    ``data``, ``offsets``: the words' bytes, uint8, and offsets, int64 ``(words + 1,)``. ``slots``: int32, the number of
    a word at its hash, or at the next free index after it; -1 elsewhere.
    """

    def __init__(self, words: pa.StringArray) -> None:
        self.data, self.offsets = view_strings(words)
        size = 4
        while size < 3 * len(words):
            size *= 2
        slots = np.full(size, _EMPTY, np.int32)
        fill_slots(self.data, self.offsets, slots)
        self.slots = freeze(slots)

    @classmethod
    def of(cls, data: UInt8, offsets: Int64, slots: Int32) -> WordIndex:
        """Make from arrays that were built before, which may be mapped into memory."""
        index = cls.__new__(cls)
        index.data, index.offsets, index.slots = data, offsets, slots
        return index

    @cached_property
    def short(self) -> UInt64:
        """Words of up to :data:`SHORT` bytes, the last not 0: uint64 ``(rows, 3)``.

        A row is a word's bytes as two numbers, filled up with 0, and its own number plus 1, at its hash or at the next
        free row. Other rows are 0.
        """
        size = 4
        while size < 2 * len(self.offsets):
            size *= 2
        rows = np.zeros((size, 3), np.uint64)
        fill_short(self.data, self.offsets, rows)
        return rows

    def numbers(self, tokens: pa.StringArray) -> Int32:
        """Find the number of each token among the words, or -1: int32 ``(len(tokens),)``."""
        data, offsets = view_strings(tokens)
        numbers = np.empty(len(tokens), np.int32)
        find_all(data, offsets, self.data, self.offsets, self.slots, numbers)
        return numbers


def view_strings(strings: pa.StringArray) -> tuple[UInt8, Int64]:
    """View the bytes of an array's buffer, and its strings' offsets, int64 ``(strings + 1,)``; both read-only."""
    large = strings.cast(pa.large_string())
    data = np.frombuffer(large.buffers()[2] or b"\0", np.uint8)
    offsets = np.frombuffer(large.buffers()[1] or bytes(8), np.int64)[large.offset : large.offset + len(large) + 1]
    return freeze(data), freeze(offsets)


@compiled_part
def mix_byte(code: np.uint64, byte: np.uint8) -> np.uint64:
    """Compute the hash after one more byte; its first value is :data:`SEED`."""
    return (code ^ np.uint64(byte)) * _FACTOR


@compiled_part
def hash_bytes(data: UInt8, start: int, stop: int) -> np.uint64:
    """Compute the hash of the bytes from ``start`` to ``stop``."""
    code = SEED
    for offset in range(start, stop):
        code = mix_byte(code, data[offset])
    return code


@compiled_part
def _slot(code: np.uint64, mask: np.uint64) -> np.uint64:
    return (code ^ (code >> np.uint64(29))) & mask


@compiled
def fill_slots(data: UInt8, offsets: Int64, slots: Int32) -> None:
    """Put each word's number into the first free slot from its hash on (open addressing)."""
    mask = np.uint64(len(slots) - 1)
    for word in range(len(offsets) - 1):
        slot = _slot(hash_bytes(data, offsets[word], offsets[word + 1]), mask)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word


@compiled
def find(code: np.uint64, word: UInt8, length: int, data: UInt8, offsets: Int64, slots: Int32) -> int:
    """Find the number of the word in ``word``, or -1."""
    mask = np.uint64(len(slots) - 1)
    slot = _slot(code, mask)
    while slots[slot] >= 0:
        word_number = slots[slot]
        start = offsets[word_number]
        if offsets[word_number + 1] - start == length:
            matched = 0
            while matched < length and data[start + matched] == word[matched]:
                matched += 1
            if matched == length:
                return int(word_number)
        slot = (slot + np.uint64(1)) & mask
    return -1


@compiled
def find_all(tokens: UInt8, token_offsets: Int64, data: UInt8, offsets: Int64, slots: Int32, out: Int32) -> None:
    """Find the number of each token, or -1."""
    for token in range(len(out)):
        start, stop = token_offsets[token], token_offsets[token + 1]
        code = hash_bytes(tokens, start, stop)
        out[token] = find(code, tokens[start:stop], stop - start, data, offsets, slots)


@compiled
def fill_short(data: UInt8, offsets: Int64, rows: UInt64) -> None:
    """Fill the rows of :attr:`WordIndex.short`."""
    for word in range(len(offsets) - 1):
        start, stop = offsets[word], offsets[word + 1]
        if 0 < stop - start <= SHORT and data[stop - 1] != 0:
            first, second = np.uint64(0), np.uint64(0)
            for offset in range(stop - 1, start - 1, -1):
                second = second << np.uint64(8) | first >> np.uint64(56)
                first = first << np.uint64(8) | np.uint64(data[offset])
            row = find_short(first, second, rows)
            if rows[row, 2] == 0:
                rows[row, 0], rows[row, 1], rows[row, 2] = first, second, word + 1


@inlined
def find_short(first: np.uint64, second: np.uint64, rows: UInt64) -> np.uint64:
    """Find the row of a word given as two numbers, the first byte lowest, or return 0."""
    mask = np.uint64(len(rows) - 1)
    code = (first ^ (second << np.uint64(31) | second >> np.uint64(33))) * _MIX
    row = (code >> np.uint64(32)) & mask
    while rows[row, 2] and (rows[row, 0] != first or rows[row, 1] != second):
        row = (row + np.uint64(1)) & mask
    return row
