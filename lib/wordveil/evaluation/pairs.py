"""Released records beside their originals."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from wordveil.arrays import Int64
from wordveil.records.schema import REASON_COLUMN


@dataclass(frozen=True)
class AuthorCounts:
    """Numbers of authors of released records: ``in_all``, those with ``enough`` records, and those ``chosen``."""

    in_all: int = 0
    enough: int = 0
    chosen: int = 0


@dataclass(frozen=True)
class Pairs:
    """Released records beside their originals, in the order of their ids; several text columns are separate lines.

    ``records``: the originals as a sanitiser reads them. ``sample``: the rows of a random sample of all records; other
    rows are only read for attacks on authors. ``authors``: None for rows outside those attacks. ``labels``: None for
    rows outside the sample. ``bundles``, ``policies``: fingerprints of what the texts were drawn with. ``total``: the
    number of released records that the input still has.
    """

    records: pa.Table
    released: tuple[str, ...]
    sample: Int64
    authors: tuple[str | None, ...]
    labels: tuple[str | None, ...]
    bundles: frozenset[str]
    policies: frozenset[str]
    total: int
    counts: AuthorCounts = AuthorCounts()

    def __len__(self) -> int:
        return len(self.released)

    @property
    def texts(self) -> list[pa.StringArray]:
        """Originals by text column, "" for none."""
        columns = self.records.drop_columns([REASON_COLUMN]).columns
        return [pc.fill_null(values.combine_chunks(), "") for values in columns]

    @property
    def originals(self) -> list[str]:
        """Texts before they were sanitised."""
        joined: list[str] = pc.binary_join_element_wise(*self.texts, "\n").to_pylist()
        return joined

    @property
    def sampled(self) -> tuple[list[str], list[str]]:
        """Originals of the sample, and their released texts."""
        originals, rows = self.originals, self.sample.tolist()
        return [originals[row] for row in rows], [self.released[row] for row in rows]
