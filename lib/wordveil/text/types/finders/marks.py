"""Automata for markup, hashtags, emoji, paths of files, disguised mail addresses, and accounts of letters."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.addresses import match_domain, match_label
from wordveil.text.types.finders.characters import (
    AN_ATTRIBUTE,
    BLANK,
    EMOJI,
    JOINER,
    NONE,
    POINTS,
    PRESENT,
    WORD,
    Whole,
    byte_at,
    byte_before,
    contains,
    decode,
    is_digit,
    letter_at,
    read_name,
    semicolon_at,
    skip_blanks,
    skip_digits,
    skip_word,
    step_back,
    word_at,
    word_before,
)

_JOINER, _SHOWN, _KEYCAP, _TEXT_SIGNS = 0x200D, 0xFE0F, 0x20E3, 0x2600
_FLAG, _FLAG_END, _TONE, _TONE_END = 0x1F1E6, 0x1F200, 0x1F3FB, 0x1F400
_TAG, _TAG_END, _LAST_TAG = 0xE0020, 0xE0080, 0xE007F
_IBAN_COUNTRIES = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28
EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26
IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28
NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25
SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
"""
# Number of letters and digits of a country's IBAN; country AA is 0 and ZZ is 675.
_IBAN = np.zeros(676, np.int64)
for _entry in _IBAN_COUNTRIES.split():
    _IBAN[(ord(_entry[0]) - 65) * 26 + ord(_entry[1]) - 65] = int(_entry[2:])


