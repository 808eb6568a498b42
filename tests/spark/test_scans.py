"""What Spark parses from text by options that are not wordveil's is refused by name, wherever it is in what is read."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from support.workspaces import Workspace, corpus, options_set, read_input
from wordveil import Run, sanitise
from wordveil.errors import ConfigError
from wordveil.spark.input.scans import check_scans
from wordveil.spark.platform.versions import from_arrow

SECRET = "HIV positive"
TEXTS = [f'he said ""x,\n{SECRET}', 'plain, and "quoted"']
COLUMNS = "id STRING, body STRING, day STRING"


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory: pytest.TempPathFactory):
    """A database with one table of each kind, all of the same two records."""
    home = tmp_path_factory.mktemp("lake")
    rows = [{"id": f"r{number}", "body": text, "day": "d1"} for number, text in enumerate(TEXTS)]
    for kind in ("csv", "json", "text"):
        (home / kind).mkdir()
    with (home / "csv" / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "body", "day"])
        writer.writeheader()
        writer.writerows(rows)
    (home / "json" / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows) + f'{{"id": "{SECRET}\n')
    (home / "text" / "a.txt").write_text(f"r0 {SECRET}\n")
    spark.sql("CREATE DATABASE scans")
    spark.sql(f"CREATE TABLE scans.csv ({COLUMNS}) USING csv OPTIONS (header true) LOCATION '{home}/csv'")
    spark.sql(f"CREATE TABLE scans.json ({COLUMNS}) USING json LOCATION '{home}/json'")
    spark.sql(f"CREATE TABLE scans.text USING text LOCATION '{home}/text'")
    frame = spark.createDataFrame(rows, COLUMNS)
    for kind in ("parquet", "orc", "delta"):
        frame.write.format(kind).saveAsTable(f"scans.{kind}")
    # Hive's own tables, as a catalogue without Hive takes them too.
    spark.sql("CREATE TABLE scans.hive_text LIKE scans.parquet STORED AS TEXTFILE")
    spark.sql("CREATE TABLE scans.hive_parquet LIKE scans.parquet STORED AS PARQUET")
    yield home
    spark.sql("DROP DATABASE scans CASCADE")


def read_table(spark, workspace: Workspace, table: str, **source: Any):
    return read_input(spark, workspace.config(input={"path": None, "table": table, **source}))


def refusal(function: Any, *given: Any, **named: Any) -> str:
    with pytest.raises(ConfigError) as error:
        function(*given, **named)
    assert SECRET not in str(error.value)
    (fault,) = error.value.faults
    return str(fault)


VIEWS = {
    "SELECT * FROM scans.csv": "CSV",
    "SELECT id, value AS body, 'd1' AS day FROM scans.text, scans.parquet": "Text",
    "SELECT * FROM scans.delta UNION ALL SELECT * FROM scans.json": "JSON",
    "WITH parts AS (SELECT * FROM scans.csv) SELECT a.* FROM parts a JOIN scans.orc b USING (id)": "CSV",
    "SELECT * FROM scans.delta WHERE id IN (SELECT id FROM scans.orc WHERE EXISTS (SELECT 1 FROM scans.json))": "JSON",
    "SELECT id, (SELECT max(body) FROM scans.csv) AS body, day FROM scans.parquet": "CSV",
    "SELECT p.id, c.body, p.day FROM scans.parquet p, LATERAL (SELECT * FROM scans.csv c WHERE c.id = p.id) c": "CSV",
}


@pytest.mark.parametrize("query", VIEWS)
def test_a_view_of_parsed_text_is_refused(spark, workspace: Workspace, lake: Path, query: str):
    spark.sql(f"CREATE OR REPLACE VIEW scans.view AS {query}")
    kind = VIEWS[query]
    said = refusal(read_table, spark, workspace, "scans.view")
    table = f"spark_catalog.scans.{kind.lower()}"
    assert said.startswith(f"input.table = scans.view: reads {table} as {kind} with options that wordveil did not")


def test_a_parsed_table_is_refused_by_any_name(spark, workspace: Workspace, lake: Path):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW scans_csv USING csv OPTIONS (path '{lake}/csv', header true)")
    for table in ("scans.csv", "scans.json", "scans_csv", f"csv.`{lake}/csv`"):
        said = refusal(read_table, spark, workspace, table)
        assert said.startswith(f"input.table = {table}: reads ")
        assert "Name the files instead, by input.path with input.format" in said
    said = refusal(read_table, spark, workspace, "scans.hive_text")
    assert "reads spark_catalog.scans.hive_text as LazySimpleSerDe with options" in said
    spark.table("scans.csv").cache().count()
    assert "as CSV" in refusal(read_table, spark, workspace, "scans.csv")
    spark.catalog.clearCache()


def test_tables_that_know_where_their_rows_end_are_read(spark, workspace: Workspace, lake: Path):
    for table in ("scans.parquet", "scans.orc", "scans.delta"):
        assert {row["body"] for row in read_table(spark, workspace, table).collect()} == set(TEXTS)
    check_scans(spark.table("scans.hive_parquet"), "frame")


def test_another_format_of_text_is_refused(spark, workspace: Workspace, lake: Path):
    config = workspace.config(
        input={"path": f"{lake}/text", "format": "libsvm", "options": {"numFeatures": "3"}, "keep": []}
    )
    said = refusal(read_input, spark, config)
    assert said.startswith(f"input.format = libsvm: reads file:{lake}/text as LibSVM with options")


def frames_of_text(spark, lake: Path) -> dict[str, Any]:
    """Frames that Spark has parsed from text, by how they hide it."""
    plain = spark.table("scans.csv")
    return {
        "csv": spark.read.csv(f"{lake}/csv", header=True, multiLine=True, escape='"'),
        "json": spark.read.json(f"{lake}/json"),
        "lines": spark.read.text(f"{lake}/text"),
        "rdd": spark.createDataFrame(plain.rdd.map(lambda row: row), COLUMNS),
        "shuffled": spark.createDataFrame(plain.groupBy("id", "body", "day").count().drop("count").rdd, COLUMNS),
        "lines of an rdd": spark.read.csv(spark.sparkContext.textFile(f"{lake}/csv")),
        "csv of an rdd": spark.read.csv(spark.table("scans.parquet").rdd.map(lambda row: row.body)),
        "json of an rdd": spark.read.schema(COLUMNS).json(spark.table("scans.parquet").rdd.map(lambda row: row.body)),
        "json of rows": spark.read.schema(COLUMNS).json(spark.sparkContext.parallelize(["{}"])),
        "rows of csv of an rdd": spark.createDataFrame(
            spark.read.schema(COLUMNS).csv(spark.table("scans.parquet").rdd.map(lambda row: row.body)).rdd, COLUMNS
        ),
        "joined": spark.table("scans.parquet").join(plain, "id", "left_anti"),
    }


def test_a_frame_of_parsed_text_is_refused(spark, lake: Path):
    for name, frame in frames_of_text(spark, lake).items():
        said = refusal(check_scans, frame, "frame", own_rows=True)
        assert "with options that wordveil did not choose" in said, name
    said = refusal(check_scans, spark.table("scans.csv").localCheckpoint(), "frame", own_rows=True)
    assert said.startswith("frame: reads a checkpoint")
    given = {"bundle": "none", "run": Run.throwaway(), "id": "id", "text": "body", "policy": {"n_max": 4}}
    assert "reads spark_catalog.scans.csv as CSV" in refusal(sanitise, spark.table("scans.csv"), **given)


def test_a_frame_by_sparks_second_kind_of_source_is_refused(spark, lake: Path):
    with options_set(spark, {"spark.sql.sources.useV1SourceList": ""}):
        parsed, whole = spark.read.csv(f"{lake}/csv"), spark.read.orc(str(spark.table("scans.orc").inputFiles()[0]))
        listed = spark.createDataFrame(parsed.rdd, COLUMNS)
    assert f"reads csv file:{lake}/csv as CSV" in refusal(check_scans, parsed, "frame")
    assert "as csv" in refusal(check_scans, listed, "frame")
    check_scans(whole, "frame")


def test_batches_of_a_stream_are_looked_at(spark, lake: Path, tmp_path: Path):
    said: dict[str, str] = {}

    def look(name: str):
        def batch(frame, _number: int) -> None:
            try:
                check_scans(frame, "frame")
                said[name] = "taken"
            except ConfigError as error:
                said[name] = str(error.faults[0])

        return batch

    for kind, source in (
        ("csv", lake / "csv"),
        ("delta", spark.table("scans.delta").inputFiles()[0].rpartition("/")[0]),
    ):
        reader = spark.readStream.format(kind)
        stream = (reader.schema(COLUMNS) if kind == "csv" else reader).load(str(source))
        query = stream.writeStream.foreachBatch(look(kind)).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / kind)).start().awaitTermination()
    assert said["delta"] == "taken"
    assert said["csv"].startswith("frame: reads files as csv with options")


def own_frames(spark) -> dict[str, Any]:
    """Frames whose rows a program holds, by how it came by them. Some were read from CSV, and Spark does not know."""
    table = spark.table("scans.csv")
    return {
        "list": spark.createDataFrame([("a", "x")], "id string, body string"),
        "rows": spark.createDataFrame(table.collect(), table.schema),
        "arrow": from_arrow(spark, corpus(2)),
        "pandas": spark.createDataFrame(table.toPandas(), table.schema),
        "parallelize": spark.createDataFrame(spark.sparkContext.parallelize([("a", "x")]), "id string, body string"),
        "values": spark.sql("SELECT * FROM VALUES ('a', 'x') AS t(id, body)"),
        "row": spark.sql(f"SELECT 'a' AS id, '{SECRET}' AS body"),
        "joined": spark.table("scans.parquet").unionByName(spark.createDataFrame(table.collect(), table.schema)),
    }


def test_rows_of_no_table_are_taken_only_as_the_callers_own(spark, workspace: Workspace, lake: Path):
    for name, frame in own_frames(spark).items():
        said = refusal(check_scans, frame, "frame")
        assert said.startswith("frame: holds rows that come from no table"), name
        assert said.endswith("or say own_rows=True, if your program made them and each text is whole."), name
        check_scans(frame, "frame", own_rows=True)
    spark.createDataFrame(spark.table("scans.csv").collect(), COLUMNS).createOrReplaceTempView("scans_rows")
    said = refusal(read_table, spark, workspace, "scans_rows")
    assert said.startswith("input.table = scans_rows: holds rows that come from no table")
    assert "own_rows" not in said, "a configuration cannot say so"
    given = {"bundle": "none", "run": Run.throwaway(), "id": "id", "text": "body", "policy": {"n_max": 4}}
    assert "holds rows" in refusal(sanitise, spark.table("scans_rows"), **given)


@pytest.mark.usefixtures("newest_spark")
def test_what_a_script_or_a_variable_holds_is_refused(spark, lake: Path):
    """A script's result is collected, and a variable may hold a table."""
    read = "SELECT collect_list(struct(id, body)) FROM scans.csv"
    spark.sql("DECLARE OR REPLACE found ARRAY<STRUCT<id STRING, body STRING>>")
    spark.sql(f"SET VAR found = ({read})")
    for query in (
        "BEGIN SELECT * FROM scans.csv; END",
        "SELECT inline(found)",
        "SELECT id, found[0].body AS body FROM scans.parquet",
        "SELECT id, (SELECT max(found[0].body)) AS body FROM scans.parquet",
        "SELECT p.id, f.body FROM scans.parquet p, LATERAL inline(found) f",
    ):
        assert "holds rows that come from no table" in refusal(check_scans, spark.sql(query), "frame"), query
    said = refusal(check_scans, spark.sql("EXECUTE IMMEDIATE 'SELECT * FROM scans.csv'"), "frame", own_rows=True)
    assert "as CSV" in said
    lateral = "SELECT p.id, c.word FROM scans.parquet p, LATERAL (SELECT upper(p.body) AS word) c"
    check_scans(spark.sql(lateral), "frame")
    spark.sql("DROP TEMPORARY VARIABLE found")


@pytest.mark.usefixtures("newest_spark")
def test_frames_of_other_origin_are_taken(spark, lake: Path):
    parquet = spark.table("scans.parquet")
    for frame in (
        spark.range(3),
        spark.createDataFrame(parquet.rdd, COLUMNS),
        parquet.where("false").unionByName(spark.table("scans.delta")),
        spark.read.format("binaryFile").load(f"{lake}/csv"),
    ):
        check_scans(frame, "frame")
