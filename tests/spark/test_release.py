"""Runs of a release: what is drawn, charged, withdrawn and left alone, as the input moves on."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.releases import Lake, States, corpus_with_authors, read_delta
from support.workspaces import Workspace, corpus, options_set
from wordveil.crypto.keys import rotate_key
from wordveil.errors import ReleaseError, WordveilError
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.versions import VERSION, from_arrow
from wordveil.spark.release import latest
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.publish import publish


@pytest.fixture
def lake(spark, workspace: Workspace) -> Lake:
    """An empty release."""
    return Lake(spark, workspace)


@pytest.mark.long
def test_ledger_has_few_files_and_statistics_of_sought_columns(lake: Lake):
    """However many tasks read the texts: a file for each would cost more than the entries in it."""
    rows = from_arrow(lake.spark, corpus(20)).repartition(10)
    rows.write.format("delta").save(str(lake.input))
    with options_set(lake.spark, {"spark.sql.files.maxPartitionBytes": "1000"}):
        lake.run()
    draws, entries = files_added(lake.home / "draws"), files_added(lake.ledger)
    most = 4 * lake.spark.sparkContext.defaultParallelism
    assert max(map(len, draws.values())) > most, "as many as the tasks that drew"
    assert 0 < max(map(len, entries.values())) <= most
    for added in entries.values():
        for file in added:
            assert set(json.loads(file["stats"])["minValues"]) == {"release", "run_id", "kind"}


def files_added(table: Path) -> dict[str, list[dict[str, Any]]]:
    """The data files that each commit of a Delta table adds."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    actions = {commit.name: [json.loads(line) for line in commit.read_text().splitlines()] for commit in commits}
    return {name: [action["add"] for action in found if "add" in action] for name, found in actions.items()}


def texts(lake: Lake) -> dict[str, object]:
    """What the newest draw of each record says: its status, reason and text."""
    return {name: (row["status"], row["reason"], row["text"]) for name, row in lake.newest().items()}


def test_a_release_follows_its_input(released: States, monkeypatch: pytest.MonkeyPatch):
    """A first run draws and charges all, and one over the same version nothing. By the feed, edits are drawn and
    charged again, deletions withdraw, what comes back or is the same costs nothing. The newest draws are found in both
    ways.
    """
    report = released.report
    assert report is not None
    assert (report.changes, report.records, report.released, report.input_version) == ("all", 8, 8, 0)
    lake = released.restore("drawn")
    config = lake.config(input={"changes": "feed"})
    draws, entries = lake.draws(), lake.entries()
    assert len(draws) == 8
    assert lake.spent() == {f"r{number:05d}": 24 for number in range(8)}
    assert lake.reserved() == 0
    report = lake.run(config)
    assert (report.changes, report.records) == ("none", 0)
    assert (lake.draws(), lake.entries()) == (draws, entries)
    first = texts(lake)

    edit = "IF(id = 'r00001', 'zebra apple', body)"
    lake.sql(f"UPDATE {{input}} SET body = {edit}, note = 99 WHERE id IN ('r00001', 'r00002')")
    lake.delete("id = 'r00003'")
    lake.write(corpus(10).take([5, 8, 9]))
    report = lake.run(config)
    assert (report.changes, report.records, report.withdrawn) == ("feed", 5, 1)
    second = texts(lake)
    assert second["r00001"] != first["r00001"]
    assert second["r00002"] == first["r00002"]
    assert second["r00003"][0] == "withdrawn"
    assert second["r00005"] == ("quarantined", "duplicate_id", None)
    assert {"r00008", "r00009"} <= second.keys()
    assert lake.spent()["r00001"] == 48

    lake.delete("id IN ('r00001', 'r00005')")
    lake.write(corpus(8).take([1, 3, 5]))
    report = lake.run(config)
    third = texts(lake)
    assert third["r00001"] == first["r00001"], "a text that came back has its noise of before"
    assert third["r00003"] == first["r00003"]
    assert third["r00005"] == first["r00005"]
    assert lake.spent() == {**{f"r{number:05d}": 24 for number in range(10)}, "r00001": 48}
    assert lake.reserved() == 0

    newest = {name: row["__seq"] for name, row in lake.newest().items()}
    drawn_later = {"r00001", "r00003", "r00005", "r00008", "r00009"}
    journal = Journal(DeltaTable(lake.spark, str(lake.home / "journal"), "journal"), "support")
    draws_table = lake.spark.read.format("delta").load(str(lake.home / "draws"))
    for most, joined in ((latest._FEW, drawn_later), (2, drawn_later - {"r00008", "r00009"})):
        monkeypatch.setattr(latest, "_FEW", most)
        rows, again = latest.find_newest(draws_table, "id", journal)
        assert again is not None
        assert {row[0] for row in again.select("__id").collect()} == joined
        assert {row["id"]: row["__seq"] for row in rows.collect()} == newest
        assert rows.count() == len(newest) == 10
        again.unpersist()

    # The tests read tables without Spark, and see what Spark sees, over several commits.
    for table in (lake.home / "draws", lake.ledger):
        found = [row.asDict(recursive=True) for row in lake.spark.read.format("delta").load(str(table)).collect()]
        assert len(lake.rows(table)) == len(found) > 10
        assert all(row in found for row in lake.rows(table))


