"""Surrogates: values drawn from public finite sets, which replace tokens that are not words.

A value is a function of the token's class, action and shape and of uniform words of its noise stream: given class and
shape, it reveals nothing about the original. Most of the sets hold only values that belong to no one: addresses under
the names that RFC 2606 keeps for documentation, IP addresses of RFC 5737 and 3849, telephone numbers kept for fiction,
and numbers of cards, IBANs and social security that fail their own checks. A random address at a real provider might
belong to someone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import UInt64
from wordveil.crypto.streams import scale_words
from wordveil.text.types.classes import ALLOWED, DEFAULTS, NAME_TYPES, TYPES, TokenType, TypeAction
from wordveil.text.types.dates import count_days, draw_dates, list_years
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.shapes import are_shapes, map_groups
from wordveil.text.types.templates import compile_shape, count_values, fill_templates

_Parts = tuple[Any, ...]
"""What a value is joined from: strings, and public sets (string arrays) from each of which a string is drawn."""
WORDS = 4
"""How many uniform 64-bit words a token's value takes."""

# No arrays: pyarrow imports pandas for the first one, and a worker must not load it on its way.
_DOMAINS = ("example.com", "example.net", "example.org")
_TAGS = tuple(
    f"<{name}>" for name in ("b", "big", "br", "code", "em", "i", "li", "p", "q", "s", "small", "span", "strong", "u")
)
_TEMPLATES = (
    TokenType.PHONE, TokenType.TIME, TokenType.NUMBER, TokenType.AMOUNT, TokenType.ACCOUNT, TokenType.CARD,
)  # fmt: skip


def draw_values(
    kinds: NDArray[np.int8],
    actions: Mapping[TokenType, TypeAction],
    shapes: pa.StringArray,
    words: UInt64,
    lists: PublicLists | None,
) -> pa.StringArray:
    """Draw the replacement of each token: string array ``(tokens,)``, the same for the same arguments.

    ``kinds``: int8 ``(tokens,)``, indices in :data:`wordveil.text.types.classes.TYPES`. ``actions``: what happens to
    each class: ``tag``, ``surrogate`` or, where :data:`ALLOWED` permits it, ``resample``. ``shapes``: string array
    ``(tokens,)`` from :func:`wordveil.text.types.shapes.find_shapes`. ``words``: uint64 ``(tokens, 4)``, uniform and
    independent. ``lists``: where names and words come from; their language says how dates in figures and amounts are
    written. None where every action is ``tag``.

    Raises
    ------
    ValueError
        for an action that draws no value, and for a shape that no token has.
    """

    def make(number: int, rows: NDArray[np.int64]) -> pa.StringArray:
        kind = TYPES[number]
        action = _action_of(kind, actions)
        if action == TypeAction.TAG:
            return pa.repeat(f"<{kind}>", len(rows))
        assert lists is not None
        if action == TypeAction.SURROGATE and kind in _UNSHAPED:
            return _join(_UNSHAPED[kind](lists), words[rows])
        resampled = action == TypeAction.RESAMPLE
        shown = shapes.take(pa.array(rows)) if resampled else pa.repeat(_default(kind, lists), len(rows))
        return _draw_shaped(kind, shown, words[rows], lists)

    return map_groups(kinds, make)


def set_size(kind: TokenType, action: TypeAction, shape: str, lists: PublicLists) -> int:
    """Count the values that a token of this class and shape may get.

    An original that is one of them survives once in as many draws. ``shape`` counts for ``resample`` alone. Raises
    :class:`ValueError` for an action that draws no value.
    """
    action = _action_of(kind, {kind: action})
    if action == TypeAction.TAG:
        return 1
    if action == TypeAction.SURROGATE:
        if kind in _UNSHAPED:
            return _count(_UNSHAPED[kind](lists))
        shape = _default(kind, lists)
    if kind in _TEMPLATES:
        return count_values(compile_shape(kind, shape))
    if kind == TokenType.DATE:
        return count_days(shape, lists.language)
    if kind == TokenType.MARKUP:
        return 1
    return _count(_addresses(shape) if kind == TokenType.IP else (_names_of(kind, lists),))


