"""Conditions on real Spark: they may name what is public about a record, and are refused for all else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pytest

from support.workspaces import Workspace, corpus, read_input
from wordveil.errors import ConfigError
from wordveil.spark.input.condition import list_partitions
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.versions import VERSION, from_arrow

CANARY = "zqxconditionzqx"
OTHERS = "names {}. The output shows which records meet the condition, so it may name only the id, kept columns and"
QUERY = "reads more than the record itself"
REWRITTEN = "uses a function that Spark rewrites into a query"
REFUSED = [
    ("body like '%x%'", OTHERS.format("body")),
    ("day = 'd0' and cast(`BODY` as int) > 3", OTHERS.format("BODY")),
    ("identifier('bo' || 'dy') = 'x'", OTHERS.format("body")),
    ("hash(*) = 1", OTHERS.format("body, note, mail")),
    ("hash(input.*) = 1", OTHERS.format("body, note, mail")),
    ("note > 1", OTHERS.format("note")),
    ("mail.lang = 'en'", OTHERS.format("mail")),
    ("id in (select id from canaries where cast(body as int) > 3)", QUERY),
    ("exists (select 1 from canaries c where c.note = cast(input.body as int))", QUERY),
    ("day = 'd0' and id = (select max(body) from canaries)", QUERY),
]


def canaries() -> pa.Table:
    return pa.table(
        {
            "id": ["r0", "r1"],
            "body": [f"{CANARY} x", f"{CANARY}\\"],
            "day": ["d0", "d0"],
            "note": [0, 1],
            "mail": [{"lang": "en", "body": CANARY}] * 2,
        }
    )


@pytest.fixture
def table(spark, workspace: Workspace):
    """Writes the texts, also as a view."""
    workspace.write_corpus(canaries())
    from_arrow(spark, canaries()).createOrReplaceTempView("canaries")
    yield
    spark.catalog.dropTempView("canaries")


def refuse(spark, workspace: Workspace, where: str, **source: object) -> str:
    with pytest.raises(ConfigError) as error:
        read_input(spark, workspace.config(input={"where": where, **source}))
    (fault,) = error.value.faults
    assert (fault.where, fault.value) == ("input.where", where[:80])
    return fault.problem


@pytest.mark.usefixtures("table")
def test_condition_on_other_columns_is_refused_without_texts(spark, workspace: Workspace, capfd):
    for where, problem in REFUSED:
        if VERSION >= (4, 0) or "*" not in where:
            assert refuse(spark, workspace, where).startswith(problem), where
    told = refuse(spark, workspace, "body = 5")
    path = workspace.root / "corpus"
    assert told.endswith(f"CREATE VIEW slice AS SELECT * FROM parquet.`{path}` WHERE ...; then set input.table: slice.")
    output = capfd.readouterr()
    place = Path(urlparse(spark.sparkContext.getConf().get("spark.eventLog.dir")).path)
    logged = b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())
    assert CANARY not in output.out + output.err
    assert CANARY.encode() not in logged


@pytest.mark.usefixtures("newest_spark", "table")
def test_condition_on_session_functions_and_variables_is_refused(spark, workspace: Workspace):
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION starts(x STRING) RETURNS BOOLEAN RETURN x LIKE 'd%'")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION any_long() RETURNS BOOLEAN "
        "RETURN EXISTS (SELECT 1 FROM canaries WHERE length(body) > 3)"
    )
    spark.sql("DECLARE OR REPLACE VARIABLE longest STRING DEFAULT 'x'")
    for where, problem in (("starts(day)", REWRITTEN), ("any_long()", REWRITTEN), ("day < longest", QUERY)):
        assert refuse(spark, workspace, where).startswith(problem)


def test_partition_column_is_allowed_unless_text_or_of_a_view(spark, workspace: Workspace):
    rows = from_arrow(spark, corpus(9)).repartition(1)
    for kind in ("parquet", "delta"):
        path = str(workspace.root / kind)
        rows.write.format(kind).partitionBy("day").save(path)
        source = {"path": path, "format": kind, "keep": [], "where": "DAY = 'd1'"}
        assert read_input(spark, workspace.config(input=source)).count() == 3
        problem = refuse(spark, workspace, "day = 'd1'", path=path, format=kind, keep=[], id="body", text="day")
        assert problem.startswith(OTHERS.format("day"))
        hidden = [{"column": "day", "as": "pseudonym"}]
        problem = refuse(spark, workspace, "day = 'd1'", path=path, format=kind, keep=hidden)
        assert problem.startswith(OTHERS.format("day"))
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN ('r00001', 'r00002')")
    fed = open_input(spark, replace(workspace.config(input=source).source, changes="feed"))
    assert [row.id for row in fed.changes(2, 2).collect()] == ["r00001"]
    spark.read.format("delta").load(path).selectExpr("id", "body", "length(body) AS day").createOrReplaceTempView("v")
    for view in ("v", "w"):
        if view == "w":
            spark.sql(f"CREATE TEMPORARY VIEW w AS SELECT id, body, length(body) AS day FROM delta.`{path}`")
        assert refuse(spark, workspace, "day > 3", path=None, table=view, keep=[]).startswith(OTHERS.format("day"))
        spark.catalog.dropTempView(view)


def test_partition_columns_of_a_hive_table_are_found(spark):
    spark.sql("CREATE TABLE by_day (id STRING, day STRING) USING parquet PARTITIONED BY (day)")
    spark.sql("CREATE TABLE hive_by_day LIKE by_day STORED AS PARQUET")  # as a catalogue without Hive takes it, too
    try:
        assert list_partitions(spark.table("hive_by_day")) == list_partitions(spark.table("by_day")) == {"day"}
    finally:
        spark.sql("DROP TABLE hive_by_day")
        spark.sql("DROP TABLE by_day")


def test_a_condition_on_parsed_rows_is_not_sent_to_a_view(spark, workspace: Workspace):
    (workspace.root / "corpus").mkdir()
    (workspace.root / "corpus" / "part.csv").write_text("id,body,day,note\nr0,x,d0,1\n")
    assert read_input(spark, workspace.config(input={"format": "csv", "where": "day = 'd0'"})).count() == 1
    assert refuse(spark, workspace, "note = 1", format="csv").endswith("because no view may read text files.")