@pytest.mark.long
@pytest.mark.skipif(VERSION < (4, 0), reason="Spark 3.5 does not merge the tasks of cached frames")
def test_a_night_of_few_records_has_few_tasks(released: States):
    """A shuffle has 200 by Spark's default. Each costs more than a few records."""
    lake = released.restore("drawn")
    lake.update("id = 'r00001'", body="zebra apple")
    store = lake.spark.sparkContext._jsc.sc().statusStore()
    before = store.jobsList(None).apply(0).jobId()  # the newest is the first
    with options_set(lake.spark, {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "200"}):
        assert lake.run(lake.config(input={"changes": "feed"})).records == 1
    jobs = store.jobsList(None)
    tasks = [jobs.apply(place).numTasks() for place in range(jobs.apply(0).jobId() - before)]
    assert len(tasks) > 10
    assert max(tasks) < 20


def test_pseudonyms_link_nights_of_one_release_alone(spark, tmp_path: Path):
    """They last when the key is rotated, unless they rotate with it, and follow the input. Tables lack values."""
    lake = Lake(spark, Workspace(tmp_path))
    who, rotating = ({"column": "author", "as": "pseudonym", "name": name} for name in ("customer", "customer"))
    rotating |= {"column": "shop", "name": "place", "rotate": True}
    shown = ["edited", "kept_changed", "presence", "withdrawn"]
    exposes = [*shown, "column:day", "pseudonym:customer", "pseudonym:place"]
    columns = {"keep": ["day", who, rotating], "changes": "feed"}
    config = lake.config(input=columns, gate={"exposes": exposes, "min_records": 1})
    table = corpus_with_authors(12).append_column("shop", pa.array([9] * 12))
    table = table.set_column(4, "author", [[f"zqx{name}" for name in table["author"].to_pylist()]])
    lake.write(table.slice(0, 8))
    lake.run(config)
    rotate_key(lake.root / "key")
    lake.write(table.slice(8))
    lake.run(config)
    lake.release(config)
    rows = sorted(read_delta(lake.public), key=itemgetter("id"))
    assert [row["id"] for row in rows] == table["id"].to_pylist()
    people = {(author, row["customer"]) for author, row in zip(table["author"].to_pylist(), rows, strict=True)}
    assert len(people) == len({row["customer"] for row in rows}) == 4
    assert len({row["place"] for row in rows[:8]}) == len({row["place"] for row in rows[8:]}) == 1
    assert rows[0]["place"] != rows[8]["place"]
    assert rows[0]["privacy"]["exposes"] == exposes
    manifest = json.loads((lake.public / "_manifest.json").read_text())["manifest"]
    assert manifest["exposes"] == sorted(exposes)
    published = [path.read_bytes() for path in lake.public.rglob("*") if path.is_file()]
    assert not any(b"zqx" in content for content in published)
    assert "zqx" not in str([{**row, "__author": None} for row in lake.draws()])
    lake.update(f"id = '{rows[0]['id']}'", author=table["author"][1].as_py())
    corrected = lake.run(config)
    assert (corrected.records, corrected.kept_changed) == (0, 1)
    after = lake.newest()[rows[0]["id"]]
    assert (after["customer"], after["place"]) == (rows[1]["customer"], rows[0]["place"])
    other = lake.config(release="other", input=columns, output={"path": str(tmp_path / "other"), "format": "delta"})
    lake.run(other)
    drawn = lake.rows(tmp_path / "other" / "draws")
    assert {row["customer"] for row in drawn}.isdisjoint({row["customer"] for row in rows})
    with pytest.raises(ReleaseError, match=r"input\.keep is day, author as pseudonym customer now and was"):
        lake.run(lake.config(input={**columns, "keep": ["day", who]}))


