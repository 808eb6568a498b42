"""Tests of single characters and of names for the recogniser's automata, over UTF-8 bytes.

Nothing is read outside ``begin`` and ``end`` of a record, which separate like a space. As normalisation form C makes
them so, the Kelvin sign U+212A counts as the letter K and U+037E as a semicolon.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled_part, find_first_from
from wordveil.text.types.finders.emoji_table import BASES, PRESENTED

MONTHS = """
jan january feb february apr april jun june jul july aug august sep sept september oct october nov november dec december
"""
# Common words too, so that they need a capital or a year beside them.
WORD_MONTHS = "mar march may"

# Without a scheme or www. a domain is an address only if its last part is one of these. Endings that are common in file
# names (.py, .sh, .rs) are left out.
TLDS = """
com org net edu gov mil int info biz name pro museum coop aero jobs mobi travel app dev blog shop store online site
tech cloud xyz top club live news world agency email design digital media group page space website wiki io ai co tv
fm gg uk de fr es nl eu ch se dk fi pl cz sk hu ro bg gr pt ie lu ee lv lt ru ua by tr il ca au nz jp cn kr tw hk sg
th vn ph id my in br mx ar cl pe ve za ng ke eg ae sa ir pk bd lk at be it is no us si hr rs li mt cy test example
"""
# These are English words too: "done.It" has none.
WORD_TLDS = "at be in is it my no us by id pro name info page space top live news world group my"

# Codes of ISO 4217 that are no English words (TRY, ALL, TOP are).
CODES = """
usd eur gbp jpy chf cad aud nzd cny rmb inr sek nok dkk isk pln czk huf ron bgn hkd sgd krw twd brl mxn ars clp zar
rub uah ils thb idr myr php vnd aed sar egp ngn kes pkr btc
"""
# Before a dollar sign.
PREFIXES = "us usd c ca cad a au aud nz nzd hk hkd s sg r mx"

# Letters directly after a number: the number is a token, and the unit a word.
UNITS = """
km m cm mm nm um mi ft yd in kg g mg ug lb lbs oz t l ml dl cl gal hz khz mhz ghz thz kb mb gb tb pb kib mib gib tib
bit bits kbps mbps gbps bps b k bn mn mm s sec secs ms us ns min mins h hr hrs w kw mw gw kwh mwh wh v kv mv amp ma
mah mph kmh kph rpm fps dpi px pt em rem c f pa kpa hpa bar psi db cal kcal kj x pp pc pcs yo am pm
"""

PLAIN_ATTRIBUTES = """
async autofocus autoplay checked compact controls default defer disabled hidden inert ismap loop multiple muted nohref
noresize noshade nowrap open readonly required reversed selected
"""


Whole = Any
"""An int64 of compiled code, where Python would have an int."""

NONE: Whole = np.int64(-1)
"""Result of automata if nothing matches."""

# Bits of the table of characters.
WORD, DIGIT, UPPER, LOWER, JOINER, EMOJI, PRESENT, BLANK = 1, 2, 4, 8, 16, 32, 64, 128
POINTS = 0x20000
"""Characters from here on are letters of rare scripts, or tags of flags."""
_TAGS = 0xE0000
_LONGEST_NAME = 12

# Lists of names.
A_TLD, A_WORD_TLD, A_CODE, A_PREFIX, A_UNIT, AN_ATTRIBUTE, A_MONTH, A_WORD_MONTH = np.arange(8)
# What a byte may begin.
NOTHING, A_DIGIT, A_DOT, A_COLON, AN_AT, A_HASH, A_LESS, AN_AMPERSAND, AN_EMOJI, A_STAR = range(10)
A_SLASH, A_BRACKET = 10, 11


class Tables(NamedTuple):
    """Tables of the automata.

    They take these one by one: compiled code counts references to a tuple's arrays at every call, which took 1.6 times
    as long.

    ``roles``: uint8 ``(256,)``, what a byte may begin or lie in. ``characters``: uint8 ``(POINTS,)``, bits of each
    character. ``names``: int64 ``(names,)``, sorted: :func:`pack_name` times 8, plus the number of the list.
    """

    roles: UInt8
    characters: UInt8
    names: Int64


def pack_name(name: str) -> int:
    """Pack a name of up to 12 ASCII letters into one number, ignoring case."""
    packed = 0
    for letter in name.lower():
        packed = packed * 32 + ord(letter) - 96
    return packed


@cache
def load_tables() -> Tables:
    """Make the tables once in a process, in a quarter of a second."""
    roles = np.zeros(256, np.uint8)
    roles[48:58] = A_DIGIT
    for byte, role in zip(b".:@#<&*", (A_DOT, A_COLON, AN_AT, A_HASH, A_LESS, AN_AMPERSAND, A_STAR), strict=True):
        roles[byte] = role
    roles[list(b"/\\")], roles[list(b"([{")] = A_SLASH, A_BRACKET
    for first, last in BASES:
        for point in range(first, last + 1):
            roles[chr(point).encode()[0]] = AN_EMOJI
    lists = (TLDS, WORD_TLDS, CODES, PREFIXES, UNITS, PLAIN_ATTRIBUTES, MONTHS, WORD_MONTHS)
    names = sorted({pack_name(name) * 8 + i for i, listed in enumerate(lists) for name in listed.split()})
    return Tables(roles, _find_characters(), np.array(names, np.int64))


def _find_characters() -> UInt8:
    points = np.arange(POINTS, dtype=np.uint32)
    points[0xD800:0xE000] = 0  # surrogates are no characters
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int32)
    data = points.tobytes().decode("utf-32-le").encode()
    texts = pa.StringArray.from_buffers(POINTS, pa.py_buffer(offsets), pa.py_buffer(data))
    table = np.zeros(POINTS, np.uint8)
    table[np.asarray(pc.match_substring_regex(texts, r"[\p{L}\p{M}\p{N}_]"))] = WORD
    table[0xFE00:0xFE10] = table[0x20E3] = 0  # how an emoji is shown, and the keycap
    for ranges, bit in ((BASES, EMOJI), (PRESENTED, PRESENT)):
        for first, last in ranges:
            table[first : last + 1] |= bit
    table[:0x80] &= ~np.uint8(EMOJI)  # digits, # and * are emoji as keycaps alone
    for characters, bit in ((range(48, 58), DIGIT), (range(65, 91), UPPER), (range(97, 123), LOWER)):
        table[list(characters)] |= bit
    table[list(b"._%+-")] |= JOINER
    table[list(b" \t\n\r\f\v")] |= BLANK
    return table


@compiled_part
def byte_at(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Return the byte at an offset, 0 beyond the end."""
    if offset < end:
        return np.int64(data[offset])
    return np.int64(0)


