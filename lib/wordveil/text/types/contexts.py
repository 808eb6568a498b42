"""Context of a word: its form, the gaps around it, and its neighbours."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.characters import Whole
from wordveil.text.types.lists import FIRST, MOSTLY, ORDINARY, RARE, SUR

NO_GAP, BLANK, POINT, END, COMMA, HYPHEN, TIGHT, LABELLED, LINE, CELL = (1 << bit for bit in range(10))
"""Bits: the beginning or end of a text; one space; a point and a space; a sign that ends a sentence; a comma and maybe
a blank, or quotation marks on both sides of it; a hyphen alone; one sign alone, which is in bits 16 to 23; a separator
of a label from its value; one line break and blanks; a separator of cells, quotation marks, brackets or mark-up.
"""


@compiled_part
def read_gap(text: UInt8, start: Whole, stop: Whole) -> Whole:
    """Read the bits of the gap from ``start`` to ``stop``."""
    length = stop - start
    if length == 1:
        byte = np.int64(text[start])
        if byte == 0x20:
            return np.int64(BLANK)
        found = np.int64(0)
        if byte == 0x2D:
            found = np.int64(HYPHEN)
        elif byte == 0x2C:
            found = np.int64(COMMA)
        elif byte == 0x0A:
            return np.int64(LINE | END | LABELLED | CELL)
        elif byte in (0x3A, 0x3D, 0x09, 0x7C):
            found = np.int64(LABELLED)
        if byte in (0x21, 0x22, 0x2E, 0x3A, 0x3F):
            found |= END
        if byte in (0x09, 0x22, 0x3B, 0x7C):
            found |= CELL
        return found | TIGHT | (byte << 16) if byte > 0x20 else found
    if length == 2 and text[start + 1] == 0x20:
        if text[start] == 0x2E:
            return np.int64(POINT)
        if text[start] == 0x2C:
            return np.int64(COMMA)
    return _read_long(text, start, stop)


@compiled_part
def _read_long(text: UInt8, start: Whole, stop: Whole) -> Whole:
    """Read the bits of a gap of several signs."""
    if stop - start == 3 and text[start + 1] == 0x40 and text[start] == 0x20 and text[start + 2] == 0x20:
        return np.int64(TIGHT | (0x40 << 16))
    found = np.int64(0)
    blanks, lines, signs, commas, other = 0, 0, 0, 0, False
    offset = start
    while offset < stop:
        byte = np.int64(text[offset])
        if byte == 0x20:
            blanks += 1
        elif byte == 0x0A:
            lines += 1
            found |= END
        elif byte == 0x0D:
            found |= END
        elif byte in (0x3A, 0x3D, 0x2D, 0x09, 0x7C, 0x2C):  # : = - tab | ,
            signs += 1
            commas += byte == 0x2C
            found |= END if byte == 0x3A else 0
            found |= CELL if byte in (0x09, 0x7C) else 0
        elif byte in (0x22, 0x27, 0x28, 0x29, 0x3B, 0x5B, 0x5D, 0x2A, 0x3E, 0x3C, 0x7B, 0x7D):  # quotes, brackets
            found |= CELL
            found |= END if byte == 0x22 else 0
        elif byte == 0xE2 and offset + 2 < stop and text[offset + 1] == 0x80:
            mark = text[offset + 2]
            if mark in (0x93, 0x94):  # dashes
                signs += 1
            elif 0x98 <= mark <= 0x9F:
                found |= CELL
                found |= END if mark >= 0x9C else 0
            else:
                other = True
            offset += 2
        else:
            found |= END if byte in (0x2E, 0x21, 0x3F) else 0
            other = True
        offset += 1
    if not other and (signs > 0 or lines > 0):
        found |= LABELLED
    if commas == 1 and not other and not lines and text[start] in (0x22, 0x27) and text[stop - 1] in (0x22, 0x27):
        found |= COMMA
    if blanks + lines == stop - start and lines == 1:
        found |= LINE | CELL
    if lines:
        found |= CELL
    return found


INITIAL, WITH_CAPITAL, TITLED, SMALL, UNLISTED, OWNING, BRIEF = (1 << bit for bit in range(7))
"""Bits: initial; capital; capital and small letters; small letters; in no list; with 's; up to three letters."""
PERSON = FIRST | SUR


