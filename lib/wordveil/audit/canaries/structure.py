"""Structure of an output that must not depend on texts: its columns, the order of its rows, its tags and constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wordveil.audit.canaries.compare import PRICES, CanaryRun
from wordveil.audit.canaries.tables import CanaryOutput, Inputs
from wordveil.audit.canaries.words import find_marks
from wordveil.audit.findings import Finding, Verdict
from wordveil.privacy.relations import Exposure


@dataclass(frozen=True)
class ReleaseClaim:
    """Claim of a release about itself.

    ``relation``: the pairs of texts for which its bound holds. ``exposes``: its exposures besides sanitised words, kept
    columns included. ``columns``: the columns of its rows, in any order.
    """

    relation: str
    exposes: tuple[str, ...]
    columns: frozenset[str]


def check_structure(inputs: Inputs, runs: Sequence[CanaryRun], claim: ReleaseClaim) -> list[Finding]:
    """Check in all runs what does not depend on chance."""
    outputs = [output for run in runs for output in (run.first, run.second)]

    def check(test: str, promise: str, find_faults: Callable[[CanaryOutput], Iterator[str]]) -> Finding:
        fault = next((fault for output in outputs for fault in find_faults(output)), None)
        verdict = Verdict.HOLDS if fault is None else Verdict.REFUTED
        evidence = fault or f"{len(outputs)} outputs of {len(inputs.ids):,} records agree."
        return Finding(f"canary:{test}", verdict, promise, evidence, draws=len(outputs) * len(inputs.ids))

    shown = ", ".join(claim.exposes) or "nothing"
    return [
        check(
            "columns",
            "an output has the id, the kept columns and the columns of wordveil, and no other.",
            lambda output: _find_columns(output, claim),
        ),
        check("kept", "kept columns pass unchanged.", lambda output: _find_changed(output, inputs)),
        check(
            "secrets",
            "what no column keeps is nowhere in an output, and words of texts only in its texts.",
            lambda output: _find_secrets(output, inputs),
        ),
        check("tags", "no two records have the same content tag.", _find_repeated_tags),
        check(
            "privacy",
            f"every row says relation {claim.relation} and exposes {shown}, and only prices differ.",
            lambda output: _find_claims(output, claim),
        ),
    ]


def check_layout(runs: Sequence[CanaryRun], claim: ReleaseClaim) -> Finding | None:
    """Check whether the order of rows and the cuts between files follow the texts.

    The two outputs of a run differ only in texts. None if no run wrote files.
    """
    written = [run for run in runs if run.first.files is not None and run.second.files is not None]
    if not written:
        return None
    promise = "the order of rows and the cuts between files do not follow the texts."
    moved = sum(a != b for run in written for a, b in zip(run.first.order, run.second.order, strict=False))
    cut = any(run.first.files != run.second.files for run in written)
    draws = sum(len(run.first.order) for run in written)
    verdict, evidence = Verdict.NOT_REFUTED, f"{draws:,} rows have the same positions."
    if moved or cut:
        evidence = f"{moved:,} of {draws:,} rows have other positions{', and files are cut elsewhere' * cut}."
        if Exposure.LAYOUT in claim.exposes:
            evidence = f"declared: {evidence}"
        else:
            verdict = Verdict.REFUTED
    return Finding("canary:layout", verdict, promise, evidence, draws=draws)


def _find_columns(output: CanaryOutput, claim: ReleaseClaim) -> Iterator[str]:
    columns = frozenset(output.table.column_names)
    if columns != claim.columns:
        extra, missing = sorted(columns - claim.columns), sorted(claim.columns - columns)
        yield f"more columns: {', '.join(extra) or 'none'}; missing ones: {', '.join(missing) or 'none'}."


def _find_changed(output: CanaryOutput, inputs: Inputs) -> Iterator[str]:
    numbers = {record: number for number, record in enumerate(inputs.ids)}
    for name, values in inputs.kept.items():
        if name not in output.table.column_names:
            continue  # the check of columns reports it
        rows = zip(output.order, output.table[name].to_pylist(), strict=True)
        changed = sum(record not in numbers or values[numbers[record]] != value for record, value in rows)
        if changed:
            yield f"{changed:,} values of {name} are not those of the input."


def _find_secrets(output: CanaryOutput, inputs: Inputs) -> Iterator[str]:
    """Yield secret words in any column, and a record's own unknown word outside its texts."""
    texts = {path[0] for path in output.columns.paths}
    secrets, marks = frozenset(inputs.secrets), frozenset(inputs.marks)
    for name in output.table.column_names:
        words = find_marks("\n".join(map(_write_value, _list_values(output.table[name]))))
        if words & secrets:
            yield f"the column {name} holds what only a column that is not kept holds."
        if name not in texts and words & marks:
            yield f"the column {name} holds a word of a text."


def _list_values(column: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the distinct values of a column, and of the fields of its structs."""
    if pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _list_values(child)
    elif pa.types.is_nested(column.type):
        yield from column.to_pylist()
    else:
        yield from column.unique().to_pylist()


def _write_value(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _find_repeated_tags(output: CanaryOutput) -> Iterator[str]:
    tags = Counter(row.tag for row in output.rows.values() if row.tag is not None)
    repeated = sum(count for count in tags.values() if count > 1)
    if repeated:
        yield f"{repeated:,} records share a tag with another one."


def _find_claims(output: CanaryOutput, claim: ReleaseClaim) -> Iterator[str]:
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
