"""Delta tables whose columns, or fields, are of the types CHAR(n) and VARCHAR(n): Spark pads the former as it reads."""

from __future__ import annotations

import pytest

from support.releases import Lake
from support.workspaces import Workspace
from wordveil.errors import ReleaseError
from wordveil.input.source import Source
from wordveil.spark.input.inspect import read_columns
from wordveil.spark.input.source import FILE_COLUMN, has_change_feed, open_input
from wordveil.spark.release.run import withdraw

FEED = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
DAY = "day STRING GENERATED ALWAYS AS (CAST(id AS CHAR(8)))"
TYPES = {
    "field": f"id STRING, body STRING, {DAY}, note STRUCT<kind: CHAR(8), at: ARRAY<CHAR(3)>>",
    "id": "id CHAR(8), body VARCHAR(99), day CHAR(3), note STRING",
}


@pytest.fixture
def lake(spark, workspace: Workspace) -> Lake:
    """An empty release."""
    return Lake(spark, workspace)


@pytest.mark.parametrize("kind", ["id", pytest.param("field", marks=pytest.mark.long)])
def test_char_columns_leave_a_delta_table_recognised(spark, lake: Lake, kind: str):
    lake.sql(f"CREATE TABLE {{input}} ({TYPES[kind]}) USING delta {FEED}")
    lake.sql("INSERT INTO {input} (id, body) VALUES ('r1', 'apple'), ('r2', 'zebra')")
    lake.sql("DELETE FROM {input} WHERE body = 'zebra'")
    assert has_change_feed(spark.read.format("delta").load(str(lake.input)))
    columns = [(column.name, column.partition) for column in read_columns(lambda: spark, str(lake.input))]
    assert columns == [("id", False), ("body", False), ("day", False), ("note", False)]
    shown = "r1      " if kind == "id" else "r1"
    named = {"path": str(lake.input), "format": "delta"}, {"table": f"delta.`{lake.input}`"}
    for source in (Source("id", "body", **name) for name in named):
        table = open_input(spark, source)
        assert (table.latest_version, table.is_delta, table.table_id is not None) == (2, True, True)
        assert [row.id for row in table.read().collect()] == [shown]
        assert sorted(row.id.rstrip() for row in table.read(1).collect()) == ["r1", "r2"]
        [file] = {row[FILE_COLUMN] for row in table.read_with_files().collect()}
        assert [row.id for row in table.read_with_files([file]).collect()] == [shown]
        changed = table.changes(1, 2).collect()
        assert {row.id for row in changed if row.id.startswith("r1")} == {shown}


@pytest.mark.long
def test_withdraw_an_id_of_a_char_column_is_found(lake: Lake):
    """By its value, or as Spark reads it. Its withdrawal holds for later runs."""
    lake.sql(f"CREATE TABLE {{input}} (id CHAR(4), body STRING, day STRING) USING delta {FEED}")
    lake.sql("INSERT INTO {input} VALUES ('r1', 'apple', 'd'), ('r2', 'zebra', 'd'), ('r3', 'lemon', 'd')")
    config = lake.config(input={"changes": "feed"})
    assert lake.run(config).released == 3
    assert set(lake.newest()) == {"r1  ", "r2  ", "r3  "}
    with pytest.raises(ReleaseError, match="4 of the ids are not in release support"):
        withdraw(config, lambda: lake.spark, ["r", "1", "r1  ", "r4", " r1"])
    assert withdraw(config, lambda: lake.spark, ["r1", "r1  ", "r2 "]).withdrawn == 2
    with pytest.raises(ReleaseError, match="or have been withdrawn"):
        withdraw(config, lambda: lake.spark, ["r1"])
    lake.sql("UPDATE {input} SET body = 'other words'")
    lake.run(config)
    assert {name: row["status"] for name, row in lake.newest().items()} == {
        "r1  ": "withdrawn",
        "r2  ": "withdrawn",
        "r3  ": "released",
    }
