"""spark-submit to a real standalone cluster gives the rows of local mode, also when an executor is killed on the
way.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cluster import Cluster, find_namespace
from support.workspaces import SMALL, Workspace, random_texts, read_output
from wordveil.assembly.bundles import build_bundle
from wordveil.config.load import load_config
from wordveil.spark.sanitise.job import run_sanitise

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.long]
RECORDS = 3000


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace(tmp_path_factory.mktemp("cluster"))
    table = pa.table(
        {"id": [f"r{i}" for i in range(RECORDS)], "body": random_texts(RECORDS, 3), "day": ["d"] * RECORDS}
    )
    path = made.root / "corpus"
    path.mkdir()
    for number in range(12):
        pq.write_table(table.slice(number * 250, 250), path / f"part-{number:02d}.parquet")
    for name in ("bundles", "keys", "driver"):
        (made.root / name).mkdir()
    (made.root / "key").rename(made.root / "keys" / "key")
    return made


@pytest.fixture(scope="module")
def cluster(workspace: Workspace) -> Iterator[Cluster]:
    """Its workers lack what only the driver may see, where this machine lets processes have file systems of their
    own.
    """
    hidden = [workspace.root / name for name in ("bundles", "keys", "driver")]
    with Cluster(workspace.root / "cluster", hidden if find_namespace() else []) as running:
        yield running


def config_file(workspace: Workspace, name: str) -> Path:
    """A job of a dozen tasks that writes to ``name``."""
    sections = {
        "key": {"file": str(workspace.root / "keys" / "key")},
        "output": {"path": str(workspace.root / name)},
        "text": {"profile": "strict", "n_max": 64},
    }
    many_tasks = {"spark.sql.files.maxPartitionBytes": "65536", "spark.sql.files.openCostInBytes": "65536"}
    settings = workspace.settings(**sections)
    settings["spark"] = {"options": {**SMALL, **many_tasks}}
    path = workspace.root / f"{name}.yaml"
    path.write_text(json.dumps(settings))  # JSON is YAML
    return path


@pytest.fixture(scope="module")
def local_rows(spark: Any, workspace: Workspace) -> list[dict]:
    run_sanitise(load_config(config_file(workspace, "local")), lambda: spark)
    return read_output(workspace.root / "local")


def finish(process: subprocess.Popen[str]) -> dict:
    """The report, which is all that spark-submit leaves on standard output."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out[-2000:] + err[-4000:]
    return json.loads(out)


def test_workers_with_own_scratch_alone_give_local_mode_rows(
    cluster: Cluster, workspace: Workspace, local_rows: list[dict]
):
    process = cluster.submit("--config", config_file(workspace, "remote"), "--json", scratch=workspace.root / "driver")
    assert finish(process)["records"] == RECORDS
    assert read_output(workspace.root / "remote") == local_rows
    assert all(list(workspace.root.glob(f"cluster/{name}/work/app-*")) for name in cluster.workers), "both took part"


def test_a_killed_executor_loses_and_repeats_nothing(cluster: Cluster, workspace: Workspace, local_rows: list[dict]):
    process = cluster.submit("--config", config_file(workspace, "killed"), "--json", scratch=workspace.root / "driver")
    killed: list[int] = []

    def kill_while_it_writes() -> None:
        """As soon as the first task has written something."""
        while process.poll() is None and not list(workspace.root.glob(".killed.wordveil-*/**/part-*")):
            time.sleep(0.02)
        killed.append(cluster.kill_an_executor())

    killer = threading.Thread(target=kill_while_it_writes)
    killer.start()
    report = finish(process)
    killer.join()
    assert len(killed) == 1
    assert report["records"] == RECORDS
    assert read_output(workspace.root / "killed") == local_rows
    left = [path.name for path in workspace.root.iterdir() if "killed" in path.name]
    assert sorted(left) == ["killed", "killed.yaml"]


@pytest.mark.skipif(not find_namespace(), reason="this machine lets no process have file systems of its own")
def test_the_driver_had_a_bundle_that_workers_could_not_read(workspace: Workspace):
    bundles = workspace.root / "bundles"
    assert build_bundle(load_config(config_file(workspace, "built"))).path.is_relative_to(bundles)
    command = [*find_namespace(), "sh", "-c", f"mount -t tmpfs none '{bundles}' && ls '{bundles}'"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
