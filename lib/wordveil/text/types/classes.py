"""Classes of tokens that are not words: an entry of :data:`CLASSES` each, from which all else follows.

Entries decide what a configuration may name, the order of the numbers, and what is found, drawn and shown. An added
class gets a new ``since``: policies of earlier versions do not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from wordveil.arrays import Int8, Int64

if TYPE_CHECKING:
    from wordveil.text.types.lists import PublicLists


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
    """A value is drawn uniformly from those of its shape (digits, separators, form of a date). Class and shape show."""


SHOWN_ACTIONS = (TypeAction.TAG, TypeAction.SURROGATE, TypeAction.RESAMPLE)
"""The actions that show a token's class."""
DRAWN_ACTIONS = (TypeAction.SURROGATE, TypeAction.RESAMPLE)
"""The actions that draw from public lists, which the bundle holds."""


class Form(StrEnum):
    """Parts of a token that a shape keeps."""

    DIGITS = "digits"
    """Everything but digits, which are drawn."""
    CODE = "code"
    """Everything but digits and letters, which are drawn."""
    DATE = "date"
    """The form of a date; a real day is drawn."""
    ADDRESS = "address"
    """The version of an IP address."""
    MARKUP = "markup"
    """The element, which is written again."""
    NAME = "name"
    """The case and the ending of a name, which is drawn from the values of its class."""


@dataclass(frozen=True)
class Shape:
    """Shapes of a class's tokens.

    ``form``: what they keep. ``default``: the shape of a token that fits no grammar; ``abroad``: that in other
    languages than English, if it differs. ``grammar``: a pattern of RE2 for all shapes. ``signs``: replacements, in
    this order, after digits are replaced.
    """

    form: Form
    default: str
    grammar: str
    signs: tuple[tuple[str, str], ...] = ()
    abroad: str = ""


Parts = tuple[Any, ...]
"""Parts that a value is joined from: strings, and public sets (tuples or string arrays) to draw one from."""


@dataclass(frozen=True)
class TokenClass:
    """Class of a token.

    ``name``: as configurations and tags write it. ``examples``: two tokens of the same shape, which audits put into
    documents; none for a class of ``list``. ``values``: parts of a surrogate; None: drawn in the default shape.
    ``shape``: the shapes that may show; None: only the class. ``list``: the public list that finds the tokens
    (:mod:`wordveil.text.types.names`); empty: characters do (:mod:`wordveil.text.types.finders.scan`). ``has_digits``:
    whether its tokens are otherwise words with digits. ``is_spelled``: whether it is read aloud digit by digit.
    ``since``: the first version of the list of classes with it.
    """

    name: str
    examples: tuple[str, str] | tuple[()] = ()
    values: Callable[[PublicLists], Parts] | None = None
    shape: Shape | None = None
    list: str = ""
    has_digits: bool = False
    is_spelled: bool = False
    since: int = 1

    @property
    def allowed(self) -> tuple[TypeAction, ...]:
        """Allowed actions: all, but ``resample`` only if the class has shapes."""
        return tuple(action for action in TypeAction if self.shape or action != TypeAction.RESAMPLE)


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
"""Months as shapes have them."""
YEARS = range(1970, 2038)
"""Years that are drawn. No two have the same last two digits."""
_ELEMENTS = (
    "a abbr address article aside audio b big blockquote body br button canvas caption center cite code col dd "
    "del details dfn div dl dt em fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr "
    "html i iframe img input ins kbd label legend li link main mark menu meta nav noscript object ol optgroup "
    "option output p picture pre q s samp script section select small source span strike strong style sub summary "
    "sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var video wbr"
)
ELEMENTS = tuple(_ELEMENTS.split())
"""Elements of HTML that a shape may name."""
ENTITIES = ("&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&nbsp;", "&#39;", "&#34;", "&ndash;", "&mdash;")
"""Character entities that a shape may name."""

# Tuples, no arrays: pyarrow imports pandas for the first one, and a worker must not load it on its way.
_DOMAINS = ("example.com", "example.net", "example.org")
_TAGS = tuple(
    f"<{name}>" for name in ("b", "big", "br", "code", "em", "i", "li", "p", "q", "s", "small", "span", "strong", "u")
)

