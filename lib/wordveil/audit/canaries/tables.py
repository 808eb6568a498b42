"""Tables of canaries, and their outputs as a reader sees them, one feature of a record at a time.

There are two input tables with the same ids and the same kept columns. Record ``i`` of one has a copy of the first
document of a pair, and record ``i`` of the other a copy of the second. So every difference between the two outputs,
except for chance, follows from the texts: also rows, files and their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.audit.canaries.documents import COPIES, DocumentPair, Shown, make_marks, write_document
from wordveil.privacy.relations import Exposure
from wordveil.records.columns import TextColumns
from wordveil.text.draft import WORD_COPIES

_WORD = re.compile(r"\w+")
_MARK = re.compile(r"[^\w ]|  +")
_COPIED = WORD_COPIES | {Exposure.LANGUAGE}


@dataclass(frozen=True)
class Row:
    """Record of an output: its status with a reason, and its texts, column ``privacy`` and content tag, if any."""

    status: tuple[str, str | None]
    texts: tuple[str, ...] | None
    privacy: dict[str, Any] | None
    tag: bytes | None


@dataclass(frozen=True)
class Observable:
    """Feature of a released record.

    ``shows``: exposures that explain its dependence on the text. ``measure``: computes it from a record's texts and the
    words of the compared documents in lower case. ``is_ordered``: values are numbers, and events their ranges.
    ``is_specific``: it reveals more about a text than its length.
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
        "characters between words", _COPIED | {Exposure.PUNCTUATION}, _each(lambda text: "".join(_MARK.findall(text)))
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
PRICE_SHOWS: Shown = COPIES | {Exposure.REPETITION, Exposure.LANGUAGE}
"""Exposures that explain the dependence of a record's price on its text."""


HIDDEN_COLUMN = "__canary"
"""Column of the input that no output may have. It holds a word that nobody can guess."""


@dataclass(frozen=True)
class Inputs:
    """Both input tables.

    ``copies``: number of copies of each document. ``marks``: the unknown word of each record. ``secrets``: values of
    :data:`HIDDEN_COLUMN` and of other columns that are not kept. ``kept``: values of the kept columns.
    """

    pairs: tuple[DocumentPair, ...]
    copies: int
    marks: tuple[str, ...]
    secrets: tuple[str, ...]
    kept: dict[str, tuple[str, ...]]

    @classmethod
    def make(cls, pairs: Sequence[DocumentPair], copies: int, keep: Sequence[str], rng: np.random.Generator) -> Inputs:
        """Make the records, with the columns ``keep``. ``rng`` makes the words that no one else has."""
        records = len(pairs) * copies
        marks, secrets = make_marks(records, rng), make_marks(records, rng)
        kept = {name: tuple(f"{name} {record % 3}" for record in range(records)) for name in keep}
        return cls(tuple(pairs), copies, tuple(marks), tuple(secrets), kept)

    @property
    def ids(self) -> list[str]:
        """Ids, in which the copies of a document are not next to each other."""
        return [f"c{number:06d}" for number in range(len(self.marks))]

    def pair_of(self, number: int) -> DocumentPair:
        """Return the pair whose documents a record has copies of."""
        return self.pairs[number % len(self.pairs)]

    def languages(self, *, other: bool) -> list[str]:
        """List the language that each record of one of the tables names, if there is a column of languages."""
        return [self.pair_of(number).languages[other] for number in range(len(self.marks))]

    def texts(self, *, other: bool) -> list[list[bytes | None]]:
        """List the texts of one of the tables, for each text column."""
        pairs = [self.pair_of(number) for number in range(len(self.marks))]
        columns = zip(*(pair.second if other else pair.first for pair in pairs), strict=True)
        return [list(map(write_document, column, self.marks)) for column in columns]


@dataclass(frozen=True)
class CanaryOutput:
    """Output of one input table, in the order in which a reader sees its rows.

    ``files``: directory of each file in order, with its number of rows; None if nothing was written.
    """

    table: pa.Table
    columns: TextColumns
    id_column: str = "id"
    files: tuple[tuple[str, int], ...] | None = None

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Records by their ids."""
        paths = self.columns.paths
        return {row[self.id_column]: _read_row(row, paths) for row in self.table.to_pylist()}

    @property
    def order(self) -> list[Any]:
        return list(self.table[self.id_column].to_pylist())


def _read_row(row: dict[str, Any], paths: Sequence[Sequence[str]]) -> Row:
    texts = tuple(_follow(row, path) for path in paths)
    released = None if any(text is None for text in texts) else tuple(str(text) for text in texts)
    return Row((row["status"], row["reason"]), released, row["privacy"], row["content_tag"])


def _follow(row: dict[str, Any], path: Sequence[str]) -> Any:
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value
