"""Scan of texts that calls the recogniser's automata if a byte may belong to a typed token."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import Bool, Int8, Int64, UInt8
from wordveil.compiled import compiled, compiled_part
from wordveil.text.types.classes import TYPES
from wordveil.text.types.finders.addresses import (
    match_domain,
    match_email,
    match_ip4,
    match_ip6,
    match_mention,
    match_scheme,
    read_run,
)
from wordveil.text.types.finders.characters import (
    A_BRACKET,
    A_COLON,
    A_DIGIT,
    A_DOT,
    A_HASH,
    A_LESS,
    A_SLASH,
    A_STAR,
    AN_AMPERSAND,
    AN_AT,
    AN_EMOJI,
    NOTHING,
    UPPER,
    WORD,
    Whole,
    byte_at,
    byte_before,
    continues,
    is_digit,
    number_of,
    skip_digits,
    skip_word,
    word_at,
    word_before,
    word_start,
)
from wordveil.text.types.finders.dates import match_day_first, match_figures_date, match_month_first, match_time
from wordveil.text.types.finders.marks import (
    match_disguised,
    match_emoji,
    match_encoded,
    match_entity,
    match_hashtag,
    match_iban,
    match_keycap,
    match_path,
    match_tag,
)
from wordveil.text.types.finders.numerals import match_account, match_card, match_number, match_reference, read_groups
from wordveil.text.types.finders.phones import match_phone

# An int is a type of its own for Numba, which would compile `_offer` for each.
_EMAIL, _URL, _PHONE, _IP, _DATE, _TIME, _NUMBER, _YEAR, _AMOUNT, _ACCOUNT = (
    np.int64(TYPES.index(kind))
    for kind in ("email", "url", "phone", "ip", "date", "time", "number", "year", "amount", "account")
)
_CARD, _MENTION, _HASHTAG, _EMOJI, _MARKUP = (
    np.int64(TYPES.index(kind)) for kind in ("card", "mention", "hashtag", "emoji", "markup")
)
_FIRST_YEAR, _LAST_YEAR = 1500, 2099
_LONGEST_REFERENCE, _MANY = 48, 20
# Fields of the best span so far, and the classes that may be offered: a bit for each.
_START, _END, _KIND, _KNOWN = 0, 1, 2, 3


@compiled_part
def _offer(best: Int64, start: Whole, end: Whole, kind: Whole) -> None:
    """Keep a span that begins before the best so far, or with it and ends after it. -1: no span."""
    if start < 0 or end < 0 or (best[_KNOWN] >> kind) & 1 == 0:
        return
    if best[_KIND] < 0 or start < best[_START] or (start == best[_START] and end > best[_END]):
        best[_START], best[_END], best[_KIND] = start, end, kind


@compiled_part
def _match_run(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8, names: Int64, best: Int64
) -> Whole:
    """Match addresses in the run of letters, digits and ``._%+-`` around an offset; return where to continue.

    That is the run's end, or where an address begins after the offset.
    """
    start, stop, host = read_run(data, floor, offset, end, characters)
    after = byte_at(data, stop, end)
    again = stop
    _offer(best, start, match_encoded(data, start, stop, end, characters, names), _EMAIL)
    if after == 0x3A:
        scheme, last = match_scheme(data, begin, floor, stop, end, characters)
        if 0 <= scheme <= offset:
            _offer(best, scheme, last, _URL)
        elif scheme < 0:
            _offer(best, start, match_ip6(data, begin, start, end, characters), _IP)
    if host < stop:
        last = match_domain(data, host, end, characters, names)
        if last >= 0 and host > offset:
            again = host
        elif last >= 0:
            _offer(best, host, last, _URL)
    if after == 0x40:
        local, last = match_email(data, begin, floor, stop, end, characters, names)
        if 0 <= local <= offset:
            _offer(best, local, last, _EMAIL)
    return again


@compiled_part
def _match_figures(
    data: UInt8,
    begin: Whole,
    floor: Whole,
    offset: Whole,
    end: Whole,
    characters: UInt8,
    names: Int64,
    groups: Int64,
    best: Int64,
) -> None:
    """Match all classes that can be at the first digit of a row, no letter before it."""
    joined = continues(data, offset, begin)
    row = skip_digits(data, offset, min(end, offset + _MANY))
    after = byte_at(data, row, end)
    long = row - offset >= 8 or byte_before(data, offset, floor) in (0x28, 0x2B)
    grouped = after in (0x20, 0x2D, 0x2E, 0x2F) and is_digit(byte_at(data, row + 1, end))
    if after == 0x2E:
        _offer(best, offset, match_ip4(data, offset, end, characters), _IP)
    elif after == 0x3A:
        _offer(best, offset, match_ip6(data, begin, offset, end, characters), _IP)
    if not joined or (offset - 1 == floor and data[floor] == 0x2D):  # 7:30-9:00
        _offer(best, offset, match_time(data, offset, end, characters), _TIME)
    if not joined:
        start, stop = match_month_first(data, begin, floor, offset, end, characters, names)
        _offer(best, start, stop, _DATE)
        figures = match_figures_date(data, offset, end, characters)
        _offer(best, offset, figures, _DATE)
        _offer(best, offset, match_day_first(data, offset, end, characters, names), _DATE)
        if row == offset + _MANY:
            row = skip_digits(data, row, end)
            if word_at(data, row, end, characters) == 0:
                _offer(best, offset, row, _ACCOUNT)
        elif long or grouped:  # few numbers come here
            count = read_groups(data, offset, end, groups)
            _offer(best, offset, match_card(data, offset, end, groups, count, characters), _CARD)
            if figures < 0:
                account = match_account(data, end, groups, count, characters)
                start, stop = match_phone(data, begin, floor, offset, end, groups, count, characters)
                _offer(best, start, stop, _PHONE)
                _offer(best, offset, account, _ACCOUNT)
    start, stop, amount = match_number(data, begin, floor, offset, end, characters, names)
    bare = start == offset and stop == row == offset + 4
    if not amount and bare and _FIRST_YEAR <= number_of(data, offset, row) <= _LAST_YEAR:
        _offer(best, start, stop, _YEAR)
    else:
        _offer(best, start, stop, _AMOUNT if amount else _NUMBER)
    _offer(best, offset, match_keycap(data, offset, end), _EMOJI)
    if best[_KIND] < 0:  # a word that begins with digits
        _offer(best, offset, match_reference(data, offset, end, characters), _ACCOUNT)


@compiled_part
def _match_in_word(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8, names: Int64, best: Int64
) -> None:
    """Match accounts that begin with letters, amounts such as EUR20 and a date's time, at a word's first digit."""
    start = word_start(data, offset, floor, np.int64(_LONGEST_REFERENCE), end, characters)
    if word_before(data, start, begin, end, characters):
        if start == floor and offset == floor + 1 and data[floor] == 0x54 and is_digit(byte_before(data, floor, begin)):
            _offer(best, floor, match_time(data, offset, end, characters), _TIME)
        return
    if characters[data[start]] & UPPER == 0 and data[start] < 0x80:
        return
    _offer(best, start, match_iban(data, start, end, characters), _ACCOUNT)
    _offer(best, start, match_reference(data, start, end, characters), _ACCOUNT)
    money, stop, amount = match_number(data, begin, floor, offset, end, characters, names)
    if amount and money == start:
        _offer(best, money, stop, _AMOUNT)


@compiled_part
def _skip_figures(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip a word with digits of no other class, dotted figures after it included."""
    while True:
        offset = skip_word(data, offset, end, characters)
        if byte_at(data, offset, end) != 0x2E or not is_digit(byte_at(data, offset + 1, end)):
            return offset
        offset += 1


