"""Text columns of a record: one, or several that are sanitised together and paid for as one.

Token positions continue across columns, in the order of their names. So each token has a position of its own in the
record's noise, and the price of a record is that of all its tokens. The contents of the columns enter the tag and the
noise's context one after another, each after its length. So two records that differ only in which column holds a word
share no noise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from wordveil.records.paths import read_path
from wordveil.records.schema import OUTPUT_FIELDS, SYMBOLS_FIELD, TEXT_COLUMN
from wordveil.text.policy import TextPolicy


def text_inputs(count: int) -> tuple[str, ...]:
    """Name the columns of a screened batch that hold a record's texts, before ``__reason``."""
    return (TEXT_COLUMN, *(f"{TEXT_COLUMN}_{number}" for number in range(1, count)))


@dataclass(frozen=True)
class TextColumns:
    """Text columns of an output.

    ``names``: their names in the output: ``text`` for a single one; for several those in the input, where a dotted one
    becomes a field of a struct. ``widths``: the public number of tokens of each, whose sum is the policy's ``n_max``;
    empty unless the policy hides lengths. ``symbols``: the output has the drawn symbols, too.
    """

    names: tuple[str, ...] = ("text",)
    widths: tuple[int, ...] = ()
    symbols: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns of a screened batch that hold them."""
        return text_inputs(len(self.names))

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """Columns of the output that hold the texts; a struct holds several."""
        empty = [pa.nulls(0, pa.string())] * len(self.names)
        return tuple(pa.field(name, values.type) for name, values in self.nest(empty))

    @property
    def output_fields(self) -> tuple[pa.Field, ...]:
        """Columns of the output that are made, the texts first."""
        return (*self.fields, *self.symbol_fields, *OUTPUT_FIELDS[1:])

    @property
    def symbol_fields(self) -> tuple[pa.Field, ...]:
        """Column with the drawn symbols, if there is one."""
        return (SYMBOLS_FIELD,) if self.symbols else ()

    @property
    def struct_fields(self) -> tuple[pa.Field, ...]:
        """Columns that the SQL function returns: those that its caller does not already have."""
        return (*self.fields, *self.symbol_fields, *OUTPUT_FIELDS[1:4])

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Parts of each name."""
        return tuple(map(read_path, self.names))

    def nest(self, texts: Sequence[pa.Array]) -> list[tuple[str, pa.Array]]:
        """Nest ``texts``, one array for each of :attr:`names`, into names and values of the output's columns."""
        return _nest(list(zip(self.paths, texts, strict=True)))

    def split_policy(self, policy: TextPolicy) -> tuple[TextPolicy, ...]:
        """Split ``policy``, whose ``n_max`` is the whole record's, into one with each column's own."""
        if len(self.names) == 1 or policy.n_max is None:
            return (policy,) * len(self.names)
        if sum(self.widths) != policy.n_max or len(self.widths) != len(self.names):
            raise ValueError("the columns' numbers of tokens do not add up to the policy's n_max.")
        return tuple(replace(policy, n_max=width) for width in self.widths)

    def fingerprint(self, policy: TextPolicy) -> str:
        """Compute the SHA-256 of all but bundle and keys that decides the texts: for one column the policy's own."""
        if len(self.names) == 1:
            return policy.fingerprint
        content = {"policy": policy.fingerprint, "columns": self.paths, "widths": self.widths}
        return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


ONE_TEXT = TextColumns()
"""Layout of an output with a single text column."""


def _nest(texts: Sequence[tuple[tuple[str, ...], pa.Array]]) -> list[tuple[str, pa.Array]]:
    names = [*dict.fromkeys(path[0] for path, _ in texts)]
    nested = []
    for name in names:
        below = [(path[1:], values) for path, values in texts if path[0] == name]
        values = below[0][1]
        if below[0][0]:
            inner = _nest(below)
            # With explicit types, which Arrow needs if there are no records.
            fields = [pa.field(child, child_values.type) for child, child_values in inner]
            values = pa.StructArray.from_arrays([child_values for _, child_values in inner], fields=fields)
        nested.append((name, values))
    return nested
