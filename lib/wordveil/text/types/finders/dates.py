"""Automata for dates and times of day."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.characters import (
    A_MONTH,
    A_WORD_MONTH,
    BLANK,
    NONE,
    Whole,
    byte_at,
    byte_before,
    contains,
    is_digit,
    number_of,
    pack_name,
    read_name,
    skip_blanks,
    skip_digits,
    word_at,
    word_before,
    word_start,
)
from wordveil.text.types.finders.numerals import gap_after, skip_ordinal, year_at

_OF = pack_name("of")


@compiled_part
def _find_month(names: Int64, packed: Whole) -> Whole:
    """Return 0 for no month, 1 for a month, 2 for a month whose name is a common word too."""
    if contains(names, A_MONTH, packed):
        return np.int64(1)
    return np.int64(2 * contains(names, A_WORD_MONTH, packed))


@compiled_part
def _is_day(data: UInt8, offset: Whole, stop: Whole) -> Whole:
    return stop - offset <= 2 and 1 <= number_of(data, offset, stop) <= 31


@compiled_part
def _ends_date(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Return whether a date's figures may end at an offset: no letter except a time's T, and no digits follow."""
    mark = byte_at(data, offset, end)
    if word_at(data, offset, end, characters) > 0:
        return mark == 0x54 and is_digit(byte_at(data, offset + 1, end)) and byte_at(data, offset + 3, end) == 0x3A
    return not (mark in (0x2D, 0x2E, 0x2F) and is_digit(byte_at(data, offset + 1, end))) and mark != 0x25