@compiled_part
def _match_colon(
    data: UInt8, begin: Whole, floor: Whole, offset: Whole, end: Whole, characters: UInt8, best: Int64
) -> None:
    """Match a scheme's address or an IPv6 address at a colon."""
    start, stop = match_scheme(data, begin, floor, offset, end, characters)
    _offer(best, start, stop, _URL)
    if byte_at(data, offset + 1, end) == 0x3A or word_at(data, offset + 1, end, characters) > 0:
        start = max(word_start(data, offset, floor, np.int64(5), end, characters), floor)
        _offer(best, start, match_ip6(data, begin, start, end, characters), _IP)


@compiled
def scan_types(
    data: UInt8,
    offsets: Int64,
    roles: UInt8,
    characters: UInt8,
    names: Int64,
    known: Whole,
    wanted: Bool,
    groups: Int64,
    starts: Int64,
    ends: Int64,
    kinds: Int8,
    bounds: Int64,
) -> None:
    """Scan for :class:`wordveil.text.types.typed.Recogniser`. The last four arrays take the spans.

    ``known``: a bit for each class that there is. ``groups``: a buffer of the automata.
    """
    best = np.zeros(4, np.int64)
    best[_KNOWN] = known
    count = 0
    for record in range(len(offsets) - 1):
        begin, end = offsets[record], offsets[record + 1]
        offset = floor = run_end = begin
        comments = True
        while True:
            while offset < end and roles[data[offset]] == NOTHING:
                offset += 1
            if offset >= end:
                break
            role = roles[data[offset]]
            best[_KIND] = -1
            again = offset + 1
            if role == A_DIGIT:
                if offset >= run_end:
                    run_end = _match_run(data, begin, floor, offset, end, characters, names, best)
                if word_before(data, offset, begin, end, characters):
                    _match_in_word(data, begin, floor, offset, end, characters, names, best)
                else:
                    _match_figures(data, begin, floor, offset, end, characters, names, groups, best)
                again = _skip_figures(data, offset, end, characters)
            elif role == A_DOT:
                if (
                    offset >= run_end
                    and offset + 1 < end
                    and (data[offset + 1] >= 0x80 or characters[data[offset + 1]] & WORD)
                ):
                    run_end = _match_run(data, begin, floor, offset, end, characters, names, best)
            elif role == AN_EMOJI:
                _offer(best, offset, match_emoji(data, offset, end, characters), _EMOJI)
            elif role == A_COLON:
                _match_colon(data, begin, floor, offset, end, characters, best)
            elif role == AN_AT:
                start, stop = match_email(data, begin, floor, offset, end, characters, names)
                _offer(best, start, stop, _EMAIL)
                if stop < 0 and not word_before(data, offset, begin, end, characters):
                    _offer(best, offset, match_mention(data, offset, end, characters, names), _MENTION)
            elif role == A_HASH:
                _offer(best, offset, match_keycap(data, offset, end), _EMOJI)
                if not word_before(data, offset, begin, end, characters):
                    _offer(best, offset, match_hashtag(data, offset, end, characters), _HASHTAG)
            elif role == A_LESS:
                stop = (
                    match_tag(data, offset, end, characters, names)
                    if comments or byte_at(data, offset + 1, end) != 0x21
                    else -1
                )
                comments = comments and stop != -2
                _offer(best, offset, stop, _MARKUP)
            elif role == AN_AMPERSAND:
                _offer(best, offset, match_entity(data, offset, end), _MARKUP)
            elif role == A_SLASH:
                start, stop = match_path(data, begin, floor, offset, end, characters)
                _offer(best, start, stop, _URL)
            elif role == A_BRACKET:
                start, stop = match_disguised(data, begin, floor, offset, end, characters)
                _offer(best, start, stop, _EMAIL)
            elif role == A_STAR:
                _offer(best, offset, match_keycap(data, offset, end), _EMOJI)
            if best[_KIND] < 0:
                offset = again
                continue
            offset = floor = best[_END]
            if wanted[best[_KIND]]:
                starts[count], ends[count], kinds[count] = best[_START], best[_END], best[_KIND]
                count += 1
        bounds[record + 1] = count
