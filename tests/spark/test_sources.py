"""Inputs on real Spark and Delta: by path or name, at one version, filtered, and every fault named before a record is
read.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from support.workspaces import Workspace, corpus, read_input, read_output, write_delta
from wordveil.errors import ConfigError, InputError
from wordveil.input.source import Source
from wordveil.spark.input.inspect import read_columns
from wordveil.spark.input.source import has_change_feed, open_input
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.sanitise.job import run_sanitise

BIND_LATE = "spark.sql.legacy.parameterSubstitution.constantsOnly"


def section(path: Path | None, **settings: object) -> Source:
    return Source(**{"id": "id", "text": "body", "format": "delta", "path": path and str(path), **settings})


def rows(first: int, last: int) -> pa.Table:
    return corpus(last).slice(first)


def ids(frame) -> list[str]:
    return sorted(row["id"] for row in frame.select("id").collect())


def names(first: int, last: int) -> list[str]:
    return [f"r{i:05d}" for i in range(first, last)]


@pytest.fixture(scope="module")
def written(spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Delta table of versions 0 to 2, of 3, 5 and 6 records, with a change data feed. Tests only read it."""
    path = tmp_path_factory.mktemp("written") / "corpus"
    for first, last in ((0, 3), (3, 5), (5, 6)):
        write_delta(rows(first, last), path, feed=first == 0)
    return path


@pytest.fixture
def table(written: Path, tmp_path: Path) -> Path:
    """The same table, to change."""
    return shutil.copytree(written, tmp_path / "corpus")


@pytest.fixture
def catalogue(spark):
    """A database of the session's catalogue."""
    spark.sql("CREATE DATABASE IF NOT EXISTS lake")
    yield "lake"
    spark.sql("DROP DATABASE lake CASCADE")


def test_a_delta_table_gives_the_rows_of_the_same_parquet_table(spark, workspace: Workspace, written: Path):
    workspace.write_corpus(corpus(6), "as-parquet", files=2)
    expected = workspace.config(input={"path": str(workspace.root / "as-parquet")})
    run_sanitise(expected, lambda: spark)
    reference = read_output(workspace.root / "output")
    config = workspace.config(input={"path": str(written), "format": "delta"})
    report = run_sanitise(config, lambda: spark, overwrite=True)
    assert report.records == 6
    assert read_output(workspace.root / "output") == reference


def test_deleted_records_of_a_delta_table_are_not_read(spark, workspace: Workspace, table: Path):
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 'r00001'")
    assert list(table.glob("deletion_vector*.bin"))
    assert ids(read_input(spark, workspace.config(input={"format": "delta"}))) == ["r00000", *names(2, 6)]
    with pytest.raises(
        ConfigError, match=r"is a Delta table. Read as Parquet, it would include deleted and replaced records"
    ):
        read_input(spark, workspace.config(input={"format": "parquet"}))


def test_a_partition_of_a_delta_table_is_no_parquet_table(spark, workspace: Workspace):
    path = workspace.root / "corpus"
    from_arrow(spark, corpus(6)).write.format("delta").partitionBy("day").save(str(path))
    with pytest.raises(ConfigError, match=r"Set input\.format: delta"):
        read_input(spark, workspace.config(input={"path": f"{path}/day=d1/", "keep": []}))
    assert [(c.name, c.partition) for c in read_columns(lambda: spark, str(path))] == [
        ("id", False),
        ("body", False),
        ("day", True),
        ("note", False),
    ]


def test_a_version_stays_what_it_was(spark, table: Path):
    source = open_input(spark, section(table))
    assert (source.latest_version, source.is_delta) == (2, True)
    frame = source.read()
    write_delta(rows(6, 9), table)
    assert ids(frame) == ids(source.read()) == names(0, 6)
    assert ids(source.read(0)) == names(0, 3)
    assert ids(source.read(3)) == names(0, 9)
    assert open_input(spark, section(table)).latest_version == 3