@compiled_part
def byte_before(data: UInt8, offset: Whole, begin: Whole) -> Whole:
    """Return the byte before an offset, 0 before the beginning."""
    if offset > begin:
        return np.int64(data[offset - 1])
    return np.int64(0)


@compiled_part
def is_digit(byte: Whole) -> Whole:
    """Return whether a byte is a digit of ASCII."""
    return (byte >= 0x30) & (byte <= 0x39)


@compiled_part
def decode(data: UInt8, offset: Whole) -> tuple[Whole, Whole]:
    """Decode the code point at an offset; return it and its number of bytes."""
    lead = np.int64(data[offset])
    if lead < 0x80:
        return lead, np.int64(1)
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (np.int64(data[offset + 1]) & 0x3F), np.int64(2)
    second = np.int64(data[offset + 1]) & 0x3F
    third = np.int64(data[offset + 2]) & 0x3F
    if lead < 0xF0:
        return ((lead & 0x0F) << 12) | (second << 6) | third, np.int64(3)
    fourth = np.int64(data[offset + 3]) & 0x3F
    return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | fourth, np.int64(4)


@compiled_part
def step_back(data: UInt8, offset: Whole) -> Whole:
    """Return where the character before an offset begins."""
    offset -= 1
    while data[offset] & 0xC0 == 0x80:
        offset -= 1
    return offset


