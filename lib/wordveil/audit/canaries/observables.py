"""Observables of a record in an output, one feature at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from wordveil.audit.canaries.documents import COPIES, Shown
from wordveil.privacy.relations import Exposure

_WORD = re.compile(r"\w+")
_MARK = re.compile(r"[^\w ]|  +")
_COPIED = frozenset(
    {
        *(Exposure.UNKNOWN_WORDS, Exposure.STOP_WORDS, Exposure.DIGITS, Exposure.CARRIER_PHRASES, Exposure.TYPES),
        Exposure.LANGUAGE,
    }
)


@dataclass(frozen=True)
class Row:
    """Record of an output.

    ``status``: whether it was released, and the reason where it was not. ``texts``, ``privacy``, ``tag``: its sanitised
    texts, the column ``privacy`` and its content tag; None where it has none.
    """

    status: tuple[str, str | None]
    texts: tuple[str, ...] | None
    privacy: dict[str, Any] | None
    tag: bytes | None


@dataclass(frozen=True)
class Observable:
    """Feature of a released record.

    ``name``: for people. ``shows``: the exposures that explain why it depends on the text. ``measure``: its value, from
    a record's texts and the words of the compared documents in lower case. ``is_ordered``: whether values are numbers,
    so that an event is a range of them. ``is_specific``: whether it says more about a text than its length.
    """

    name: str
    shows: Shown
    measure: Callable[[tuple[str, ...], frozenset[str]], Hashable]
    is_ordered: bool = False
    is_specific: bool = True


def find_words(text: str) -> list[str]:
    """Find the words of a text in lower case: runs of letters and digits."""
    return [word.lower() for word in _WORD.findall(text)]


def count_words(texts: tuple[str, ...]) -> tuple[int, ...]:
    """Count the pieces between white space in each text column."""
    return tuple(len(text.split()) for text in texts)


def _each(measure: Callable[[str], Hashable]) -> Callable[[tuple[str, ...], frozenset[str]], Hashable]:
    """Make a measure of every text on its own, whatever the words."""
    return lambda texts, _: tuple(map(measure, texts))


def _find_first(texts: tuple[str, ...], words: frozenset[str]) -> Hashable:
    """Find the first word of the documents that each text has."""
    return tuple(next((word for word in find_words(text) if word in words), "") for text in texts)


def _case_of(word: str) -> str:
    if word == word.lower():
        return "l"
    if word == word.upper():
        return "U" if len(word) > 1 else "C"
    return "C" if word[1:] == word[1:].lower() else "m"


def _find_equal(texts: tuple[str, ...], _: frozenset[str]) -> Hashable:
    """Find for each word the index of its first occurrence."""
    words = [word for text in texts for word in find_words(text)]
    first: dict[str, int] = {}
    return tuple(first.setdefault(word, index) for index, word in enumerate(words))


TEXT_OBSERVABLES = (
    Observable(
        "the number of words",
        frozenset({Exposure.LENGTH, Exposure.PUNCTUATION, Exposure.TYPES}),
        lambda texts, _: count_words(texts),
        is_specific=False,
    ),
    Observable(
        "words that were copied",
        _COPIED,
        lambda texts, words: tuple(frozenset(find_words(text)) & words for text in texts),
    ),
    Observable("the first word of the document", _COPIED, _find_first),
    Observable(
        "characters between words",
        _COPIED | {Exposure.PUNCTUATION},
        _each(lambda text: "".join(_MARK.findall(text))),
    ),
    Observable(
        "upper and lower case",
        _COPIED | {Exposure.CASE},
        _each(lambda text: "".join(map(_case_of, _WORD.findall(text)))),
    ),
    Observable("numbers", _COPIED, _each(lambda text: tuple(map(len, re.findall(r"\d+", text))))),
    Observable("which words are the same", _COPIED | {Exposure.REPETITION}, _find_equal),
    Observable(
        "the size in bytes",
        _COPIED | COPIES | {Exposure.REPETITION},
        lambda texts, _: sum(len(text.encode()) for text in texts),
        is_ordered=True,
        is_specific=False,
    ),
)
"""The features of texts that are compared."""
PRICE_SHOWS: Shown = COPIES | {Exposure.REPETITION, Exposure.LANGUAGE}
"""The exposures that explain why a record's price depends on its text."""
