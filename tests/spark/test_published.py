"""What readers of a published table see is what was signed: each way to change it in Delta's log is found by Spark and
without it, though no signed file changes. An independent reader of Delta finds the same rows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.releases import Lake, States
from support.workspaces import Workspace, corpus, options_set
from wordveil.config.load import Config
from wordveil.crypto.keys import encode_public_key, load_key
from wordveil.errors import ReleaseError
from wordveil.release.lake_table import LakeTable
from wordveil.release.layout import VERSION_PROPERTY
from wordveil.release.verify import Verified, verify_table
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.release import publish as publishing
from wordveil.spark.release.maintenance import compact
from wordveil.spark.release.publish import publish
from wordveil.spark.release.run import withdraw
from wordveil.spark.release.verify import SparkTable, verify_by_spark

SIGNED = 1
"""The version of the public table after its first publication: version 0 has no rows."""
DEFAULTS = {
    f"spark.databricks.delta.properties.defaults.{name}": value
    for name, value in {"enableChangeDataFeed": "true", "columnMapping.mode": "name", "checkpointInterval": "7"}.items()
}
"""Whoever verifies would refuse a table that has them."""


def settings(lake: Lake) -> Config:
    """Days are partitions; two of their names have characters that paths escape."""
    return lake.config(output={"partition_by": ["day"]}, gate={"min_records": 1})


@pytest.fixture(scope="module")
def states(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> States:
    """Six records of three days, published in a session with defaults for new tables."""
    lake = Lake(spark, Workspace(tmp_path_factory.mktemp("published")))
    table = corpus(6)
    days = pa.array(["2026-11-20", "a=b c%/ü", "{x}[y]"] * 2)
    lake.write(table.set_column(table.schema.get_field_index("day"), "day", days))
    made = States(lake)
    lake.run(settings(lake), run_id="night-1")
    with options_set(spark, DEFAULTS):
        lake.release(settings(lake))
        assert {name: spark.conf.get(name) for name in DEFAULTS} == DEFAULTS
    made.keep("published")
    return made


@pytest.fixture
def lake(states: States) -> Lake:
    return states.restore("published")


def pinned(lake: Lake) -> str:
    return encode_public_key(load_key(str(lake.root / "key"), None).signing_key("support"))


def verify_by_deltalake(lake: Lake, at_least: int = 0) -> Verified:
    return verify_table(LakeTable(str(lake.public)), None, pinned(lake), at_least)


def verify_on_spark(lake: Lake, at_least: int = 0) -> Verified:
    lake.forget()
    return verify_by_spark(lake.spark, str(lake.public), None, pinned(lake), at_least)


def verify(lake: Lake, at_least: int = 0) -> Verified:
    """By both readers, which see the same."""
    found = verify_by_deltalake(lake, at_least)
    assert verify_on_spark(lake, at_least) == found
    version = found.manifest.public_version
    described = LakeTable(str(lake.public)).describe(version)
    assert SparkTable(DeltaTable(lake.spark, str(lake.public), "table")).describe(version) == described
    return found


def refuse(lake: Lake, at_least: int = 0) -> str:
    """By both readers, in the same words, but for the rows: Spark counts them by the log's statistics."""
    said = []
    for reader in (verify_by_deltalake, verify_on_spark):
        with pytest.raises(ReleaseError) as caught:
            reader(lake, at_least)
        said.append(str(caught.value))
    assert said[0].partition(" records:")[0] == said[1].partition(" records:")[0]
    return said[0]


Actions = list[dict[str, Any]]


def log(lake: Lake, version: int) -> Path:
    return lake.public / "_delta_log" / f"{version:020d}.json"


def commit(lake: Lake, version: int, *actions: dict[str, Any]) -> None:
    """Write a commit, and nothing that sums up the log."""
    for summary in log(lake, version).parent.glob("*.crc"):
        summary.unlink()
    log(lake, version).write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def edit(lake: Lake, change: Callable[[Actions], None], version: int = SIGNED) -> None:
    """Change the actions of a commit."""
    actions = [json.loads(line) for line in log(lake, version).read_text().splitlines()]
    change(actions)
    commit(lake, version, *actions)


def adds(actions: Actions) -> list[dict[str, Any]]:
    return [action["add"] for action in actions if "add" in action]


