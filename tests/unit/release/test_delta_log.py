"""Delta logs that are read without Java, and what is left to Delta. Real tables: tests/spark/test_local_state.py."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordveil.assembly.local_paths import open_directory
from wordveil.release import delta_log
from wordveil.release.delta_log import DeltaLog, UnusualTableError

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {
    "metaData": {
        "id": "t1",
        "schemaString": '{"type": "struct", "fields": []}',
        "partitionColumns": ["day"],
        "configuration": {"wordveil.formatVersion": "3"},
    }
}


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "dataChange": True, **more}}


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True}}


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(action) for action in ({"commitInfo": {"operation": "WRITE"}}, *actions)]
    (log / f"{version:020d}.json").write_text("\n".join(lines) + "\n", "utf-8")


def checkpoint(table: Path, version: int, paths: Iterable[str], vector: str | None = None) -> None:
    rows = [
        {"protocol": PROTOCOL["protocol"], "metaData": None, "add": None},
        {
            "protocol": None,
            "metaData": {**METADATA["metaData"], "configuration": [("wordveil.formatVersion", "3")]},
            "add": None,
        },
        *(
            {"protocol": None, "metaData": None, "add": {"path": path, "deletionVector": {"storageType": vector}}}
            for path in paths
        ),
    ]
    metadata = pa.struct(
        [
            ("id", pa.string()),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", pa.map_(pa.string(), pa.string())),
        ]
    )
    schema = pa.schema(
        [
            ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
            ("metaData", metadata),
            (
                "add",
                pa.struct([("path", pa.string()), ("deletionVector", pa.struct([("storageType", pa.string())]))]),
            ),
        ]
    )
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema), table / "_delta_log" / f"{version:020d}.checkpoint.parquet"
    )


def read_log(table: Path, *, files: bool = True) -> DeltaLog:
    log = delta_log.read_log(open_directory(table), columns=delta_log.PATHS if files else ())
    log.require_plain()
    return log


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Version 2: a file was added twice over, one was removed."""
    commit(tmp_path, 0, PROTOCOL, METADATA)
    commit(tmp_path, 1, add("a.parquet"), add("day=x%20y/b.parquet"))
    commit(tmp_path, 2, add("c.parquet"), add("a.parquet", size=2), remove("a.parquet"), remove("never.parquet"))
    return tmp_path


def test_the_actions_of_a_log_add_up(table: Path):
    """A commit that replaces a file may name the removal last."""
    log = read_log(table)
    assert (log.version, log.metadata["id"]) == (2, "t1")
    assert log.list_files() == ["a.parquet", "c.parquet", "day=x y/b.parquet"]
    commit(table, 3, remove("day=x%20y/b.parquet"))
    assert read_log(table).list_files() == ["a.parquet", "c.parquet"]
    assert read_log(table, files=False).added == {}
    commit(table, 4, {"metaData": {**METADATA["metaData"], "id": "t2"}})
    assert read_log(table).metadata["id"] == "t2"


def test_a_checkpoint_stands_for_the_commits_before_it(table: Path):
    checkpoint(table, 2, ["a.parquet", "day=x%20y/b.parquet", "c.parquet"])
    for version in range(3):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    commit(table, 3, add("d.parquet"), remove("c.parquet"))
    log = read_log(table)
    assert (log.version, log.metadata["configuration"]) == (3, {"wordveil.formatVersion": "3"})
    assert log.list_files() == ["a.parquet", "d.parquet", "day=x y/b.parquet"]
    (table / "_delta_log" / f"{3:020d}.json").rename(table / "_delta_log" / f"{4:020d}.json")
    with pytest.raises(KeyError):
        read_log(table)


def test_a_lost_commit_is_left_to_delta(table: Path):
    (table / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(KeyError):
        read_log(table)
    with pytest.raises(OSError, match="none"):
        read_log(table / "none")
    (table / "empty" / "_delta_log").mkdir(parents=True)
    with pytest.raises(ValueError, match="empty"):
        read_log(table / "empty")


def test_a_version_is_read_as_it_was(table: Path):
    store = open_directory(table)
    assert delta_log.read_log(store, 1).list_files() == ["a.parquet", "day=x y/b.parquet"]
    checkpoint(table, 2, ["d.parquet"])
    assert delta_log.read_log(store, 1).list_files() == ["a.parquet", "day=x y/b.parquet"]
    assert delta_log.read_log(store, 2).list_files() == ["d.parquet"]
    with pytest.raises(KeyError):
        delta_log.read_log(store, 3)


@pytest.mark.parametrize(
    "name",
    [
        f"{1:020d}.{2:020d}.compacted.json",
        f"{2:020d}.checkpoint.0000000001.0000000002.parquet",
        f"{2:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet",
    ],
)
def test_what_stands_for_commits_is_left_to_delta(table: Path, name: str):
    (table / "_delta_log" / name).touch()
    with pytest.raises(UnusualTableError, match=name):
        read_log(table)


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 2, "minWriterVersion": 5},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"]},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors", "v2Checkpoint"]},
    ],
)
def test_features_that_change_names_or_logs_are_left_to_delta(table: Path, protocol: dict[str, Any]):
    commit(table, 3, {"protocol": protocol})
    with pytest.raises(UnusualTableError):
        read_log(table)


def test_files_with_deleted_rows_or_elsewhere_are_left_to_delta(table: Path):
    plain = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}}
    commit(table, 3, plain)
    assert len(read_log(table).list_files()) == 3
    commit(table, 4, remove("c.parquet"), add("c.parquet", deletionVector={"storageType": "u", "cardinality": 1}))
    with pytest.raises(UnusualTableError, match="deletion vectors"):
        read_log(table).list_files()
    assert read_log(table, files=False).version == 4, "columns are as they were"
    for path in ("s3://bucket/c.parquet", "/other/c.parquet", "file:/other/c.parquet"):
        commit(table, 4, remove("c.parquet"), add(path))
        with pytest.raises(UnusualTableError, match="elsewhere"):
            read_log(table).list_files()
    checkpoint(table, 4, ["a.parquet"], vector="u")
    with pytest.raises(UnusualTableError, match="deletion vectors"):
        read_log(table).list_files()
