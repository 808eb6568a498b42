"""Paths on this machine's disk: which jobs are small, and where no table may be created."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.workspaces import Workspace, corpus
from wordveil.assembly import local_paths
from wordveil.assembly.local_paths import is_small, require_free_paths
from wordveil.errors import ConfigError


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch):
    # A session of another test may run in this process.
    monkeypatch.setattr(local_paths, "is_spark_configured", lambda: False)


def test_a_job_is_small_up_to_a_number_of_bytes_and_files(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    config = workspace.config()
    workspace.write_corpus(corpus(3))
    sizes = [file.stat().st_size for file in Path(config.input.path or "").rglob("*") if file.is_file()]
    limits = {"SMALL_BYTES": sum(sizes), "SMALL_FILES": len(sizes)}
    for name, value in limits.items():
        monkeypatch.setattr(local_paths, name, value)
    assert is_small(config)
    for name, value in limits.items():
        with monkeypatch.context() as patch:
            patch.setattr(local_paths, name, value - 1)
            assert not is_small(config), name


def test_the_tables_of_a_release_count(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    ledger = {"path": str(workspace.root / "ledger")}
    config = workspace.config(input={"format": "delta"}, output={"format": "delta"}, ledger=ledger)
    workspace.write_corpus(corpus(1))
    assert is_small(config)
    monkeypatch.setattr(local_paths, "SMALL_BYTES", 10_000)
    for place in (config.output.path, config.ledger.path if config.ledger else ""):
        file = Path(place) / "draws" / "part.parquet"
        file.parent.mkdir(parents=True)
        file.write_bytes(bytes(10_000))
        assert not is_small(config)
        file.unlink()


def test_what_may_be_elsewhere_is_not_small(workspace: Workspace):
    workspace.write_corpus(corpus(1))
    for sections in (
        {"input": {"path": "s3a://bucket/table"}},
        {"input": {"path": None, "table": "lake.tickets"}},
        {"spark": {"master": "yarn"}},
        {"spark": {"options": {"spark.hadoop.fs.defaultFS": "hdfs://name"}}},
    ):
        assert not is_small(workspace.config(**sections)), sections


def test_a_release_above_a_table_is_found_however_written(workspace: Workspace):
    root = workspace.root
    for table in ("journal", "draws"):
        (root / "release" / table / "_delta_log").mkdir(parents=True)
    (root / "link").symlink_to(root / "release" / "sub")
    for place in (f"{root}/link", f"{root}/none/../release/sub", f"file://{root}/release/sub"):
        with pytest.raises(ConfigError, match=rf"is the directory of a release, {root}/release, or inside it"):
            require_free_paths(workspace.config(output={"path": f"{place}/out"}).output, None)
    require_free_paths(workspace.config(output={"path": f"{root}/link/../../free"}).output, None)
