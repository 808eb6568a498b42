"""Shapes of tokens: what shows besides the class, if a value is drawn among those of the same shape.

A shape is a function of the token alone: its separators and lengths, and signs from short public lists (currencies,
elements of HTML). Digits become ``0``, letters of an account ``A``, a month's name ``Month`` or ``Mon``, am or pm
``xm``. A token that does not fit the grammar of its class, or is longer than 40 characters, has the one default shape
of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from string import ascii_letters, ascii_lowercase, digits
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Int8, Int64, UInt8
from wordveil.text.types.classes import CLASSES, ELEMENTS, ENTITIES, NAME_TYPES, TYPES, Form, Shape, TypeAction

LONGEST = 40
"""Largest number of characters of a shape."""
_REMEMBERED = 4096
_OfStrings = Callable[[str, pa.StringArray], pa.Array]


def _make_table(characters: str, signs: str) -> UInt8:
    """Make a table for :func:`_strike` that writes each character as the sign at its index."""
    return np.frombuffer(bytes.maketrans(characters.encode(), signs.encode()), np.uint8)


_DIGITS, _LETTERS = _make_table(digits, "0" * 10), _make_table(digits + ascii_letters, "0" * 10 + "A" * 52)
_LOWER = ascii_lowercase.replace("s", "")  # an s may be the ending's
_CASES = _make_table(_LOWER + _LOWER.upper(), "a" * 25 + "A" * 25)
_TABLES = {Form.CODE: _LETTERS, Form.NAME: _CASES}


def find_shapes(kinds: Int8, actions: Mapping[str, TypeAction], originals: pa.StringArray) -> pa.StringArray:
    """Find the shape of each token, ``""`` if only its class shows: string array ``(tokens,)``.

    ``kinds``: int8 ``(tokens,)``, indices in :data:`wordveil.text.types.classes.TYPES`. ``actions``: on each class;
    only ``resample`` shows a shape. ``originals``: string array ``(tokens,)`` without nulls.
    """

    def shapes_of(number: int, rows: Int64) -> pa.StringArray:
        kind = TYPES[number]
        if actions.get(kind) == TypeAction.RESAMPLE and CLASSES[kind].shape:
            return _shapes_of(kind, originals.take(pa.array(rows)))
        return pa.repeat("", len(rows))

    # Names of all classes have the same shapes: they are one group.
    names = [TYPES.index(kind) for kind in NAME_TYPES if actions.get(kind) == TypeAction.RESAMPLE]
    return map_groups(np.where(np.isin(kinds, names), names[0], kinds) if names else kinds, shapes_of)


def _remember(result: pa.DataType) -> Callable[[_OfStrings], _OfStrings]:
    """Cache ``compute(kind, strings)``: a bounded number of short strings for each token type.

    Arrow compiles patterns at each call, which takes longer than matching the few distinct strings of a batch.
    """

    def decorate(compute: _OfStrings) -> _OfStrings:
        known: dict[str, dict[str, Any]] = {}

        @wraps(compute)
        def recall(kind: str, strings: pa.StringArray) -> pa.Array:
            found, values = known.get(kind, {}), strings.to_pylist()
            if missing := [value for value in values if value not in found]:
                made = dict(zip(missing, compute(kind, pa.array(missing, pa.string())).to_pylist(), strict=True))
                short = {value: item for value, item in made.items() if len(value) <= 2 * LONGEST}
                known[kind] = {**found, **short} if len(found) + len(short) <= _REMEMBERED else short
                found = {**found, **made}
            return pa.array([found[value] for value in values], result)

        return recall

    return decorate


def shape_of(kind: str) -> Shape:
    """Return the shapes of a class that has some."""
    shape = CLASSES[kind].shape
    assert shape is not None
    return shape


@_remember(pa.bool_())
def are_shapes(kind: str, shapes: pa.StringArray) -> pa.BooleanArray:
    """Return which strings are shapes of the class."""
    is_short = pc.less_equal(pc.utf8_length(shapes), LONGEST)
    return pc.and_(is_short, pc.match_substring_regex(shapes, f"^(?:{shape_of(kind).grammar})$"))


def map_groups(keys: NDArray[np.integer], make: Callable[[int, Int64], pa.StringArray]) -> pa.StringArray:
    """Make a string for each of ``keys``, for all rows of equal key at once: ``make(key, rows)``."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    groups = [make(key, rows) for key, rows in zip(distinct.tolist(), np.split(order, starts[1:]), strict=False)]
    return pa.concat_arrays([pa.array([], pa.string()), *groups]).take(pa.array(np.argsort(order)))


