"""Templates: shapes filled with uniform characters, for numbers, times, telephone numbers, accounts, cards.

A template is a shape whose drawn characters are codes below 0x20, each of a known number of values. All values of one
template have its length, so one compiled pass fills them in place. Each character is the next digit, to its
base, of a uniform 64-bit fraction; each of the four fractions of a token serves ten characters. No value is likelier
than another by more than one part in 30,000 (of ten letters: 4 * 26**10 / 2**64), or one in 10**8 for figures.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Int64, UInt8
from wordveil.compiled import compiled, compiled_part
from wordveil.text.types.classes import TokenType
from wordveil.text.types.finders.characters import Whole
from wordveil.text.types.finders.numerals import add_luhn

# Codes. LUHN is any digit but the one that makes the digits before it a sound card number. PAIR and TWELVE write two
# digits: the byte after them is their second.
DIGIT, NONZERO, AREA, LETTER, LUHN, SUFFIX, FIVE, SIX, PAIR, TWELVE, HALF, HALF_CAPITAL, SKIP = range(1, 14)
BASES = np.array([1, 10, 9, 8, 26, 9, 1, 5, 6, 24, 12, 2, 2, 1], np.uint64)
"""Number of values of each code."""
CHARACTERS_A_WORD = 10
"""Number of characters that one uniform word serves."""

_SHORTEST_IBAN = 15
# Ranges that telephone authorities keep for fiction, by forms of shapes and the digits that replace their zeros: N is a
# digit from 2, x any. North America 555-0100 to 0199; London 020 7946 0xxx (Ofcom); Paris 01 99 00 xx xx (Arcep).
_FICTION = (
    (r"\(?000\)?[-. /]?000[-. ]?0000", "Nxx55501xx"),
    (r"\+?0[-. ]?\(?000\)?[-. /]?000[-. ]?0000", "1Nxx55501xx"),
    (r"000[-. ]0000", "55501xx"),
    (r"\(?000\)? 0000 0000", "02079460xxx"),
    (r"\+00 00 0000 0000", "442079460xxx"),
    (r"\+00 \(0\)00 0000 0000", "4402079460xxx"),
    (r"00([ .-])00\1(?:00)\1(?:00)\1(?:00)", "019900xxxx"),
    (r"\+00 0 00 00 00 00", "3319900xxxx"),
)
_EXTENSION = re.compile(r" ?(?:[xX]|[eE]xt\.?) ?0+$")
_THOUSANDS = re.compile("0(?:0|[.,'\u2019\u00a0\u202f ]000(?!0))")


@lru_cache(maxsize=4096)
def compile_shape(kind: TokenType, shape: str) -> bytes:
    """Compile the template of a shape of NUMBER, AMOUNT, PHONE, ACCOUNT, CARD or TIME.

    Numbers do not begin with 0 if they have two digits or more before their decimals, nor do denominators. Telephone
    numbers are of ranges kept for fiction if the shape is one of theirs. Cards fail the Luhn check; IBANs have the
    check digits 00 and social security numbers an area and group that are never given: none belongs to anyone.
    """
    return {
        TokenType.PHONE: _of_phone,
        TokenType.ACCOUNT: _of_account,
        TokenType.CARD: _of_card,
        TokenType.TIME: _of_time,
    }.get(kind, _of_number)(shape)


def count_values(template: bytes) -> int:
    """Count the values of a template."""
    return math.prod(int(BASES[code]) for code in template if code < len(BASES))


def fill_templates(templates: list[bytes], which: NDArray[np.int64], words: NDArray[np.uint64]) -> pa.StringArray:
    """Fill ``templates[which]`` with a value for each token.

    ``which``: int64 ``(tokens,)``; ``words``: uint64 ``(tokens, 4)``. Returns a string array ``(tokens,)``.
    """
    starts = np.concatenate([[0], np.cumsum([len(template) for template in templates])]).astype(np.int64)
    offsets = np.zeros(len(which) + 1, np.int32)
    np.cumsum(np.diff(starts)[which], out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    _fill(np.frombuffer(b"".join(templates) or b"\0", np.uint8), starts, which, words, BASES, offsets, out)
    return pa.StringArray.from_buffers(len(which), pa.py_buffer(offsets), pa.py_buffer(out))


def _code(shape: str, codes: dict[int, int]) -> bytes:
    """Encode the shape's bytes, with codes for some characters, and a digit for other zeros."""
    return b"".join(
        bytes([codes[index]]) if index in codes else bytes([DIGIT]) if sign == "0" else sign.encode()
        for index, sign in enumerate(shape)
    )


def _zeros(shape: str) -> list[int]:
    return [index for index, sign in enumerate(shape) if sign == "0"]


def _of_number(shape: str) -> bytes:
    codes = {}
    first = shape.find("0")
    if _THOUSANDS.match(shape, first) and shape[first - 1 : first] not in (".", ","):
        codes[first] = NONZERO
    if "/0" in shape:
        codes[shape.index("/0") + 1] = NONZERO
    if shape.endswith("0th"):
        codes |= {len(shape) - 2: SUFFIX, len(shape) - 1: SKIP}
    return _code(shape, codes)