@compiled_part
def match_figures_date(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match a date in figures (2026-11-23, 23.11.2026, 11/23/26, 11/2026, 2026-11); return its end or -1."""
    first = skip_digits(data, offset, min(end, offset + 5))
    mark = byte_at(data, first, end)
    second = skip_digits(data, first + 1, min(end, first + 4))
    if mark not in (0x2D, 0x2E, 0x2F) or first - offset > 4 or not 1 <= second - first - 1 <= 4:
        return NONE
    third = second
    if byte_at(data, second, end) == mark:
        third = max(skip_digits(data, second + 1, min(end, second + 6)), second)
    first_number, two = number_of(data, offset, first), number_of(data, first + 1, min(second, first + 4))
    days = third - second - 1
    if third <= second + 1:  # a month and a year
        year = (
            first - offset == 4
            and 1000 <= first_number <= 2999
            and second - first == 3
            and 1 <= two <= 12
            and mark == 0x2D
        )
        if year and _ends_date(data, second, end, characters):
            return second
        if first - offset <= 2 and mark == 0x2F and 1 <= first_number <= 12:
            stop = year_at(data, first + 1, end, characters)
            if stop >= 0 and _ends_date(data, stop, end, characters):
                return stop
        return NONE
    last = number_of(data, second + 1, third)
    if first - offset == 4:
        sound = (
            1000 <= first_number <= 2999 and second - first <= 3 and 1 <= two <= 12 and days <= 2 and 1 <= last <= 31
        )
    else:
        ordered = (1 <= first_number <= 31 and 1 <= two <= 12) or (1 <= first_number <= 12 and 1 <= two <= 31)
        sound = first - offset <= 2 and second - first <= 3 and ordered
        sound = sound and (days == 2 or (days == 4 and 1000 <= last <= 2999))
    return third if sound and _ends_date(data, third, end, characters) else NONE


@compiled_part
def _year_after(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match a year after a day or month, perhaps with a comma before its blanks; return its end or -1."""
    first = gap_after(data, offset, np.int64(0x2C), end, characters)
    return year_at(data, first, end, characters) if first >= 0 else NONE


@compiled_part
def match_day_first(data: UInt8, offset: Whole, end: Whole, characters: UInt8, names: Int64) -> Whole:
    """Match a date at an offset with its day before the month's name; return its end or -1.

    Examples: 23 August 2004, 3rd of May, 23-Aug-04.
    """
    stop = skip_digits(data, offset, min(end, offset + 3))
    if not _is_day(data, offset, stop):
        return NONE
    mark = byte_at(data, stop, end)
    if mark in (0x2D, 0x2F):  # 23-Aug-2004
        packed, name_end, _, _ = read_name(data, stop + 1, end, characters)
        if _find_month(names, packed) == 0 or byte_at(data, name_end, end) != mark:
            return NONE
        last = skip_digits(data, name_end + 1, min(end, name_end + 6))
        if last - name_end not in (3, 5) or word_at(data, last, end, characters) > 0:
            return NONE
        return last
    stop = skip_ordinal(data, stop, end, characters)
    name = gap_after(data, stop, np.int64(0x2E), end, characters)
    if name < 0:
        return NONE
    packed, name_end, _, capitals = read_name(data, name, end, characters)
    if packed == _OF:
        name = skip_blanks(data, name_end, end, characters)
        packed, name_end, _, capitals = read_name(data, name, end, characters)
    month = _find_month(names, packed)
    if month == 0:
        return NONE
    dotted = name_end + (byte_at(data, name_end, end) == 0x2E)
    year = _year_after(data, dotted, end, characters)
    if year >= 0:
        return year
    return name_end if month == 1 or capitals > 0 else NONE


@compiled_part
def match_month_first(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8, names: Int64
) -> tuple[Whole, Whole]:
    """Match the date whose month's name is before the digits at an offset; return start and end, or -1.

    Examples: Aug. 23, 2004; Sept 3rd; August 2004.
    """
    last = offset
    while last > floor and offset - last < 2 and data[last - 1] < 0x80 and characters[data[last - 1]] & BLANK:
        last -= 1
    if last == offset:
        return NONE, NONE
    if byte_before(data, last, floor) in (0x2C, 0x2E):
        last -= 1
    start = word_start(data, last, floor, np.int64(12), end, characters)
    packed, name_end, _, capitals = read_name(data, start, last, characters)
    month = _find_month(names, packed)
    if month == 0 or name_end != last or word_before(data, start, begin, end, characters):
        return NONE, NONE
    stop = skip_digits(data, offset, min(end, offset + 5))
    if stop - offset == 4:
        year = year_at(data, offset, end, characters)
        return (start, year) if year >= 0 and byte_at(data, year, end) != 0x3A else (NONE, NONE)
    if not _is_day(data, offset, stop):
        return NONE, NONE
    mark = byte_at(data, stop, end)
    if mark == 0x25 or (mark in (0x2C, 0x2E, 0x2F, 0x3A) and is_digit(byte_at(data, stop + 1, end))):
        return NONE, NONE
    stop = skip_ordinal(data, stop, end, characters)
    if word_at(data, stop, end, characters) > 0:
        return NONE, NONE
    year = _year_after(data, stop, end, characters)
    if year >= 0:
        return start, year
    return (start, stop) if month == 1 or capitals > 0 else (NONE, NONE)


@compiled_part
def _half_of_day(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip am, pm, a.m. or p.m. at an offset, after one blank, if there is any."""
    i = offset + 1 if byte_at(data, offset, end) == 0x20 else offset
    if byte_at(data, i, end) | 0x20 not in (0x61, 0x70):
        return offset
    dotted = byte_at(data, i + 1, end) == 0x2E
    i += 1 + dotted
    if byte_at(data, i, end) | 0x20 != 0x6D or word_at(data, i + 1, end, characters) > 0:
        return offset
    i += 1
    return i + 1 if dotted and byte_at(data, i, end) == 0x2E else i


@compiled_part
def _zone(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Skip Z, +01:00 or -0700 at an offset, if there is any."""
    mark = byte_at(data, offset, end)
    if mark == 0x5A:
        return offset + 1
    if mark in (0x2B, 0x2D):
        stop = skip_digits(data, offset + 1, min(end, offset + 6))
        if stop == offset + 5:
            return stop
        if stop == offset + 3 and byte_at(data, stop, end) == 0x3A:
            last = skip_digits(data, stop + 1, min(end, stop + 4))
            return last if last == stop + 3 else offset
    return offset


@compiled_part
def match_time(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match the time of day at an offset (14:30, 2:30 pm, 3pm, 14:30:05.123Z); return its end or -1."""
    stop = skip_digits(data, offset, min(end, offset + 3))
    hour = number_of(data, offset, stop)
    if stop - offset > 2 or hour > 24:
        return NONE
    if byte_at(data, stop, end) != 0x3A:
        half = _half_of_day(data, stop, end, characters)
        return half if half > stop and 1 <= hour <= 12 else NONE
    minutes = skip_digits(data, stop + 1, min(end, stop + 4))
    if minutes != stop + 3 or data[stop + 1] > 0x35:
        return NONE
    stop = minutes
    seconds = skip_digits(data, stop + 1, min(end, stop + 4))
    exact = byte_at(data, stop, end) == 0x3A and seconds == stop + 3 and data[stop + 1] <= 0x36
    if exact:
        stop = seconds
        mark = byte_at(data, stop, end)
        if mark in (0x2C, 0x2E) and is_digit(byte_at(data, stop + 1, end)):
            stop = skip_digits(data, stop + 1, min(end, stop + 11))
    half = _half_of_day(data, stop, end, characters)
    if half == stop:
        half = _zone(data, stop, end)
        if word_at(data, half, end, characters) > 0:
            half = stop
    continued = byte_at(data, half, end) == 0x3A and is_digit(byte_at(data, half + 1, end))
    return NONE if continued or word_at(data, half, end, characters) > 0 else half
