"""Gaps between two words of a text, as far as they show whether the words are names."""

from __future__ import annotations

import numpy as np

from wordveil.arrays import UInt8
from wordveil.compiled import compiled_part
from wordveil.text.types.finders.characters import Whole

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