def _shapes_of(kind: str, originals: pa.StringArray) -> pa.StringArray:
    """Find the shapes of a class's tokens: strike hidden characters in all, do the rest once for each distinct one."""
    form = shape_of(kind).form
    if form not in (Form.ADDRESS, Form.MARKUP):
        originals = _strike(originals, _TABLES.get(form, _DIGITS))
    encoded = originals.dictionary_encode()
    distinct = encoded.dictionary
    if form == Form.ADDRESS:
        shapes = pc.if_else(pc.match_substring_regex(distinct, ":.*:"), "v6", "v4")
    else:
        shapes = _of_markup(distinct) if form == Form.MARKUP else _of_struck(kind, distinct)
    return shapes.take(encoded.indices)


def _strike(strings: pa.StringArray, table: UInt8) -> pa.StringArray:
    """Translate each byte by ``table``. ``strings`` start at their buffer's beginning."""
    data = np.frombuffer(strings.buffers()[2] or b"", np.uint8)
    return pa.StringArray.from_buffers(len(strings), strings.buffers()[1], pa.py_buffer(table[data]))


@_remember(pa.string())
def _of_struck(kind: str, marked: pa.StringArray) -> pa.StringArray:
    """Find the shapes of tokens whose digits, or letters of names, are replaced."""
    shape = shape_of(kind)
    if shape.form == Form.NAME:
        return _of_names(marked)
    for pattern, sign in shape.signs:
        marked = pc.replace_substring_regex(marked, pattern, sign)
    return pc.if_else(are_shapes(kind, marked), marked, shape.default)


def _of_markup(originals: pa.StringArray) -> pa.StringArray:
    pattern = r"^<(?P<end>/?)\s*(?P<name>[A-Za-z][A-Za-z0-9]*)(?:[\s/][^>]*?)??(?P<empty>/?)>$"
    groups = pc.extract_regex(originals, pattern)
    end, name, empty = (pc.struct_field(groups, field) for field in ("end", "name", "empty"))
    name = pc.utf8_lower(name)
    known = pc.if_else(pc.is_in(name, pa.array(ELEMENTS)), name, "span")
    tags = pc.binary_join_element_wise("<", end, known, pc.if_else(pc.equal(end, "/"), "", empty), ">", "")
    tags = pc.fill_null(tags, "<span>")
    tags = pc.if_else(pc.starts_with(originals, "<!--"), "<!-- -->", tags)
    tags = pc.if_else(pc.starts_with(originals, "&"), "&nbsp;", tags)
    return pc.if_else(pc.is_in(originals, pa.array(ENTITIES)), originals, tags)


def _of_names(originals: pa.StringArray) -> pa.StringArray:
    """Find the case of names, and the ending ``'s`` as it is written."""
    ends = pc.match_substring_regex(originals, r"['\x{2019}][sS]$")  # few do, and the rest need no copy
    groups = pc.extract_regex(originals.filter(ends), r"^(?P<stem>(?s:.*))(?P<end>['\x{2019}][sS])$")
    stem = pc.replace_with_mask(originals, ends, pc.struct_field(groups, "stem"))
    ending = pc.replace_with_mask(pa.repeat("", len(originals)), ends, pc.struct_field(groups, "end"))
    capitals = pc.match_substring_regex(stem, r"^\p{Lu}[\p{Lu}\p{M}'\x{2019}-]+$")
    case = pc.if_else(capitals, "AA", pc.if_else(pc.match_substring_regex(stem, r"^\p{Lu}"), "Aa", "a"))
    return pc.binary_join_element_wise(case, ending, "")
