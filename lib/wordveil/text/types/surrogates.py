"""Surrogates: values drawn from public finite sets, which replace tokens that are not words.

A value is a function of the token's class, action and shape and of uniform words of its noise stream: given class and
shape, it reveals nothing about the original. A random address at a real provider might belong to someone, so most sets
hold only values that belong to no one: addresses under the names that RFC 2606 keeps for documentation, IP addresses of
RFC 5737 and 3849, telephone numbers kept for fiction, and numbers of cards, IBANs and social security that fail their
own checks.

A template is a shape whose drawn characters are codes below 0x20, each of a known number of values. All values of one
template have its length, so one compiled pass fills them in place. Each character is the next digit, to its base, of a
uniform 64-bit fraction; each of a token's four fractions serves ten characters. No value is likelier than another by
more than one part in 30,000 (of ten letters: 4 * 26**10 / 2**64), or one in 10**8 for figures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Int8, Int32, Int64, UInt8, UInt64
from wordveil.compiled import compiled, compiled_part
from wordveil.crypto.streams import scale_words
from wordveil.text.types.classes import CLASSES, MONTHS, TYPES, YEARS, Form, Parts, TypeAction
from wordveil.text.types.finders.characters import Whole
from wordveil.text.types.finders.numerals import add_luhn
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.shapes import are_shapes, map_groups, shape_of

_PIECE = re.compile("0000|00|0(?:th)?|Month|Mon|th")


class _Form(NamedTuple):
    """Form of a date: its parts with the text between them, and the days that fit."""

    parts: tuple[str, ...]
    days: Int64


class _Days(NamedTuple):
    """Years, months and days of the range: int64 ``(days,)`` each."""

    years: Int64
    months: Int64
    days: Int64


@cache
def _range() -> _Days:
    dates = np.arange(f"{YEARS[0]}-01-01", f"{YEARS[-1] + 1}-01-01", dtype="datetime64[D]")
    months = dates.astype("datetime64[M]")
    return _Days(
        dates.astype("datetime64[Y]").astype(np.int64) + 1970,
        months.astype(np.int64) % 12 + 1,
        (dates - months).astype(np.int64) + 1,
    )


@cache
def _strings() -> dict[str, pa.StringArray]:
    """Write each part by its value: years from 1970, months and days from 1."""
    endings = ["st", "nd", "rd", *["th"] * 17, "st", "nd", "rd", *["th"] * 7, "st"]
    years = [str(year) for year in YEARS]
    return {
        "y4": pa.array(years),
        "y2": pa.array([year[2:] for year in years]),
        "m2": pa.array([f"{month:02}" for month in range(1, 13)]),
        "m1": pa.array([str(month) for month in range(1, 13)]),
        "Month": pa.array(MONTHS),
        "Mon": pa.array([month[:3] for month in MONTHS]),
        "d2": pa.array([f"{day:02}" for day in range(1, 32)]),
        "d1": pa.array([str(day) for day in range(1, 32)]),
        "th": pa.array(endings),
    }


@lru_cache(maxsize=512)
def _form_of(shape: str, *, month_first: bool) -> _Form:
    pieces = _PIECE.findall(shape)
    between = _PIECE.split(shape)
    named = any(piece.startswith("Mon") for piece in pieces)
    numbers = [index for index, piece in enumerate(pieces) if piece[0] == "0"]
    if named:
        roles = dict.fromkeys(numbers, "d")
        if len(numbers) == 2 and "0000" not in pieces:  # 00-Mon-00
            roles[numbers[1]] = "y"
    elif len(numbers) == 2:
        roles = dict(zip(numbers, "my", strict=True))
    elif pieces[numbers[0]] == "0000":
        roles = dict(zip(numbers, "ymd", strict=True))
    else:
        roles = dict(zip(numbers, "mdy" if month_first and "." not in shape else "dmy", strict=True))
    roles |= {index: "y" for index in numbers if pieces[index] == "0000"}
    parts = [between[0]]
    calendar = _range()
    fits = np.ones(len(calendar.years), np.bool_)
    for index, piece in enumerate(pieces):
        role = roles.get(index, "")
        width = len(piece.removesuffix("th"))
        if role in ("m", "d") and width == 1:
            fits &= (calendar.months if role == "m" else calendar.days) < 10
        ending = ["th"] if role and piece.endswith("th") else []
        parts += [f"{role}{width}" if role else piece, *ending, between[index + 1]]
    written = set(roles.values())
    if "y" not in written:
        fits &= calendar.years == 2000  # a leap year
    if "d" not in written:
        fits &= calendar.days == 1
    return _Form(tuple(parts), np.flatnonzero(fits))


def draw_dates(shape: str, words: UInt64, language: str) -> pa.StringArray:
    """Draw real dates in the form of ``shape``, uniformly among those of the range that have it: string array
    ``(tokens,)``.

    ``words``: uint64 ``(tokens,)``. If figures are ambiguous, the month is first in English; the day is in other
    languages and before a point.
    """
    form = _form_of(shape, month_first=language == "en")
    drawn = form.days[scale_words(words, np.array(len(form.days), np.uint64))]
    calendar, strings = _range(), _strings()
    values = {"y": calendar.years[drawn] - YEARS[0], "m": calendar.months[drawn] - 1, "d": calendar.days[drawn] - 1}
    roles = {"Month": "m", "Mon": "m", "th": "d"}
    columns = [
        strings[part].take(pa.array(values[roles.get(part, part[0])])) if part in strings else pa.scalar(part)
        for part in form.parts
        if part
    ]
    return pc.binary_join_element_wise(*columns, "")


# Codes. LUHN is any digit but the one that makes the digits before it a sound card number. PAIR and TWELVE write two
# digits: the byte after them is their second.
DIGIT, NONZERO, AREA, LETTER, LUHN, SUFFIX, FIVE, SIX, PAIR, TWELVE, HALF, HALF_CAPITAL, SKIP = range(1, 14)
BASES = np.array([1, 10, 9, 8, 26, 9, 1, 5, 6, 24, 12, 2, 2, 1], np.uint64)
"""Number of values of each code."""
CHARACTERS_A_WORD = 10
"""Number of characters that one uniform word serves."""

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
def compile_shape(kind: str, shape: str) -> bytes:
    """Compile the template of a shape of digits and letters.

    Numbers of two digits or more before their decimals, and denominators, do not begin with 0. Telephone numbers are of
    ranges kept for fiction if the shape is one of theirs. Cards fail the Luhn check; IBANs have the check digits 00 and
    social security numbers an area and group that are never given: none belongs to anyone.
    """
    usual = _of_account if shape_of(kind).form == Form.CODE else _of_number
    return {"phone": _of_phone, "card": _of_card, "time": _of_time}.get(kind, usual)(shape)


def fill_templates(templates: list[bytes], which: Int64, words: UInt64) -> pa.StringArray:
    """Fill ``templates[which]`` for each token, by ``words``, uint64 ``(tokens, 4)``: string array ``(tokens,)``."""
    starts = np.concatenate([[0], np.cumsum([len(template) for template in templates])]).astype(np.int64)
    offsets = np.zeros(len(which) + 1, np.int32)
    np.cumsum(np.diff(starts)[which], out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    _fill(np.frombuffer(b"".join(templates) or b"\0", np.uint8), starts, which, words, BASES, offsets, out)
    return pa.StringArray.from_buffers(len(which), pa.py_buffer(offsets), pa.py_buffer(out))


def _code(shape: str, codes: dict[int, int]) -> bytes:
    """Encode the shape's bytes, with ``codes`` at some indices and a digit for other zeros."""
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
    if shape.startswith("AA00") and len(shape.replace(" ", "")) >= 15:  # an IBAN, whose check digits are 02 to 98
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
    """Write the one or two characters of a code; ``out[:index]`` is written."""
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
    templates: UInt8, starts: Int64, which: Int64, words: UInt64, bases: UInt64, offsets: Int32, out: UInt8
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


