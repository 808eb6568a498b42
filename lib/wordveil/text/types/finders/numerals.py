"""Automata for numbers, amounts, cards and accounts."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.characters import (
    A_CODE,
    A_PREFIX,
    A_UNIT,
    DIGIT,
    NONE,
    UPPER,
    WORD,
    Whole,
    byte_at,
    byte_before,
    contains,
    continues,
    decode,
    is_digit,
    letter_at,
    number_of,
    read_name,
    skip_blanks,
    skip_digits,
    word_at,
    word_before,
    word_start,
)

GROUPS = 12
"""Largest number of groups of digits of a telephone number or a card, and room to detect more."""
_THOUSANDS = 12  # groups of three digits


@compiled_part
def _three(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Return whether exactly three digits are at an offset."""
    return skip_digits(data, offset, min(end, offset + 4)) == offset + 3


@compiled_part
def _decimals(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Skip a comma and one or two decimals at an offset, if there are any."""
    if byte_at(data, offset, end) == 0x2C:
        stop = skip_digits(data, offset + 1, min(end, offset + 5))
        listed = byte_at(data, stop, end) == 0x2C and is_digit(byte_at(data, stop + 1, end))
        if offset + 1 < stop <= offset + 3 and not listed:
            return stop
    return offset


@compiled_part
def match_figures(data: UInt8, begin: Whole, offset: Whole, end: Whole) -> tuple[Whole, Whole]:
    """Match a number without sign. Return its end, and whether it is whole, so that ``st`` or ``th`` may follow."""
    stop = skip_digits(data, offset, end)
    mark = byte_at(data, stop, end)
    whole = True
    short = stop - offset <= 3 and (data[offset] != 0x30 or stop == offset + 1)
    if mark == 0x2C and short and data[offset] != 0x30 and _three(data, stop + 1, end):  # 3,500,000.25
        for _ in range(_THOUSANDS):
            if byte_at(data, stop, end) != 0x2C or not _three(data, stop + 1, end):
                break
            stop += 4
        if byte_at(data, stop, end) == 0x2E and is_digit(byte_at(data, stop + 1, end)):
            stop, whole = skip_digits(data, stop + 1, end), False
    elif mark == 0x2C:
        comma = _decimals(data, stop, end)
        if comma > stop and not continues(data, offset, begin):  # 3,5
            stop, whole = comma, False
    elif mark == 0x2F and stop - offset <= 3:  # 1/2
        bottom = skip_digits(data, stop + 1, min(end, stop + 5))
        further = byte_at(data, bottom, end) == 0x2F and is_digit(byte_at(data, bottom + 1, end))
        if stop + 1 < bottom <= stop + 4 and not further and byte_before(data, offset, begin) != 0x2F:
            stop, whole = bottom, False
    elif mark == 0x2E and is_digit(byte_at(data, stop + 1, end)):
        whole = False
        grouped = short and data[offset] != 0x30
        while byte_at(data, stop, end) == 0x2E and is_digit(byte_at(data, stop + 1, end)):  # 3.5, 1.2.3, 1.000.000
            grouped = grouped and _three(data, stop + 1, end)
            stop = skip_digits(data, stop + 1, end)
        if grouped:
            stop = _decimals(data, stop, end)  # 3.500,25
    letter = byte_at(data, stop, end) | 0x20
    if letter == 0x65:  # 1e-5
        sign = byte_at(data, stop + 1, end)
        first = stop + 2 if sign in (0x2B, 0x2D) else stop + 1
        last = skip_digits(data, first, end)
        if last > first:
            stop, whole = last, False
    return stop, whole


@compiled_part
def skip_ordinal(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip ``st``, ``nd``, ``rd`` or ``th`` at an offset, if there is one."""
    first, second = byte_at(data, offset, end) | 0x20, byte_at(data, offset + 1, end) | 0x20
    pair = (first << 8) | second
    if pair in (0x7374, 0x6E64, 0x7264, 0x7468) and word_at(data, offset + 2, end, characters) == 0:
        return offset + 2
    return offset


@compiled_part
def _sign_before(data: UInt8, begin: Whole, floor: Whole, offset: Whole, characters: UInt8) -> Whole:
    """Find the beginning of the sign before an offset, or the offset itself."""
    start = offset
    byte = byte_before(data, offset, floor)
    if byte in (0x2B, 0x2D):
        start = offset - 1
    elif byte == 0x92 and offset - 3 >= floor and data[offset - 3] == 0xE2 and data[offset - 2] == 0x88:
        start = offset - 3
    if start < offset:
        outer = byte_before(data, start, begin)
        apart = outer == 0 or outer in (0x28, 0x5B, 0x3D, 0x3A, 0x2C, 0x22, 0x27)
        if not apart and not (outer < 0x80 and characters[outer] & 0x80):
            return offset
    return start


@compiled_part
def _is_currency(point: Whole) -> Whole:
    """Return whether a character is a sign of currency."""
    return point == 0x24 or (0xA2 <= point <= 0xA5) or (0x20A0 <= point <= 0x20CF)


@compiled_part
def _currency_before(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8, names: Int64
) -> Whole:
    """Find the beginning of the currency sign or code before a number, one blank between, or the offset itself."""
    last = offset - 1 if byte_before(data, offset, floor) == 0x20 else offset
    if last <= floor:
        return offset
    start = step = last - 1
    if data[last - 1] >= 0x80:
        while step > floor and data[step] & 0xC0 == 0x80:
            step -= 1
        start = step
    if data[start] & 0xC0 == 0x80:
        return offset
    point, _ = decode(data, start)
    if _is_currency(point):
        if point == 0x24:  # US$
            letters = word_start(data, start, floor, np.int64(8), end, characters)
            packed, stop, _, capitals = read_name(data, letters, start, characters)
            if stop == start and capitals > 0 and contains(names, A_PREFIX, packed):
                return letters
        return start
    if (point < 0x80 and characters[point] & WORD) or point == 0x212A:
        letters = word_start(data, last, floor, np.int64(12), end, characters)
        packed, stop, count, capitals = read_name(data, letters, last, characters)
        free = not word_before(data, letters, begin, end, characters)
        if stop == last and count == 3 and capitals == 3 and free and contains(names, A_CODE, packed):
            return letters
    return offset


@compiled_part
def _currency_after(data: UInt8, offset: Whole, end: Whole, characters: UInt8, names: Int64) -> Whole:
    """Skip a currency or per cent sign after a number, one blank between, if there is one."""
    first = offset + 1 if byte_at(data, offset, end) == 0x20 else offset
    if first >= end:
        return offset
    point, width = decode(data, first)
    if point in (0x25, 0x2030) and word_at(data, first + width, end, characters) == 0:
        return first + width
    if _is_currency(point) and (point != 0x24 or first == offset):
        after = first + width
        return after if not is_digit(byte_at(data, after, end)) else offset
    if letter_at(data, first, end)[1] > 0:
        packed, stop, letters, capitals = read_name(data, first, end, characters)
        if letters == 3 and capitals == 3 and contains(names, A_CODE, packed):
            return stop
    return offset


@compiled_part
def match_number(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8, names: Int64
) -> tuple[Whole, Whole, Whole]:
    """Match the number or amount whose digits begin at an offset. Return start, end, whether it is an amount; or -1."""
    stop, whole = match_figures(data, begin, offset, end)
    if whole:
        stop = skip_ordinal(data, stop, end, characters)
    start = offset
    if byte_before(data, offset, floor) == 0x2E:  # .5
        outer = byte_before(data, offset - 1, begin)
        if outer != 0x2E and not word_before(data, offset - 1, begin, end, characters):
            start = offset - 1
    start = _sign_before(data, begin, floor, start, characters)
    amount = False
    money = _currency_before(data, begin, floor, start, end, characters, names)
    if money < start:
        amount = True
        start = _sign_before(data, begin, floor, money, characters)
    after = _currency_after(data, stop, end, characters, names)
    if after > stop and (not amount or data[after - 1] != 0x25):
        return start, after, True
    if word_at(data, stop, end, characters) > 0:
        packed, _, _, _ = read_name(data, stop, end, characters)
        if not contains(names, A_UNIT, packed):
            return NONE, NONE, False
    return start, stop, amount


@compiled_part
def add_luhn(data: UInt8, offset: Whole, end: Whole, doubles: bool) -> Whole:  # noqa: FBT001
    """Compute Luhn's sum of the digits from one offset to another, modulo 10; other bytes are skipped.

    Every second digit is doubled, counted from the last; ``doubles``: the last one too.
    """
    total: Whole = 0
    for i in range(end - 1, offset - 1, -1):
        if is_digit(np.int64(data[i])):
            value = np.int64(data[i]) - 0x30
            total += 2 * value - 9 * (value > 4) if doubles else value
            doubles = not doubles
    return total % 10


@compiled_part
def read_groups(data: UInt8, offset: Whole, end: Whole, groups: Int64) -> Whole:
    """Read groups of digits at an offset with single separators; return their number.

    ``groups``: int64 ``(GROUPS, 3)``, for each group its digits, its end, and the separator before it as a byte: a
    blank, hyphen, dot, slash or closing parenthesis (one blank or hyphen may follow it).
    """
    count = 0
    mark: Whole = np.int64(0)
    while count < GROUPS:
        stop = skip_digits(data, offset, min(end, offset + 24))
        if stop == offset or stop == offset + 24:
            break
        groups[count, 0], groups[count, 1], groups[count, 2] = stop - offset, stop, mark
        count += 1
        mark = byte_at(data, stop, end)
        offset = stop + 1
        if mark == 0x29:
            offset += byte_at(data, offset, end) in (0x20, 0x2D)
        elif mark not in (0x20, 0x2D, 0x2E, 0x2F):
            break
    return count


@compiled_part
def match_card(data: UInt8, offset: Whole, end: Whole, groups: Int64, count: Whole, characters: UInt8) -> Whole:
    """Match the card's number at an offset; return its end or -1."""
    if data[offset] == 0x30:
        return NONE
    stop: Whole = NONE
    first = groups[0, 0]
    if 13 <= first <= 19:
        stop = groups[0, 1]
    elif first == 4 and count >= 3:
        mark = groups[1, 2]
        same = 1
        while same < min(count, 5) and groups[same, 2] == mark:
            same += 1
        second, third, fourth = groups[1, 0], groups[2, 0], groups[3, 0]
        if mark not in (0x20, 0x2D):
            return NONE
        if same >= 4 and second == 4 and third == 4 and fourth == 4:
            stop = groups[3, 1]
            if same >= 5 and groups[4, 0] == 3 and add_luhn(data, offset, groups[4, 1], False) == 0:
                stop = groups[4, 1]
        elif (same >= 3 and second == 6 and third in (4, 5)) or (same >= 3 and second == 4 and third == 5):
            stop = groups[2, 1]
    if stop < 0 or word_at(data, stop, end, characters) > 0 or add_luhn(data, offset, stop, False) > 0:
        return NONE
    return stop


@compiled_part
def match_account(data: UInt8, end: Whole, groups: Int64, count: Whole, characters: UInt8) -> Whole:
    """Match an account at an offset; return its end or -1.

    It has eight digits or more, or three groups or more with hyphens and nine digits in all.
    """
    digits: Whole = groups[0, 0]
    last = 0
    if digits < 8:
        for i in range(1, count):
            if groups[i, 2] != 0x2D:
                break
            digits += groups[i, 0]
            last = i
        if last < 2 or digits < 9:
            return NONE
    stop = groups[last, 1]
    return NONE if word_at(data, stop, end, characters) > 0 else stop


@compiled_part
def match_reference(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match a reference number at an offset; return its end or -1.

    It has eight capitals and digits or more, at least five of them digits.
    """
    length, digits = 0, 0
    while True:
        letter, width = letter_at(data, offset, end)
        if width == 0 and is_digit(byte_at(data, offset, end)):
            width, letter = np.int64(1), np.int64(0x30)
            digits += 1
        if width == 0 or not characters[letter] & (DIGIT | UPPER):
            break
        length += 1
        offset += width
    sound = length >= 8 and digits >= 5 and length > digits and word_at(data, offset, end, characters) == 0
    return offset if sound else NONE


@compiled_part
def year_at(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Match a year of four digits at an offset; return its end or -1."""
    stop = skip_digits(data, offset, min(end, offset + 5))
    if stop != offset + 4 or not 1000 <= number_of(data, offset, stop) <= 2999 or word_at(data, stop, end, characters):
        return NONE
    mark = byte_at(data, stop, end)
    if mark == 0x25 or (mark in (0x2C, 0x2E) and is_digit(byte_at(data, stop + 1, end))):
        return NONE
    return stop


@compiled_part
def gap_after(data: UInt8, offset: Whole, mark: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip blanks at an offset, with a mark before them or without one; return -1 if there are no blanks."""
    first = offset + 1 if byte_at(data, offset, end) == mark else offset
    stop = skip_blanks(data, first, end, characters)
    return stop if stop > first else NONE
