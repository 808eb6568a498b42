"""Automata for e-mail, web and IP addresses."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.characters import (
    A_TLD,
    A_WORD_TLD,
    JOINER,
    NONE,
    WORD,
    Whole,
    byte_at,
    byte_before,
    contains,
    has_letters,
    is_digit,
    letter_at,
    number_of,
    pack_name,
    read_name,
    semicolon_at,
    skip_digits,
    skip_word,
    step_back,
    word_at,
    word_before,
)

_HTTP, _HTTPS, _FTP, _WWW = map(pack_name, ("http", "https", "ftp", "www"))
_LOCAL, _HOST = 64, 253  # the longest that RFC 5321 and RFC 1035 allow


@compiled_part
def _read_host(
    data: UInt8, offset: Whole, end: Whole, characters: UInt8, names: Int64
) -> tuple[Whole, Whole, Whole, Whole]:
    """Read a host's name of two labels or more at an offset.

    Returns its end (or -1), its top-level domain packed, the number of capitals in that (0 if all are), and its labels.
    It ends with its last label of two letters and more. A label that begins with a capital, after a known top-level
    domain in lower case, begins the next sentence.
    """
    first = offset
    labels = np.int64(0)
    stop, top, mixed = NONE, np.int64(0), np.int64(0)
    while offset - first <= _HOST:
        i = last = offset
        while i - first <= _HOST + 4:
            width = word_at(data, i, end, characters)
            if width > 0:
                i += width
                last = i
            elif byte_at(data, i, end) == 0x2D:
                i += 1
            else:
                break
        if last == offset:
            break
        if i - first > _HOST:
            return NONE, top, mixed, labels
        packed, name_end, letters, capitals = read_name(data, offset, last, characters)
        alone = name_end == last and letters >= 2 and labels > 0
        if alone:
            glued = stop >= 0 and 0 < capitals < letters and mixed == 0
            if glued and (contains(names, A_TLD, top) or contains(names, A_WORD_TLD, top)):
                return stop, top, mixed, labels
        labels += 1
        if alone:
            stop, top, mixed = last, packed, capitals if capitals < letters else np.int64(0)
        elif last == i:
            stop = NONE
        if last < i or byte_at(data, i, end) != 0x2E or word_at(data, i + 1, end, characters) == 0:
            break
        offset = i + 1
    return stop, top, mixed, labels


@compiled_part
def match_label(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match the name of a machine at an offset, from a letter; return its end or -1."""
    if letter_at(data, offset, end)[1] == 0:
        return NONE
    stop = skip_word(data, offset, end, characters)
    while byte_at(data, stop, end) == 0x2D and word_at(data, stop + 1, end, characters) > 0:
        stop = skip_word(data, stop + 1, end, characters)
    return stop


@compiled_part
def match_email(
    data: UInt8, begin: Whole, floor: Whole, at: Whole, end: Whole, characters: UInt8, names: Int64
) -> tuple[Whole, Whole]:
    """Match the e-mail address around the ``@`` at an offset; return start and end, or -1.

    Its host may lack a dot if both sides of the ``@`` have two letters.
    """
    start = at
    while start > floor and at - start <= _LOCAL:
        byte = np.int64(data[start - 1])
        if byte < 0x80:
            inner = byte == 0x27 and start - 1 > floor and word_at(data, start, end, characters) > 0
            if byte == 0x2E and byte_at(data, start, end) == 0x2E:
                break
            if not characters[byte] & (WORD | JOINER) and not (inner and characters[data[start - 2]] & WORD):
                break
            start -= 1
        else:
            before = step_back(data, start)
            if before < floor or word_at(data, before, end, characters) == 0:
                break
            start = before
    if at - start > _LOCAL:
        return NONE, NONE
    while start < at and word_at(data, start, end, characters) == 0:
        start += 1
    if start == at or data[at - 1] == 0x2E or word_before(data, start, begin, end, characters):
        return NONE, NONE
    stop, _, _, _ = _read_host(data, at + 1, end, characters, names)
    # Both sides have two letters: no H@ppy, no sh@t.
    if stop < 0 and not is_digit(np.int64(data[start])) and has_letters(data, start, at, characters):
        stop = match_label(data, at + 1, end, characters)
        stop = stop if stop >= 0 and has_letters(data, at + 1, stop, characters) else NONE
    if stop < 0 or byte_at(data, stop, end) == 0x40:
        return NONE, NONE
    return start, stop


@compiled_part
def _is_url_mark(byte: Whole) -> Whole:
    """Return whether a sign of ASCII may be in a web address: not quotes, angle or curly brackets, or blanks."""
    refused = byte in (0x22, 0x3C, 0x3E, 0x5C, 0x5E, 0x60)
    return (0x20 < byte < 0x7B and not refused) or byte == 0x7E


