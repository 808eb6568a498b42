"""A publication adds the records that are new, or writes the directories in which a record has changed, and leaves the
other files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructField, TimestampType

from support.releases import Lake
from support.workspaces import Workspace, corpus
from wordveil.config.load import Config
from wordveil.crypto.keys import encode_public_key, load_key
from wordveil.errors import ReleaseError
from wordveil.release.lake_table import LakeTable
from wordveil.release.manifest import Manifest
from wordveil.release.verify import verify_table
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.release import increments
from wordveil.spark.release import publish as publishing
from wordveil.spark.release.increments import describe_directories, find_increment
from wordveil.spark.release.maintenance import purge
from wordveil.spark.release.night import run_night
from wordveil.spark.release.run import withdraw

DAYS = ["2026-11-20", "a=b c%/ü", None, "{x}[y]", "2026-11-21"]


def settings(lake: Lake, **output: Any) -> Config:
    source = {"changes": "feed"}
    return lake.config(input=source, output={"partition_by": ["day"], **output}, gate={"min_records": 1})


def with_days(table: pa.Table, days: list[str | None]) -> pa.Table:
    """The table with these days."""
    return table.set_column(table.schema.get_field_index("day"), "day", pa.array(days, pa.string()))


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Ten records, two of each day, published."""
    made = Lake(spark, Workspace(tmp_path_factory.mktemp("directories")))
    made.write(with_days(corpus(10), DAYS * 2))
    run_night(settings(made), lambda: spark)
    return made


def published(lake: Lake) -> Manifest:
    """The manifest of a table that has what the draws have, and is as it was signed."""
    shown = {row["id"]: (row["day"], row["text"]) for row in lake.rows(lake.public)}
    assert shown == {
        name: (row["day"], row["text"]) for name, row in lake.newest().items() if row["status"] == "released"
    }
    public_key = encode_public_key(load_key(str(lake.root / "key"), None).signing_key("support"))
    return verify_table(LakeTable(str(lake.public)), None, public_key).manifest


def files(manifest: Manifest) -> dict[str | None, set[str]]:
    """The files of each directory."""
    found: dict[str | None, set[str]] = {}
    for file in manifest.snapshot.files:
        found.setdefault(file.partition["day"], set()).add(file.path)
    return found


def test_increment_condition_names_directories_of_drawn_and_old(lake: Lake, monkeypatch: Any):
    public, signed, output = DeltaTable(lake.spark, str(lake.public), "table"), published(lake), settings(lake).output
    rows = public.read()

    def find(*drawn: tuple[str, str | None], published: Any = rows, output: Any = output) -> set[str]:
        of = lake.spark.createDataFrame(
            [(name, day, "released") for name, day in drawn], "id string, day string, status string"
        )
        found = find_increment(of, "id", published, public, signed, output)
        return {"whole"} if found is None else {"added"} if not found else {*found.split(" OR ")}

    assert find() == find(("new", "2026-11-20"), ("newer", "it's")) == {"added"}
    assert find(("r00000", "2026-11-20")) == {"(`day` = CAST('2026-11-20' AS string))"}
    assert find(("r00002", "2026-11-22")) == {"(`day` IS NULL)", "(`day` = CAST('2026-11-22' AS string))"}
    days = [rows.schema["day"]]
    for name in ("it's", "${user}", "", "a\\b", "a\nb"):
        assert describe_directories(days, {(name,)}, signed.snapshot) is None, "SQL or Delta could take it for another"
    assert describe_directories(days, {(day,) for day in DAYS}, signed.snapshot) is None, "no file would stay"
    assert describe_directories([StructField("day", TimestampType())], {("x",)}, signed.snapshot) is None
    assert find(("new", "x"), published=rows.withColumn("stale", rows["id"] == "")) == {"whole"}
    assert find(("new", "x"), output=settings(lake, partition_by=[]).output) == {"whole"}
    for spare, expected in ((-8, "(`day` = CAST('x' AS string))"), (-7, "added")):
        with monkeypatch.context() as patched:
            patched.setattr(increments, "_SPARE_FILES", spare)
            assert find(("new", "x")) == {expected}, "of 5 files, where twice 1 of a task and 5 of days are spared"
    monkeypatch.setattr(increments, "_MOST", 1)
    assert find(("r00000", "2026-11-20")) != {"whole"}
    assert find(("r00002", "2026-11-22")) == {"whole"}
    assert find(("a", "1"), ("b", "2")) == {"added"}
    assert find(("a", "1"), ("b", "2"), ("c", "3")) == {"whole"}, "more places than were looked at"


