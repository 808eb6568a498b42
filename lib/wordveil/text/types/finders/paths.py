"""Automata for paths of files, and for mail addresses in disguise."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.addresses import match_domain, match_label
from wordveil.text.types.finders.characters import (
    JOINER,
    NONE,
    WORD,
    Whole,
    byte_at,
    byte_before,
    letter_at,
    skip_blanks,
    skip_word,
    step_back,
    word_at,
    word_before,
)


@compiled_part
def match_path(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8
) -> tuple[Whole, Whole]:
    r"""Match a file's path from the slash or backslash at an offset; return start and end, or -1.

    ``~``, dots or a drive may be before it. It has two parts (``/home/john``), or one after ``~`` or a drive.

    ``~``, dots or a drive may be before it. It has two parts (``/home/john``), or one after ``~`` or a drive.
    """
    slash = np.int64(data[offset])
    start, least = offset, 2
    while start > floor and start > offset - 2 and data[start - 1] == 0x2E:
        start -= 1
    if byte_before(data, start, floor) == 0x7E:
        start, least = start - 1, 1
    elif (
        byte_before(data, start, floor) == 0x3A
        and start - 2 >= floor
        and letter_at(data, start - 2, end)[1] == 1
        and not word_before(data, start - 2, begin, end, characters)
    ):
        start, least = start - 2, 1
    before = byte_before(data, start, begin)
    if before in (0x2F, 0x5C, 0x3C, 0x2E) or word_before(data, start, begin, end, characters):
        return NONE, NONE
    if slash == 0x5C and byte_at(data, offset + 1, end) == 0x5C:
        offset += 1
    parts, stop = 0, NONE
    while byte_at(data, offset, end) == slash and word_at(data, offset + 1, end, characters) > 0:
        offset = stop = skip_word(data, offset + 1, end, characters)
        parts += 1
        while offset < end and data[offset] < 0x80 and characters[data[offset]] & (WORD | JOINER):
            offset += 1
            if characters[data[offset - 1]] & WORD:
                stop = offset
    if parts < least:
        return NONE, NONE
    return start, offset + 1 if stop == offset and byte_at(data, offset, end) == slash else stop


@compiled_part
def _local_start(data: UInt8, floor: Whole, stop: Whole, end: Whole, characters: UInt8) -> Whole:
    """Find the beginning of the name before an offset, the offset itself if there is none."""
    start = stop
    while start > floor and stop - start < 64:
        before = step_back(data, start)
        byte = np.int64(data[before])
        if before < floor or (
            not (byte < 0x80 and characters[byte] & JOINER) and word_at(data, before, end, characters) == 0
        ):
            break
        start = before
    while start < stop and word_at(data, start, end, characters) == 0:
        start += 1
    return start


@compiled_part
def _skip_word_sign(data: UInt8, offset: Whole, end: Whole, characters: UInt8, first: Whole, last: Whole) -> Whole:
    """Skip "at" or "dot", by its first and last letter, with blanks and brackets around it; return -1 for others."""
    offset = skip_blanks(data, offset, end, characters)
    if byte_at(data, offset, end) in (0x28, 0x5B, 0x7B):
        offset = skip_blanks(data, offset + 1, end, characters)
    stop = skip_word(data, offset, end, characters)
    length = 2 if first == 0x61 else 3
    middle = length == 2 or byte_at(data, offset + 1, end) | 0x20 == 0x6F
    if stop - offset != length or data[offset] | 0x20 != first or data[stop - 1] | 0x20 != last or not middle:
        return NONE
    stop = skip_blanks(data, stop, end, characters)
    if byte_at(data, stop, end) in (0x29, 0x5D, 0x7D):
        stop = skip_blanks(data, stop + 1, end, characters)
    return stop


@compiled_part
def match_disguised(
    data: UInt8, begin: Whole, floor: Whole, bracket: Whole, end: Whole, characters: UInt8
) -> tuple[Whole, Whole]:
    """Match the address whose ``@`` is written ``[at]`` or ``(at)``; return start and end, -1 if there is none."""
    host = _skip_word_sign(data, bracket, end, characters, 0x61, 0x74)
    if host < 0 or word_at(data, host, end, characters) == 0:
        return NONE, NONE
    local = bracket
    while local > floor and local > bracket - 2 and data[local - 1] == 0x20:
        local -= 1
    start = _local_start(data, floor, local, end, characters)
    if start == local or word_before(data, start, begin, end, characters):
        return NONE, NONE
    stop = match_label(data, host, end, characters)
    while stop >= 0:
        if byte_at(data, stop, end) == 0x2E:
            following = stop + 1
        else:
            following = _skip_word_sign(data, stop, end, characters, 0x64, 0x74)
        if following < 0 or word_at(data, following, end, characters) == 0:
            break
        stop = skip_word(data, following, end, characters)
    return (start, stop) if stop >= 0 else (NONE, NONE)


@compiled_part
def match_encoded(data: UInt8, start: Whole, stop: Whole, end: Whole, characters: UInt8, names: Int64) -> Whole:
    """Match the address whose ``@`` is written ``%40``; return its end, -1 if there is none.

    Its name begins a run of letters and ``._%+-``.
    """
    for sign in range(start + 1, stop - 3):
        if data[sign] == 0x25 and data[sign + 1] == 0x34 and data[sign + 2] == 0x30:
            last = match_domain(data, sign + 3, end, characters, names)
            return last if last >= 0 else match_label(data, sign + 3, end, characters)
    return NONE