WORDS = 4
"""Number of uniform 64-bit words for a token's value."""


def draw_values(
    kinds: Int8, actions: Mapping[str, TypeAction], shapes: pa.StringArray, words: UInt64, lists: PublicLists | None
) -> pa.StringArray:
    """Draw the replacement of each token, a function of the arguments: string array ``(tokens,)``.

    ``kinds``: int8 ``(tokens,)``, indices in :data:`wordveil.text.types.classes.TYPES`. ``actions``: ``tag``,
    ``surrogate`` or, if the class has shapes, ``resample``. ``shapes``: string array ``(tokens,)`` from
    :func:`wordveil.text.types.shapes.find_shapes`. ``words``: uint64 ``(tokens, 4)``, uniform and independent.
    ``lists``: source of names and words, in whose language dates and amounts are written; None if every action is
    ``tag``. Raises :class:`ValueError` for an action that draws no value, and for a shape that no token has.
    """

    def make(number: int, rows: Int64) -> pa.StringArray:
        kind = TYPES[number]
        action = _action_of(kind, actions)
        if action == TypeAction.TAG:
            return pa.repeat(f"<{kind}>", len(rows))
        assert lists is not None
        if action == TypeAction.SURROGATE and (values := CLASSES[kind].values):
            return _join(values(lists), words[rows])
        if action == TypeAction.RESAMPLE:
            return _draw_shaped(kind, shapes.take(pa.array(rows)), words[rows], lists)
        usual = shape_of(kind)
        shape = usual.default if lists.language == "en" else usual.abroad or usual.default
        return _draw_shaped(kind, pa.repeat(shape, len(rows)), words[rows], lists)

    return map_groups(kinds, make)