@compiled_part
def _is_closing(byte: Whole) -> Whole:
    """Return whether a sign of ASCII at the end of an address belongs to the sentence: ``!'(*,.:;?[_~``."""
    return byte in (0x21, 0x27, 0x28, 0x2A, 0x2C, 0x2E, 0x3A, 0x3F, 0x5B, 0x5F, 0x7E)


@compiled_part
def _url_end(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Find the end of an address whose host ends or begins at an offset, without closing marks and brackets."""
    stop = offset
    round_open, square_open = 0, 0
    while offset < end:
        semicolon = semicolon_at(data, offset, end)
        if semicolon > 0:
            offset += semicolon
            continue
        byte = np.int64(data[offset])
        if byte < 0x80:
            if not _is_url_mark(byte):
                break
            round_open += (byte == 0x28) - (byte == 0x29)
            square_open += (byte == 0x5B) - (byte == 0x5D)
            if round_open < 0 or square_open < 0:
                break
            offset += 1
            if not _is_closing(byte):
                stop = offset
        else:
            width = word_at(data, offset, end, characters)
            if width == 0:
                break
            offset += width
            stop = offset
    return stop


@compiled_part
def match_scheme(
    data: UInt8, begin: Whole, floor: Whole, colon: Whole, end: Whole, characters: UInt8
) -> tuple[Whole, Whole]:
    """Match the address whose scheme (http, https, ftp) ends with the colon; return start and end, or -1."""
    if byte_at(data, colon + 1, end) != 0x2F or byte_at(data, colon + 2, end) != 0x2F:
        return NONE, NONE
    for length in range(3, 6):
        start = colon - length
        if start < floor:
            break
        packed, stop, letters, _ = read_name(data, start, colon, characters)
        known = packed in (_HTTP, _HTTPS, _FTP)
        if not known or stop != colon or letters != length or word_before(data, start, begin, end, characters):
            continue
        host = colon + 3
        if word_at(data, host, end, characters) == 0 and byte_at(data, host, end) != 0x5B:
            break
        last = _url_end(data, host, end, characters)
        return (start, last) if last > host else (NONE, NONE)
    return NONE, NONE


@compiled_part
def match_domain(data: UInt8, offset: Whole, end: Whole, characters: UInt8, names: Int64) -> Whole:
    """Match www.name.tld, or a name with a well-known top-level domain, at an offset; return its end or -1."""
    stop, top, mixed, labels = _read_host(data, offset, end, characters, names)
    if stop < 0 or labels < 2:
        return NONE
    first, first_end, _, _ = read_name(data, offset, end, characters)
    web = first == _WWW and byte_at(data, first_end, end) == 0x2E and labels >= 3
    after = byte_at(data, stop, end)
    path = after == 0x2F and word_at(data, stop + 1, end, characters) > 0
    if not web:
        wordy = contains(names, A_WORD_TLD, top) and not path and not (labels >= 3 and _is_second_level(data, stop))
        if mixed > 0 or wordy or not (contains(names, A_TLD, top) or contains(names, A_WORD_TLD, top)):
            return NONE
    if after == 0x40:
        return NONE
    if after == 0x3A:
        port = skip_digits(data, stop + 1, min(end, stop + 7))
        if stop + 1 < port <= stop + 6 and word_at(data, port, end, characters) == 0:
            stop = port
            after = byte_at(data, stop, end)
    if after in (0x2F, 0x3F, 0x23):
        if after == 0x2F:
            stop += 1
        return _url_end(data, stop, end, characters)
    return stop


@compiled_part
def _is_second_level(data: UInt8, stop: Whole) -> Whole:
    """Return whether registries use the label before a top-level domain of two letters: co, com, ac, org, gov."""
    last = stop - 3  # the dot
    letter, two = np.int64(data[last - 3]) | 0x20, np.int64(data[last - 2]) | 0x20
    three = np.int64(data[last - 1]) | 0x20
    if data[last] != 0x2E:
        return False
    if letter == 0x2E:
        return (two == 0x63 and three == 0x6F) or (two == 0x61 and three == 0x63)
    name = (letter << 16) | (two << 8) | three
    return name in (0x636F6D, 0x6F7267, 0x676F76)


@compiled_part
def match_ip4(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match the IPv4 address at an offset with its prefix length (/24); return its end or -1."""
    stop = offset
    for part in range(4):
        if part > 0:
            if byte_at(data, stop, end) != 0x2E:
                return NONE
            offset = stop + 1
        stop = skip_digits(data, offset, min(end, offset + 4))
        if not 1 <= stop - offset <= 3 or number_of(data, offset, stop) > 255:
            return NONE
    if byte_at(data, stop, end) == 0x2E and is_digit(byte_at(data, stop + 1, end)):
        return NONE
    if word_at(data, stop, end, characters) > 0:
        return NONE
    return _skip_prefix(data, stop, end, np.int64(32), characters)


@compiled_part
def _skip_prefix(data: UInt8, stop: Whole, end: Whole, most: Whole, characters: UInt8) -> Whole:
    """Skip a prefix length after an address."""
    if byte_at(data, stop, end) == 0x2F:
        last = skip_digits(data, stop + 1, min(end, stop + 5))
        if (
            1 < last - stop <= 4
            and number_of(data, stop + 1, last) <= most
            and word_at(data, last, end, characters) == 0
        ):
            return last
    return stop


@compiled_part
def _is_hex(byte: Whole) -> Whole:
    return (0x30 <= byte <= 0x39) or (0x61 <= byte | 0x20 <= 0x66)


@compiled_part
def match_ip6(data: UInt8, begin: Whole, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match the IPv6 address with a digit at an offset, with its prefix length; return its end or -1."""
    before = byte_before(data, offset, begin)
    if before in (0x3A, 0x2E) or word_before(data, offset, begin, end, characters):
        return NONE
    first = offset
    groups, figures = 0, 0
    shortened = byte_at(data, offset, end) == 0x3A
    if shortened:
        if byte_at(data, offset + 1, end) != 0x3A:
            return NONE
        offset += 2
    last = offset
    while groups < 9:
        stop = offset
        numeric = 0
        while stop < end and stop - offset < 5 and _is_hex(np.int64(data[stop])):
            numeric += is_digit(np.int64(data[stop]))
            stop += 1
        if stop == offset:
            break
        if stop - offset > 4:
            return NONE
        figures += numeric
        if byte_at(data, stop, end) == 0x2E and numeric == stop - offset and groups > 0:
            mapped = match_ip4(data, offset, end, characters)
            if mapped >= 0:
                groups += 2
                last = mapped
                break
        groups += 1
        last = stop
        if byte_at(data, stop, end) != 0x3A:
            break
        if byte_at(data, stop + 1, end) == 0x3A:
            if shortened:
                return NONE
            shortened = True
            last = stop + 2
            offset = last
        elif _is_hex(byte_at(data, stop + 1, end)):
            offset = stop + 1
        else:
            break
    enough = (groups == 8 and not shortened) or (shortened and (groups >= 2 or data[first] == 0x3A) and groups <= 7)
    if not enough or groups == 0 or figures == 0 or word_at(data, last, end, characters) > 0:
        return NONE
    if byte_at(data, last, end) == 0x3A and byte_at(data, last - 1, end) == 0x3A:
        return NONE
    return _skip_prefix(data, last, end, np.int64(128), characters)


@compiled_part
def read_run(data: UInt8, floor: Whole, offset: Whole, end: Whole, characters: UInt8) -> tuple[Whole, Whole, Whole]:
    """Read the run of letters, digits and ``._%+-`` around an offset.

    Returns its start and end, and where a host's name in it can begin (after its last ``%`` or ``+``, at a letter or
    digit), or the end if it has no dot or no letter.
    """
    start = offset
    while start > floor:
        byte = np.int64(data[start - 1])
        if byte < 0x80:
            if not characters[byte] & (WORD | JOINER):
                break
            start -= 1
        else:
            before = step_back(data, start)
            if before < floor or word_at(data, before, end, characters) == 0:
                break
            start = before
    host = start
    dotted, lettered = False, False
    i = start
    while i < end:
        byte = np.int64(data[i])
        if byte < 0x80:
            if not characters[byte] & (WORD | JOINER):
                break
            if byte in (0x25, 0x2B):
                host = i + 1
            dotted |= byte == 0x2E
            lettered |= letter_at(data, i, end)[1] > 0
            i += 1
        else:
            width = word_at(data, i, end, characters)
            if width == 0:
                break
            lettered = True
            i += width
    while host < i and (byte_at(data, host, end) == 0x5F or word_at(data, host, end, characters) == 0):
        host += 1
    return start, i, host if dotted and lettered else i


@compiled_part
def match_mention(data: UInt8, offset: Whole, end: Whole, characters: UInt8, names: Int64) -> Whole:
    """Match ``@name`` or ``@name@host`` at an offset; return its end or -1.

    A name begins with a letter or ``_``, and may have points and hyphens inside.
    """
    first = offset + 1
    if word_at(data, first, end, characters) == 0 or is_digit(byte_at(data, first, end)):
        return NONE
    stop = skip_word(data, first, end, characters)
    letter, width = letter_at(data, first, end)
    large = width > 0 and letter < 0x61
    while byte_at(data, stop, end) in (0x2D, 0x2E) and word_at(data, stop + 1, end, characters) > 0:
        letter, width = letter_at(data, stop + 1, end)
        if not large and width > 0 and letter < 0x61:
            break  # the next sentence
        stop = skip_word(data, stop + 1, end, characters)
    if byte_at(data, stop, end) == 0x40:
        host, _, _, _ = _read_host(data, stop + 1, end, characters, names)
        return host if host >= 0 else stop
    return stop
