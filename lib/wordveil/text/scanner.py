"""Texts to token ids in one compiled pass over their bytes, for policies that copy nothing.

The pass knows the characters below U+0590 (Latin, Greek, Cyrillic, Armenian) and from U+2000 to U+2BFF (punctuation and
symbols) but for combining marks: they are in normalisation form C, or separate words either way. Arrow and the
tokeniser's own patterns say what class and lower case they have, when a scanner is made. A text with any other
character is *hard*: it is left to Arrow. So both give the same ids.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Int32, Int64, UInt8
from wordveil.compiled import compiled
from wordveil.embeddings.vocabulary import SEED, WordIndex, find, mix_byte, view_strings
from wordveil.text.tokeniser import Tokeniser
from wordveil.text.types.finders.characters import Whole, decode

_LOW, _PUNCTUATION, _PUNCTUATION_END = 0x590, 0x2000, 0x2C00
_KNOWN = _LOW + _PUNCTUATION_END - _PUNCTUATION
# Classes of characters.
_OTHER, _WORD, _INNER, _HARD = 0, 1, 2, 3
_LONGEST = 2**31 - 1


class Characters(NamedTuple):
    """What the scanner knows of characters, by their rows in its tables.

    Attributes
    ----------
    kinds
        uint8 ``(characters,)``, their classes.
    digit
        bool ``(characters,)``, whether they are digits.
    lower
        int32 ``(characters,)``, the code point as which they are looked up.
    plain
        uint8 ``(128,)``, the same of single bytes.
    """

    kinds: UInt8
    digit: NDArray[np.bool_]
    lower: Int32
    plain: UInt8


class Scanned(NamedTuple):
    """Texts as ids of all their words.

    Attributes
    ----------
    ids
        int32 ``(tokens,)``, numbers of the scanner's words; -1 for others.
    digits
        bool ``(tokens,)``, whether the word has a digit.
    offsets
        int64 ``(records + 1,)``.
    hard
        bool ``(records,)``, texts that were left out: they have no tokens here.
    """

    ids: Int32
    digits: NDArray[np.bool_]
    offsets: Int64
    hard: NDArray[np.bool_]


class Scanner:
    """Finds the words of ``index`` in texts. ``tokeniser`` is of the kind ``words``; ``lower``: whether words are
    looked up in lower case.
    """

    def __init__(self, tokeniser: Tokeniser, index: WordIndex, *, lower: bool) -> None:
        self._characters = _find_characters(tokeniser, lower=lower)
        self._index = (index.data, index.offsets, index.slots)

    def scan(self, texts: pa.StringArray) -> Scanned:
        """``texts``: string array without nulls, valid UTF-8, not normalised."""
        data, offsets = view_strings(texts)
        # Each word takes a byte, and each but the last of a text another byte that ends it.
        largest = (int(offsets[-1]) - int(offsets[0]) + len(texts)) // 2 + 1
        scanned = Scanned(
            np.empty(largest, np.int32),
            np.empty(largest, np.bool_),
            np.zeros(len(texts) + 1, np.int64),
            np.zeros(len(texts), np.bool_),
        )
        room = np.empty(2 * int(np.diff(offsets).max(initial=0)) + 8, np.uint8)
        scan_texts(data, offsets, self._characters, *self._index, room, scanned)
        count = scanned.offsets[-1]
        return scanned._replace(ids=scanned.ids[:count], digits=scanned.digits[:count])


def join_words(index: WordIndex, ids: Int32, offsets: Int64) -> pa.StringArray | None:
    """Texts of the words ``ids`` of an index with spaces between, ``(records,)``; ids of no word leave no trace. None
    where they pass 2 GiB.

    ``ids``: int32 ``(tokens,)``; ``offsets``: int64 ``(records + 1,)``.
    """
    bounds = np.zeros(len(offsets), np.int64)
    measure_texts(index.offsets, ids, offsets, bounds)
    if bounds[-1] > _LONGEST:
        return None
    out = np.empty(max(int(bounds[-1]), 1), np.uint8)
    write_texts(index.data, index.offsets, ids, offsets, bounds, out)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out))


def _find_characters(tokeniser: Tokeniser, *, lower: bool) -> Characters:
    """Ask the tokeniser and Arrow for the class, digit and lower case of each known character."""
    points = [*range(_LOW), *range(_PUNCTUATION, _PUNCTUATION_END)]
    characters = pa.array([chr(point) for point in points])
    kinds = np.full(_KNOWN, _OTHER, np.uint8)
    kinds[tokeniser.is_word(characters)] = _WORD
    kinds[[character in tokeniser.inner for character in characters.to_pylist()]] = _INNER
    lowered = pc.utf8_lower(characters).to_pylist() if lower else characters.to_pylist()
    mapped = np.array([ord(form) if len(form) == 1 and ord(form) < 0x10000 else -1 for form in lowered], np.int32)
    kinds[(mapped < 0) & (kinds == _WORD)] = _HARD
    kinds[np.asarray(pc.match_substring_regex(characters, r"\p{M}"))] = _HARD
    normal = pc.utf8_normalize(characters, form="NFC")
    changes = ~np.asarray(pc.equal(normal, characters))
    # A separator that becomes another separator still separates.
    kinds[changes & ((kinds != _OTHER) | tokeniser.is_word(normal))] = _HARD
    digit = np.asarray(pc.match_substring_regex(characters, r"\p{N}"))
    return Characters(kinds, digit, mapped, mapped[:0x80].astype(np.uint8))


@compiled
def _read(data: UInt8, offset: Whole, kinds: UInt8) -> tuple[Whole, Whole, Whole, Whole]:
    """The character at an offset: the offset of the next, its code point, its row in the tables of characters, its
    class.
    """
    point, width = decode(data, offset)
    if point < _LOW:
        return offset + width, point, point, np.int64(kinds[point])
    if _PUNCTUATION <= point < _PUNCTUATION_END:
        known = _LOW + point - _PUNCTUATION
        return offset + width, point, known, np.int64(kinds[known])
    return offset + width, point, 0, _HARD


@compiled
def _append(room: UInt8, length: int, code: np.uint64, point: Whole) -> tuple[int, np.uint64]:
    """Add a character to the word in ``room``: its new length and hash."""
    if point < 0x80:
        room[length] = point
        return length + 1, mix_byte(code, room[length])
    if point < 0x800:
        room[length] = 0xC0 | (point >> 6)
        room[length + 1] = 0x80 | (point & 0x3F)
        return length + 2, mix_byte(mix_byte(code, room[length]), room[length + 1])
    room[length] = 0xE0 | (point >> 12)
    room[length + 1] = 0x80 | ((point >> 6) & 0x3F)
    room[length + 2] = 0x80 | (point & 0x3F)
    return length + 3, mix_byte(mix_byte(mix_byte(code, room[length]), room[length + 1]), room[length + 2])


@compiled
def _plain_run(
    data: UInt8, offset: Whole, end: Whole, characters: Characters, room: UInt8, length: int, code: np.uint64
) -> tuple[Whole, int, np.uint64, Whole]:
    """Single-byte letters and digits from an offset on, by far the most there is, added to the word; and whether there
    was a digit.
    """
    kinds, digit, _, plain = characters
    numeric: Whole = False
    while offset < end and data[offset] < 0x80 and kinds[data[offset]] == _WORD:
        room[length] = plain[data[offset]]
        code = mix_byte(code, room[length])
        numeric |= digit[data[offset]]
        length += 1
        offset += 1
    return offset, length, code, numeric


@compiled
def scan_texts(
    data: UInt8,
    offsets: Int64,
    characters: Characters,
    words: UInt8,
    word_offsets: Int64,
    slots: Int32,
    room: UInt8,
    scanned: Scanned,
) -> None:
    """See :class:`Scanner`. ``room`` takes the longest word in the form in which it is looked up; ``scanned`` has room
    for as many words as there can be.
    """
    kinds, digit, lower, _ = characters
    ids, digits, bounds, hard = scanned
    token = 0
    for record in range(len(offsets) - 1):
        first = token
        offset: Whole = offsets[record]
        end = offsets[record + 1]
        length, kept = 0, 0  # of the word so far; and up to its last letter, so that a mark at its end is left out
        code, kept_code = SEED, SEED
        numeric: Whole = False
        after_inner = False
        while True:
            kind: Whole = _OTHER
            point: Whole = 0
            known: Whole = 0
            ended = offset >= end
            if not ended:
                before = offset
                offset, length, code, has_digit = _plain_run(data, offset, end, characters, room, length, code)
                if offset > before:
                    kept, kept_code = length, code
                    numeric |= has_digit
                    after_inner = False
                    continue
                offset, point, known, kind = _read(data, offset, kinds)
            if kind == _WORD:
                length, code = _append(room, length, code, lower[known])
                kept, kept_code = length, code
                numeric |= digit[known]
                after_inner = False
            elif kind == _INNER and kept > 0 and not after_inner:
                # Both apostrophes are looked up as the same.
                length, code = _append(room, length, code, 0x27 if point == 0x2019 else point)
                after_inner = True
            elif kind == _HARD:
                hard[record] = True
                token = first
                break
            else:
                if kept > 0:
                    ids[token] = find(kept_code, room, kept, words, word_offsets, slots)
                    digits[token] = numeric
                    token += 1
                    length, kept, code = 0, 0, SEED
                    numeric, after_inner = False, False
                if ended:
                    break
        bounds[record + 1] = token


@compiled
def measure_texts(starts: Int64, ids: Int32, offsets: Int64, bounds: Int64) -> None:
    """``bounds``: where each text ends."""
    words = len(starts) - 1
    total = 0
    for record in range(len(offsets) - 1):
        some = 0
        for token in range(offsets[record], offsets[record + 1]):
            word = ids[token]
            if word < words:
                total += starts[word + 1] - starts[word] + some
                some = 1
        bounds[record + 1] = total


@compiled
def write_texts(data: UInt8, starts: Int64, ids: Int32, offsets: Int64, bounds: Int64, out: UInt8) -> None:
    """The bytes of the texts."""
    words = len(starts) - 1
    for record in range(len(offsets) - 1):
        offset = bounds[record]
        for token in range(offsets[record], offsets[record + 1]):
            word = ids[token]
            if word < words:
                if offset > bounds[record]:
                    out[offset] = 0x20
                    offset += 1
                for byte in range(starts[word], starts[word + 1]):
                    out[offset] = data[byte]
                    offset += 1
