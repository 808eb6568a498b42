"""Scanner: texts to words in one compiled pass over their bytes.

It finds each word's place, number in an index, and case, by a table of characters (:mod:`wordveil.text.characters`).
Texts must be in normalisation form C (:meth:`wordveil.text.tokeniser.Tokeniser.normalise`). Tokens that were found
before (*spans*) are tokens here too, and end the word before them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Bool, Int8, Int32, Int64, UInt8, UInt32, UInt64
from wordveil.compiled import compiled, compiled_part, inlined, read_eight, trailing_zeros
from wordveil.embeddings.vocabulary import SEED, SHORT, WordIndex, find, find_short, mix_byte, view_strings
from wordveil.text.characters import (
    CASED,
    CLASS_MASK,
    CLASS_SHIFT,
    DIGIT,
    INNER,
    MARK,
    OTHER,
    POINT_MASK,
    REFUSED,
    RUN,
    SINGLE,
    WORD,
    row_of,
)
from wordveil.text.characters import UPPER as UPPER_BIT
from wordveil.text.types.classes import TypeSpans
from wordveil.text.types.finders.characters import Whole, decode

LOWER, CAPITAL, UPPER = 0, 1, 2
"""Case of a word: lower case, a first capital, capitals (of several letters)."""


def write_cases(words: pa.StringArray) -> pa.StringArray:
    """Write ``words`` in each case, one case after the other: string array ``(3 * words,)``."""
    return pa.concat_arrays([words, pc.utf8_capitalize(words), pc.utf8_upper(words)])


HAS_DIGIT = 4
"""Bit of a word's form that marks a digit. Its case is in the bits below."""
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
    """Mark the bytes of a block that are in plain words, and those that may be in others."""
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
    """Mark with 0x80 which of eight ASCII characters are from ``first`` to ``last``."""
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
    """Add the plain words from an offset on. Return where another word may be, or ``limit``, and the number of tokens.

    Plain words, by far the most of English text, are ASCII without U+0000 and of at most
    :data:`wordveil.embeddings.vocabulary.SHORT` bytes. They are found in blocks of 32 bytes and read eight bytes at a
    time. The results equal those of :func:`_read_word`.
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


A_WORD = -1
"""Kind of a token that is a word. A span of this kind becomes a single word."""
# Classes of characters, as they are in an entry.
_OTHER, _WORD, _MARK, _SINGLE = (kind << CLASS_SHIFT for kind in (OTHER, WORD, MARK, SINGLE))
_RUN, _INNER = (kind << CLASS_SHIFT for kind in (RUN, INNER))
# How a word is written: its case, HAS_DIGIT, and bits.
_CASES, _IS_RUN, _IS_REFUSED = 3, 8, 16


@dataclass(frozen=True)
class Scanned:
    """Tokens of texts.

    ``starts``, ``ends``: int32 ``(tokens,)``, byte offsets into the buffer of ``texts``. ``offsets``: int64 ``(records
    + 1,)``. ``numbers``: int32 ``(tokens,)``, numbers in the index; -1 for other words and for spans. ``kinds``: int8
    ``(tokens,)``, the kinds of spans, or :data:`A_WORD`. ``forms``: uint8 ``(tokens,)``, how words are written.
    ``refused``: bool ``(records,)``, texts with letters outside spans of a script that the tokeniser does not segment.
    """

    texts: pa.StringArray
    starts: Int32
    ends: Int32
    offsets: Int64
    numbers: Int32
    kinds: Int8
    forms: UInt8
    refused: Bool

    @property
    def cases(self) -> UInt8:
        """Case of each word, as :func:`_find_form` defines it."""
        return self.forms & np.uint8(_CASES)

    @property
    def has_digit(self) -> Bool:
        """Mask of words that have a digit."""
        return np.asarray(self.forms & np.uint8(HAS_DIGIT), np.bool_)

    @property
    def is_run(self) -> Bool:
        """Mask of tokens that are runs that a dictionary cuts."""
        return np.asarray(self.forms & np.uint8(_IS_RUN), np.bool_)

    @property
    def words(self) -> pa.StringArray:
        """All tokens, as the texts have them."""
        return self.cut(slice(None))

    def cut(self, chosen: Bool | NDArray[np.intp] | slice) -> pa.StringArray:
        """Cut the ``chosen`` tokens, as the texts have them."""
        return cut_strings(self.texts, self.starts[chosen], self.ends[chosen])


def cut_strings(texts: pa.StringArray, starts: Int32 | Int64, ends: Int32 | Int64) -> pa.StringArray:
    """Cut the strings of ``texts`` from ``starts`` to ``ends``, rising byte offsets into its buffer."""
    edges = np.stack([starts, ends], axis=1).astype(np.int32)  # the strings, and what is between them, in turn
    pieces = pa.StringArray.from_buffers(max(edges.size - 1, 0), pa.py_buffer(edges), texts.buffers()[2])
    return pieces.take(pa.array(np.arange(0, len(pieces), 2)))


def scan(texts: pa.StringArray, table: UInt32, index: WordIndex, spans: TypeSpans | None = None) -> Scanned:
    """Scan ``texts``, a string array without nulls, valid UTF-8, in normalisation form C."""
    if spans is None:
        none = np.empty(0, np.int64)
        spans = TypeSpans(none, none, none.astype(np.int8), np.zeros(len(texts) + 1, np.int64))
    data, offsets = view_strings(texts)
    # A word takes a byte, and another that ends it, or two and more. A span parts what is before and after it.
    most = (int(offsets[-1]) - int(offsets[0]) + len(texts) + len(spans.starts)) // 2 + len(spans.starts) + 1
    starts, ends, numbers = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    kinds, forms = np.full(most, A_WORD, np.int8), np.empty(most, np.uint8)
    bounds, refused = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts), np.bool_)
    # The longest word in the form in which it is looked up: lower case may take more bytes.
    room = np.empty(2 * int(np.diff(offsets).max(initial=0)) + 8, np.uint8)
    tables, known = (table, find_roles(table), index.short), (index.data, index.offsets, index.slots)
    scan_texts(data, offsets, *spans, *tables, room, *known, starts, ends, bounds, numbers, kinds, forms, refused)
    some = slice(bounds[-1])
    return Scanned(texts, starts[some], ends[some], bounds, numbers[some], kinds[some], forms[some], refused)


@compiled_part
def _append(room: UInt8, length: int, code: np.uint64, point: Whole) -> tuple[int, np.uint64]:
    """Add a character to the word in ``room``; return its new length and hash."""
    if point < 0x80:
        room[length] = point
        return length + 1, mix_byte(code, room[length])
    before = length
    if point < 0x800:
        room[length] = 0xC0 | (point >> 6)
        length += 1
    else:
        if point < 0x10000:
            room[length] = 0xE0 | (point >> 12)
            length += 1
        else:
            room[length] = 0xF0 | (point >> 18)
            room[length + 1] = 0x80 | ((point >> 12) & 0x3F)
            length += 2
        room[length] = 0x80 | ((point >> 6) & 0x3F)
        length += 1
    room[length] = 0x80 | (point & 0x3F)
    length += 1
    for byte in range(before, length):
        code = mix_byte(code, room[byte])
    return length, code


@compiled
def _read(data: UInt8, offset: Whole, table: UInt32) -> tuple[Whole, Whole]:
    """Read the entry of the character at an offset, and the offset of the next."""
    if data[offset] < 0x80:
        return table[data[offset]], offset + 1
    point, width = decode(data, offset)
    return table[row_of(point)], offset + width


@inlined
def _find_word(data: UInt8, offset: Whole, limit: Whole, table: UInt32) -> Whole:
    """Find the beginning of the first word from an offset on, or ``limit``."""
    while offset < limit:
        entry, after = _read(data, offset, table)
        if entry & CLASS_MASK not in (_OTHER, _INNER):
            break
        offset = after
    return offset


@compiled_part
def _find_form(first: Whole, every: Whole, several: bool, is_run: bool) -> Whole:  # noqa: FBT001
    """Compute the form of a word from its characters' entries."""
    form: Whole = LOWER
    if several and every & UPPER_BIT and not every & CASED:
        form = UPPER
    elif first & UPPER_BIT:
        form = CAPITAL
    if every & DIGIT:
        form |= HAS_DIGIT
    if every & REFUSED:
        form |= _IS_REFUSED
    return form | _IS_RUN if is_run else form