def test_a_version_or_a_time_is_chosen(spark, written: Path):
    assert ids(open_input(spark, section(written, version=1)).read()) == names(0, 5)
    commits = spark.sql(f"DESCRIBE HISTORY delta.`{written}`").orderBy("version").collect()
    at = commits[1]["timestamp"].isoformat(sep=" ", timespec="milliseconds")
    source = open_input(spark, section(written, timestamp=at))
    assert source.latest_version == 1
    assert ids(source.read()) == names(0, 5)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (
            {"version": 7},
            "input.version = 7: the Delta table does not have this version, or no longer has it. It has 0 to 2.",
        ),
        ({"timestamp": "2000-01-01"}, "input.timestamp = 2000-01-01: is before the first version"),
        ({"timestamp": "2999-01-01 00:00:00"}, "input.timestamp = 2999-01-01 00:00:00: is after the latest version"),
        ({"timestamp": "2026-W01-1"}, "input.timestamp = 2026-W01-1: is not a date or time that Spark reads"),
    ],
)
def test_versions_that_are_not_there_are_named(spark, written: Path, settings, fault):
    with pytest.raises(ConfigError) as error:
        open_input(spark, section(written, **settings))
    assert [str(found)[: len(fault)] for found in error.value.faults] == [fault]


def test_a_table_made_again_has_another_identity(spark, table: Path):
    before = open_input(spark, section(table)).table_id
    assert open_input(spark, section(table)).table_id == before
    shutil.rmtree(table)
    write_delta(rows(0, 3), table)
    assert open_input(spark, section(table)).table_id not in (None, before)


def test_tables_of_the_catalogue_are_read_by_name(spark, catalogue: str):
    from_arrow(spark, corpus(5)).write.format("delta").saveAsTable(f"{catalogue}.tickets")
    from_arrow(spark, rows(5, 7)).write.format("delta").mode("append").saveAsTable(f"{catalogue}.tickets")
    from_arrow(spark, corpus(4)).write.format("parquet").saveAsTable(f"{catalogue}.old")
    spark.sql(f"CREATE VIEW {catalogue}.few AS SELECT * FROM {catalogue}.tickets WHERE id < 'r00002'")
    plain = {"format": None}
    source = open_input(spark, section(None, table=f"{catalogue}.tickets", **plain))
    assert (source.latest_version, ids(source.read())) == (1, names(0, 7))
    assert ids(open_input(spark, section(None, table=f"{catalogue}.tickets", version=0, **plain)).read()) == names(0, 5)
    for name, count in (("old", 4), ("few", 2)):
        source = open_input(spark, section(None, table=f"{catalogue}.{name}", **plain))
        assert (source.latest_version, source.table_id, source.is_delta) == (None, None, False)
        assert ids(source.read()) == ids(source.read_with_files()) == names(0, count)
        with pytest.raises(ConfigError, match=r"input\.version = 0: only Delta and Iceberg tables have versions"):
            open_input(spark, section(None, table=f"{catalogue}.{name}", version=0, **plain))
        with pytest.raises(InputError, match="only Delta tables have a change data feed"):
            source.changes(0, 1)
    for name in ("lake.none", "nowhere.tickets", "a.b.c", "x y"):
        with pytest.raises(InputError, match=rf"input.table = {name}: cannot be read as a table: [A-Z_]+. "):
            open_input(spark, section(None, table=name, **plain))


def test_changes_between_versions(spark, table: Path):
    spark.sql(f"UPDATE delta.`{table}` SET note = 99 WHERE id = 'r00001'")  # version 3
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 'r00000'")  # version 4
    source = open_input(spark, section(table, where="id != :other"), {"other": "r00005"})
    found = {(row["id"], row["_change_type"], row["_commit_version"]) for row in source.changes(1, 4).collect()}
    assert found == {
        *((name, "insert", 1) for name in names(3, 5)),
        ("r00001", "update_preimage", 3),
        ("r00001", "update_postimage", 3),
        ("r00000", "delete", 4),
    }
    assert source.changes(2, 2).count() == 0
    with pytest.raises(InputError, match=r"DELTA_CDC_START_VERSION_AFTER_LATEST|IllegalArgument"):
        source.changes(9, 12)


