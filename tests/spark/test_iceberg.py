"""Iceberg as input: every reading of a run is of one snapshot, which the run names. Real tables, in a catalogue of
three-part names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support import lakes
from support.releases import DiedError, Lake, corpus_with_authors
from support.workspaces import Workspace, corpus, read_output
from wordveil.errors import ConfigError, InputError, ReleaseError
from wordveil.input.source import Source
from wordveil.spark.input.condition import list_partitions
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.iceberg import find_iceberg_table
from wordveil.spark.release.gate import run_gate
from wordveil.spark.release.publish import publish
from wordveil.spark.release.steps import RunSteps
from wordveil.spark.sanitise.job import run_sanitise

pytestmark = pytest.mark.skipif(lakes.missing() is not None, reason=str(lakes.missing()))

TABLE = "ice.lake.tickets"


@pytest.fixture
def tickets(spark: Any) -> Iterator[str]:
    """A table of 3 rows, then of 5."""
    lakes.write(spark, corpus(3), TABLE)
    lakes.write(spark, corpus(5).slice(3), TABLE)
    yield TABLE
    spark.sql(f"DROP TABLE {TABLE} PURGE")


@pytest.fixture
def lake(spark: Any, workspace: Workspace) -> Iterator[Lake]:
    lakes.write(spark, corpus_with_authors(8), TABLE)
    yield Lake(spark, workspace)
    spark.sql(f"DROP TABLE {TABLE} PURGE")


def section(**settings: object) -> Source:
    return Source(**{"id": "id", "text": "body", "table": TABLE, **settings})


def snapshots(spark: Any) -> list[int]:
    return [row[0] for row in spark.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots ORDER BY committed_at").collect()]


def place(spark: Any) -> str:
    """The table's directory."""
    return f"{spark.conf.get('spark.sql.catalog.ice.warehouse')}/lake/tickets"


def test_every_reading_is_of_the_snapshot_that_was_opened(spark: Any, tickets: str):
    for source in (section(), section(table=None, format="iceberg", path=place(spark))):
        opened, before = open_input(spark, source), snapshots(spark)
        assert (opened.latest_version, opened.is_delta) == (before[-1], False)
        frame, count = opened.read(), opened.read().count()
        lakes.write(spark, corpus(6).slice(5), TABLE)
        spark.sql(f"DELETE FROM {TABLE} WHERE id = 'r00000'")
        assert frame.count() == opened.read().count() == opened.read_with_files().count() == count
        assert opened.read(before[0]).count() == 3
        assert open_input(spark, source).latest_version == snapshots(spark)[-1] != before[-1]
    first = snapshots(spark)[0]
    assert open_input(spark, section(version=first)).read().count() == 3


def test_condition_on_an_identity_partition_column_is_allowed(spark: Any):
    name = "ice.lake.parted"
    spark.sql(
        f"CREATE TABLE {name} (id STRING, body STRING, day STRING) USING iceberg PARTITIONED BY (day, bucket(2, id))"
    )
    try:
        lakes.write(spark, corpus(6).select(["id", "body", "day"]), name)
        assert open_input(spark, section(table=name, where="day = 'd1'")).read().count() == 2
        assert list_partitions(spark.table(name)) == {"day"}
    finally:
        spark.sql(f"DROP TABLE {name} PURGE")


def test_what_another_process_wrote_is_seen(spark: Any, tickets: str):
    """A catalogue keeps tables as it last saw them; another catalogue over the same files is another process."""
    opened = open_input(spark, section())
    for name, value in lakes.options(spark.conf.get("spark.sql.catalog.ice.warehouse"), "other").items():
        if name != "spark.jars":
            spark.conf.set(name, value)
    lakes.write(spark, corpus(9).slice(5), "other.lake.tickets")
    newest = spark.sql("SELECT snapshot_id FROM other.lake.tickets.snapshots ORDER BY committed_at DESC").first()[0]
    assert spark.table(TABLE).count() == 5, "the catalogue itself does not see it"
    chosen, latest = open_input(spark, section(version=newest)), open_input(spark, section())
    assert (chosen.latest_version, latest.latest_version) == (newest, newest)
    assert (opened.read().count(), latest.read().count()) == (5, 9)
    assert latest.table_id == opened.table_id


def test_a_time_is_a_snapshot(spark: Any, tickets: str):
    at = spark.sql(f"SELECT committed_at FROM {TABLE}.snapshots ORDER BY committed_at").collect()
    source = open_input(spark, section(timestamp=str(at[0][0])))
    assert (source.latest_version, source.read().count()) == (snapshots(spark)[0], 3)