@compiled_part
def word_at(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Count the bytes of the letter, mark, digit or underscore at an offset; 0 if there is none."""
    if offset >= end:
        return np.int64(0)
    if data[offset] < 0x80:
        return np.int64(characters[data[offset]] & WORD)
    point, width = decode(data, offset)
    if point < POINTS:
        return width if characters[point] & WORD else np.int64(0)
    return width if point < _TAGS else np.int64(0)


@compiled_part
def word_before(data: UInt8, offset: Whole, begin: Whole, end: Whole, characters: UInt8) -> Whole:
    """Return whether a letter, mark, digit or underscore is before an offset."""
    if offset <= begin:
        return False
    if data[offset - 1] < 0x80:
        return characters[data[offset - 1]] & WORD != 0
    return word_at(data, step_back(data, offset), end, characters) > 0


@compiled_part
def skip_word(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip the word at an offset."""
    while True:
        width = word_at(data, offset, end, characters)
        if width == 0:
            return offset
        offset += width


@compiled_part
def word_start(data: UInt8, offset: Whole, floor: Whole, most: Whole, end: Whole, characters: UInt8) -> Whole:
    """Find the beginning of the word that ends at an offset, at least ``floor``, about ``most`` bytes back."""
    least = max(floor, offset - most)
    while offset > least:
        before = step_back(data, offset)
        if before < floor or word_at(data, before, end, characters) == 0:
            break
        offset = before
    return offset


@compiled_part
def skip_digits(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Skip the digits at an offset."""
    while offset < end and is_digit(np.int64(data[offset])):
        offset += 1
    return offset


@compiled_part
def number_of(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Compute the value of a few digits."""
    value = np.int64(0)
    for i in range(offset, end):
        value = value * 10 + np.int64(data[i]) - 0x30
    return value


@compiled_part
def letter_at(data: UInt8, offset: Whole, end: Whole) -> tuple[Whole, Whole]:
    """Return the ASCII letter at an offset and its bytes, or 0 and 0. The Kelvin sign is a K."""
    byte = byte_at(data, offset, end)
    if (byte >= 0x41) & (byte <= 0x5A) or (byte >= 0x61) & (byte <= 0x7A):
        return byte, np.int64(1)
    if byte == 0xE2 and data[offset + 1] == 0x84 and data[offset + 2] == 0xAA:
        return np.int64(0x4B), np.int64(3)
    return np.int64(0), np.int64(0)


@compiled_part
def has_letters(data: UInt8, start: Whole, stop: Whole, characters: UInt8) -> Whole:
    """Return whether a stretch has two letters; a character outside ASCII counts as one."""
    letters: Whole = np.int64(0)
    for offset in range(start, stop):
        byte = np.int64(data[offset])
        letters += byte >= 0xC0 or (byte < 0x80 and characters[byte] & (UPPER | LOWER) != 0)
    return letters >= 2


@compiled_part
def read_name(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> tuple[Whole, Whole, Whole, Whole]:
    """Read the word of ASCII letters at an offset.

    Returns it packed (-1 if over 12 letters or with other characters), the end of its letters, their number, and the
    number of capitals.
    """
    packed, letters, capitals = np.int64(0), np.int64(0), np.int64(0)
    while letters <= _LONGEST_NAME:
        letter, width = letter_at(data, offset, end)
        if width == 0:
            break
        packed = (packed << 5) | (letter & 0x1F)
        letters += 1
        capitals += letter < 0x61
        offset += width
    if letters == 0 or letters > _LONGEST_NAME or word_at(data, offset, end, characters) > 0:
        packed = NONE
    return packed, offset, letters, capitals


@compiled_part
def contains(names: Int64, listed: Whole, packed: Whole) -> Whole:
    """Return whether a packed name is in a list, by the list's number."""
    wanted = packed * 8 + listed
    index = find_first_from(wanted, 0, len(names), names)
    return index < len(names) and names[index] == wanted


@compiled_part
def skip_blanks(data: UInt8, offset: Whole, end: Whole, characters: UInt8) -> Whole:
    """Skip one or two blanks at an offset, if there are any."""
    for _ in range(2):
        if offset < end and data[offset] < 0x80 and characters[data[offset]] & BLANK:
            offset += 1
    return offset


@compiled_part
def semicolon_at(data: UInt8, offset: Whole, end: Whole) -> Whole:
    """Count the bytes of the semicolon or Greek question mark at an offset, or 0."""
    byte = byte_at(data, offset, end)
    if byte == 0x3B:
        return np.int64(1)
    if byte == 0xCD and data[offset + 1] == 0xBE:
        return np.int64(2)
    return np.int64(0)


@compiled_part
def continues(data: UInt8, offset: Whole, begin: Whole) -> Whole:
    """Return whether digits at an offset continue a row of figures: one of ``-./:,`` and a digit are before them."""
    mark = byte_before(data, offset, begin)
    joined = (mark >= 0x2C and mark <= 0x2F) or mark == 0x3A
    return joined and is_digit(byte_before(data, offset - 1, begin))