def read_independently(lake: Lake, version: int) -> list[dict[str, Any]]:
    """The rows by another implementation of Delta."""
    rows: list[dict[str, Any]] = deltalake.DeltaTable(lake.public, version=version).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def poison(lake: Lake) -> dict[str, Any]:
    """Put a file of more rows beside the table's own; the action that adds it."""
    name = next(lake.public.glob("day=2026-11-20/*.parquet"))
    extra = name.with_name("part-poison.parquet")
    pq.write_table(pq.ParquetFile(name).read(), extra)
    path = str(extra.relative_to(lake.public))
    return {
        "add": {
            "path": path,
            "partitionValues": {"day": "2026-11-20"},
            "size": extra.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
        }
    }


def test_another_reader_of_delta_finds_the_signed_rows(lake: Lake):
    found = verify(lake)
    snapshot = found.manifest.snapshot
    rows = read_independently(lake, found.manifest.public_version)
    assert [row["day"] for row in rows] == ["2026-11-20", "a=b c%/ü", "{x}[y]"] * 2
    assert (snapshot.records, len(rows), found.manifest.public_version) == (6, 6, SIGNED)
    assert "gate" not in found.manifest.exposes, "its rules are public"
    assert rows == sorted(lake.rows(lake.public), key=lambda row: str(row["id"]))
    table = deltalake.DeltaTable(lake.public, version=SIGNED)
    assert [field["name"] for field in snapshot.schema["fields"]] == [field.name for field in table.schema().fields]
    assert (snapshot.partition_by, snapshot.protocol["minReaderVersion"]) == (("day",), 1)
    assert snapshot.metadata["configuration"] == table.metadata().configuration


def test_the_manifest_names_the_input_by_its_id(lake: Lake):
    text = (lake.public / "_manifest.json").read_text()
    assert str(lake.root) not in text
    assert verify(lake).manifest.input == DeltaTable(lake.spark, str(lake.input), "input").identifier()


def permute_partitions(actions: Actions) -> None:
    one, two, three = adds(actions)
    values = one["partitionValues"], two["partitionValues"], three["partitionValues"]
    three["partitionValues"], one["partitionValues"], two["partitionValues"] = values


def name_a_file_twice(actions: Actions) -> None:
    """By another spelling of its path, so that readers have its rows twice."""
    found = adds(actions)[0]
    actions.append({"add": {**found, "path": found["path"].replace("part-", "part%2D")}})


@pytest.mark.parametrize(
    ("change", "words"),
    [(permute_partitions, "Files with other partition values: "), (name_a_file_twice, "by another path than before")],
)
def test_a_log_that_says_something_else_about_the_files_is_found(lake: Lake, change: Any, words: str):
    """By both readers alike; tests/unit/release/test_published_log.py has all that there is."""
    edit(lake, change)
    assert words in refuse(lake)


def test_file_present_in_the_signed_version_alone_is_found(lake: Lake):
    added = poison(lake)
    edit(lake, lambda actions: actions.append(added))
    removed = {"path": added["add"]["path"], "dataChange": True, "deletionTimestamp": 0, "extendedFileMetadata": False}
    commit(lake, SIGNED + 1, {"remove": removed})
    assert len(read_independently(lake, SIGNED)) == 8
    assert len(read_independently(lake, SIGNED + 1)) == 6
    assert "Files not in the manifest: day=2026-11-20/part-poison.parquet. records: 6 was signed" in refuse(lake)


@pytest.mark.long
def test_a_deletion_vector_is_refused(lake: Lake):
    place = f"delta.`{lake.public}`"
    lake.spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    # Delta rewrites a file of which every row goes, or of which there are few: a vector is kept for one row of two.
    lake.spark.sql(f"DELETE FROM {place} WHERE id = 'r00001'")
    newest = max(lake.public.glob("_delta_log/[0-9]*.json"))
    assert "deletionVector" in newest.read_text()
    assert "gives the table the property delta.enableDeletionVectors, which wordveil does not set" in refuse(lake)


def test_public_table_has_no_properties_of_session_defaults(lake: Lake):
    properties = verify_by_deltalake(lake).manifest.snapshot.metadata["configuration"]
    names = {"delta.checkpointInterval", "delta.dataSkippingStatsColumns", "delta.enableDeletionVectors"}
    assert properties.keys() == names | {VERSION_PROPERTY}