@inlined
def _read_word(
    data: UInt8,
    offset: Whole,
    limit: Whole,
    table: UInt32,
    whole: bool,  # noqa: FBT001
    room: UInt8,
) -> tuple[Whole, Whole, int, np.uint64, Whole]:
    """Read the word at an offset into ``room`` as it is looked up; up to ``limit`` if ``whole``.

    Returns its end, where to read on, its length in ``room``, its hash, and its form.
    """
    first, first_end = _read(data, offset, table)
    every: Whole = np.uint32(0)
    mode: Whole = first & CLASS_MASK
    if whole or mode == _MARK:
        mode = np.int64(_WORD)
    start, length, code = offset, 0, SEED
    # Up to the last letter, so that a sign at the end is left out.
    end, kept, kept_code = offset, length, code
    after_inner = False
    while offset < limit:
        before = offset
        if mode == _WORD:
            # Single-byte letters and digits, by far the most there is.
            while offset < limit and data[offset] < 0x80 and table[data[offset]] & CLASS_MASK == _WORD:
                entry: Whole = table[data[offset]]
                room[length] = entry & 0x7F
                code = mix_byte(code, room[length])
                every |= entry
                length += 1
                offset += 1
        if offset == before:
            entry, after = _read(data, offset, table)
            kind = entry & CLASS_MASK
            is_inner = kind == _INNER and mode == _WORD and not after_inner
            # A mark continues whatever it follows.
            continues = whole or is_inner or kind == _MARK or (kind == mode and mode != _SINGLE)
            if not continues and offset > start:
                break
            length, code = _append(room, length, code, np.int64(entry & POINT_MASK))
            offset = after
            if is_inner and not whole:
                after_inner = True
                continue
            every |= entry
        end, kept, kept_code, after_inner = offset, length, code, False
    return end, offset, kept, kept_code, _find_form(first, every, end > first_end, mode == _RUN)