def _action_of(kind: str, actions: Mapping[str, TypeAction]) -> TypeAction:
    action = actions.get(kind)
    drawn = CLASSES[kind].allowed[2:]
    if action not in drawn:
        allowed = ", ".join(drawn)
        raise ValueError(f"{kind}: no value is drawn under the action {action!s}. The actions that draw are {allowed}.")
    return action


def _draw_shaped(kind: str, shapes: pa.StringArray, words: UInt64, lists: PublicLists) -> pa.StringArray:
    """Draw values by their shapes, each distinct shape read once."""
    encoded = shapes.dictionary_encode()
    if not pc.all(are_shapes(kind, encoded.dictionary), min_count=0).as_py():
        # The message leaves the string out: it may be an original.
        raise ValueError(f"{kind}: a string is no shape of this class; shapes come from find_shapes.")
    form = shape_of(kind).form
    if form == Form.MARKUP:
        return shapes
    distinct, which = encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
    if form in (Form.DIGITS, Form.CODE):
        return fill_templates([compile_shape(kind, shape) for shape in distinct], which, words)

    def make(number: int, rows: Int64) -> pa.StringArray:
        shape = distinct[number]
        if form == Form.DATE:
            return draw_dates(shape, words[rows, 0], lists.language)
        if form == Form.ADDRESS:
            return _join(_addresses(shape), words[rows])
        return _draw_names(kind, shape, words[rows, 0], lists)

    return map_groups(which, make)


def _join(parts: Parts, words: UInt64) -> pa.StringArray:
    """Join values from ``parts``, with a string drawn from each set by the next of a token's ``words``."""
    column = iter(words.T)
    drawn = [part if isinstance(part, str) else _pick(part, next(column)) for part in parts]
    return pc.binary_join_element_wise(*drawn, "")


def _pick(values: pa.StringArray | tuple[str, ...], words: UInt64) -> pa.StringArray:
    """Pick a string of ``values``, uniformly, for each of ``words``."""
    strings = pa.array(values) if isinstance(values, tuple) else values
    return strings.take(pa.array(scale_words(words, np.array(len(values), np.uint64))))


def _draw_names(kind: str, shape: str, words: UInt64, lists: PublicLists) -> pa.StringArray:
    values = CLASSES[kind].values
    assert values is not None
    case, drawn = shape.rstrip("'\u2019sS"), _join(values(lists), words[:, None])
    if case != "Aa":
        drawn = pc.utf8_upper(drawn) if case == "AA" else pc.utf8_lower(drawn)
    return pc.binary_join_element_wise(drawn, shape.removeprefix(case), "")


@cache
def _addresses(shape: str) -> Parts:
    """List the addresses of RFC 5737, or those under 2001:db8::/32 of RFC 3849."""
    if shape == "v4":
        nets = ("192.0.2", "198.51.100", "203.0.113")
        return (pa.array([f"{net}.{host}" for net in nets for host in range(256)]),)
    group = pa.array([f"{value:x}" for value in range(2**16)])
    return ("2001:db8:", group, ":", group, "::", group)
