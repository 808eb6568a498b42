"""A Delta table that is appended to once, and swapped by one at a time, also without a lock."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from wordveil.errors import ReleaseError
from wordveil.spark.platform import delta_table as stores
from wordveil.spark.platform.delta_table import Decision, DeltaTable
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.sanitise.counts import read_observation


@pytest.fixture
def store(spark, tmp_path: Path) -> DeltaTable:
    """An empty table of one column."""
    made = DeltaTable(spark, str(tmp_path / "table"), "table")
    made.create(spark.range(0).schema)
    return made


def numbers(store: DeltaTable) -> list[int]:
    """What the table holds."""
    return sorted(row.id for row in store.read().collect())


def test_a_name_appends_once(spark, store: DeltaTable):
    """What is not written a second time is not observed either, and nobody waits for it."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    assert not store.has("run 1")
    seen = []
    for _ in range(2):
        observation = Observation()
        store.append(
            spark.range(3).observe(observation, F.sum("id").alias("sum")), step="draws", idempotency_key="run 1"
        )
        seen.append(read_observation(observation))
    assert seen == [{"sum": 3}, None]
    assert store.has("run 1")
    assert not store.has("run 2")
    assert numbers(store) == [0, 1, 2]


@pytest.mark.long
def test_a_swap_that_lost_looks_again(spark, store: DeltaTable, monkeypatch: pytest.MonkeyPatch):
    """Another swap, and an append, come in between the look and the write, as they can where there is no lock: on an
    object store.
    """
    monkeypatch.setattr(stores, "hold_lock", lambda *_: nullcontext(False))
    seen: list[int] = []

    def other(table, _):
        return Decision(spark.createDataFrame([(table.count() + 100,)], "id bigint"), None)

    def rows(table, version):
        count = table.count()
        seen.append(count)
        if len(seen) == 1:
            store.append(spark.range(7, 8), step="append", idempotency_key="b")
            store.compare_and_append(other, step="other")
            store.append(spark.range(8, 9), step="append", idempotency_key="c")
        return Decision(spark.createDataFrame([(count,)], "id bigint"), count)

    store.append(spark.range(2), step="first", idempotency_key="a")
    assert store.compare_and_append(rows, step="mine") == 5, "the result of the decision that took effect"
    assert seen == [2, 5]
    assert numbers(store) == [0, 1, 5, 7, 8, 103]


def test_a_place_may_be_named_with_its_file_system(spark, tmp_path: Path):
    """Hadoop writes file:///lake as file:/lake, and hdfs:///lake likewise."""
    made = DeltaTable(spark, f"file://{tmp_path}/table", "table")
    made.create(spark.range(0).schema)
    made.append(spark.range(3), step="draws", idempotency_key="run 1")
    assert numbers(made) == numbers(DeltaTable(spark, str(tmp_path / "table"), "table")) == [0, 1, 2]


def test_files_of_a_disk_are_those_that_hadoop_lists(spark, store: DeltaTable, monkeypatch: pytest.MonkeyPatch):
    (odd := Path(store.path, "day=a%3Db c%25", "é")).mkdir(parents=True)
    (odd / "part-0.parquet").write_text("12345")
    (odd / ".part-0.parquet.crc").write_text("Hadoop's own")
    files = Files(spark, store.path)
    found = files.list_files()
    assert found["day=a%3Db c%25/é/part-0.parquet"] == 5
    assert not any(name.endswith("parquet.crc") for name in found)
    assert Files(spark, f"{store.path}/none").list_files() == {}
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(Files, "is_local", False)
        assert files.list_files() == found


def test_a_table_of_another_format_is_refused(spark, tmp_path: Path):
    foreign = DeltaTable(spark, str(tmp_path / "foreign"), "ledger")
    spark.range(1).write.format("delta").save(foreign.path)
    with pytest.raises(ReleaseError, match="was not created by wordveil"):
        foreign.create(spark.range(0).schema)
    newer = DeltaTable(spark, str(tmp_path / "newer"), "ledger")
    newer.create(spark.range(0).schema)
    spark.sql(f"ALTER TABLE delta.`{newer.path}` SET TBLPROPERTIES ('wordveil.formatVersion' = '99')")
    with pytest.raises(ReleaseError, match="format version 99"):
        newer.check()


def test_a_text_leaves_no_trace_in_the_log(spark, tmp_path: Path):
    """Least and greatest values of columns stand in Delta's log, and would stay there when a text is purged."""
    made = DeltaTable(spark, str(tmp_path / "texts"), "draws")
    frame = spark.createDataFrame([(1, "a secret text")], "id bigint, text string")
    made.create(frame.schema, indexed=["id"])
    made.append(frame, step="draws", idempotency_key="run")
    logs = "".join(path.read_text() for path in Path(made.path, "_delta_log").glob("*.json"))
    assert '\\"id\\":1' in logs
    assert "secret" not in logs
