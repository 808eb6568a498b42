"""Schemas that are read without Java are those that Spark reads, or are left to Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.workspaces import write_delta
from wordveil.assembly import local_paths
from wordveil.config.schema import SparkSection
from wordveil.spark.input import local_schema
from wordveil.spark.input.local_schema import LocalSchema, read_local_schema
from wordveil.spark.platform.filesystem import load_path

NOW = datetime(2026, 11, 20, 3, tzinfo=UTC)
PLAIN = pa.table(
    {
        "id": ["a", "b"],
        "raw": [b"a", b"b"],
        "flag": [True, False],
        "day": [date(2026, 11, 20)] * 2,
        **{f"i{width}": pa.array([1, 2], f"int{width}") for width in (8, 16, 32, 64)},
        "f": pa.array([1, 2], pa.float32()),
        "d": pa.array([1, 2], pa.float64()),
        "ms": pa.array([NOW, NOW], pa.timestamp("ms", "UTC")),
        "us": pa.array([NOW, NOW], pa.timestamp("us", "UTC")),
        "with.dot and space": [1, 2],
        "words": pa.array(["a", "b"]).dictionary_encode(),
        "long": pa.array(["a", "b"], pa.large_string()),
    }
)
ODD = {
    "unsigned": pa.array([1, 2], pa.uint32()),
    "list": [[1], [2]],
    "struct": [{"a": 1}, {"a": 2}],
    "decimal": [Decimal("1.5"), Decimal("2.5")],
    "wall": pa.array([NOW.replace(tzinfo=None)] * 2, pa.timestamp("us")),
    "time": pa.array([1, 2], pa.time64("us")),
}


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch):
    """As if no session ran, and none were submitted."""
    monkeypatch.setattr(local_paths, "is_plain", lambda _: True)


def read(path: Path, *, delta: bool = False) -> LocalSchema | None:
    return read_local_schema(str(path), SparkSection(), delta=delta)


def shape(schema: Any) -> list[tuple[str, Any]]:
    return [(field.name, field.dataType) for field in schema]


def assert_as_spark(spark: Any, path: Path, kind: str = "parquet") -> LocalSchema:
    found = read(path, delta=kind == "delta")
    assert found is not None
    theirs = load_path(spark, spark.read.format(kind), str(path)).schema
    assert shape(found.schema) == shape(theirs)
    return found


def test_plain_files_of_any_writer(spark, tmp_path: Path):
    (tmp_path / "a").mkdir()
    pq.write_table(PLAIN, tmp_path / "a" / "part.parquet")
    pq.write_table(pa.table({"other": [1]}), tmp_path / "a" / "part-2.parquet")
    (tmp_path / "a" / "_SUCCESS").touch()
    assert_as_spark(spark, tmp_path / "a")
    assert_as_spark(spark, tmp_path / "a" / "part.parquet")
    spark.read.parquet(str(tmp_path / "a" / "part.parquet")).withColumnRenamed("with.dot and space", "e").write.parquet(
        str(tmp_path / "b")
    )
    assert_as_spark(spark, tmp_path / "b")


@pytest.mark.parametrize("values", [["1", "20"], ["2026-11-20", "2026-11-21"], ["01", "1d"], ["nan", "a%20b"]])
def test_partition_values_are_strings(spark, tmp_path: Path, values: list[str]):
    for value in values:
        folder = tmp_path / f"part={value}" / "kind=a"
        folder.mkdir(parents=True)
        pq.write_table(PLAIN.select(["id"]), folder / "part.parquet")
    assert assert_as_spark(spark, tmp_path).partitions == {"part", "kind"}
    assert assert_as_spark(spark, tmp_path / f"part={values[0]}").partitions == {"kind"}


@pytest.mark.parametrize("folders", [(), ("inner",), ("a=1", "b=1"), ("ID=1",), ("_delta_log", "")])
def test_other_directories_are_left_to_spark(tmp_path: Path, folders: tuple[str, ...]):
    table = tmp_path / "table"
    table.mkdir()
    for folder in folders:
        (table / folder).mkdir(exist_ok=True)
        pq.write_table(PLAIN, table / folder / "part.parquet")
    assert read(table) is read(table, delta=True) is read(tmp_path / "none") is None


def test_unusual_types_and_other_files_are_left_to_spark(tmp_path: Path):
    for name, values in ODD.items():
        pq.write_table(pa.table({"id": ["a", "b"], name: values}), tmp_path / "part.parquet")
        assert read(tmp_path) is None, name
    (tmp_path / "part.parquet").write_text("no Parquet")
    assert read(tmp_path) is None


def test_paths_that_hadoop_reads_otherwise_are_left_to_spark():
    for path in ("a", "lake/a b", "/lake/ds=2026-11-20", "file:/lake/a", "file:///lake/a"):
        assert local_paths._PLAIN_PATH.fullmatch(path), path
    for path in ("hdfs:/lake/a", "s3a://lake/a", "file://host/a", "//host/a", "/lake/*", "/lake/{a,b}", "/lake/ü"):
        assert not local_paths._PLAIN_PATH.fullmatch(path), path


def test_delta_at_its_latest_version(spark, tmp_path: Path):
    table = PLAIN.select(["id", "raw", "day"])
    path = tmp_path / "table"
    write_delta(table, path)
    assert len(assert_as_spark(spark, path, "delta").schema) == 3
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (more int COMMENT 'a', deep struct<a: array<string>>)")
    assert len(assert_as_spark(spark, path, "delta").schema) == 5
    for _ in range(11):
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (a = 'b')")
    assert list((path / "_delta_log").glob("*.checkpoint.parquet"))
    for commit in sorted((path / "_delta_log").glob("*.json"))[:5]:
        commit.unlink()
    assert len(assert_as_spark(spark, path, "delta").schema) == 5


def test_features_of_delta_that_change_names_are_left_to_spark(spark, tmp_path: Path):
    write_delta(PLAIN.select(["id"]), tmp_path / "table")
    spark.sql(f"ALTER TABLE delta.`{tmp_path}/table` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    assert read(tmp_path / "table", delta=True) is None


def test_columns_that_say_more_are_left_to_spark():
    column = {"name": "a", "type": "string", "nullable": True, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}}
    assert local_schema._parse_schema(json.dumps({"type": "struct", "fields": [column]})) is None
