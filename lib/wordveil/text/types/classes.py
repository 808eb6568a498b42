"""Classes of tokens that are not words, and the actions on each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TokenType(StrEnum):
    """Class of a token.

    Lists of words identify those of :data:`NAME_TYPES` (:mod:`wordveil.text.types.names`), and a text's characters the
    others (:mod:`wordveil.text.types.typed`).
    """

    EMAIL = "email"
    """An e-mail address."""
    URL = "url"
    """A web address, with or without its scheme, or a file's path."""
    PHONE = "phone"
    """A telephone number."""
    IP = "ip"
    """An IP address, version 4 or 6."""
    DATE = "date"
    """A day, month or both with a year, in figures or with the month's English name."""
    TIME = "time"
    """A time of day."""
    NUMBER = "number"
    """A number in figures, with its separators and sign."""
    YEAR = "year"
    """A whole number that may be a year: four digits from 1500 to 2099, without sign or separators."""
    AMOUNT = "amount"
    """A number with a currency or a per cent sign."""
    ACCOUNT = "account"
    """An IBAN, a social security number, or a row of eight digits and more that is nothing else."""
    CARD = "card"
    """A payment card's number: 13 to 19 digits with a sound Luhn check digit."""
    MENTION = "mention"
    """``@name``."""
    HASHTAG = "hashtag"
    """``#topic``."""
    EMOJI = "emoji"
    """An emoji, with its modifiers."""
    MARKUP = "markup"
    """A tag of HTML or XML, or a character entity."""
    FIRST_NAME = "first_name"
    """A first name of the public list."""
    SURNAME = "surname"
    """A surname of the public list."""
    PLACE = "place"
    """A city, region or country of the public list."""
    NATIONALITY = "nationality"
    """An adjective of nationality, or a name of people by their country, of the public list."""


# To add a class, name it above, after the others, since numbers of classes are kept; and say below what holds for it.
TYPES = tuple(TokenType)
"""The classes by their numbers: those of :attr:`TypeSpans.kinds`, from 0."""
NAME_TYPES = (TokenType.FIRST_NAME, TokenType.SURNAME, TokenType.PLACE, TokenType.NATIONALITY)
"""The classes that lists of words identify."""
LATER_NAME_TYPES = (TokenType.NATIONALITY,)
"""Those of them that earlier versions did not have. Bundles of these have no such list, so no token is of the class."""
CHARACTER_TYPES = tuple(kind for kind in TYPES if kind not in NAME_TYPES)
"""The classes that a text's characters identify."""
DIGIT_TYPES = (
    *(TokenType.PHONE, TokenType.DATE, TokenType.TIME, TokenType.NUMBER, TokenType.YEAR, TokenType.AMOUNT),
    *(TokenType.ACCOUNT, TokenType.CARD),
)
"""The classes whose tokens are words with digits where they are not distinguished."""


class TypeAction(StrEnum):
    """Action on the tokens of a class."""

    WORDS = "words"
    """They are not distinguished: they are cut into words, which are replaced like any other."""
    MASK = "mask"
    """Each is one unknown word."""
    TAG = "tag"
    """The name of the class is written, ``<email>``."""
    SURROGATE = "surrogate"
    """A value is drawn uniformly from a public list of the class. Nothing of the original shows but its class."""
    RESAMPLE = "resample"
    """A value is drawn uniformly from those of the same shape: as many digits, the same separators, the same form of a
    date. Class and shape show.
    """


SHOWN_ACTIONS = (TypeAction.TAG, TypeAction.SURROGATE, TypeAction.RESAMPLE)
"""The actions that show a token's class."""
DRAWN_ACTIONS = (TypeAction.SURROGATE, TypeAction.RESAMPLE)
"""The actions that draw from public lists, which the bundle holds."""

_ALWAYS = (TypeAction.WORDS, TypeAction.MASK, TypeAction.TAG)
DEFAULTS: Mapping[TokenType, str] = MappingProxyType(
    {
        TokenType.PHONE: "(000) 000-0000",
        TokenType.IP: "v4",
        TokenType.DATE: "0000-00-00",
        TokenType.TIME: "00:00",
        TokenType.NUMBER: "000",
        TokenType.AMOUNT: "$000",
        TokenType.ACCOUNT: "00000000",
        TokenType.CARD: "0000 0000 0000 0000",
        TokenType.MARKUP: "<span>",
        TokenType.FIRST_NAME: "Aa",
        TokenType.SURNAME: "Aa",
        TokenType.PLACE: "Aa",
        TokenType.NATIONALITY: "Aa",
    }
)
"""The classes whose tokens have a shape that may show (:mod:`wordveil.text.types.shapes`), and the shape of tokens
that fit no grammar.
"""
EXAMPLES: Mapping[TokenType, tuple[str, str]] = MappingProxyType(
    {
        TokenType.EMAIL: ("kqv@example.org", "zwx@example.org"),
        TokenType.URL: ("https://kqv.example.org/kqv", "https://zwx.example.org/zwx"),
        TokenType.PHONE: ("+44 20 7946 0958", "+44 20 7946 0321"),
        TokenType.IP: ("192.0.2.17", "192.0.2.43"),
        TokenType.DATE: ("12/05/1999", "14/07/1986"),
        TokenType.TIME: ("10:45", "21:38"),
        TokenType.NUMBER: ("4812", "7359"),
        TokenType.YEAR: ("1977", "2024"),
        TokenType.AMOUNT: ("$12.50", "$83.20"),
        TokenType.ACCOUNT: ("123-45-6789", "987-65-4320"),
        TokenType.CARD: ("4111 1111 1111 1111", "5555 5555 5555 4444"),
        TokenType.MENTION: ("@kqvzwx", "@zwxkqv"),
        TokenType.HASHTAG: ("#kqvzwx", "#zwxkqv"),
        TokenType.EMOJI: ("\U0001f600", "\U0001f60e"),
        TokenType.MARKUP: ('<div class="kqv">', '<div class="zwx">'),
    }
)
"""Two tokens of the same shape for each class of :data:`CHARACTER_TYPES`: audits put them into documents."""
ALLOWED: Mapping[TokenType, tuple[TypeAction, ...]] = MappingProxyType(
    {
        kind: (*_ALWAYS, TypeAction.SURROGATE, *((TypeAction.RESAMPLE,) if kind in DEFAULTS else ()))
        for kind in TokenType
    }
)
"""What may happen to the tokens of each class: everything, but ``resample`` only where a class has shapes."""

READABLE_ACTIONS: Mapping[TokenType, TypeAction] = MappingProxyType(
    {kind: TypeAction.RESAMPLE if kind in DEFAULTS else TypeAction.SURROGATE for kind in CHARACTER_TYPES}
)
"""What reads best: values of the same shape where a class has shapes, else values of its public list."""
MASKED: Mapping[TokenType, TypeAction] = MappingProxyType(dict.fromkeys(CHARACTER_TYPES, TypeAction.MASK))
"""Each token that characters identify becomes one unknown word."""


LISTED_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")
"""The languages that have public lists (:mod:`wordveil.text.types.lists`), by their ISO 639-1 codes."""


class TypeSpans(NamedTuple):
    """Tokens of a string array, in the order of the text; none overlap.

    ``starts``, ``ends``: int64 ``(spans,)``, byte offsets into the array's data buffer. A span never cuts a character.
    ``kinds``: int8 ``(spans,)``, indices in :data:`TYPES`. ``offsets``: int64 ``(records + 1,)``, the spans of each
    record.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    kinds: NDArray[np.int8]
    offsets: NDArray[np.int64]
