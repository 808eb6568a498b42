"""Where tables are written: relative paths, places that belong to another release, and first runs that failed."""

from __future__ import annotations

import functools
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.releases import EXPONENTIAL, Lake, States
from support.workspaces import corpus
from wordveil.config.load import load_config
from wordveil.errors import ConfigError, SparkJobError
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.platform import delta
from wordveil.spark.platform.delta import require_exclusive_commits
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import describe_cause
from wordveil.spark.sanitise.job import run_sanitise


def relative(lake: Lake) -> dict[str, Any]:
    """The release's settings with relative paths, for a file in ``conf``."""
    return {
        **lake.workspace.settings(),
        "release": "support",
        "input": {"path": "../input", "format": "delta", "id": "id", "text": "body"},
        "mechanism": {**EXPONENTIAL, "embedding": "../embedding", "public": True},
        "bundle_store": "bundles",
        "key": {"file": "../key"},
        "output": {"path": "../release", "format": "delta", "public": "../shown"},
        "ledger": {"path": "ledger"},
    }


@pytest.mark.long
def test_a_release_of_relative_paths_runs_from_anywhere(
    released: States, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    lake = released.restore("written")
    conf, elsewhere = lake.root / "conf", tmp_path_factory.mktemp("elsewhere")
    conf.mkdir()
    file = conf / "release.yaml"
    file.write_text(yaml.safe_dump(relative(lake)))
    monkeypatch.chdir(elsewhere)
    config = load_config(file)
    assert make_plan(config, lambda: lake.spark).output_format == "delta"
    assert lake.run(config).released == 8
    monkeypatch.chdir(lake.root)
    assert lake.run(load_config(Path("conf/release.yaml"))).changes == "none"
    lake.release(load_config(Path("conf/release.yaml")))
    assert {path.name for path in conf.iterdir()} == {"release.yaml", "bundles", "ledger", ".ledger.lock"}
    assert len(lake.rows(lake.root / "shown")) == 8
    assert [*elsewhere.iterdir()] == []


def test_nothing_is_written_into_a_release_or_a_delta_table(released: States):
    lake = released.restore("drawn")
    inside, ledger = f"{lake.home}/sub/table", f"{lake.ledger}/sub"
    home = f"the directory of a release, {lake.home}"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"output": {"path": inside}}, f"output.path = {inside}: is {home}, or inside it"),
        ({"output": {"path": str(lake.home)}}, f"output.path = {lake.home}: is {home}, or inside it"),
        ({"output": {"path": ledger}}, f"output.path = {ledger}: is the Delta table {lake.ledger}, or inside it"),
    ]
    lake.workspace.write_corpus(corpus(3))
    before = sorted(lake.root.rglob("*"))
    for sections, message in cases:
        config = lake.workspace.config(**sections)
        with pytest.raises(ConfigError, match=message):
            make_plan(config, lambda: lake.spark)
        with pytest.raises(ConfigError, match=message):
            run_sanitise(config, lambda: lake.spark, overwrite=True)
    other = {"release": "other", "output": {"path": str(lake.root / "other")}}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"output": {"path": inside}}, f"output.path = {inside}: is {home}"),
        ({"ledger": {"path": inside}}, f"ledger.path = {inside}: is {home}"),
        ({"output": {**other["output"], "public": inside}}, f"output.public = {inside}: is {home}"),
    ]
    for sections, message in wrong:
        with pytest.raises(ConfigError, match=message):
            lake.run(lake.config(**{**other, **sections}))
    assert sorted(lake.root.rglob("*")) == before


def test_a_first_run_that_failed_leaves_nothing_in_the_way(released: States, monkeypatch: pytest.MonkeyPatch):
    """It fails at each table in turn, and the same command then works."""
    lake = released.restore("written")
    create = DeltaTable.create
    for kind in ("ledger", "draws", "journal"):

        def fail(table: DeltaTable, *arguments: Any, kind: str = kind, **more: Any) -> None:
            if table.kind == kind:
                table.spark.sql("SELECT * FROM nowhere.at_all").collect()
            create(table, *arguments, **more)

        monkeypatch.setattr(DeltaTable, "create", fail)
        with pytest.raises(SparkJobError, match="nothing was drawn or charged: TABLE_OR_VIEW_NOT_FOUND"):
            lake.run()
    monkeypatch.setattr(DeltaTable, "create", create)
    assert lake.run().released == 8
    assert {path.name for path in lake.home.glob("[!.]*")} == {"draws", "journal"}


def test_store_without_exclusive_commits_is_refused_by_name(released: States):
    """Unless one process at a time writes, which the user states; or the session has a log store for it."""
    lake = released.restore("written")
    spark = lake.spark
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.pfile.impl", "org.apache.hadoop.fs.ProxyLocalFileSystem")
    places: dict[str, Any] = {"output": {"path": f"pfile://{lake.home}"}, "ledger": {"path": f"pfile://{lake.ledger}"}}
    with pytest.raises(ConfigError) as caught:
        lake.run(lake.config(**places))
    assert [fault.where for fault in caught.value.faults] == ["output.path", "ledger.path"]
    assert "output.writers: one" in str(caught.value)
    assert "spark.delta.logStore.pfile.impl" in str(caught.value)
    assert not lake.home.exists()
    require = functools.partial(require_exclusive_commits, spark, {"ledger.path": f"pfile://{lake.ledger}"})
    require(is_only_writer=True)
    require_exclusive_commits(spark, {"ledger.path": str(lake.ledger)}, is_only_writer=False)
    with pytest.raises(ConfigError, match=r"ledger\.path = none://l: cannot be opened.*set spark\.s3: true"):
        require_exclusive_commits(spark, {"ledger.path": "none://l"}, is_only_writer=False)


@pytest.mark.parametrize(
    ("log_store_class", "problem"),
    [
        ("theirs", None),
        ("io.delta.storage.S3SingleDriverLogStore", "commits are not exclusive"),
        (delta.CLASS, "does not know conditional writes. S3A of Hadoop 3.4.2 or newer does"),
        (
            "io.github.wordveil.Missing",
            "the Spark session has no class io.github.wordveil.Missing. Start it with --jars",
        ),
    ],
)
def test_a_log_store_must_exclude_writers(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_store_class: str, problem: str | None
):
    """One of the user's is trusted, but not the one that excludes nobody; that of this package must be there."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.pfile.impl", "org.apache.hadoop.fs.ProxyLocalFileSystem")
    if log_store_class.endswith("Missing"):
        monkeypatch.setattr(delta, "CLASS", log_store_class)
    # One of the options with which Spark started: Delta asks no others.
    spark.sparkContext._conf.set("spark.delta.logStore.pfile.impl", log_store_class)
    try:
        with nullcontext() if problem is None else pytest.raises(ConfigError, match=re.escape(problem)):
            require_exclusive_commits(spark, {"ledger.path": f"pfile://{tmp_path}/ledger"}, is_only_writer=False)
    finally:
        spark.sparkContext._conf._jconf.remove("spark.delta.logStore.pfile.impl")
    assert [*tmp_path.rglob("*")] == []


def test_an_error_that_spark_finds_before_it_reads_is_told(spark: Any):
    with pytest.raises(Exception, match="SCHEMA_NOT_FOUND") as caught:
        spark.sql("USE SCHEMA nowhere")
    found = describe_cause(caught.value)
    assert found.startswith("SCHEMA_NOT_FOUND. The schema ")
    assert "nowhere` cannot be found." in found
    assert "\n" not in found