def test_iceberg_job_gives_parquets_rows_and_names_its_snapshot(
    spark: Any, workspace: Workspace, tickets: str, run: Any
):
    workspace.write_corpus(corpus(5))
    run_sanitise(workspace.config(), lambda: spark)
    named = {"input": {"table": TABLE, "path": None}}
    path = workspace.write_config(**named, output={"path": str(workspace.root / "other")})
    code, out, err = run("sanitise", "--config", path, "--json")
    assert code == 0, err
    assert json.loads(out)["input_version"] == snapshots(spark)[-1]
    assert read_output(workspace.root / "other") == read_output(workspace.root / "output")


@pytest.mark.long
def test_a_release_compares_contents_over_two_nights(spark: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch):
    """Its manifest names the snapshot. Its own tables are Delta's, which no catalogue of Iceberg takes."""
    source = {"path": None, "format": None, "table": TABLE, "changes": "scan"}
    config = lake.config(input=source)
    report = lake.run(config)
    assert (report.changes, report.records, report.input_version) == ("all", 8, snapshots(spark)[0])
    first = lake.newest()
    spark.sql(
        f"INSERT OVERWRITE {TABLE} SELECT id, IF(id = 'r00001', 'zebra apple', body) AS body, * EXCEPT (id, body) "
        f"FROM {TABLE} WHERE id <> 'r00003'"
    )
    night = snapshots(spark)[-1]

    def die(steps: RunSteps) -> None:
        raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr(RunSteps, "draw", die)
        with pytest.raises(DiedError):
            lake.run(config, run_id="night", full_snapshot=True)
    # The interrupted run reads its snapshot again, whatever was written since.
    lakes.write(spark, corpus_with_authors(10).slice(8), TABLE)
    report = lake.run(config, run_id="night", full_snapshot=True)
    assert (report.changes, report.records, report.withdrawn, report.input_version) == ("scan", 1, 1, night)
    second = lake.newest()
    assert len(second) == 8
    assert {name for name in second if second[name] != first[name]} == {"r00001", "r00003"}

    assert run_gate(config, lambda: spark).result.passed
    manifest = publish(config, lambda: spark).document["manifest"]
    assert (manifest["input"], manifest["input_version"]) == (open_input(spark, section()).table_id, night)
    elsewhere = {"public": str(lake.root / "elsewhere")}
    for name, problem in (
        (TABLE, "the catalogue has another table with that name"),
        ("nowhere.lake.out", "the catalogue refuses it, and what was published before is unchanged: REQUIRES_SINGLE"),
        ("ice.lake.out", "the catalogue refuses it, and what was published before is unchanged: .* as one of Iceberg"),
    ):
        other = lake.config(input=source, output={**elsewhere, "public_table": name})
        with pytest.raises(ReleaseError, match=rf"output\.public_table = {name}: {problem}"):
            publish(other, lambda: spark)


def test_what_cannot_be_pinned_or_read_is_refused_by_name(spark: Any, tickets: str, monkeypatch: pytest.MonkeyPatch):
    for settings, where, problem in (
        ({"version": 7}, "input.version", "does not have this snapshot, or no longer has it"),
        ({"timestamp": "2001-01-01"}, "input.timestamp", "is before the first snapshot"),
        ({"changes": "feed"}, "input.changes", "Iceberg tables have no change data feed. Set input.changes: scan"),
    ):
        with pytest.raises(ConfigError) as refused:
            open_input(spark, section(**settings))
        (fault,) = refused.value.faults
        assert (fault.where, problem in fault.problem) == (where, True), fault
    spark.sql("CREATE TABLE ice.lake.empty (id STRING, body STRING) USING iceberg")
    with pytest.raises(InputError, match=r"ice\.lake\.empty: the Iceberg table has no snapshot yet"):
        open_input(spark, section(table="ice.lake.empty"))
    spark.sql("DROP TABLE ice.lake.empty")
    find_iceberg_table(spark.table(TABLE)).table().manageSnapshots().createBranch("audit").commit()
    for name in ("branch_audit", f"snapshot_id_{snapshots(spark)[0]}"):
        with pytest.raises(InputError, match=f"{name}: is read at a branch, a tag or a snapshot of its own"):
            open_input(spark, section(table=f"{TABLE}.{name}")).read()
    with pytest.raises(
        ConfigError, match=f"is in an Iceberg table, .* input.format: iceberg and input.path: {place(spark)}"
    ):
        open_input(spark, section(table=None, path=f"{place(spark)}/data"))
    with pytest.raises(InputError, match=r"ice\.lake\.none: cannot be read as a table: TABLE_OR_VIEW_NOT_FOUND"):
        open_input(spark, section(table="ice.lake.none"))
    # A Spark that ignores the option would read whatever is newest.
    opened = open_input(spark, section())
    lakes.write(spark, corpus(6).slice(5), TABLE)
    monkeypatch.setattr(type(opened), "_load", lambda table, options: spark.table(TABLE))
    with pytest.raises(InputError, match=f"Spark does not read it at version {opened.latest_version}"):
        opened.read()
