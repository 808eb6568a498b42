"""``release show`` without Java says what it says with Spark, and leaves to Spark what is unusual or wrong."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from releasing import Lake
from sparking import Workspace, corpus, delta_jars
from wordveil.errors import ReleaseError
from wordveil.spark.platform import local_delta
from wordveil.spark.release import local_state, maintenance
from wordveil.spark.release.maintenance import compact, purge, show
from wordveil.spark.release.run import withdraw


class SparkStartedError(Exception):
    """Java would have been started."""


@pytest.fixture
def lake(spark: Any, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A release that has not run; as if no session ran."""
    monkeypatch.setattr(local_delta, "is_plain", lambda _: True)
    return Lake(spark, workspace)


def refuse() -> Any:
    raise SparkStartedError


def show_by_spark(lake: Lake, config: Any) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "read_local_state", lambda _: None)
        return show(config, lambda: lake.spark)


def assert_as_spark(lake: Lake, config: Any) -> dict[str, Any]:
    """Java is not started for it, and it says the same, in JSON and in the order of its keys."""
    found = show(config, refuse)
    assert json.dumps(found) == json.dumps(show_by_spark(lake, config))
    return found


@pytest.mark.parametrize("partition_by", [[], ["day"]])
def test_the_state_is_the_same_without_spark(lake: Lake, partition_by: list[str]):
    """From the first run until a withdrawn record is gone, over a log with a checkpoint."""
    config = lake.config(output={"partition_by": partition_by}, input={"changes": "feed"})
    table = corpus(9).to_pylist()
    table += [{**table[0], "id": None}, {**table[0], "id": "empty", "body": None}]
    lake.write(corpus(9).schema.empty_table().from_pylist(table, schema=corpus(9).schema))
    lake.run(config, run_id="night-1")
    first = assert_as_spark(lake, config)
    assert (first["records"], first["published"]) == ({"quarantined": 1, "released": 9}, None)
    lake.release(config)
    lake.sql("UPDATE {input} SET body = 'zebra apple' WHERE id = 'r00001'")
    lake.sql("DELETE FROM {input} WHERE id = 'r00002'")
    lake.run(config)
    withdraw(config, lambda: lake.spark, ["r00003", "r00004"])
    found = assert_as_spark(lake, config)
    still = found["withdrawn"]
    assert (still["records"], still["in_draws"], still["in_public_table"], still["gone"]) == (3, 3, 3, False)
    purge(config, lambda: lake.spark)
    lake.release(config)
    found = assert_as_spark(lake, config)
    assert (found["withdrawn"]["in_draws"], found["withdrawn"]["in_public_table"]) == (0, 0)
    assert all(found["withdrawn"]["files_of_old_versions"].values())
    compact(config, lambda: lake.spark, retain_hours=0)
    assert assert_as_spark(lake, config)["withdrawn"]["gone"]
    lake.release(config)
    assert list((lake.home / "journal" / "_delta_log").glob("*.checkpoint.parquet"))
    assert_as_spark(lake, config)


def test_what_is_wrong_is_told_by_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    config = lake.config()
    assert assert_as_spark(lake, config)["runs"] == []
    lake.write(corpus(3))
    lake.run(config)
    assert local_state.read_local_state(config) is not None
    other = lake.config(release="another")
    assert local_state.read_local_state(other) is None
    with pytest.raises(ReleaseError, match="holds the release support"):
        show(other, lambda: lake.spark)
    with monkeypatch.context() as patch:
        patch.setattr(local_state, "MAX_ROWS", 2)
        assert local_state.read_local_state(config) is None, "so many are counted by Spark"
    with monkeypatch.context() as patch:
        patch.setattr(local_state, "TABLE_VERSION", 9)
        assert local_state.read_local_state(config) is None
    shutil.move(lake.home, lake.root / "moved")
    lake.forget()
    with pytest.raises(SparkStartedError):
        show(config, refuse)  # the ledger may know the release
    shutil.move(lake.root / "moved", lake.home)
    shutil.rmtree(lake.ledger)
    lake.forget()
    assert local_state.read_local_state(config) is None
    with pytest.raises(ReleaseError, match="is gone, though release support has runs"):
        show(config, lambda: lake.spark)


def test_tables_with_deletion_vectors_are_left_to_spark(lake: Lake):
    """No release has them; a table that someone has changed so is read by Delta."""
    lake.write(corpus(4))
    lake.run()
    draws = f"delta.`{lake.home / 'draws'}`"
    lake.spark.sql(f"ALTER TABLE {draws} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    assert_as_spark(lake, lake.config())
    lake.spark.sql(f"DELETE FROM {draws} WHERE id = 'r00001'")
    assert local_state.read_local_state(lake.config()) is None
    assert show(lake.config(), lambda: lake.spark)["records"] == {"released": 3}


def test_options_and_other_places_are_left_to_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    lake.write(corpus(3))
    lake.run()
    monkeypatch.undo()
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    plain = lake.config(spark={"delta_jars": str(delta_jars())})
    assert local_state.read_local_state(plain) is not None
    memory = {"spark.driver.memory": "2g", "spark.local.dir": "/scratch"}
    assert local_state.read_local_state(lake.config(spark={"options": memory})) is not None
    for name in ("spark.hadoop.fs.defaultFS", "spark.driver.extraJavaOptions", "spark.sql.catalog.spark_catalog"):
        changed = {**memory, name: "x"}
        assert local_state.read_local_state(lake.config(spark={"options": changed})) is None
    assert local_state.read_local_state(lake.config(spark={"master": "yarn"})) is None
    assert local_state.read_local_state(lake.config(ledger={"path": "s3a://lake/ledger"})) is None
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert local_state.read_local_state(plain) is None
