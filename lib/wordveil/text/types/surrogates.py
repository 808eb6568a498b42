"""Values drawn from public finite sets, which replace tokens that are not words.

A value is a function of the token's class, action and shape and of uniform words of its noise stream: given class and
shape, it tells nothing about the original. Most of the sets hold only what is nobody's: addresses under the names that
RFC 2606 keeps for documentation, IP addresses of RFC 5737 and 3849, telephone numbers kept for fiction, and numbers of
cards, IBANs and social security that fail their own checks. A random address at a real provider might be somebody's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import UInt64
from wordveil.crypto.streams import scale_words
from wordveil.text.types.classes import ALLOWED, DEFAULTS, NAME_TYPES, TYPES, TokenType, TypeAction
from wordveil.text.types.dates import count_days, draw_dates, list_years
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.shapes import are_shapes, repeat_string, scatter
from wordveil.text.types.templates import compile_shape, count_values, fill_templates

WORDS = 4
"""How many uniform 64-bit words a token's value takes."""

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
    """What replaces each token.

    Parameters
    ----------
    kinds
        int8 ``(tokens,)``, indices in :data:`wordveil.text.types.classes.TYPES`.
    actions
        what happens to each class: ``tag``, ``surrogate`` or, where :data:`ALLOWED` permits it, ``resample``.
    shapes
        string array ``(tokens,)`` from :func:`wordveil.text.types.shapes.find_shapes`.
    words
        uint64 ``(tokens, 4)``, uniform and independent.
    lists
        where names and words come from; their language says how dates in figures and amounts are written. None where
        every action is ``tag``.

    Returns
    -------
    pa.StringArray
        ``(tokens,)``, the same for the same arguments.

    Raises
    ------
    ValueError
        For an action that draws no value, and for a shape that no token has.
    """
    groups, order = [pa.array([], pa.string())], []
    for number in np.unique(kinds):
        kind = TYPES[number]
        rows = np.flatnonzero(kinds == number)
        order.append(rows)
        action = _action_of(kind, actions)
        if action == TypeAction.TAG:
            groups.append(repeat_string(f"<{kind}>", len(rows)))
            continue
        assert lists is not None
        if action == TypeAction.SURROGATE and kind not in DEFAULTS:
            groups.append(_UNSHAPED[kind](lists, words[rows]))
        else:
            resampled = action == TypeAction.RESAMPLE
            shown = shapes.take(pa.array(rows)) if resampled else repeat_string(_default(kind, lists), len(rows))
            groups.append(_draw_shaped(kind, shown, words[rows], lists, resampled=resampled))
    return scatter(groups, order)


def set_size(kind: TokenType, action: TypeAction, shape: str, lists: PublicLists) -> int:
    """How many values a token of this class and shape may get. An original that is one of them survives once in as many
    draws. ``shape`` counts for ``resample`` alone. Raises :class:`ValueError` for an action that draws no value.
    """
    action = _action_of(kind, {kind: action})
    if action == TypeAction.TAG:
        return 1
    if action == TypeAction.SURROGATE:
        shape = _default(kind, lists)
    domains = len(_DOMAINS)
    sizes: Mapping[TokenType, Callable[[], int]] = {
        TokenType.EMAIL: lambda: len(lists.plain_first_names) * len(lists.plain_surnames) * domains,
        TokenType.URL: lambda: domains * len(lists.words) ** 2,
        TokenType.MENTION: lambda: len(lists.words),
        TokenType.HASHTAG: lambda: len(lists.words),
        TokenType.EMOJI: lambda: len(lists.emoji),
        TokenType.YEAR: lambda: len(list_years()),
        TokenType.MARKUP: lambda: 1 if action == TypeAction.RESAMPLE else len(_TAGS),
        TokenType.IP: lambda: len(_documentation_v4()) if shape == "v4" else 2**48,
        TokenType.DATE: lambda: count_days(shape, lists.language),
        **dict.fromkeys(NAME_TYPES, lambda: len(_names_of(kind, lists))),
        **dict.fromkeys(_TEMPLATES, lambda: count_values(compile_shape(kind, shape))),
    }
    return sizes[kind]()


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