# RE2, after digits and names have become placeholders.
_CURRENCIES = (
    r"(?:(?:US|HK|NZ|[ACRS])\$|[$\x{20AC}\x{A3}\x{A5}\x{A2}\x{20B9}\x{20BD}\x{20A9}\x{20AA}\x{20BA}]|"
    r"(?:AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SEK|SGD|USD|ZAR))"
)
_GROUPS = r"[.,]?0+(?:[.,'\x{2019}\x{A0}\x{202F} ]0+)*"
_DATE_NAME = r"Mon(?:th)?\.?"
_DAY = "00?(?:th)?"
_DATE_FORMS = (
    *(rf"0000{sep}00?{sep}00?|00?{sep}00?{sep}(?:00){{1,2}}|00?{sep}0000" for sep in ("-", "/", r"\.")),
    rf"{_DATE_NAME} {_DAY}(?:,? 0000)?",
    rf"{_DAY}(?: of)? {_DATE_NAME}(?:,? 0000)?",
    rf"{_DAY}-{_DATE_NAME}-(?:00){{1,2}}|0000-{_DATE_NAME}-{_DAY}",
    rf"{_DATE_NAME},? 0000",
)
_HALVES = (
    (r"(0 ?)[ap]\.m\.", r"\1x.m."),
    (r"(0 ?)[AP]\.M\.", r"\1X.M."),
    (r"(0 ?)[AP]M", r"\1XM"),
    (r"(0 ?)[ap]m", r"\1xm"),
)
_ORDINAL = ("0(?:st|nd|rd|th|ST|ND|RD|TH)", "0th")
_DATE_SIGNS = (
    (r"\s+", " "),
    (rf"(?i)\b(?:{'|'.join(MONTHS)})\b", "Month"),
    (rf"(?i)\b(?:sept|{'|'.join(month[:3] for month in MONTHS)})\b", "Mon"),
    _ORDINAL,
)
_OF_NAMES = Shape(Form.NAME, "Aa", r"(?:Aa|AA|a)(?:['\x{2019}][sS])?")