def _action_of(kind: TokenType, actions: Mapping[TokenType, TypeAction]) -> TypeAction:
    action = actions.get(kind)
    if action not in ALLOWED[kind][2:]:
        allowed = ", ".join(ALLOWED[kind][2:])
        raise ValueError(f"{kind}: no value is drawn under the action {action!s}. The actions that draw are {allowed}.")
    return action


def _default(kind: TokenType, lists: PublicLists) -> str:
    if kind == TokenType.AMOUNT and lists.language != "en":
        return "000 \u20ac"
    return DEFAULTS.get(kind, "")


def _draw_shaped(kind: TokenType, shapes: pa.StringArray, words: UInt64, lists: PublicLists) -> pa.StringArray:
    """Draw values by their shapes, each distinct shape read once."""
    encoded = shapes.dictionary_encode()
    if not pc.all(are_shapes(kind, encoded.dictionary), min_count=0).as_py():
        # The message leaves the string out: it may be an original.
        raise ValueError(f"{kind}: a string is no shape of this class; shapes come from find_shapes.")
    if kind == TokenType.MARKUP:
        return shapes
    distinct, which = encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
    if kind in _TEMPLATES:
        return fill_templates([compile_shape(kind, shape) for shape in distinct], which, words)

    def make(number: int, rows: NDArray[np.int64]) -> pa.StringArray:
        shape = distinct[number]
        if kind == TokenType.DATE:
            return draw_dates(shape, words[rows, 0], lists.language)
        if kind == TokenType.IP:
            return _join(_addresses(shape), words[rows])
        return _draw_names(_names_of(kind, lists), shape, words[rows, 0])

    return map_groups(which, make)


def _join(parts: _Parts, words: UInt64) -> pa.StringArray:
    """Join values from ``parts``, with a string drawn from each set by the next of a token's ``words``."""
    column = iter(words.T)
    drawn = [part if isinstance(part, str) else _pick(part, next(column)) for part in parts]
    return pc.binary_join_element_wise(*drawn, "")


def _count(parts: _Parts) -> int:
    return math.prod(len(part) for part in parts if not isinstance(part, str))


def _pick(values: pa.StringArray, words: NDArray[np.uint64]) -> pa.StringArray:
    """Pick a string of ``values``, uniformly, for each of ``words``."""
    return values.take(pa.array(scale_words(words, np.array(len(values), np.uint64))))


def _names_of(kind: TokenType, lists: PublicLists) -> pa.StringArray:
    names = (lists.first_names, lists.surnames, lists.places, lists.written_nationalities)
    return dict(zip(NAME_TYPES, names, strict=True))[kind]


def _draw_names(names: pa.StringArray, shape: str, words: UInt64) -> pa.StringArray:
    case = shape.rstrip("'\u2019sS")
    drawn = _pick(names, words)
    if case != "Aa":
        drawn = pc.utf8_upper(drawn) if case == "AA" else pc.utf8_lower(drawn)
    return pc.binary_join_element_wise(drawn, shape.removeprefix(case), "")


@cache
def _addresses(shape: str) -> _Parts:
    """List the addresses of RFC 5737, or those under 2001:db8::/32 of RFC 3849."""
    if shape == "v4":
        nets = ("192.0.2", "198.51.100", "203.0.113")
        return (pa.array([f"{net}.{host}" for net in nets for host in range(256)]),)
    group = pa.array([f"{value:x}" for value in range(2**16)])
    return ("2001:db8:", group, ":", group, "::", group)


_UNSHAPED: Mapping[TokenType, Callable[[PublicLists], _Parts]] = {
    TokenType.EMAIL: lambda lists: (lists.plain_first_names, ".", lists.plain_surnames, "@", pa.array(_DOMAINS)),
    TokenType.URL: lambda lists: ("https://www.", pa.array(_DOMAINS), "/", lists.words, "/", lists.words),
    # No network keeps names for documentation, so these say what they are.
    TokenType.MENTION: lambda lists: ("@example_", lists.words),
    TokenType.HASHTAG: lambda lists: ("#", lists.words),
    TokenType.EMOJI: lambda lists: (lists.emoji,),
    TokenType.YEAR: lambda _: (list_years(),),
    TokenType.MARKUP: lambda _: (pa.array(_TAGS),),
}
"""What the surrogates of a class are joined from, where their shape does not count."""