@compiled_part
def _is_blank(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    return offset < end and data[offset] < 0x80 and characters[data[offset]] & BLANK != 0


@compiled_part
def _skip_value(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip the value of an attribute at an offset, quoted or not; return -1 if there is none."""
    quote = byte_at(data, offset, end)
    if quote in (0x22, 0x27):
        offset += 1
        while offset < end and data[offset] != quote and data[offset] != 0x3C:
            offset += 1
        return offset + 1 if byte_at(data, offset, end) == quote else NONE
    first = offset
    while (
        offset < end and data[offset] not in (0x22, 0x27, 0x3C, 0x3E) and not _is_blank(data, offset, end, characters)
    ):
        offset += 1
    return offset if offset > first else NONE


@compiled_part
def _match_element(data: UInt8, offset: Whole, end: Whole, characters: UInt8, names: Int64) -> Whole:
    """Match the tag whose name begins at an offset, without a second ``<``; return its end or -1."""
    while True:
        width = letter_at(data, offset, end)[1]
        byte = byte_at(data, offset, end)
        coloned = byte in (0x3A, 0x2D) and letter_at(data, offset + 1, end)[1] > 0
        if width == 0 and (is_digit(byte) or coloned):
            width = np.int64(1)
        if width == 0:
            break
        offset += width
    while True:
        first = offset
        while _is_blank(data, offset, end, characters) or byte_at(data, offset, end) == 0x2F:
            offset += 1
        if byte_at(data, offset, end) == 0x3E:
            return offset + 1
        if offset == first:
            return NONE
        name = offset
        while offset < end and data[offset] not in (0x22, 0x27, 0x2F, 0x3C, 0x3D, 0x3E):
            if _is_blank(data, offset, end, characters):
                break
            offset += 1
        if offset == name:
            return NONE
        equals = offset
        while _is_blank(data, equals, end, characters):
            equals += 1
        if byte_at(data, equals, end) == 0x3D:
            offset = equals + 1
            while _is_blank(data, offset, end, characters):
                offset += 1
            offset = _skip_value(data, offset, end, characters)
            if offset < 0:
                return NONE
        elif not contains(names, AN_ATTRIBUTE, read_name(data, name, offset, characters)[0]):
            return NONE


@compiled_part
def match_tag(data: UInt8, offset: Whole, end: Whole, characters: UInt8, names: Int64) -> Whole:
    """Match the tag, declaration or comment at the ``<``; return its end, -1, or -2 for an unended comment."""
    mark = byte_at(data, offset + 1, end)
    if mark == 0x21 and byte_at(data, offset + 2, end) == 0x2D and byte_at(data, offset + 3, end) == 0x2D:
        i = offset + 4
        while i + 2 < end:
            if data[i] == 0x2D and data[i + 1] == 0x2D and data[i + 2] == 0x3E:
                return i + 3
            i += 1
        return np.int64(-2)
    if mark in (0x21, 0x3F):  # <!DOCTYPE html>, <?xml version="1.0"?>
        i = offset + 2
        if letter_at(data, i, end)[1] == 0:
            return NONE
        while i < end and data[i] != 0x3C and data[i] != 0x3E:
            i += 1
        return i + 1 if byte_at(data, i, end) == 0x3E else NONE
    first = offset + 2 if mark == 0x2F else offset + 1
    return _match_element(data, first, end, characters, names) if letter_at(data, first, end)[1] > 0 else NONE


@compiled_part
def match_entity(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Match the character entity at the ``&`` at an offset (&amp; &#39; &#x27;); return its end, or -1."""
    i = offset + 1
    if byte_at(data, i, end) == 0x23:
        i += 1
        if byte_at(data, i, end) | 0x20 == 0x78:
            first = i + 1
            i = first
            while i < end and i - first < 7:
                byte = np.int64(data[i])
                if not (is_digit(byte) or 0x61 <= byte | 0x20 <= 0x66):
                    break
                i += 1
        else:
            first = i
            i = skip_digits(data, i, min(end, i + 8))
        most = 7
        count = i - first
    else:
        most, count = 31, np.int64(0)
        while count <= most:
            width = letter_at(data, i, end)[1]
            if width == 0 and count > 1 and is_digit(byte_at(data, i, end)):
                width = np.int64(1)
            if width == 0:
                break
            count += 1
            i += width
        count -= count == 1  # names have two letters and more
    width = semicolon_at(data, i, end)
    return i + width if 1 <= count <= most and width > 0 else NONE


@compiled_part
def match_hashtag(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match ``#topic`` with a letter at an offset; return its end or -1."""
    first = offset + 1
    i = first
    lettered = False
    while True:
        width = word_at(data, i, end, characters)
        if width == 0:
            return i if lettered else NONE
        lettered |= not is_digit(np.int64(data[i])) and data[i] != 0x5F
        i += width


@compiled_part
def match_keycap(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Match a keycap at the digit, ``#`` or ``*`` at an offset; return its end or -1."""
    i = offset + 1
    if byte_at(data, i, end) == 0xEF:
        point, width = decode(data, i)
        if point != _SHOWN:
            return NONE
        i += width
    if byte_at(data, i, end) == 0xE2:
        point, width = decode(data, i)
        if point == _KEYCAP:
            return i + width
    return NONE


@compiled_part
def _match_element_of_emoji(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> tuple[Whole, Whole]:
    """Match an emoji without joiners. Return its end or -1, and whether it is an emoji without what follows."""
    if byte_at(data, offset, end) < 0xC2:
        return NONE, False
    point, width = decode(data, offset)
    if point >= POINTS or not characters[point] & EMOJI:
        return NONE, False
    offset += width
    shown = characters[point] & PRESENT != 0 or point >= _TEXT_SIGNS
    if _FLAG <= point < _FLAG_END:
        if byte_at(data, offset, end) == 0xF0:
            second, width = decode(data, offset)
            if _FLAG <= second < _FLAG_END:
                return offset + width, True
        return NONE, False
    if offset < end and data[offset] >= 0xC2:
        after, width = decode(data, offset)
        toned = _TONE <= after < _TONE_END and (characters[after] & EMOJI) != 0 and after < _TONE + 5
        if after == _SHOWN or toned:
            offset += width
            shown = True
    if byte_at(data, offset, end) == 0xEF:  # a person's sign may have both
        after, width = decode(data, offset)
        if after == _SHOWN:
            offset += width
    tags = offset
    while byte_at(data, tags, end) == 0xF3:
        after, width = decode(data, tags)
        if not _TAG <= after < _TAG_END:
            break
        tags += width
        if after == _LAST_TAG:
            offset = tags
            break
    return offset, shown


@compiled_part
def match_emoji(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match the emoji at an offset, with its modifiers and all joined parts; return its end or -1.

    After the grammar of Unicode's Technical Standard 51. Signs below U+2600, such as the copyright sign and arrows, are
    an emoji only before U+FE0F or in a sequence.
    """
    stop, shown = _match_element_of_emoji(data, offset, end, characters)
    while stop >= 0 and byte_at(data, stop, end) == 0xE2:
        point, width = decode(data, stop)
        if point != _JOINER:
            break
        further, _ = _match_element_of_emoji(data, stop + width, end, characters)
        if further < 0:
            break
        stop, shown = further, True
    return stop if shown else NONE


@compiled_part
def match_iban(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match the IBAN at an offset; return its end or -1.

    It has its country's length, perhaps single blanks, and valid check digits (ISO 7064, 97-10).
    """
    first, width = letter_at(data, offset, end)
    second, wide = letter_at(data, offset + width, end)
    if first < 0x41 or first > 0x5A or second < 0x41 or second > 0x5A:
        return NONE
    length = _IBAN[(first - 65) * 26 + second - 65]
    i = offset + width + wide
    rest, head = np.int64(0), ((first - 55) * 100 + second - 55) * 100
    for count in range(2, length):
        if byte_at(data, i, end) == 0x20 and count % 4 == 0:
            i += 1
        letter, width = letter_at(data, i, end)
        if width == 0 and is_digit(byte_at(data, i, end)):
            value, width = byte_at(data, i, end) - 0x30, np.int64(1)
            if count < 4:
                head += value * (10 if count == 2 else 1)
        elif count >= 4 and 0x41 <= letter <= 0x5A:
            value = letter - 55
        else:
            return NONE
        if count >= 4:
            rest = (rest * (100 if value > 9 else 10) + value) % 97
        i += width
    if length == 0 or (rest * 1000000 + head) % 97 != 1 or word_at(data, i, end, characters) > 0:
        return NONE
    return i


@compiled_part
def match_path(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8
) -> tuple[Whole, Whole]:
    r"""Match a file's path from the slash or backslash at an offset; return start and end, or -1.

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
    """Find the beginning of the name before an offset, or the offset itself."""
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
    """Match the address whose ``@`` is written ``[at]`` or ``(at)``; return start and end, or -1."""
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
    """Match the address whose ``@`` is written ``%40``, at the start of a run; return its end or -1."""
    for sign in range(start + 1, stop - 3):
        if data[sign] == 0x25 and data[sign + 1] == 0x34 and data[sign + 2] == 0x30:
            last = match_domain(data, sign + 3, end, characters, names)
            return last if last >= 0 else match_label(data, sign + 3, end, characters)
    return NONE
