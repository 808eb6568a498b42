"""The same rows in the same order on every Spark. ``make test-spark-versions`` runs this folder on the older ones."""

from __future__ import annotations

import json
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from support.repository import ROOT
from support.workspaces import Workspace, corpus
from wordveil.errors import PlatformError
from wordveil.spark.platform import versions
from wordveil.spark.sanitise import layout
from wordveil.spark.sanitise.job import run_sanitise

GOLDEN = ROOT / "tests" / "golden" / "spark-rows.json"


def test_a_job_writes_the_golden_rows_in_their_order(spark, workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout, "TASK_ROWS", 10)
    path = workspace.write_corpus(corpus(35), "corpus")
    config = workspace.config(release="golden", input={"path": str(path)}, output={"path": str(workspace.root / "out")})
    run_sanitise(config, lambda: spark)
    files = sorted((workspace.root / "out").glob("*.parquet"))
    rows = [
        [[row["id"], row["text"], row["status"]] for row in pq.ParquetFile(file).read().to_pylist()] for file in files
    ]
    found = {"files": [*map(len, rows)], "sha256": sha256(json.dumps(rows).encode()).hexdigest()}
    assert found == json.loads(GOLDEN.read_text("utf-8"))


@pytest.mark.parametrize("partitions", [1, 7])
def test_before_4_1_rows_go_to_the_partition_of_their_number(spark, monkeypatch: pytest.MonkeyPatch, partitions: int):
    monkeypatch.setattr(versions, "VERSION", (4, 0))
    numbered = spark.range(1000).select((F.col("id") % partitions).cast("int").alias("number"))
    placed = versions.repartition_by_number(numbered, partitions, "number")
    assert placed.columns == ["number"]
    assert placed.rdd.getNumPartitions() == partitions
    assert placed.where(F.spark_partition_id() != F.col("number")).count() == 0
    assert placed.count() == 1000


def test_before_4_0_tables_come_and_go_as_on_4_1(spark, monkeypatch: pytest.MonkeyPatch):
    table = pa.table({"id": ["a", None], "number": pa.array([2**60, None], pa.int64()), "bytes": [b"\xff", b""]})
    written = "id string, number bigint, bytes binary"
    expected = versions.from_arrow(spark, table)
    monkeypatch.setattr(versions, "VERSION", (3, 5))
    frame = versions.from_arrow(spark, table)
    assert frame.schema == expected.schema == versions.parse_schema(written)
    assert versions.to_arrow(frame).to_pylist() == table.to_pylist()
    assert versions.to_arrow(frame.limit(0)).schema.names == table.schema.names


def test_bytes_that_are_not_utf8_are_found(spark):
    texts = spark.sql("select cast(b as string) text from values (x'c3a9'), (x'ff61'), (x'eda080'), (x''), (null) t(b)")
    assert [row[0] for row in texts.select(versions.is_valid_utf8(F.col("text"))).collect()] == [
        True,
        False,
        False,
        True,
        None,
    ]


def test_the_function_for_sql_needs_4_1(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(versions, "VERSION", (4, 0))
    with pytest.raises(PlatformError, match=r"needs Spark 4\.1 or newer"):
        versions.find_arrow_udf()