@compiled
def scan_texts(
    data: UInt8,
    offsets: Int64,
    span_starts: Int64,
    span_ends: Int64,
    span_kinds: Int8,
    span_offsets: Int64,
    table: UInt32,
    roles: UInt64,
    short: UInt64,
    room: UInt8,
    words: UInt8,
    word_offsets: Int64,
    slots: Int32,
    starts: Int32,
    ends: Int32,
    bounds: Int64,
    numbers: Int32,
    kinds: Int8,
    forms: UInt8,
    refused: Bool,
) -> None:
    """Fill the arrays of :func:`scan`. Those from ``starts`` on have room for the most tokens possible."""
    token = 0
    lower = table[ord("A")] & POINT_MASK == ord("a")
    for record in range(len(offsets) - 1):
        offset: Whole = offsets[record]
        for span in range(span_offsets[record], span_offsets[record + 1] + 1):
            is_last = span == span_offsets[record + 1]
            limit = offsets[record + 1] if is_last else span_starts[span]
            whole = False
            while True:
                if not whole:
                    offset, token = read_plain(
                        data, offset, limit, roles, lower, short, starts, ends, numbers, forms, token
                    )
                    offset = _find_word(data, offset, limit, table)
                if offset < limit:
                    end, after, length, code, form = _read_word(data, offset, limit, table, whole, room)
                    refused[record] |= form & _IS_REFUSED != 0
                    starts[token], ends[token], forms[token] = offset, end, form
                    numbers[token] = find(code, room, length, words, word_offsets, slots)
                    token += 1
                    offset = after
                elif whole or is_last or span_kinds[span] != A_WORD:
                    break
                else:  # the span is a word
                    whole = True
                    limit = span_ends[span]
            if not is_last and not whole:
                starts[token], ends[token], kinds[token] = limit, span_ends[span], span_kinds[span]
                numbers[token], forms[token] = -1, LOWER
                token += 1
                offset = span_ends[span]
        bounds[record + 1] = token