@compiled_part
def is_certain(level: Whole, flags: Whole, gap: Whole, following: Whole, before: Whole, after: Whole) -> Whole:
    """Return whether a word of the lists is a name without another name beside it.

    ``gap``, ``following``: the signs around it; ``before``, ``after``: the flags of its neighbours.
    """
    titled, short = flags & TITLED != 0, flags & BRIEF != 0
    if level == RARE:
        return titled or (flags & WITH_CAPITAL != 0 and not short)
    if level == MOSTLY:
        loud = flags & WITH_CAPITAL != 0 and not short and before & after & SMALL != 0
        return titled or loud
    if level == ORDINARY:
        inside = gap & (NO_GAP | END | POINT) == 0
        return titled and (inside or flags & OWNING != 0 or is_alone(gap, following))
    return level == 0 and (titled or not short)


@compiled_part
def is_alone(gap: Whole, following: Whole) -> Whole:
    """Return whether a word is alone in its cell, line, quotes or brackets, or begins a line before a colon."""
    speaks = gap & (NO_GAP | LINE) != 0 and following & LABELLED != 0 and following & END != 0
    return speaks or (gap & CELL != 0 and following & CELL != 0)


@compiled_part
def is_branded(text: UInt8, start: Whole, stop: Whole) -> Whole:
    """Return whether a word begins like McAdam, MacArthur, O'Hara or D'Angelo."""
    if stop - start < 5:
        return False
    if text[start] in (0x4F, 0x44):
        quote = start + 2 if text[start + 1] == 0x27 else start + 4
        curly = text[start + 1] == 0xE2 and text[start + 2] == 0x80 and text[start + 3] == 0x99
        return (quote == start + 2 or curly) and quote + 2 < stop and 0x41 <= text[quote] <= 0x5A
    if text[start] != 0x4D:
        return False
    third = start + 2 if text[start + 1] == 0x63 else start + 3
    whole = third == start + 2 or (text[start + 1] == 0x61 and text[start + 2] == 0x63)
    return whole and third + 1 < stop and 0x41 <= text[third] <= 0x5A and 0x61 <= text[third + 1] <= 0x7A


@compiled_part
def is_this_word(text: UInt8, start: Whole, stop: Whole, first: Whole, second: Whole, third: Whole) -> Whole:
    """Return whether a word is one of two or three small letters; ``third`` is 0 for two."""
    length = 3 if third else 2
    return (
        stop - start == length
        and text[start] | 0x20 == first
        and text[start + 1] | 0x20 == second
        and (third == 0 or text[start + 2] | 0x20 == third)
    )


@compiled_part
def is_written_small(level: Whole, gap: Whole, following: Whole, left: Whole, right: Whole) -> Whole:
    """Return whether a name is in an address, path or row of a table, where case is meaningless.

    ``left``, ``right``: the roles of its neighbours, with FIRST for an initial.
    """
    sign, other = gap & TIGHT, following & TIGHT
    alone = (0x5F, 0x5C, 0x40, 0x3D, 0x25, 0x7E)  # _ \ @ = % ~
    quoted = gap & CELL and following & CELL  # "smith","john"
    if quoted and ((gap & COMMA and left & PERSON) or (following & COMMA and right & PERSON)):
        return True
    marks, others = (gap >> 16) & 0xFF, (following >> 16) & 0xFF
    if (sign and marks in alone) or (other and others in alone):
        return True
    if sign and other and marks == 0x2F and others == 0x2F:
        return True
    pairs = (0x2E, 0x2C, 0x3B, 0x7C, 0x2F, 0x3A, 0x2B)  # . , ; | / : +
    if (sign and marks in pairs and left & PERSON) or (other and others in pairs and right & PERSON):
        return True
    both = (sign and marks == 0x2D and left & PERSON) or (other and others == 0x2D and right & PERSON)
    return both and level == RARE


@compiled_part
def follows_initial(gap: Whole, letter: Whole, vague: Whole, state: Whole) -> Whole:
    """Return whether the signs between an initial and a word make them parts of a name.

    ``vague``: the initial may be a word; ``state``: it ends an abbreviation such as U.S.
    """
    if gap & BLANK:
        return not vague
    pointed = gap & POINT or (gap & TIGHT and (gap >> 16) & 0xFF == 0x2E)
    return pointed and not state and not (vague and letter == 0x49)
