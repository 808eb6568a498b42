"""Automaton for telephone numbers, over groups of digits."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.characters import (
    NONE,
    Whole,
    byte_at,
    byte_before,
    is_digit,
    skip_digits,
    word_at,
    word_before,
)
from wordveil.text.types.finders.numerals import read_groups


@compiled_part
def _last_group(groups: Int64, first: Whole, count: Whole, most: Whole) -> tuple[Whole, Whole]:
    """Find the last group that, with those before it, has at most ``most`` digits and ends a word.

    Returns the number of these digits, too. A single digit after a blank is excluded, except after a country's code
    (+33 6 ...).
    """
    digits, best, best_digits = np.int64(0), NONE, np.int64(0)
    for i in range(count):
        if i > 1 and groups[i, 0] == 1 and groups[i, 2] == 0x20:
            break
        digits += groups[i, 0]
        if digits > most:
            break
        if i >= first:
            best, best_digits = np.int64(i), digits
    return best, best_digits


@compiled_part
def _goes_on(groups: Int64, last: Whole, count: Whole) -> Whole:
    """Return whether more digits follow a group after a mark other than a blank."""
    return last + 1 < count and groups[last + 1, 2] not in (0x20, 0x29)


@compiled_part
def _extension(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip an extension at an offset (x12, ext. 12), if there is one."""
    i = offset + 1 if byte_at(data, offset, end) == 0x20 else offset
    if byte_at(data, i, end) | 0x20 == 0x65:  # ext
        if byte_at(data, i + 1, end) | 0x20 != 0x78 or byte_at(data, i + 2, end) | 0x20 != 0x74:
            return offset
        i += 3
        i += byte_at(data, i, end) == 0x2E
    elif byte_at(data, i, end) | 0x20 == 0x78:
        i += 1
    else:
        return offset
    i += byte_at(data, i, end) == 0x20
    stop = skip_digits(data, i, min(end, i + 7))
    if i < stop <= i + 6 and word_at(data, stop, end, characters) == 0:
        return stop
    return offset


@compiled_part
def _north_american(data: UInt8, offset: Whole, groups: Int64, count: Whole, closed: Whole) -> Whole:
    """Find the last group of 555-123-4567, with or without a 1 before it, or of 555-1234; or return -1.

    ``closed``: whether a parenthesis is before the digits.
    """
    k = 1 if groups[0, 0] == 1 and data[offset] == 0x31 and count >= 4 and groups[1, 2] != 0x29 else 0
    area = groups[k, 1] - groups[k, 0]
    # An area code of North America begins with 2 to 9.
    if count < k + 2 or groups[k, 0] != 3 or not 0x32 <= data[area] <= 0x39:
        return NONE
    mark = groups[k + 1, 2]
    if count >= k + 3 and groups[k + 1, 0] == 3 and groups[k + 2, 0] == 4:
        second = groups[k + 2, 2]
        sound = second in (0x2D, 0x2E, 0x20) and (mark != 0x29 or closed or k == 1)
        if sound and not _goes_on(groups, np.int64(k + 2), count):
            return np.int64(k + 2)
    if k == 0 and mark == 0x2D and groups[1, 0] == 4 and not closed and not _goes_on(groups, np.int64(1), count):
        last = groups[1, 1]
        if data[last - 1] != 0x30 or data[last - 2] != 0x30:  # 200-1000 is a range
            return np.int64(1)
    return NONE


@compiled_part
def _national(data: UInt8, offset: Whole, end: Whole, groups: Int64, count: Whole, closed: Whole) -> Whole:
    """Find the last group of a number with an area code in parentheses or a leading 0; or return -1."""
    zero = data[offset] == 0x30
    most = 15 if zero and byte_at(data, offset + 1, end) == 0x30 else 11 + zero
    if count == 1:
        return np.int64(0) if zero and 10 <= groups[0, 0] <= most else NONE
    if not 2 <= groups[0, 0] <= 6 or (not zero and not closed) or (closed and groups[1, 2] != 0x29):
        return NONE
    if count == 3 and groups[0, 0] == 3 and groups[1, 0] == 2 and groups[2, 0] == 4 and groups[2, 2] == 0x2D:
        return NONE  # a social security number
    dots = 0
    for i in range(1, count):
        dots += groups[i, 2] == 0x2E
        if (i > 1 and groups[i, 2] == 0x29) or groups[i, 0] < 2:
            count = i
            break
    last, digits = _last_group(groups, np.int64(1), count, np.int64(most))
    tight = last == 1 and groups[1, 2] in (0x2F, 0x2D, 0x29) and zero
    if last < 1 or digits < 9 - tight or (dots > 0 and last < 4) or (last == 1 and groups[1, 0] < 3):
        return NONE
    return last


@compiled_part
def match_phone(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, groups: Int64, count: Whole, characters: UInt8
) -> tuple[Whole, Whole]:
    """Match the telephone number whose digits begin at an offset; return start and end, or -1.

    ``groups``, ``count``: from :func:`wordveil.text.types.finders.numerals.read_groups`.
    """
    start = offset
    before = byte_before(data, start, floor)
    closed = before == 0x28
    plus = before == 0x2B
    if closed or plus:
        start -= 1
        other = byte_before(data, start, floor)
        if (closed and other == 0x2B) or (plus and other == 0x28 and count > 1 and groups[1, 2] == 0x29):
            closed, plus = True, True
            start -= 1
    if word_before(data, start, begin, end, characters):
        return NONE, NONE
    if plus:
        stop = _after_trunk(data, end, groups, count)
        if stop >= 0:
            return start, stop
        last, digits = _last_group(groups, np.int64(0), count, np.int64(15))
        stop = groups[max(last, 0), 1]
        further = _extension(data, stop, end, characters)
        while last > 0 and further == stop and word_at(data, stop, end, characters) > 0:
            digits -= groups[last, 0]
            last -= 1
            stop = further = groups[last, 1]
        if digits < 8 or (further == stop and word_at(data, stop, end, characters) > 0):
            return NONE, NONE
        return start, further
    last = _north_american(data, offset, groups, count, closed)
    if last < 0:
        last = _national(data, offset, end, groups, count, closed)
    if last < 0:
        return NONE, NONE
    stop = groups[last, 1]
    further = _extension(data, stop, end, characters)
    if further == stop and word_at(data, stop, end, characters) > 0:
        return NONE, NONE
    if closed and groups[0, 2] == 0 and (count < 2 or groups[1, 2] != 0x29):
        start = offset  # the parenthesis closes elsewhere
    return start, further


@compiled_part
def _after_trunk(data: UInt8, end: Whole, groups: Int64, count: Whole) -> Whole:
    """Match a number such as +44 (0)20 7946 0958, whose ``groups`` are the country's code; return its end or -1.

    The groups are read again after the trunk's 0.
    """
    if count != 1 or groups[0, 0] > 3:
        return NONE
    i = groups[0, 1]
    i += byte_at(data, i, end) == 0x20
    if byte_at(data, i, end) != 0x28 or byte_at(data, i + 1, end) != 0x30 or byte_at(data, i + 2, end) != 0x29:
        i = i if byte_at(data, i, end) == 0x28 and is_digit(byte_at(data, i + 1, end)) else end  # +1 (555) 123-4567
        i += 1
    else:
        i += 3
        i += byte_at(data, i, end) == 0x20
    if i >= end:
        return NONE
    first = groups[0, 0]
    further = read_groups(data, i, end, groups)
    if further == 0:
        return NONE
    last, digits = _last_group(groups, np.int64(0), further, 15 - first)
    return groups[last, 1] if last >= 0 and digits >= 6 else NONE