def _draw_shaped(
    kind: TokenType, shapes: pa.StringArray, words: UInt64, lists: PublicLists, *, resampled: bool
) -> pa.StringArray:
    """Values by their shapes, each distinct shape looked at once."""
    if kind == TokenType.MARKUP and not resampled:
        return _pick(pa.array(_TAGS), words[:, 0])
    distinct, which = _distinct(kind, shapes)
    if kind == TokenType.MARKUP:
        return shapes
    if kind in _TEMPLATES:
        return fill_templates([compile_shape(kind, shape) for shape in distinct], which, words)
    groups, order = [pa.array([], pa.string())], []
    for row, shape in enumerate(distinct):
        rows = np.flatnonzero(which == row)
        order.append(rows)
        if kind == TokenType.DATE:
            groups.append(draw_dates(shape, words[rows, 0], lists.language))
        elif kind == TokenType.IP:
            groups.append(_draw_v4(words[rows]) if shape == "v4" else _draw_v6(words[rows]))
        else:
            groups.append(_draw_names(_names_of(kind, lists), shape, words[rows, 0]))
    return scatter(groups, order)


def _distinct(kind: TokenType, shapes: pa.StringArray) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct shapes, and which of them each is: int64. Raises ValueError, without the string, for no shape: it
    would be copied.
    """
    encoded = shapes.dictionary_encode()
    if not pc.all(are_shapes(kind, encoded.dictionary), min_count=0).as_py():
        raise ValueError(f"{kind}: a string is no shape of this class; shapes come from find_shapes.")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def _pick(values: pa.StringArray, words: UInt64) -> pa.StringArray:
    """A uniform one of ``values`` for each of ``words``."""
    return values.take(pa.array(scale_words(words, np.array(len(values), np.uint64))))


def _names_of(kind: TokenType, lists: PublicLists) -> pa.StringArray:
    return {
        TokenType.FIRST_NAME: lists.first_names,
        TokenType.SURNAME: lists.surnames,
        TokenType.PLACE: lists.places,
    }[kind]


def _draw_names(names: pa.StringArray, shape: str, words: UInt64) -> pa.StringArray:
    case = shape.rstrip("'\u2019sS")
    drawn = _pick(names, words)
    if case != "Aa":
        drawn = pc.utf8_upper(drawn) if case == "AA" else pc.utf8_lower(drawn)
    return pc.binary_join_element_wise(drawn, shape.removeprefix(case), "")


@cache
def _documentation_v4() -> pa.StringArray:
    """The addresses of RFC 5737."""
    return pa.array([f"{net}.{host}" for net in ("192.0.2", "198.51.100", "203.0.113") for host in range(256)])


def _draw_v4(words: UInt64) -> pa.StringArray:
    return _pick(_documentation_v4(), words[:, 0])


@cache
def _hex_groups() -> pa.StringArray:
    return pa.array([f"{value:x}" for value in range(2**16)])


def _draw_v6(words: UInt64) -> pa.StringArray:
    """Addresses under 2001:db8::/32, RFC 3849."""
    groups = [_pick(_hex_groups(), words[:, index]) for index in range(3)]
    return pc.binary_join_element_wise(
        "2001:db8", groups[0], groups[1], pc.binary_join_element_wise("", groups[2], ":"), ":"
    )


def _draw_emails(lists: PublicLists, words: UInt64) -> pa.StringArray:
    first, last = _pick(lists.plain_first_names, words[:, 0]), _pick(lists.plain_surnames, words[:, 1])
    return pc.binary_join_element_wise(first, ".", last, "@", _pick(pa.array(_DOMAINS), words[:, 2]), "")


def _draw_urls(lists: PublicLists, words: UInt64) -> pa.StringArray:
    domains = _pick(pa.array(_DOMAINS), words[:, 0])
    return pc.binary_join_element_wise(
        "https://www.", domains, "/", _pick(lists.words, words[:, 1]), "/", _pick(lists.words, words[:, 2]), ""
    )


def _draw_mentions(lists: PublicLists, words: UInt64) -> pa.StringArray:
    """``@example_word``: no network keeps names for documentation, so these say what they are."""
    return pc.binary_join_element_wise("@example_", _pick(lists.words, words[:, 0]), "")


def _draw_hashtags(lists: PublicLists, words: UInt64) -> pa.StringArray:
    return pc.binary_join_element_wise("#", _pick(lists.words, words[:, 0]), "")


def _draw_emoji(lists: PublicLists, words: UInt64) -> pa.StringArray:
    return _pick(lists.emoji, words[:, 0])


def _draw_years(_: PublicLists, words: UInt64) -> pa.StringArray:
    return _pick(list_years(), words[:, 0])


_UNSHAPED: Mapping[TokenType, Callable[[PublicLists, UInt64], pa.StringArray]] = {
    TokenType.EMAIL: _draw_emails,
    TokenType.URL: _draw_urls,
    TokenType.MENTION: _draw_mentions,
    TokenType.HASHTAG: _draw_hashtags,
    TokenType.EMOJI: _draw_emoji,
    TokenType.YEAR: _draw_years,
}
