"""A nightly release whose processes are killed, starved of disk, doubled and slowed holds what an undisturbed one
holds.

All of it is long, and ``make chaos`` kills hundreds of processes, executors and workers among them. ``make test`` lets
a run die after each of its commits in test_crashes.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import Cluster, find_namespace
from support.kill_campaign import COMMITS, Story, find_victims, finish
from support.workspaces import clean_environment, delta_jars
from wordveil.config.load import load_config
from wordveil.spark.release.run import run_release

pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.long]
NEEDS_NAMESPACE = pytest.mark.skipif(
    not find_namespace(), reason="this machine lets no process have file systems of its own"
)


@pytest.fixture(scope="module")
def story(spark, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The input, and what an undisturbed release holds."""
    return Story(spark, tmp_path_factory.mktemp("chaos"), records=160, nights=1)


@pytest.fixture(scope="module")
def cluster(story: Story) -> Iterator[Cluster]:
    """Two workers; a second copy of a slow task starts soon, and events are logged."""
    events = story.root / "events"
    events.mkdir()
    options = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.3",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{events}",
    }
    with Cluster(story.root / "cluster", options=options) as running:
        yield running


def local_config(story: Story, name: str, night: str) -> Path:
    """A night on this machine."""
    return story.config(name, night, master="local[2]", delta_jars=str(delta_jars()))


@NEEDS_NAMESPACE
def test_a_second_copy_of_a_slow_task_draws_nothing_twice(story: Story, cluster: Cluster):
    """A Python worker is stopped until Spark has started its task elsewhere."""
    config = story.config("slow", "night-1")
    process = story.submit(cluster, config)
    stopped: list[int] = []
    events = story.root / "events"
    before = set(events.iterdir())
    while process.poll() is None and not has_speculated(events, before):
        found = [pid for pid in find_victims(process, "python-worker", cluster) if pid not in stopped]
        if found and not stopped and is_drawing(story, "slow"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(found[0], signal.SIGSTOP)
                stopped.append(found[0])
        time.sleep(0.02)
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    finish(process, "the slow night")
    assert has_speculated(events, before), "a second attempt ran"
    assert story.differences("slow", "night-1") == []


def is_drawing(story: Story, name: str) -> bool:
    """Whether the draws are being written."""
    return any((story.root / name / "release" / "draws").glob("*.parquet"))


def has_speculated(events: Path, before: set[Path]) -> bool:
    """Whether a second attempt of a task has started."""
    for path in set(events.iterdir()) - before:
        files = path.rglob("events_*") if path.is_dir() else [path]
        for file in files:
            if '"Speculative":true' in file.read_text(errors="replace"):
                return True
    return False


def test_two_processes_when_one_dies_the_other_does_the_rest(story: Story):
    """Killed after one of its commits, while the other waits for it or has done the work already."""
    config = local_config(story, "double", "night-1")
    dying, other = story.start_local(config, dying=COMMITS - 2), story.start_local(config)
    report = json.loads(finish(other, "the other"))
    dying.communicate()
    assert dying.returncode in (-signal.SIGKILL, 0)
    assert report["records"] == 160
    assert story.differences("double", "night-1") == []


@NEEDS_NAMESPACE
def test_run_on_a_full_disk_fails_and_the_next_start_finishes_it(story: Story, spark):
    """The release is on a file system of 200 kB; then it moves to a larger one."""
    config = local_config(story, "full", "night-1")
    home = story.root / "full"
    home.mkdir()
    run = f"{sys.executable} -m wordveil sanitise --config {config} --run-id night-1 --json"
    script = f"mount -t tmpfs -o size=200k none {home} && ! {run} && cp -a {home} {home}-kept"
    environment = {**clean_environment(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*find_namespace(), "sh", "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[0])["error"] == "SparkJobError", done.stdout
    home.rmdir()
    home.with_name("full-kept").rename(home)
    assert story.differences("full", "night-1") != []
    run_release(load_config(config), lambda: spark, run_id="night-1")
    assert story.differences("full", "night-1") == []
