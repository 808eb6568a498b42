"""Classes of characters for a tokeniser: one table of bits, from Arrow's regular expressions (RE2) and case maps."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Bool, Int64, UInt8, UInt32
from wordveil.compiled import compiled
from wordveil.embeddings.vocabulary import view_strings
from wordveil.text.choices import Hyphens, TokeniserKind
from wordveil.text.types.finders.characters import Whole, decode

# Scripts that are written without spaces between words. Hangul and Vietnamese have spaces.
_SEGMENTED_SCRIPTS = tuple(rf"\p{{{script}}}" for script in ("Han", "Hiragana", "Katakana", "Bopomofo"))
"""Scripts that ``chinese`` and ``japanese`` cut into words."""
_OTHER_SCRIPTS = tuple(
    rf"\p{{{script}}}"
    for script in ("Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese", "Yi")
)  # fmt: skip
# Signs of runs that Unicode gives to no script, or counts as numbers: closing mark, zero, repetition, long vowel.
_RUN_SIGNS = "\u3006\u3007\u3031-\u3035\u30fc\uff70"

COPYABLE = (
    "\t\n\r -~"
    "\u00a0-\u00a8\u00ab\u00ac\u00af-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00f7"
    "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
    "\u2010-\u2015\u2018-\u2022\u2026\u2030\u2032\u2033\u2039\u203a\u2044\u20ac\u20b9\u2190-\u2193\u2212"
    "\u055a-\u055f\u0589\u058a\u05be\u05c3\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066c\u06d4"
    "\u0964\u0965\u0f0b-\u0f0e\u104a\u104b\u1361-\u1368\u17d4-\u17d6"
    "\u3001\u3002\u3008-\u3011\u3014-\u301b\u301d-\u301f\u30fb"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe0\uffe1\uffe5"
)
"""All characters that may be copied between words, as ranges of a regular expression: ASCII, common signs, white space,
and the punctuation of other scripts. Letters and digits of these ranges are in words all the same. Other characters may
be read as letters, such as circled ones, flags, Braille and many currencies.
"""

# The classes of characters.
OTHER, WORD, MARK, SINGLE, RUN, INNER = range(6)
"""Between words; in a word; a mark, which continues any word; a word of its own; in a run that a dictionary cuts;
inside a word if it is alone.
"""
# An entry of a table: the character in which this one is looked up, its class, and bits.
POINT_MASK, CLASS_SHIFT, CLASS_MASK = 0x1FFFFF, 21, 7 << 21
DIGIT, UPPER, CASED, LOOSE, CONTROL, FORMAT, REFUSED = (1 << bit for bit in range(24, 31))
"""A digit; a capital; of another case; may change in normalisation form C, or change its neighbours; no visible
character, of Unicode's categories Cc and Cf; of a script that the tokeniser does not segment.
"""
# Unicode has characters up to U+3FFFF, and some from U+E0000 to U+E0FFF. The last of the first kind is no character,
# and represents all others.
_PLANES, _TAGS, _TAGS_END = 0x40000, 0xE0000, 0xE1000
# Here the form is stable except for marks and for what it changes by itself.
_STABLE = ((0, 0x870), (0x2000, 0x2C00), (0x3000, 0xA000), (0xAC00, 0xD7A4), (0xFF00, 0xFFF0), (0x1F000, 0x1FB00))


class _Characters(NamedTuple):
    """Table of all characters: texts, their lower case, and bits as in a table."""

    texts: pa.StringArray
    lowered: UInt32
    bits: UInt32

    def match(self, pattern: str) -> Bool:
        """Match characters against a regular expression."""
        return np.asarray(pc.match_substring_regex(self.texts, pattern))


@cache
def load_table(kind: TokeniserKind, hyphens: Hyphens, *, lower: bool, copied: bool) -> UInt32:
    """Make the table of a tokeniser, once in a process: uint32, an entry for each row (:func:`row_of`).

    ``lower``: whether words are looked up in lower case. ``copied``: whether only :data:`COPYABLE` text, control and
    format characters may be between words.
    """
    characters = _load_characters()
    looked_up = characters.lowered.copy() if lower else np.arange(len(characters.lowered), dtype=np.uint32)
    looked_up[0x2019] = ord("'")  # both apostrophes are looked up as the same
    return looked_up & np.uint32(POINT_MASK) | _find_classes(kind, hyphens, copied=copied) | characters.bits


@cache
def _load_characters() -> _Characters:
    points = np.concatenate([np.arange(_PLANES), np.arange(_TAGS, _TAGS_END)]).astype(np.uint32)
    points[0xD800:0xE000] = 0  # surrogates are no characters
    offsets = np.concatenate([[0], np.cumsum(1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000))])
    data = points.tobytes().decode("utf-32-le").encode()
    texts = pa.StringArray.from_buffers(len(points), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data))
    lowered = np.frombuffer(pc.utf8_lower(texts).buffers()[2].to_pybytes().decode().encode("utf-32-le"), np.uint32)
    characters = _Characters(texts, lowered, np.zeros(len(points), np.uint32))
    upper = np.asarray(pc.utf8_is_upper(texts))
    stable = np.zeros(len(points), np.bool_)
    for first, end in _STABLE:
        stable[first:end] = True
    stable &= np.asarray(pc.equal(pc.utf8_normalize(texts, form="NFC"), texts)) & ~characters.match(r"\p{M}")
    # Tab and line breaks are visible: they structure a text.
    for bit, has in (
        (DIGIT, characters.match(r"\p{N}")),
        (UPPER, upper),
        (CASED, ~upper & ~np.asarray(pc.utf8_is_upper(pc.binary_join_element_wise("A", texts, "")))),
        (LOOSE, ~stable),
        (CONTROL, characters.match(r"[^\P{Cc}\t\n\r]")),
        (FORMAT, characters.match(r"\p{Cf}")),
    ):
        characters.bits[has] |= np.uint32(bit)
    return characters


def _find_classes(kind: TokeniserKind, hyphens: Hyphens, *, copied: bool) -> UInt32:
    """Compute the classes, and :data:`REFUSED`, as they are in entries."""
    characters = _load_characters()
    classes = np.full(len(characters.bits), OTHER, np.uint32)
    if kind == TokeniserKind.WHITESPACE:
        classes[characters.match(r"[^\p{Z}\s]")] = WORD
        return classes << np.uint32(CLASS_SHIFT)
    classes[characters.match(r"[\p{L}\p{M}\p{N}]")] = WORD
    if copied:
        classes[characters.match(rf"[^{COPYABLE}\p{{Cc}}\p{{Cf}}]")] = WORD
    inner = "'\u2019" if hyphens == Hyphens.SPLIT else "'\u2019\u2010-"
    classes[[ord(character) for character in inner]] = INNER
    segmented, others = (characters.match(_letter_of(scripts)) for scripts in (_SEGMENTED_SCRIPTS, _OTHER_SCRIPTS))
    refused = np.zeros(len(classes), np.bool_)
    if kind == TokeniserKind.WORDS:
        refused = segmented | others
    else:
        classes[characters.match(r"\p{M}")] = MARK
    if kind == TokeniserKind.CHARACTERS:
        classes[segmented | others] = SINGLE
    elif kind != TokeniserKind.WORDS:
        refused = others
        classes[segmented | characters.match(f"[{_RUN_SIGNS}]")] = RUN
    return classes << np.uint32(CLASS_SHIFT) | np.where(refused, np.uint32(REFUSED), np.uint32(0))


def count_unsegmented(words: pa.StringArray, kind: TokeniserKind) -> Int64:
    """Count each word's characters in scripts that the tokeniser does not segment, marks and signs included: int64.

    The tokeniser is ``words`` or one with a dictionary.
    """
    letter = _letter_of(_OTHER_SCRIPTS)
    if kind == TokeniserKind.WORDS:
        letter = f"(?:{_letter_of(_SEGMENTED_SCRIPTS)}|{letter}|[{_RUN_SIGNS}])"
    rest = pc.replace_substring_regex(words, rf"{letter}\p{{M}}*", "")
    return np.asarray(pc.subtract(pc.utf8_length(words), pc.utf8_length(rest)), np.int64)


def _letter_of(scripts: tuple[str, ...]) -> str:
    """Return a pattern for a letter of a script, as the complement of its complement: RE2 has no intersection."""
    return "(?:" + "|".join(rf"[^\P{{L}}{script.replace('p', 'P', 1)}]" for script in scripts) + ")"


@compiled
def row_of(point: Whole) -> Whole:
    """Compute the row of a character in a table."""
    if point < _PLANES:
        return point
    return _PLANES + point - _TAGS if _TAGS <= point < _TAGS_END else np.int64(_PLANES - 1)


def read_bits(texts: pa.StringArray) -> UInt32:
    """Combine the bits of each text's characters: uint32 ``(records,)``."""
    bits = np.empty(len(texts), np.uint32)
    find_bits(*view_strings(texts), _load_characters().bits, bits)
    return bits


@compiled
def find_bits(data: UInt8, offsets: Int64, table: UInt32, bits: UInt32) -> None:
    """Fill ``bits`` as :func:`read_bits` describes."""
    for record in range(len(offsets) - 1):
        offset: Whole = offsets[record]
        end = offsets[record + 1]
        every: Whole = np.uint32(0)
        while offset < end:
            if data[offset] < 0x80:
                every |= table[data[offset]]
                offset += 1
            else:
                point, width = decode(data, offset)
                every |= table[row_of(point)]
                offset += width
        bits[record] = every
