"""``release show`` without Java says what it says with Spark, and leaves to Spark what is unusual or wrong."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pyarrow as pa
import pytest

from support.releases import Lake, States
from support.workspaces import corpus, delta_jars
from wordveil.assembly import local_paths, local_state
from wordveil.errors import ReleaseError
from wordveil.release.events import FINISHED, INTENT
from wordveil.spark.platform import delta_table
from wordveil.spark.release import maintenance
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.maintenance import compact, purge
from wordveil.spark.release.run import withdraw


class SparkStartedError(Exception):
    """Java would have been started."""


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no session ran."""
    monkeypatch.setattr(local_paths, "is_plain", lambda _: True)


def refuse() -> Any:
    raise SparkStartedError


def read_state(config: Any) -> dict[str, Any] | None:
    return local_state.read_local_state(config.home, config.spark)


def show(config: Any, session: Any) -> dict[str, Any]:
    """As the command does it."""
    state = read_state(config)
    return maintenance.show(config.home, session) if state is None else state


def assert_as_spark(lake: Lake, config: Any) -> dict[str, Any]:
    """Java is not started for it, and it says the same, in JSON and in the order of its keys."""
    found = show(config, refuse)
    assert json.dumps(found) == json.dumps(maintenance.show(config.home, lambda: lake.spark))
    return found


@pytest.mark.long
@pytest.mark.parametrize("partition_by", [["day"], []])
def test_the_state_is_the_same_until_a_withdrawn_record_is_gone(
    released: States, monkeypatch: pytest.MonkeyPatch, partition_by: list[str]
):
    """From the first run, over a log with a checkpoint."""
    lake = released.restore("written")
    monkeypatch.setitem(delta_table.PROPERTIES, "delta.checkpointInterval", "8")
    config = lake.config(output={"partition_by": partition_by})
    rows = corpus(9).to_pylist()
    rows += [{**rows[0], "id": None}, {**rows[0], "id": "empty", "body": None}]
    lake.write(pa.Table.from_pylist(rows, schema=corpus(9).schema), mode="overwrite")
    lake.run(config, run_id="night-1")
    lake.release(config)
    rows[1]["body"] = "zebra apple"
    del rows[2]
    lake.write(pa.Table.from_pylist(rows, schema=corpus(9).schema), mode="overwrite")
    lake.run(config, full_snapshot=True)
    withdraw(config, lambda: lake.spark, ["r00003", "r00004"])
    assert list((lake.home / "journal" / "_delta_log").glob("*.checkpoint.parquet"))
    found = assert_as_spark(lake, config)
    assert found["records"] == {"quarantined": 1, "released": 6, "withdrawn": 3}
    still = found["withdrawn"]
    assert (still["records"], still["in_draws"], still["in_public_table"], still["gone"]) == (3, 3, 3, False)
    assert purge(config.home, lambda: lake.spark) == 3
    lake.release(config)
    found = assert_as_spark(lake, config)
    assert (found["withdrawn"]["in_draws"], found["withdrawn"]["in_public_table"]) == (0, 0)
    assert all(found["withdrawn"]["files_of_old_versions"].values())
    compact(config.home, lambda: lake.spark, retain_hours=0)
    assert assert_as_spark(lake, config)["withdrawn"]["gone"]


def test_what_is_wrong_is_told_by_spark(released: States, monkeypatch: pytest.MonkeyPatch):
    lake = released.restore("written")
    config = lake.config()
    assert assert_as_spark(lake, config)["runs"] == []
    lake = released.restore("drawn")
    assert read_state(config) is not None
    other = lake.config(release="another")
    assert read_state(other) is None
    with pytest.raises(ReleaseError, match="holds the release support"):
        show(other, lambda: lake.spark)
    with monkeypatch.context() as patch:
        patch.setattr(local_state, "MAX_ROWS", 7)
        assert read_state(config) is None, "so many are counted by Spark"
    with monkeypatch.context() as patch:
        patch.setattr(local_state, "TABLE_VERSION", 9)
        assert read_state(config) is None
    shutil.move(lake.home, lake.root / "moved")
    lake.forget()
    with pytest.raises(SparkStartedError):
        show(config, refuse)  # the ledger may know the release
    shutil.move(lake.root / "moved", lake.home)
    shutil.rmtree(lake.ledger)
    lake.forget()
    assert read_state(config) is None
    with pytest.raises(ReleaseError, match="is gone, though release support has runs"):
        show(config, lambda: lake.spark)


def test_a_run_reads_its_journal_without_spark(released: States, monkeypatch: pytest.MonkeyPatch):
    lake = released.restore("drawn")
    table = delta_table.DeltaTable(lake.spark, str(lake.home / "journal"), "journal")
    with monkeypatch.context() as patch:
        patch.setattr(local_state, "MAX_ROWS", 1)  # too many: Spark reads them
        events = Journal(table, "support").events
    assert [event.event for event in events] == [INTENT, FINISHED]
    monkeypatch.setattr(table, "read", lambda: None)
    assert Journal(table, "support").events == events


@pytest.mark.long
def test_tables_with_deletion_vectors_are_left_to_spark(released: States):
    """No release has them; a table that someone has changed so is read by Delta."""
    lake = released.restore("drawn")
    draws = f"delta.`{lake.home / 'draws'}`"
    first = assert_as_spark(lake, lake.config())
    assert (first["records"], first["published"]) == ({"released": 8}, None)
    lake.spark.sql(f"ALTER TABLE {draws} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    lake.spark.sql(f"DELETE FROM {draws} WHERE id = 'r00001'")
    assert read_state(lake.config()) is None
    assert show(lake.config(), lambda: lake.spark)["records"] == {"released": 7}


def test_options_and_other_places_are_left_to_spark(released: States, monkeypatch: pytest.MonkeyPatch):
    lake = released.restore("drawn")
    monkeypatch.undo()
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    plain = lake.config(spark={"delta_jars": str(delta_jars())})
    assert read_state(plain) is not None
    memory = {"spark.driver.memory": "2g", "spark.local.dir": "/scratch"}
    assert read_state(lake.config(spark={"options": memory})) is not None
    for name in ("spark.hadoop.fs.defaultFS", "spark.driver.extraJavaOptions", "spark.sql.catalog.spark_catalog"):
        changed = {**memory, name: "x"}
        assert read_state(lake.config(spark={"options": changed})) is None
    assert read_state(lake.config(spark={"master": "yarn"})) is None
    assert read_state(lake.config(ledger={"path": "s3a://lake/ledger"})) is None
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert read_state(plain) is None
