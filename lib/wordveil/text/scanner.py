"""Texts to token ids in one compiled pass over their bytes, for policies that copy nothing.

The pass knows the characters below U+0300 and general punctuation (U+2000 to U+206F), which are in normalisation form C or
separate words either way; what class and lower case they have is asked of Arrow, by the tokeniser's own patterns, when a scanner is made. A
text with any other character is *hard*: it is left to Arrow. So both give the same ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.compiled import compiled
from wordveil.text.tokeniser import Tokeniser

UInt8 = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Whole = Any
"""An int64 of compiled code, where Python would have an int."""

_LOW, _PUNCTUATION, _PUNCTUATION_END = 0x300, 0x2000, 0x2070
_KNOWN = _LOW + _PUNCTUATION_END - _PUNCTUATION
# Classes of characters.
_OTHER, _WORD, _INNER, _HARD = 0, 1, 2, 3
_EMPTY = np.int32(-1)
_LONGEST = 2**31 - 1
# FNV-1a, 64 bits.
_SEED, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@dataclass(frozen=True)
class Scanned:
    """Texts as ids of all their words.

    Attributes
    ----------
    ids: int32 ``(tokens,)``, numbers of the scanner's words; -1 for others.
    digits: bool ``(tokens,)``, whether the word has a digit.
    offsets: int64 ``(records + 1,)``.
    hard: bool ``(records,)``, texts that were left out: they have no tokens here.
    """

    ids: Int32
    digits: NDArray[np.bool_]
    offsets: Int64
    hard: NDArray[np.bool_]


class Scanner:
    """Finds ``words`` (string array without duplicates, in the form in which texts' words are looked up) in texts.

    ``tokeniser`` is of the kind ``words``; ``lower``: whether words are looked up in lower case.
    """

    def __init__(self, tokeniser: Tokeniser, words: pa.StringArray, *, lower: bool) -> None:
        self._kinds, self._digit, self._lower = _characters(tokeniser, lower=lower)
        plain = words.cast(pa.large_string())
        self._offsets = np.frombuffer(plain.buffers()[1], np.int64)[plain.offset : plain.offset + len(plain) + 1]
        self._bytes = np.frombuffer(plain.buffers()[2] or b"\0", np.uint8)
        size = 4
        while size < 3 * len(words):
            size *= 2
        self._slots = np.full(size, _EMPTY, np.int32)
        fill_slots(self._bytes, self._offsets, self._slots)

    def scan(self, texts: pa.StringArray) -> Scanned:
        """``texts``: string array without nulls, valid UTF-8, not normalised."""
        offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(texts.buffers()[2] or b"\0", np.uint8)
        # A word takes a byte and all but the last of a text another to end it.
        most = (int(offsets[-1]) - int(offsets[0]) + len(texts)) // 2 + 1
        ids, digits = np.empty(most, np.int32), np.empty(most, np.bool_)
        bounds, hard = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts), np.bool_)
        room = np.empty(2 * int(np.diff(offsets).max(initial=0)) + 8, np.uint8)
        scan_texts(
            data,
            offsets,
            self._kinds,
            self._digit,
            self._lower,
            self._bytes,
            self._offsets,
            self._slots,
            room,
            ids,
            digits,
            bounds,
            hard,
        )
        return Scanned(ids[: bounds[-1]], digits[: bounds[-1]], bounds, hard)


def join_words(words: pa.StringArray, ids: Int32, offsets: Int64) -> pa.StringArray | None:
    """Texts of the words ``ids`` with spaces between; ids from ``len(words)`` on leave no trace. None where they pass 2 GiB.

    ``ids``: int32 ``(tokens,)``; ``offsets``: int64 ``(records + 1,)``. Returns a string array ``(records,)``.
    """
    starts = np.frombuffer(words.buffers()[1], np.int32)[words.offset : words.offset + len(words) + 1]
    data = np.frombuffer(words.buffers()[2] or b"\0", np.uint8)
    bounds = np.zeros(len(offsets), np.int64)
    measure_texts(starts, ids, offsets, bounds)
    if bounds[-1] > _LONGEST:
        return None
    out = np.empty(max(int(bounds[-1]), 1), np.uint8)
    write_texts(data, starts, ids, offsets, bounds, out)
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out)]
    return pa.StringArray.from_buffers(len(offsets) - 1, buffers[1], buffers[2])


def _characters(tokeniser: Tokeniser, *, lower: bool) -> tuple[UInt8, NDArray[np.bool_], Int32]:
    """Class, digit and lower case of each known character, as the tokeniser and Arrow have them."""
    points = [*range(_LOW), *range(_PUNCTUATION, _PUNCTUATION_END)]
    characters = pa.array([chr(point) for point in points])
    kinds = np.full(_KNOWN, _OTHER, np.uint8)
    kinds[tokeniser.is_word(characters)] = _WORD
    kinds[[character in tokeniser.inner for character in characters.to_pylist()]] = _INNER
    lowered = pc.utf8_lower(characters).to_pylist() if lower else characters.to_pylist()
    mapped = np.array([ord(form) if len(form) == 1 and ord(form) < _LOW else -1 for form in lowered], np.int32)
    kinds[(mapped < 0) & (kinds == _WORD)] = _HARD
    # A word that is copied apart from its neighbours is the same in normalisation form C as within them.
    stable = np.asarray(pc.equal(pc.utf8_normalize(characters, form="NFC"), characters)) | (kinds == _OTHER)
    kinds[~stable] = _HARD
    digit = np.asarray(pc.match_substring_regex(characters, r"\p{N}"))
    return kinds, digit, mapped


@compiled
def _mixed(code: np.uint64, byte: np.uint8) -> np.uint64:
    return (code ^ np.uint64(byte)) * _FACTOR


@compiled
def _slot(code: np.uint64, mask: np.uint64) -> np.uint64:
    return (code ^ (code >> np.uint64(29))) & mask


@compiled
def fill_slots(data: UInt8, offsets: Int64, slots: Int32) -> None:
    """Open addressing: each word's number in the first free slot from its hash on."""
    mask = np.uint64(len(slots) - 1)
    for word in range(len(offsets) - 1):
        code = _SEED
        for place in range(offsets[word], offsets[word + 1]):
            code = _mixed(code, data[place])
        slot = _slot(code, mask)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word


@compiled
def _find(code: np.uint64, word: UInt8, length: int, data: UInt8, offsets: Int64, slots: Int32) -> int:
    """The number of the word in ``word``, or -1."""
    mask = np.uint64(len(slots) - 1)
    slot = _slot(code, mask)
    while slots[slot] >= 0:
        found = slots[slot]
        start = offsets[found]
        if offsets[found + 1] - start == length:
            place = 0
            while place < length and data[start + place] == word[place]:
                place += 1
            if place == length:
                return int(found)
        slot = (slot + np.uint64(1)) & mask
    return -1


@compiled
def _read(data: UInt8, place: Whole, kinds: UInt8) -> tuple[Whole, Whole, Whole, Whole]:
    """The character at a place: where the next one is, its code point, its row in the tables of characters, its class."""
    point = np.int64(data[place])
    if point < 0x80:
        return place + 1, point, point, np.int64(kinds[point])
    if point < 0xE0:
        point = ((point & 0x1F) << 6) | (np.int64(data[place + 1]) & 0x3F)
        if point < _LOW:
            return place + 2, point, point, np.int64(kinds[point])
        return place + 2, point, 0, _HARD
    if point < 0xF0:
        point = ((point & 0x0F) << 12) | ((np.int64(data[place + 1]) & 0x3F) << 6) | (np.int64(data[place + 2]) & 0x3F)
        if _PUNCTUATION <= point < _PUNCTUATION_END:
            known = _LOW + point - _PUNCTUATION
            return place + 3, point, known, np.int64(kinds[known])
    return place + 3, point, 0, _HARD


@compiled
def _append(room: UInt8, length: int, code: np.uint64, point: Whole) -> tuple[int, np.uint64]:
    """Add a character to the word in ``room``: its new length and hash."""
    if point < 0x80:
        room[length] = point
        return length + 1, _mixed(code, room[length])
    if point < 0x800:
        room[length] = 0xC0 | (point >> 6)
        room[length + 1] = 0x80 | (point & 0x3F)
        return length + 2, _mixed(_mixed(code, room[length]), room[length + 1])
    room[length] = 0xE0 | (point >> 12)
    room[length + 1] = 0x80 | ((point >> 6) & 0x3F)
    room[length + 2] = 0x80 | (point & 0x3F)
    return length + 3, _mixed(_mixed(_mixed(code, room[length]), room[length + 1]), room[length + 2])


@compiled
def scan_texts(
    data: UInt8,
    offsets: Int32,
    kinds: UInt8,
    digit: NDArray[np.bool_],
    lower: Int32,
    words: UInt8,
    word_offsets: Int64,
    slots: Int32,
    room: UInt8,
    ids: Int32,
    digits: NDArray[np.bool_],
    bounds: Int64,
    hard: NDArray[np.bool_],
) -> None:
    """See :class:`Scanner`. ``room`` takes the longest word in the form that is looked up."""
    token = 0
    for record in range(len(offsets) - 1):
        first = token
        place: Whole = np.int64(offsets[record])
        end = np.int64(offsets[record + 1])
        length, kept = 0, 0  # of the word so far; and up to its last letter, so that a mark at its end is left out
        code, kept_code = _SEED, _SEED
        numeric: Whole = False
        after_inner = False
        while True:
            kind: Whole = _OTHER
            point: Whole = 0
            known: Whole = 0
            ended = place >= end
            if not ended:
                place, point, known, kind = _read(data, place, kinds)
            if kind == _WORD:
                length, code = _append(room, length, code, lower[known])
                kept, kept_code = length, code
                numeric |= digit[known]
                after_inner = False
            elif kind == _INNER and kept > 0 and not after_inner:
                # The two apostrophes are looked up as one.
                length, code = _append(room, length, code, 0x27 if point == 0x2019 else point)
                after_inner = True
            elif kind == _HARD:
                hard[record] = True
                token = first
                break
            else:
                if kept > 0:
                    ids[token] = _find(kept_code, room, kept, words, word_offsets, slots)
                    digits[token] = numeric
                    token += 1
                    length, kept, code = 0, 0, _SEED
                    numeric, after_inner = False, False
                if ended:
                    break
        bounds[record + 1] = token


@compiled
def measure_texts(starts: Int32, ids: Int32, offsets: Int64, bounds: Int64) -> None:
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
def write_texts(data: UInt8, starts: Int32, ids: Int32, offsets: Int64, bounds: Int64, out: UInt8) -> None:
    """The bytes of the texts."""
    words = len(starts) - 1
    for record in range(len(offsets) - 1):
        place = bounds[record]
        for token in range(offsets[record], offsets[record + 1]):
            word = ids[token]
            if word < words:
                if place > bounds[record]:
                    out[place] = 0x20
                    place += 1
                for byte in range(starts[word], starts[word + 1]):
                    out[place] = data[byte]
                    place += 1
