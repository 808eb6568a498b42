"""What of an output must not depend on texts at all: its columns, the order of its rows, its tags and its constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wordveil.audit.canaries.compare import Run
from wordveil.audit.canaries.tables import Inputs, Output
from wordveil.audit.canaries.words import find_marks
from wordveil.audit.findings import Finding, Verdict
from wordveil.privacy.relations import Exposure

PRICES = ("tokens", "epsilon_bound", "epsilon_pure", "delta")
"""The fields of ``privacy`` that may differ from record to record."""


@dataclass(frozen=True)
class Claim:
    """What a release claims of itself.

    Attributes
    ----------
    relation
        the pairs of texts for which its bound holds.
    exposes
        what it shows besides sanitised words, kept columns among it.
    columns
        the columns of its rows, in any order.
    """

    relation: str
    exposes: tuple[str, ...]
    columns: frozenset[str]


def check_structure(inputs: Inputs, runs: Sequence[Run], claim: Claim) -> list[Finding]:
    """Check in all runs what is no matter of chance."""
    outputs = [output for run in runs for output in (run.one, run.other)]

    def check(test: str, promise: str, faults: Iterator[str]) -> Finding:
        fault = next(faults, None)
        verdict = Verdict.HOLDS if fault is None else Verdict.REFUTED
        evidence = fault or f"{len(outputs)} outputs of {len(inputs.ids):,} records agree."
        return Finding(f"canary:{test}", verdict, promise, evidence, draws=len(outputs) * len(inputs.ids))

    shown = ", ".join(claim.exposes) or "nothing"
    return [
        check(
            "columns",
            "an output has the id, the kept columns and the columns of wordveil, and no other.",
            (fault for output in outputs for fault in _find_columns(output, claim)),
        ),
        check(
            "kept",
            "kept columns pass unchanged.",
            (fault for output in outputs for fault in _find_changed(output, inputs)),
        ),
        check(
            "secrets",
            "what no column keeps is nowhere in an output, and words of texts only in its texts.",
            (fault for output in outputs for fault in _find_secrets(output, inputs)),
        ),
        check(
            "tags",
            "no two records have the same content tag.",
            (fault for output in outputs for fault in _find_repeated_tags(output)),
        ),
        check(
            "privacy",
            f"every row says relation {claim.relation} and exposes {shown}, and only prices differ.",
            (fault for output in outputs for fault in _find_claims(output, claim)),
        ),
    ]


def check_layout(runs: Sequence[Run], claim: Claim) -> Finding | None:
    """Check whether the order of rows and the cuts between files follow the texts.

    The two outputs of a run differ only in texts. None where no run wrote files.
    """
    written = [run for run in runs if run.one.files is not None and run.other.files is not None]
    if not written:
        return None
    promise = "the order of rows and the cuts between files do not follow the texts."
    moved = sum(sum(a != b for a, b in zip(run.one.order, run.other.order, strict=False)) for run in written)
    cut = any(run.one.files != run.other.files for run in written)
    draws = sum(len(run.one.order) for run in written)
    if not (moved or cut):
        return Finding(
            "canary:layout", Verdict.NOT_REFUTED, promise, f"{draws:,} rows lie in the same places.", draws=draws
        )
    seen = f"{moved:,} of {draws:,} rows lie in other places" + (", and files are cut in other places." if cut else ".")
    if Exposure.LAYOUT in claim.exposes:
        return Finding("canary:layout", Verdict.NOT_REFUTED, promise, f"declared: {seen}", draws=draws)
    return Finding("canary:layout", Verdict.REFUTED, promise, seen, draws=draws)


def _find_columns(output: Output, claim: Claim) -> Iterator[str]:
    found = frozenset(output.table.column_names)
    if found != claim.columns:
        extra, missing = sorted(found - claim.columns), sorted(claim.columns - found)
        yield f"more columns: {', '.join(extra) or 'none'}; missing ones: {', '.join(missing) or 'none'}."


def _find_changed(output: Output, inputs: Inputs) -> Iterator[str]:
    numbers = {record: number for number, record in enumerate(inputs.ids)}
    for name, values in inputs.kept.items():
        if name not in output.table.column_names:
            continue  # told by the columns
        rows = zip(output.order, output.table[name].to_pylist(), strict=True)
        changed = sum(record not in numbers or values[numbers[record]] != value for record, value in rows)
        if changed:
            yield f"{changed:,} values of {name} are not those of the input."


def _find_secrets(output: Output, inputs: Inputs) -> Iterator[str]:
    """A secret word in any column, or a record's own unknown word in another one than its texts."""
    texts = {path[0] for path in output.columns.paths}
    secrets, marks = frozenset(inputs.secrets), frozenset(inputs.marks)
    for name in output.table.column_names:
        found = find_marks("\n".join(map(_write_value, _list_values(output.table[name]))))
        if found & secrets:
            yield f"the column {name} holds what only a column that is not kept holds."
        if name not in texts and found & marks:
            yield f"the column {name} holds a word of a text."


def _list_values(column: pa.ChunkedArray) -> Iterator[Any]:
    """The distinct values of a column, and of the fields of its structs."""
    if pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _list_values(child)
    elif pa.types.is_nested(column.type):
        yield from column.to_pylist()
    else:
        yield from column.unique().to_pylist()


def _write_value(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _find_repeated_tags(output: Output) -> Iterator[str]:
    tags = Counter(row.tag for row in output.rows.values() if row.tag is not None)
    repeated = sum(count for count in tags.values() if count > 1)
    if repeated:
        yield f"{repeated:,} records share a tag with another one."


def _find_claims(output: Output, claim: Claim) -> Iterator[str]:
    said = output.table["privacy"].drop_null()
    for field, values in zip(said.type, said.flatten(), strict=True):
        different = {str(value) for value in _list_values(values)}
        if field.name not in PRICES and len(different) > 1:
            yield f"rows of one output say {len(different)} different things as privacy.{field.name}."
    if len(said):
        first = said[0].as_py()
        if first["relation"] != claim.relation or tuple(first["exposes"]) != claim.exposes:
            shown = ", ".join(first["exposes"]) or "nothing"
            yield f"rows say relation {first['relation']} and exposes {shown}."