def test_a_change_data_feed_that_was_off_is_named_with_its_fix(spark, tmp_path: Path):
    path = tmp_path / "corpus"
    write_delta(rows(0, 3), path)
    write_delta(rows(3, 5), path)
    assert not has_change_feed(spark.read.format("delta").load(str(path)))
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")  # version 2
    write_delta(rows(5, 6), path)
    assert has_change_feed(spark.read.format("delta").load(str(path)))
    source = open_input(spark, section(path))
    assert ids(source.changes(3, 3)) == names(5, 6)
    for first in (0, 1):
        with pytest.raises(InputError) as error:
            source.changes(first, 3)
        assert f"(delta.enableChangeDataFeed) was off in some of the versions {first} to 3" in str(error.value)
        assert f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)" in str(error.value)


def test_a_condition_filters_with_parameters(spark, workspace: Workspace):
    workspace.write_corpus(corpus(30))
    before = spark.conf.get(BIND_LATE, None)
    config = workspace.config(input={"where": "day = :ds and id >= :least -- of the day"})
    report = run_sanitise(config, lambda: spark, params={"ds": "d1", "least": "r00010"})
    assert report.records == 7
    assert {row["day"] for row in read_output(workspace.root / "output")} == {"d1"}
    assert make_plan(config, lambda: spark, params={"ds": "d1", "least": "r00010"}).columns["body"] == "string"
    assert read_input(spark, config, {"ds": "d1' or '1'='1", "least": "10"}).count() == 0
    assert spark.conf.get(BIND_LATE, None) == before
    assert spark.sql("SHOW VIEWS LIKE 'wordveil*'").isEmpty()


UNUSABLE = [
    ("dayy = 'x'", "names the column dayy, which the table does not have. Did you mean day?"),
    ("day = ", "is not one condition in Spark SQL."),
    ("true) or (true", "is not one condition in Spark SQL."),
    ("note > 1 limit 3", "is not one condition in Spark SQL."),
    ("true union all select * from x", "is not one condition in Spark SQL."),
    ("note", "is not a condition, because its value is not true or false."),
    ("body", "is not a condition, because its value is not true or false."),
    ("sum(note) > 1", "Spark cannot use it as a condition (INVALID_WHERE_CONDITION)."),
    ("nofunction(note) = 1", "Spark cannot use it as a condition (UNRESOLVED_ROUTINE)."),
    ("rand() < 0.5", "selects other records each time Spark computes it"),
    ("day < current_date()", "selects other records each time Spark computes it"),
    ("day < date_sub(curdate(), 7)", "selects other records each time Spark computes it"),
    ("day < current_timestamp - interval 1 day", "selects other records each time Spark computes it"),
    ("day < now() or day < localtimestamp()", "selects other records each time Spark computes it"),
    ("note < unix_timestamp()", "selects other records each time Spark computes it"),
]


def test_unusable_conditions_are_named_before_any_row_is_read(spark, workspace: Workspace, capfd):
    path = workspace.write_corpus(corpus(3000)) / "part-0.parquet"
    raw = bytearray(path.read_bytes())
    raw[4:2000] = b"\0" * 1996  # whoever reads a row fails
    path.write_bytes(raw)
    for where, problem in UNUSABLE:
        with pytest.raises(ConfigError) as error:
            read_input(spark, workspace.config(input={"where": where}))
        assert str(error.value.faults[0]).startswith(f"input.where = {where}: {problem}")
    assert capfd.readouterr().err.count("SQLQueryContextLogger") == 0