def test_files_stay_where_no_record_has_changed(lake: Lake):
    first = files(published(lake))
    assert set(first) == set(DAYS)
    lake.update("id = 'r00001'", body="other words stand here")
    lake.update("id = 'r00003'", body="so they do", day="2026-11-22")
    lake.update("id = 'r00009'", day="2026-11-24")
    lake.delete("id IN ('r00002', 'r00007')")
    DeltaTable(lake.spark, str(lake.public), "table").compact(168, rewrite=False)
    assert DeltaTable(lake.spark, str(lake.public), "table").version() > 1, "Delta has noted that old files may go"
    run_night(settings(lake), lambda: lake.spark)
    second = files(published(lake))
    assert {day for day in first if second.get(day) == first[day]} == {"2026-11-20"}
    assert set(second) - set(first) == {"2026-11-22", "2026-11-24"}


@pytest.mark.long
def test_a_table_that_changed_meanwhile_is_written_whole(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    second = files(published(lake))

    def lose_race(*given: Any) -> str | None:
        found = find_increment(*given)
        lake.spark.sql(f"DELETE FROM delta.`{lake.public}` WHERE id = 'r00004'")
        return found

    withdraw(settings(lake), lambda: lake.spark, ["r00000"])
    with monkeypatch.context() as patched, pytest.raises(ReleaseError, match="another program has written to it"):
        patched.setattr(publishing, "find_increment", lose_race)
        lake.release(settings(lake))
    with monkeypatch.context() as patched, pytest.raises(ReleaseError, match="or has other rows than the draws"):
        patched.setattr(publishing, "find_increment", lambda *_: "day = '{x}[y]'")
        lake.release(settings(lake))
    lake.release(settings(lake))
    third = files(published(lake))
    assert not any(third[day] & second[day] for day in third), "the table was written without a signature"


@pytest.mark.long
def test_new_records_are_added_and_no_file_is_written_again(lake: Lake):
    lake.write(with_days(corpus(12).slice(10), ["2026-11-21", "2026-11-23"]))
    before = files(published(lake))
    run_night(settings(lake), lambda: lake.spark)
    after = files(published(lake))
    assert {day: len(after[day] - before.get(day, set())) for day in after} == {
        **dict.fromkeys(before, 0),
        "2026-11-21": 1,
        "2026-11-23": 1,
    }
    assert all(before[day] <= after[day] for day in before)


@pytest.mark.long
def test_large_flat_table_grows_by_files_of_new_records(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(increments, "TASK_ROWS", 10)
    lake = Lake(spark, Workspace(tmp_path))
    lake.write(corpus(20))
    config, public = lake.config(gate={"min_records": 1}), DeltaTable(spark, str(lake.public), "table")

    def night() -> set[str]:
        run_night(config, lambda: spark)
        return {file.path for file in published(lake).snapshot.files}

    first = night()
    lake.write(corpus(23).slice(20))
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(publishing, "sign", lambda *_: 1 // 0)
        night()
    assert public.read().count() == 23
    second = night()
    assert not second & first, "the files were added without a signature"
    lake.write(corpus(25).slice(23))
    third = night()
    (added,) = third - second
    assert second < third
    assert set(pq.read_table(lake.public / added)["id"].to_pylist()) == {"r00023", "r00024"}
    withdraw(config, lambda: spark, ["r00021"])
    fourth = night()
    assert not fourth & third, "a withdrawn record has left no file"
    version = public.version()
    assert purge(config.home, lambda: spark) == 1
    assert (night(), public.version()) == (fourth, version), "nothing was drawn"