def test_an_older_table_that_is_put_back_is_refused(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The number of publications tells it, and rises also where the journal does not know it, as after a reset."""
    shutil.copytree(lake.public, tmp_path / "older")
    monkeypatch.setattr(publishing, "PUBLISHED", "told to nobody")
    publish(settings(lake), lambda: lake.spark)
    assert verify(lake, at_least=2).manifest.publication == 2
    shutil.rmtree(lake.public)
    shutil.copytree(tmp_path / "older", lake.public)
    assert "publication = 1: is older than 2, which you have seen" in refuse(lake, at_least=2)


def write_checkpoint(lake: Lake) -> Path:
    """Let Spark sum up the log in a file."""
    lake.forget()
    DeltaTable(lake.spark, str(lake.public), "table").snapshot().deltaLog().checkpoint()
    return max(lake.public.glob("_delta_log/*.checkpoint*.parquet"))


def edit_checkpoint(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions ``add`` of a checkpoint."""
    table = pq.read_table(file)
    rows = table["add"].to_pylist()
    for row in filter(None, rows):
        change(row)
    place = table.schema.get_field_index("add")
    changed = table.set_column(place, table.schema.field(place), pa.array(rows, table.schema.field(place).type))
    pq.write_table(changed, file, store_schema=False)
    (file.parent / "_last_checkpoint").unlink()  # which has its size
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum


def test_a_checkpoint_keeps_the_text_of_the_statistics(lake: Lake):
    """The publication is read from it alone."""
    before = verify(lake).manifest
    made = write_checkpoint(lake)
    version = before.public_version
    assert made.name == f"{version:020d}.checkpoint.parquet"
    for number in range(version):
        log(lake, number).unlink()
    assert verify(lake).manifest == before
    assert all(file.statistics for file in before.snapshot.files)
    edit_checkpoint(made, lambda add: add.update(stats=add["stats"].replace(":", ": "), stats_parsed=None))
    assert "Files with other statistics: " in refuse(lake)


@pytest.mark.parametrize("name", ["checkpoint", "summary"])
def test_what_no_manifest_covers_is_refused(lake: Lake, name: str):
    """By both readers alike; tests/unit/release/test_published_log.py has all that there is."""
    if name == "checkpoint":
        made = write_checkpoint(lake)
        shutil.copy(made, made.with_name(f"{SIGNED + 1:020d}.checkpoint.parquet"))
        words = "stands without the commit of its version"
    else:  # Spark takes schema and protocol from it
        summary = log(lake, SIGNED).with_suffix(".crc")
        summary.with_name(f".{summary.name}.crc").unlink(missing_ok=True)
        summary.write_text(summary.read_text().replace('"minWriterVersion":2', '"minWriterVersion":5'))
        words = "crc: contradicts the log, so that two readers would see two tables"
    assert words in refuse(lake)
    with pytest.raises(ReleaseError, match=words):
        publish(settings(lake), lambda: lake.spark)


@pytest.mark.long
def test_a_table_that_was_restored_verifies(lake: Lake):
    """After what VACUUM and RESTORE write, by intervals with a checkpoint."""
    place = f"delta.`{lake.public}`"
    lake.spark.sql(f"DELETE FROM {place} WHERE id = 'r00001'")
    assert f"version {SIGNED + 1} is another" in refuse(lake)
    lake.spark.sql(f"RESTORE TABLE {place} TO VERSION AS OF {SIGNED}")
    lake.spark.sql(f"VACUUM {place} RETAIN 720 HOURS")
    write_checkpoint(lake)
    assert verify(lake).manifest.public_version == SIGNED


@pytest.mark.long
def test_old_files_that_are_deleted_change_nothing(states: States):
    lake = states.restore("published")
    withdraw(settings(lake), lambda: lake.spark, ["r00001"], run_id="erasure-1")
    lake.release(settings(lake))
    before = verify(lake).manifest
    compact(settings(lake).home, lambda: lake.spark, retain_hours=0)
    assert verify(lake).manifest == before


def test_rows_that_someone_wrote_are_not_signed(lake: Lake):
    """Not by a publication of a version that was not published before. Files that no version names, as a publication
    that was killed leaves them, are refused, and deleted by the next one.
    """
    left = next(lake.public.glob("day=2026-11-20/*.parquet"))
    extra = Path(shutil.copy(left, left.with_name("part-00007-884f14ab.c000.snappy.parquet")))
    assert f"day=2026-11-20/{extra.name} is a file that neither table nor log names" in refuse(lake)
    commit(lake, SIGNED + 1, poison(lake))
    lake.forget()
    with pytest.raises(ReleaseError, match="A changed table is not signed again"):
        publish(settings(lake), lambda: lake.spark)
    withdraw(settings(lake), lambda: lake.spark, ["r00001"], run_id="erasure-1")
    lake.release(settings(lake))
    found = verify(lake).manifest
    assert (extra.exists(), found.publication) == (False, 2)
    assert [row["id"] for row in read_independently(lake, found.public_version)] == [
        f"r{number:05}" for number in range(6) if number != 1
    ]
