"""Tables of canaries, and their outputs as a reader sees them.

There are two input tables with the same ids and the same kept columns. Record ``i`` of one has a copy of the first
document of a pair, and record ``i`` of the other a copy of the second. So every difference between the two outputs,
except for chance, follows from the texts: also rows, files and their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.audit.canaries.documents import DocumentPair, write_document
from wordveil.audit.canaries.observables import Row
from wordveil.audit.canaries.words import make_marks
from wordveil.records.columns import TextColumns

HIDDEN_COLUMN = "__canary"
"""A column of the input that no output may have. It holds a word that nobody can guess."""


@dataclass(frozen=True)
class Inputs:
    """Both input tables.

    ``pairs``: the pairs of documents. ``copies``: how many copies each document has. ``marks``: the unknown word of
    each record. ``secrets``: the values of :data:`HIDDEN_COLUMN` and of other columns that are not kept. ``kept``: the
    values of the kept columns.
    """

    pairs: tuple[DocumentPair, ...]
    copies: int
    marks: tuple[str, ...]
    secrets: tuple[str, ...]
    kept: dict[str, tuple[str, ...]]

    @classmethod
    def make(cls, pairs: Sequence[DocumentPair], copies: int, keep: Sequence[str], rng: np.random.Generator) -> Inputs:
        """Make the records. ``keep``: the kept columns. ``rng`` makes the words that no one else has."""
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

    def records_of(self, index: int) -> range:
        """Return the records of a pair."""
        return range(index, len(self.marks), len(self.pairs))

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
    """Output of one input table.

    ``table``: its rows, in the order in which a reader sees them. ``columns``: the text columns. ``id_column``: the
    name of the column of ids. ``files``: the directory of each file in order, and how many rows it has; None where
    nothing was written.
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
        """Ids in the order of the rows."""
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