@pytest.mark.long
def test_unchanged_records_compared_by_contents_are_not_redrawn(lake: Lake):
    """Another version of the input with the same contents: rows are compared, none is added. Nothing is corrected where
    no column names authors.
    """
    made = corpus_with_authors(8)
    table = made.to_pylist()
    table += [
        {**table[0], "id": None},
        {**table[0], "id": "empty", "body": None},
        {**table[1], "id": "twice"},
        {**table[2], "id": "twice"},
    ]
    lake.write(pa.Table.from_pylist(table, schema=made.schema))
    report = lake.run()
    assert report.quarantined == {"duplicate_id": 2, "null_id": 1, "null_text": 1}
    draws = lake.draws()
    lake.update(None, note=5, author="new")
    report = lake.run()
    assert (report.changes, report.records, report.corrected) == ("scan", 0, 0)
    assert lake.draws() == draws


@pytest.mark.long
def test_a_catalogue_knows_input_and_public_table_by_name(lake: Lake):
    """By three names for the whole way: a table in, a table out; a name that is another table's is refused."""
    lake.write(corpus(6))
    spark = lake.spark
    spark.sql(f"CREATE TABLE tickets_in USING delta LOCATION '{lake.input}'")
    source = {"path": None, "format": None, "table": "tickets_in"}
    config = lake.config(input=source, output={"public_table": "default.tickets_out"})
    try:
        lake.run(config)
        lake.release(lake.config(input=source))
        publish(config, lambda: spark)  # which writes no row
        public = spark.table("tickets_out")
        assert public.columns == ["id", "day", "text", "privacy"]
        assert public.count() == 6
        lake.delete("id = 'r00001'")
        lake.update("id = 'r00002'", body="zebra apple")
        report = lake.run(config, full_snapshot=True)
        assert (report.changes, report.records, report.withdrawn) == ("scan", 1, 1)
        lake.release(config)
        assert "r00001" not in {row.id for row in spark.table("tickets_out").collect()}
        with pytest.raises(ReleaseError, match="another table with that name"):
            publish(lake.config(input=source, output={"public_table": "tickets_in"}), lambda: spark)
        # A catalogue that refuses leaves nothing to be taken for a publication.
        elsewhere = str(lake.root / "elsewhere")
        with pytest.raises(WordveilError, match="what was published before is unchanged"):
            publish(
                lake.config(input=source, output={"public_table": "nowhere.tickets", "public": elsewhere}),
                lambda: spark,
            )
        assert spark.read.format("delta").load(elsewhere).count() == 0
    finally:
        for name in ("tickets_in", "tickets_out"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")
