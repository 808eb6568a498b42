"""A release goes on after columns of its input were renamed or got other types, and charges nothing again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from support.releases import Lake, States, corpus_with_authors
from support.workspaces import Workspace, corpus, read_input
from wordveil.errors import ConfigError, InputError, ReleaseError, SparkJobError

MAPPED = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"


@pytest.fixture
def lake(spark: Any, workspace: Workspace) -> Lake:
    """An empty release."""
    return Lake(spark, workspace)


def insert(lake: Lake, prefix: str, columns: str) -> None:
    """Add two records whose ids begin with a prefix."""
    lake.sql(f"INSERT INTO {{input}} SELECT concat('{prefix}', {columns} FROM {{input}} ORDER BY note LIMIT 2")


def test_a_release_goes_on_after_columns_were_renamed(lake: Lake):
    """Errors name the setting, and the command where Delta refuses the feed: if rows changed since the last run, and
    columns were renamed after that. A feed that begins with the renaming is read.
    """
    columns: dict[str, Any] = {"keep": ["day"], "author": "author", "changes": "feed"}
    lake.write(corpus_with_authors(8))
    lake.sql(f"ALTER TABLE {{input}} SET TBLPROPERTIES ({MAPPED})")
    lake.run(lake.config(input=columns))
    spent = lake.spent()
    insert(lake, "x", "id), body, day, note, author")
    for old, new in (("id", "key"), ("body", "content")):
        lake.sql(f"ALTER TABLE {{input}} RENAME COLUMN {old} TO {new}")
    insert(lake, "y", "key), content, day, note, author")
    with pytest.raises(ConfigError, match=r"If it was renamed in the table, set input\.rename: {NEW: body}\."):
        lake.run(lake.config(input=columns))
    columns["rename"] = {"key": "id", "content": "body"}
    with pytest.raises(InputError, match=r"renamed or dropped\. Compare contents once with --set input\.changes=scan"):
        lake.run(lake.config(input=columns))
    report = lake.run(lake.config(input={**columns, "changes": "scan"}))
    assert (report.records, report.released, report.withdrawn) == (4, 4, 0)
    lake.sql("ALTER TABLE {input} RENAME COLUMN author TO writer")
    insert(lake, "z", "key), content, day, note, writer")
    columns["rename"]["writer"] = "author"
    config = lake.config(input=columns)
    report = lake.run(config)
    assert (report.changes, report.records, report.corrected, report.withdrawn) == ("feed", 2, 0, 0)
    lake.release(config)
    assert len(lake.rows(lake.public)) == 14
    assert {name: tokens for name, tokens in lake.spent().items() if name in spent} == spent
    assert json.loads((lake.public / "_manifest.json").read_text())["manifest"]["renamed"] == {"key": "id"}
    events = [json.loads(row["body"]) for row in lake.rows(lake.home / "journal") if row["event"] == "intent"]
    assert sorted(len(event["renamed"]) for event in events) == [0, 2, 3]


def test_a_release_goes_on_after_columns_got_other_types(spark: Any, lake: Lake):
    """The error names the setting. Ids, authors and pseudonyms stay; a value that does not fit is null."""
    numbers = {name: pa.array([3] * 8, pa.int32()) for name in ("day", "author")}
    lake.write(pa.table({"id": pa.array(range(8), pa.int32()), "body": corpus(8)["body"], **numbers}))
    kept = ["day", {"column": "author", "as": "pseudonym"}]
    columns: dict[str, Any] = {"keep": kept, "author": "author", "changes": "feed"}
    lake.run(lake.config(input=columns))
    spent = lake.spent()
    wide = ("cast(id AS bigint) AS id", "body", "cast(day AS string) AS day", "cast(author AS string) AS author")
    rows = spark.read.format("delta").load(str(lake.input)).selectExpr(*wide)
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(str(lake.input))
    with pytest.raises(ReleaseError, match=r"as before by input\.cast: {day: int, id: int}: a value that does not fit"):
        lake.run(lake.config(input=columns))
    config = lake.config(input={**columns, "cast": {"day": "int", "id": "int"}})
    report = lake.run(config)
    assert (report.changes, report.records, report.corrected, report.withdrawn) == ("feed", 0, 0, 0)
    lake.sql("INSERT INTO {input} VALUES (9, 'waaa', '3x', '3'), (5000000000, 'waaa', '3', '3')")
    assert lake.run(config).quarantined == {"null_id": 1}
    drawn = {row["id"]: row for row in lake.rows(lake.home / "draws")}
    assert (drawn[9]["day"], drawn[9]["author"]) == (None, drawn[0]["author"])
    assert {name: tokens for name, tokens in lake.spent().items() if name in spent} == spent


def test_a_release_goes_on_after_its_feed_is_gone(released: States):
    """The error names the command, which gives up the run that waits for the feed, unless that can be read again. Only
    what changed is charged. Under another path, and as a table that was made again, nothing is.
    """
    columns: dict[str, Any] = {"keep": ["day"], "changes": "feed"}
    compared = {**columns, "changes": "scan"}
    lake = released.restore("drawn")
    lake.delete("id = 'r00007'")
    lake.update("id = 'r00000'", body="'waab'")
    feed = lake.input / "_change_data"
    feed.rename(aside := lake.root / "aside")
    with pytest.raises(SparkJobError):
        lake.run(lake.config(input=columns), run_id="night-2")
    aside.rename(feed)
    report = lake.run(lake.config(input=compared), run_id="night-2")
    assert (report.changes, report.records, report.withdrawn) == ("feed", 1, 1)
    lake.sql("UPDATE {input} SET body = 'wakn waaa' WHERE id = 'r00000'")
    for file in feed.iterdir():
        file.unlink()
    for _ in range(2):
        with pytest.raises(
            SparkJobError, match=r"if its change data feed is gone, with --set input\.changes=scan; or give"
        ):
            lake.run(lake.config(input=columns), run_id="night-3")
    report = lake.run(lake.config(input=compared), run_id="night-3")
    assert (report.changes, report.records, report.withdrawn) == ("scan", 1, 0)
    spent, table = lake.spent(), DeltaTable(lake.input).to_pyarrow_table()
    moved = {**columns, "path": str(lake.input.rename(lake.root / "moved"))}
    lake.forget()
    assert lake.run(lake.config(input=moved)).records == 0
    lake.write(table)
    with pytest.raises(
        ReleaseError, match=r"is not the table that .* Compare contents once with --set input\.changes=sc"
    ):
        lake.run(lake.config(input=columns))
    assert lake.run(lake.config(input=compared)).records == 0
    lake.delete("id IS NOT NULL")
    report = lake.run(lake.config(input=columns), skip_empty=True)
    assert (report.changes, report.records, report.withdrawn) == ("feed", 0, 7)
    assert lake.spent() == spent


def test_renamed_columns_are_read_by_files_and_conditions(spark: Any, workspace: Workspace):
    """With a partition column under its new name, whose values are compared as they are under the old one."""
    path = workspace.root / "corpus"
    made = {"key": ["a", "b", "c"], "content": ["waaa", "waab", "waac"], "week": [9, 10, 11]}
    spark.createDataFrame(list(zip(*made.values(), strict=True)), list(made)).write.partitionBy("week").parquet(
        str(path)
    )
    renamed = {"rename": {"key": "id", "content": "body", "week": "day"}, "where": "day > cast(9 as int)"}
    assert {row.id: row.day for row in read_input(spark, workspace.config(input={**renamed})).collect()} == {
        "b": "10",
        "c": "11",
    }
    with pytest.raises(ConfigError, match=r"compares day as text, in which 10 comes before 9"):
        read_input(spark, workspace.config(input={**renamed, "where": "day > '9'"}))
