"""Plain words, by far the most of English text: ASCII characters alone, up to a short length.

None of the characters is U+0000, and there are at most :data:`wordveil.embeddings.vocabulary.SHORT` bytes. Words are
found in blocks of 32 bytes and read eight bytes at a time. The scanner (:mod:`wordveil.text.scanner`) defines words;
the results here equal its own.
"""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int32, UInt8, UInt32, UInt64
from wordveil.compiled import inlined, read_eight, trailing_zeros
from wordveil.embeddings.vocabulary import SHORT, find_short
from wordveil.text.cases import CAPITAL, UPPER
from wordveil.text.characters import CLASS_MASK, CLASS_SHIFT, INNER, OTHER, WORD
from wordveil.text.types.finders.characters import Whole

HAS_DIGIT = 4
"""Bit of a word's form that is set if it has a digit. Its case is in the bits below."""
_BLOCK = 32
# What a byte is here: no part of a word, a letter, neither of both, or inside a word where it stands alone. Two bits
# that far apart, so that one number takes those of a block.
_GAP, _LETTER, _STRANGE, _SIGN = 0, 1, 2**_BLOCK, 2**_BLOCK + 1
_ALL, _LAST = np.uint64(2**_BLOCK - 1), np.uint64(2 ** (_BLOCK - 1))
_ONES = 0x0101010101010101
_FIRST_BYTES = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)
_1, _2, _7, _8 = (np.uint64(number) for number in (1, 2, 7, 8))


def find_roles(table: UInt32) -> UInt64:
    """Compute the role of each byte in plain words, by a table of characters: uint64 ``(256,)``."""
    roles = np.full(0x100, _STRANGE, np.uint64)
    for kind, role in ((OTHER, _GAP), (WORD, _LETTER), (INNER, _SIGN)):
        roles[:0x80][table[:0x80] & CLASS_MASK == kind << CLASS_SHIFT] = role
    roles[0] = _STRANGE
    return roles


@inlined
def _mark(data: UInt8, offset: Whole, count: Whole, roles: UInt64) -> tuple[np.uint64, np.uint64]:
    """Mark the bytes of a block that are in plain words, and those that may be in others: a bit for each."""
    marks = np.uint64(0)
    for byte in range(offset + count - 1, offset - 1, -1):
        marks = (marks << _1) | roles[data[np.uint64(byte)]]
    low, high = marks & _ALL, marks >> np.uint64(_BLOCK)
    letters, signs, strange = low & ~high, low & high, high & ~low
    # A sign is inside a word between two letters. The byte after the block's last is not known here.
    inside = signs & (letters << _1) & (letters >> _1)
    return letters | inside, strange | (signs & (strange >> _1 | _LAST))


@inlined
def _between(word: np.uint64, first: int, last: int) -> np.uint64:
    """Mark which of eight ASCII characters are from one to another: 0x80 in their bytes."""
    reach, exceed = word + np.uint64((0x80 - first) * _ONES), word + np.uint64((0x7F - last) * _ONES)
    return reach & ~exceed & np.uint64(0x80 * _ONES)


@inlined
def read_plain(
    data: UInt8,
    offset: Whole,
    limit: Whole,
    roles: UInt64,
    lower: bool,  # noqa: FBT001
    short: UInt64,
    starts: Int32,
    ends: Int32,
    numbers: Int32,
    forms: UInt8,
    token: int,
) -> tuple[Whole, int]:
    """Add the plain words from an offset on, up to where another word may be.

    Returns that offset, otherwise ``limit``, and the number of tokens. ``lower``: whether words are looked up in lower
    case.
    """
    fold = ~np.uint64(0) if lower else np.uint64(0)
    is_plain = True
    while is_plain and offset < limit:
        count = min(limit - offset, _BLOCK)
        words, strange = _mark(data, offset, count, roles)
        end = np.uint64(0)  # in the block, as all from here on
        while True:
            left = (words | strange) >> end
            if left == 0:
                offset += count
                break
            begin = end + trailing_zeros(left)
            size = trailing_zeros(~(words >> begin))
            end = begin + size
            start = offset + np.int64(begin)
            if end == _BLOCK and begin > 0:  # the word may go on
                offset = start
                break
            # Not plain, or too close to the end of the buffer to be read at once.
            if size == 0 or size > SHORT or (strange >> end) & _1 or start + SHORT > len(data):
                offset, is_plain = start, False
                break
            first = read_eight(data, start) & _FIRST_BYTES[min(size, _8)]
            second = read_eight(data, start + 8) & _FIRST_BYTES[max(size, _8) - _8]
            upper, upper_2 = _between(first, 0x41, 0x5A), _between(second, 0x41, 0x5A)
            small = _between(first, 0x61, 0x7A) | _between(second, 0x61, 0x7A)
            digit = _between(first, 0x30, 0x39) | _between(second, 0x30, 0x39)
            is_upper = size > 1 and upper | upper_2 != 0 and small == 0
            form = np.uint64(UPPER) if is_upper else (upper >> _7) & np.uint64(CAPITAL)
            row = find_short(first | (upper >> _2 & fold), second | (upper_2 >> _2 & fold), short)
            starts[token], ends[token], numbers[token] = start, offset + np.int64(end), np.int64(short[row, 2]) - 1
            forms[token] = form | np.uint64(HAS_DIGIT) if digit != 0 else form
            token += 1
    return offset, token