_ENTRIES = (
    TokenClass(
        "email",
        ("kqv@example.org", "zwx@example.org"),
        lambda lists: (lists.plain_first_names, ".", lists.plain_surnames, "@", _DOMAINS),
    ),
    # A web address, with or without its scheme, or a file's path.
    TokenClass(
        "url",
        ("https://kqv.example.org/kqv", "https://zwx.example.org/zwx"),
        lambda lists: ("https://www.", _DOMAINS, "/", lists.words, "/", lists.words),
    ),
    TokenClass(
        "phone",
        ("+44 20 7946 0958", "+44 20 7946 0321"),
        shape=Shape(
            Form.DIGITS,
            "(000) 000-0000",
            r"[+(]{0,2}0[0()\-. /\x{A0}\x{2010}\x{2011}]*0(?: ?(?:[xX]|[eE]xt\.?) ?0{1,6})?",
        ),
        has_digits=True,
        is_spelled=True,
    ),
    TokenClass("ip", ("192.0.2.17", "192.0.2.43"), shape=Shape(Form.ADDRESS, "v4", "v4|v6")),
    # A day, month or both with a year, in figures or with the month's English name.
    TokenClass(
        "date",
        ("12/05/1999", "14/07/1986"),
        shape=Shape(Form.DATE, "0000-00-00", "|".join(_DATE_FORMS), _DATE_SIGNS),
        has_digits=True,
    ),
    TokenClass(
        "time",
        ("10:45", "21:38"),
        shape=Shape(
            Form.DIGITS,
            "00:00",
            r"T?00?:00(?::00(?:[.,]0{1,9})?)?(?: ?(?:xm|XM|x\.m\.|X\.M\.))?(?:Z|[+-]00(?::?00)?)?"
            r"|00? ?(?:xm|XM|x\.m\.|X\.M\.)",
            _HALVES,
        ),
        has_digits=True,
    ),
    TokenClass(
        "number",
        ("4812", "7359"),
        shape=Shape(Form.DIGITS, "000", rf"[+\-\x{{2212}}]?{_GROUPS}(?:/0+|[eE][+-]?0{{1,3}})?|0[0,]*th", (_ORDINAL,)),
        has_digits=True,
    ),
    # A whole number that may be a year: four digits from 1500 to 2099, without sign or separators.
    TokenClass("year", ("1977", "2024"), lambda _: (tuple(map(str, YEARS)),), has_digits=True),
    # A number with a currency or a per cent sign.
    TokenClass(
        "amount",
        ("$12.50", "$83.20"),
        shape=Shape(
            Form.DIGITS,
            "$000",
            rf"[+\-\x{{2212}}]?(?:{_CURRENCIES} ?)?[+\-\x{{2212}}]?{_GROUPS}(?: ?(?:{_CURRENCIES}|[%\x{{2030}}]))?",
            abroad="000 \u20ac",
        ),
        has_digits=True,
    ),
    # An IBAN, a social security number, or a row of eight digits and more that is nothing else.
    TokenClass(
        "account",
        ("123-45-6789", "987-65-4320"),
        shape=Shape(Form.CODE, "00000000", r"[A0][A0 \-./]*[A0]"),
        has_digits=True,
        is_spelled=True,
    ),
    # 13 to 19 digits with a sound Luhn check digit.
    TokenClass(
        "card",
        ("4111 1111 1111 1111", "5555 5555 5555 4444"),
        shape=Shape(Form.DIGITS, "0000 0000 0000 0000", r"0(?:[ -]?0){12,18}"),
        has_digits=True,
        is_spelled=True,
    ),
    # No network keeps names for documentation, so these say what they are.
    TokenClass("mention", ("@kqvzwx", "@zwxkqv"), lambda lists: ("@example_", lists.words)),
    TokenClass("hashtag", ("#kqvzwx", "#zwxkqv"), lambda lists: ("#", lists.words)),
    TokenClass("emoji", ("\U0001f600", "\U0001f60e"), lambda lists: (lists.emoji,)),
    # A tag of HTML or XML, or a character entity.
    TokenClass(
        "markup",
        ('<div class="kqv">', '<div class="zwx">'),
        lambda _: (_TAGS,),
        Shape(
            Form.MARKUP,
            "<span>",
            rf"</?(?:{'|'.join(ELEMENTS)})>|<(?:{'|'.join(ELEMENTS)})/>|<!-- -->|{'|'.join(ENTITIES)}",
        ),
    ),
    TokenClass("first_name", values=lambda lists: (lists.first_names,), shape=_OF_NAMES, list="first_name"),
    TokenClass("surname", values=lambda lists: (lists.surnames,), shape=_OF_NAMES, list="surname"),
    TokenClass("place", values=lambda lists: (lists.places,), shape=_OF_NAMES, list="place"),
    TokenClass("nationality", values=lambda lists: (lists.written_nationalities,), shape=_OF_NAMES, list="nationality"),
    # Add a class here, with the next version as ``since``: numbers and versions rise.
)
CLASSES: dict[str, TokenClass] = {entry.name: entry for entry in _ENTRIES}
"""The classes by their names, in the order of their numbers."""
TYPES = tuple(CLASSES)
"""Names by the classes' numbers, those of :attr:`TypeSpans.kinds`, from 0."""
NAME_TYPES = tuple(kind for kind in TYPES if CLASSES[kind].list)
"""The classes that lists of words identify."""
CHARACTER_TYPES = tuple(kind for kind in TYPES if kind not in NAME_TYPES)
"""The classes that a text's characters identify."""
LATER_NAME_TYPES = ("nationality",)
"""Classes of names of version 1 that its first bundles lack. They have no such list, so no token is of the class."""
LISTED_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")
"""The languages that have public lists (:mod:`wordveil.text.types.lists`), by their ISO 639-1 codes."""


def newest_version() -> int:
    """Return the newest version of the list of classes."""
    return max(entry.since for entry in CLASSES.values())


def list_classes(version: int) -> dict[str, TokenClass]:
    """List the classes that a version of the list has."""
    return {kind: entry for kind, entry in CLASSES.items() if entry.since <= version}


def readable_actions(version: int = 1) -> Mapping[str, TypeAction]:
    """Choose what reads best for each class that characters identify: values of the same shape, or of its list."""
    return {
        kind: TypeAction.RESAMPLE if entry.shape else TypeAction.SURROGATE
        for kind, entry in list_classes(version).items()
        if not entry.list
    }


def masked_actions(version: int = 1) -> Mapping[str, TypeAction]:
    """Make each token that characters identify one unknown word."""
    return dict.fromkeys(readable_actions(version), TypeAction.MASK)


class TypeSpans(NamedTuple):
    """Tokens of a string array, in the order of the text; none overlap.

    ``starts``, ``ends``: int64 ``(spans,)``, byte offsets into the array's data buffer, never inside a character.
    ``kinds``: int8 ``(spans,)``, indices in :data:`TYPES`. ``offsets``: int64 ``(records + 1,)``.
    """

    starts: Int64
    ends: Int64
    kinds: Int8
    offsets: Int64
