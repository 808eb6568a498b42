"""spark-submit to a real standalone cluster gives the rows of local mode, also when an executor is killed on the
way.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster import Cluster, namespace
from sparking import EMBEDDING, Workspace, clean_environment, random_texts, read_output
from wordveil.config.artifacts import build_bundle

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(not namespace(), reason="this machine lets no process have file systems of its own"),
]
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
    hidden = [workspace.root / name for name in ("bundles", "keys", "driver")]
    with Cluster(workspace.root / "cluster", hidden) as running:
        yield running


def config_file(workspace: Workspace, name: str, **spark: object) -> Path:
    """A job of a dozen tasks that writes to ``name``."""
    sections = {
        "key": {"file": str(workspace.root / "keys" / "key")},
        "output": {"path": str(workspace.root / name)},
        "text": {"profile": "strict", "n_max": 64},
    }
    options = {"spark.sql.files.maxPartitionBytes": "65536", "spark.sql.files.openCostInBytes": "65536"}
    settings = workspace.settings(**sections)
    settings["spark"] = {"options": options, **spark}
    path = workspace.root / f"{name}.yaml"
    path.write_text(json.dumps(settings))  # JSON is YAML
    return path


@pytest.fixture(scope="module")
def local_rows(workspace: Workspace) -> list[dict]:
    config = config_file(workspace, "local", master="local[2]")
    command = [sys.executable, "-m", "wordveil", "sanitise", "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    assert done.returncode == 0, done.stderr
    return read_output(workspace.root / "local")


def finish(process: subprocess.Popen[str]) -> dict:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out[-2000:] + err[-4000:]
    return json.loads(out[out.index("{") :])


def test_workers_that_see_only_their_own_scratch_give_the_rows_of_local_mode(
    cluster: Cluster, workspace: Workspace, local_rows: list[dict]
):
    report = finish(
        cluster.submit("--config", config_file(workspace, "remote"), "--json", scratch=workspace.root / "driver")
    )
    assert report["records"] == RECORDS
    assert read_output(workspace.root / "remote") == local_rows
    # The archive reached both workers, each in a place of its own.
    places = (workspace.root / "cluster").glob("worker-*/work/*/*/wordveil-*.tar")
    assert {path.relative_to(workspace.root / "cluster").parts[0] for path in places} == {"worker-1", "worker-2"}
    secret = EMBEDDING.words[0].as_py()
    for log in (workspace.root / "cluster").rglob("stderr"):
        assert secret not in log.read_text(errors="replace")


@pytest.mark.long
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


def test_the_driver_had_a_bundle_that_workers_could_not_read(workspace: Workspace):
    config = workspace.config(
        text={"profile": "strict", "n_max": 64}, key={"file": str(workspace.root / "keys" / "key")}
    )
    assert build_bundle(config).path.is_relative_to(workspace.root / "bundles")
    command = [
        *namespace(),
        "sh",
        "-c",
        f"mount -t tmpfs none '{workspace.root}/bundles' && ls '{workspace.root}/bundles'",
    ]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
