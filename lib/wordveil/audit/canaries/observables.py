"""What a reader of an output sees of a record, one feature at a time."""

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
    """A record of an output.

    Attributes
    ----------
    status
        whether it was released, and the reason where it was not.
    texts
        its sanitised texts; None where it has none.
    privacy
        the column ``privacy``; None where it has none.
    tag
        its content tag; None where it has none.
    """

    status: tuple[str, str | None]
    texts: tuple[str, ...] | None
    privacy: dict[str, Any] | None
    tag: bytes | None


@dataclass(frozen=True)
class Observable:
    """One feature of a released record.

    Attributes
    ----------
    name
        what it is.
    shows
        the exposures that explain why it follows the text.
    measure
        its value: of a record, and of the words of the documents that are compared, in lower case.
    is_ordered
        whether values are numbers, so that an event is a range of them.
    is_specific
        whether it says more of a text than how long it is.
    """

    name: str
    shows: Shown
    measure: Callable[[tuple[str, ...], frozenset[str]], Hashable]
    is_ordered: bool = False
    is_specific: bool = True


def find_words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and digits."""
    return [word.lower() for word in _WORD.findall(text)]


def count_words(texts: tuple[str, ...]) -> tuple[int, ...]:
    """The pieces between white space, in each text column."""
    return tuple(len(text.split()) for text in texts)


def _find_copied(texts: tuple[str, ...], words: frozenset[str]) -> Hashable:
    return tuple(frozenset(find_words(text)) & words for text in texts)


def _find_first(texts: tuple[str, ...], words: frozenset[str]) -> Hashable:
    """The first word of the documents that each text has."""
    return tuple(next((word for word in find_words(text) if word in words), "") for text in texts)


def _find_marks(texts: tuple[str, ...]) -> Hashable:
    return tuple("".join(_MARK.findall(text)) for text in texts)


def _find_cases(texts: tuple[str, ...]) -> Hashable:
    return tuple("".join(_case_of(word) for word in _WORD.findall(text)) for text in texts)


def _case_of(word: str) -> str:
    if word == word.lower():
        return "l"
    if word == word.upper():
        return "U" if len(word) > 1 else "C"
    return "C" if word[1:] == word[1:].lower() else "m"


def _find_digits(texts: tuple[str, ...]) -> Hashable:
    return tuple(tuple(len(digits) for digits in re.findall(r"\d+", text)) for text in texts)


def _find_equal(texts: tuple[str, ...]) -> Hashable:
    words = [word for text in texts for word in find_words(text)]
    first: dict[str, int] = {}
    return tuple(first.setdefault(word, place) for place, word in enumerate(words))


def _measure_size(texts: tuple[str, ...]) -> int:
    return sum(len(text.encode()) for text in texts)


WORDS = Observable(
    "the number of words",
    frozenset({Exposure.LENGTH, Exposure.PUNCTUATION, Exposure.TYPES}),
    lambda texts, _: count_words(texts),
    is_specific=False,
)
TEXT_OBSERVABLES = (
    WORDS,
    Observable("words that were copied", _COPIED, _find_copied),
    Observable("the first word of the document", _COPIED, _find_first),
    Observable(
        "characters between words",
        _COPIED | {Exposure.PUNCTUATION},
        lambda texts, _: _find_marks(texts),
    ),
    Observable("upper and lower case", _COPIED | {Exposure.CASE}, lambda texts, _: _find_cases(texts)),
    Observable("numbers", _COPIED, lambda texts, _: _find_digits(texts)),
    Observable("which words are the same", _COPIED | {Exposure.REPETITION}, lambda texts, _: _find_equal(texts)),
    Observable(
        "the size in bytes",
        _COPIED | COPIES | {Exposure.REPETITION},
        lambda texts, _: _measure_size(texts),
        is_ordered=True,
        is_specific=False,
    ),
)
"""What is compared of texts."""
PRICE_SHOWS: Shown = COPIES | {Exposure.REPETITION, Exposure.LANGUAGE}
"""The exposures that explain why a record's price follows its text."""
