"""Checkpoints of a published table: one that tells of another table than the commits, or of two, is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.published import SIGNED, copy_signed, log, read_actions, refuse, verify
from wordveil.release.checkpoints import LogError, read_checkpoint

COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 4, "cardinality": 1}
TEXT, LONG, INT, FLAG = pa.string(), pa.int64(), pa.int32(), pa.bool_()
MAP = pa.map_(TEXT, TEXT)


def struct(**kinds: pa.DataType) -> pa.StructType:
    return pa.struct(list(kinds.items()))


STATS = struct(numRecords=LONG, minValues=struct(id=TEXT), maxValues=struct(id=TEXT), nullCount=struct(id=LONG))
VECTORS = struct(storageType=TEXT, pathOrInlineDv=TEXT, offset=INT, sizeInBytes=INT, cardinality=LONG)
FILE = {"path": TEXT, "partitionValues": MAP, "size": LONG, "dataChange": FLAG, "deletionVector": VECTORS}
PARSED = {"partitionValues_parsed": struct(day=TEXT), "stats_parsed": STATS}
DESCRIBED = {"schemaString": TEXT, "partitionColumns": pa.list_(TEXT), "configuration": MAP, "createdTime": LONG}
KINDS = {
    "txn": struct(appId=TEXT, version=LONG),
    "add": struct(**FILE, modificationTime=LONG, stats=TEXT, **PARSED),
    "remove": struct(**FILE, deletionTimestamp=LONG, extendedFileMetadata=FLAG),
    "metaData": struct(id=TEXT, format=struct(provider=TEXT, options=MAP), **DESCRIBED),
    "protocol": struct(minReaderVersion=INT, minWriterVersion=INT),
}
Rows = list[dict[str, Any]]


def list_rows(table: Path) -> Rows:
    """What a checkpoint of the signed version holds: a row for each of protocol, metaData, add and remove."""
    rows = [action for version in (0, SIGNED) for action in read_actions(table, version) if "commitInfo" not in action]
    for row in rows:
        if "add" in row:
            row["add"] |= {"stats_parsed": json.loads(row["add"]["stats"]), "dataChange": False}
    return rows


def write_checkpoint(table: Path, rows: Rows, footer: dict[str, str] | None = None, version: int = SIGNED) -> Path:
    place = log(table, version, "checkpoint.parquet")
    schema = pa.schema(list(KINDS.items()))
    with pq.ParquetWriter(place, schema, store_schema=False) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
        writer.add_key_value_metadata(footer or {})
    return place


def pick(rows: Rows, kind: str) -> dict[str, Any]:
    (action,) = (row[kind] for row in rows if kind in row)
    return action  # type: ignore[no-any-return]


CHECKPOINTS: dict[str, tuple[Callable[[Rows], object], str]] = {
    "parsed statistics": (
        lambda rows: pick(rows, "add")["stats_parsed"].update(minValues={"id": "r2"}),
        "has stats_parsed that contradict stats",
    ),
    "a parsed number": (lambda rows: pick(rows, "add")["stats_parsed"].update(numRecords=3), "has stats_parsed that"),
    "parsed statistics alone": (lambda rows: pick(rows, "add").update(stats=None), "has stats_parsed that contradict"),
    "parsed partition values": (
        lambda rows: pick(rows, "add").update(partitionValues_parsed={"day": "d1"}),
        "has partitionValues_parsed that contradict partitionValues",
    ),
    "no statistics": (
        lambda rows: pick(rows, "add").update(stats=None, stats_parsed=None),
        "contradicts the commits before it",
    ),
    "a vector": (lambda rows: pick(rows, "add").update(deletionVector=VECTOR), "with deletionVector"),
    "a transaction": (lambda rows: rows.append({"txn": {"appId": "a", "version": 1}}), "has an action txn"),
    "two actions in a row": (lambda rows: rows[0].update(rows.pop(1)), "has a row of several actions, or none"),
    "a file twice": (lambda rows: rows.append({"add": dict(pick(rows, "add"))}), "names a file twice"),
    "two protocols": (
        lambda rows: rows.append({"protocol": dict(pick(rows, "protocol"))}),
        "describes the table twice",
    ),
    "a property": (
        lambda rows: pick(rows, "metaData")["configuration"].update({COORDINATOR: "x"}),
        f"gives the table the property {COORDINATOR}",
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return copy_signed(tmp_path)


def test_a_checkpoint_that_agrees_is_read(table: Path):
    """Beside the commits, and in the place of those before it."""
    write_checkpoint(table, list_rows(table))
    assert verify(table)
    for version in range(SIGNED):
        log(table, version).unlink()
    assert verify(table)
    log(table, SIGNED).unlink()
    assert "checkpoint.parquet: stands without the commit of its version" in refuse(table)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_that_says_otherwise_is_refused(table: Path, name: str):
    forge, words = CHECKPOINTS[name]
    rows = list_rows(table)
    forge(rows)
    write_checkpoint(table, rows)
    said = refuse(table)
    assert f"{SIGNED:020d}.checkpoint.parquet: " in said
    assert words in said


def test_a_footer_that_declares_other_columns_is_refused(table: Path):
    """Spark reads a checkpoint by it."""
    declared = json.dumps({"type": "struct", "fields": [{"name": "add", "type": "string", "metadata": {}}]})
    write_checkpoint(table, list_rows(table), {"org.apache.spark.sql.parquet.row.metadata": declared})
    assert "has other columns than are declared for it" in refuse(table)
    write_checkpoint(table, list_rows(table), {"other": "schema"})
    assert "has the footer b'other'" in refuse(table)


DIGITS = "1234567890123456789012345.1234567890"


def at(text: str) -> datetime:
    """A time without a zone."""
    return datetime.fromisoformat(text)


TYPED: list[tuple[pa.DataType, str, Any, Any]] = [
    (pa.float32(), "0.1", 0.1, 0.2),
    (pa.float64(), "0.1", 0.1, float(np.float32(0.1))),
    (pa.float64(), "NaN", float("nan"), 0.0),
    (pa.decimal128(38, 10), DIGITS, Decimal(DIGITS), Decimal(DIGITS[:-1] + "1")),
    (pa.int32(), "-3", -3, 3),
    (pa.bool_(), "true", True, False),
    (pa.date32(), "2026-01-02", date(2026, 1, 2), date(2026, 1, 3)),
    (pa.timestamp("ns"), "2026-01-02T03:04:05.123456Z", at("2026-01-02T03:04:05.123456"), at("2026-01-02")),
    (pa.timestamp("ns"), "2026-01-02T03:04:05+01:00", at("2026-01-02T02:04:05"), at("2026-01-02T03:04:05")),
    (pa.timestamp("us", "UTC"), "2026-01-02 03:04:05", at("2026-01-02T03:04:05"), at("2026-01-02")),
    (pa.string(), "1", "1", "1.0"),
    (pa.binary(), "ab", b"ab", b"AB"),
]


@pytest.mark.parametrize(("kind", "told", "parsed", "other"), TYPED)
def test_values_of_each_type_agree_with_their_texts(kind: pa.DataType, told: str, parsed: Any, other: Any):
    """As partition values, and as statistics where JSON has numbers."""
    is_number = pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_integer(kind)
    stats = f'{{"minValues": {{"c": {told if is_number and told != "NaN" else json.dumps(told)}}}}}'
    parts = {"partitionValues_parsed": struct(c=kind), "stats_parsed": struct(minValues=struct(c=kind))}
    add = struct(partitionValues=MAP, stats=TEXT, **parts)
    for first, second in ((parsed, parsed), (other, parsed), (parsed, other)):
        row: dict[str, Any] = {"partitionValues": {"c": told}, "partitionValues_parsed": {"c": first}}
        row |= {"stats": stats, "stats_parsed": {"minValues": {"c": second}}}
        made = pa.BufferOutputStream()
        pq.write_table(pa.table({"add": pa.array([row], add)}), made, store_schema=False)
        content = made.getvalue().to_pybytes()
        if other in (first, second):
            with pytest.raises(LogError, match="_parsed that contradict"):
                read_checkpoint(content)
        else:
            assert read_checkpoint(content) == [("add", {"partitionValues": {"c": told}, "stats": stats})]


@pytest.mark.parametrize("name", ["add", "ADD"])
def test_a_column_that_is_there_twice_is_refused(table: Path, name: str):
    """Readers take one or the other, or fail."""
    place = write_checkpoint(table, list_rows(table))
    whole = pq.ParquetFile(place).read()
    columns = [*whole.columns, whole["add"] if name == "add" else pa.nulls(len(whole), pa.int64())]
    changed = pa.Table.from_arrays(columns, [*whole.column_names, name])
    with pq.ParquetWriter(place, changed.schema, store_schema=False) as writer:
        writer.write_table(changed)
    assert "checkpoint.parquet: has two columns by the name 'add'" in refuse(table)


def test_a_footer_with_bounds_that_are_not_true_is_refused(table: Path):
    """Readers leave out groups of rows by them."""
    place = write_checkpoint(table, list_rows(table))
    content = place.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    (signed,) = (action["add"]["path"] for action in read_actions(table, SIGNED) if "add" in action)
    path = signed.encode()
    assert content[start:].count(path) >= 2, "the least and the greatest path of the signed file"
    place.write_bytes(content[:start] + content[start:].replace(path, path.replace(b"part-0", b"part-9")))
    assert "has bounds of rows that are not true" in refuse(table)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"checksum": "whatever"}, ""),
        ({"version": 1}, "points at no checkpoint of this log"),
        ({"parts": 2}, "is not what _last_checkpoint says of it (parts)"),
        ({"v2Checkpoint": {"path": "x"}}, "is not what _last_checkpoint says of it (v2Checkpoint)"),
        ({"size": 1}, "is not what _last_checkpoint says of it (size)"),
        ({"numOfAddFiles": 2}, "is not what _last_checkpoint says of it (numOfAddFiles)"),
        ({"checkpointSchema": {"type": "struct", "fields": []}}, "has other columns than are declared for it"),
        (None, "_last_checkpoint: is damaged"),
    ],
)
def test_a_pointer_to_another_checkpoint_is_refused(table: Path, changes: dict[str, Any] | None, words: str):
    place = write_checkpoint(table, list_rows(table))
    told = {"version": SIGNED, "size": 4, "sizeInBytes": place.stat().st_size, "numOfAddFiles": 1}
    pointer = "[" if changes is None else json.dumps({**told, **changes})
    (table / "_delta_log" / "_last_checkpoint").write_text(pointer, "utf-8")
    if words:
        assert words in refuse(table)
    else:
        assert verify(table)