def _of_phone(shape: str) -> bytes:
    number = _EXTENSION.sub("", shape)
    pattern = next((digits for form, digits in _FICTION if re.fullmatch(form, number)), None)
    if pattern is None:
        first, second = _zeros(shape)[:2]  # of a country's code, or the 0 before an area's
        return _code(shape, {first: NONZERO} if "+" in shape else {first: ord("0"), second: NONZERO})
    codes = {"N": AREA, "x": DIGIT}
    signs = zip(_zeros(number), pattern, strict=True)
    return _code(shape, {index: codes.get(sign, ord(sign)) for index, sign in signs})


def _of_account(shape: str) -> bytes:
    codes = {index: LETTER for index, sign in enumerate(shape) if sign == "A"}
    zeros = _zeros(shape)
    if shape.startswith("AA00") and len(shape.replace(" ", "")) >= _SHORTEST_IBAN:  # check digits are 02 to 98
        codes |= {2: ord("0"), 3: ord("0")}
    elif shape in ("000-00-0000", "000 00 0000"):  # areas of 900 and more belong to taxpayers, whose groups are from 50
        codes |= {0: ord("9"), 4: FIVE}
    elif zeros and not codes:
        codes[zeros[0]] = NONZERO
    return _code(shape, codes)


def _of_card(shape: str) -> bytes:
    zeros = _zeros(shape)
    return _code(shape, {zeros[0]: NONZERO, zeros[-1]: LUHN})


def _of_time(shape: str) -> bytes:
    codes = {}
    half = next((shape.find(sign) for sign in ("xm", "XM", "x.m.", "X.M.") if sign in shape), -1)
    if half >= 0:
        codes[half] = HALF if shape[half] == "x" else HALF_CAPITAL
    start = shape.find("0")
    if shape[start + 1 : start + 2] == "0":
        codes |= {start: TWELVE if half >= 0 else PAIR, start + 1: SKIP}
    else:
        codes[start] = NONZERO if half >= 0 else DIGIT
    zone = max(shape.find("+"), shape.find("-"))
    for colon in (index for index, sign in enumerate(shape) if sign == ":" and (zone < 0 or index < zone)):
        codes[colon + 1] = SIX
    if zone >= 0:  # an offset of whole hours
        codes |= {zone + 1: TWELVE, zone + 2: SKIP}
        codes |= {index: ord("0") for index in _zeros(shape) if index > zone + 2}
    return _code(shape, codes)


@compiled_part
def _next(word: np.uint64, base: np.uint64) -> tuple[np.int64, np.uint64]:
    """Compute the next digit of the fraction ``word / 2**64`` to a base below 2**32, and the rest of the fraction."""
    low = (word & np.uint64(0xFFFFFFFF)) * base
    high = (word >> np.uint64(32)) * base + (low >> np.uint64(32))
    return np.int64(high >> np.uint64(32)), word * base


@compiled_part
def _suffix(text: UInt8) -> Whole:
    """Find which of st, nd, rd, th follows the figures that ``text`` ends with: 0 to 3."""
    length = len(text)
    units = np.int64(text[length - 1]) - 0x30
    teen = length > 1 and text[length - 2] == 0x31
    return units - 1 if 1 <= units <= 3 and not teen else 3


@compiled
def _write(code: Whole, value: Whole, out: UInt8, index: int) -> None:
    """Write the character of a code, or both if it encodes two; ``out[:index]`` is written."""
    if code == SUFFIX:
        ending = (0x7374, 0x6E64, 0x7264, 0x7468)[_suffix(out[:index])]
        out[index], out[index + 1] = ending >> 8, ending & 0xFF
    elif code in (PAIR, TWELVE):  # from 0, from 1
        number = value + code - PAIR
        out[index], out[index + 1] = 0x30 + number // 10, 0x30 + number % 10
    elif code in (HALF, HALF_CAPITAL):  # a or p
        out[index] = (0x70 if value else 0x61) - (0x20 if code == HALF_CAPITAL else 0)
    elif code == LETTER:
        out[index] = 0x41 + value
    elif code == LUHN:  # the sound check digit is 10 - sum: any digit but that
        out[index] = 0x30 + (11 - add_luhn(out, 0, index, True) + value) % 10
    else:  # NONZERO from 1, AREA from 2, other digits from 0
        out[index] = 0x30 + value + (code - DIGIT if code in (NONZERO, AREA) else 0)


@compiled
def _fill(
    templates: UInt8,
    starts: Int64,
    which: Int64,
    words: NDArray[np.uint64],
    bases: NDArray[np.uint64],
    offsets: NDArray[np.int32],
    out: UInt8,
) -> None:
    """Fill ``out``, token after token. ``starts``: the bytes of each template; ``offsets``: those of each token."""
    for token in range(len(which)):
        start = starts[which[token]]
        value = out[offsets[token] : offsets[token + 1]]
        rest = np.uint64(0)
        drawn = 0
        for index in range(len(value)):
            code = np.int64(templates[start + index])
            if code >= len(bases):
                value[index] = code
            elif code != SKIP:  # written with the character before
                digit = np.int64(0)
                if bases[code] > 1:
                    if drawn % CHARACTERS_A_WORD == 0:
                        rest = words[token, drawn // CHARACTERS_A_WORD]
                    digit, rest = _next(rest, bases[code])
                    drawn += 1
                _write(code, digit, value, index)
