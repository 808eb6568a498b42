"""Kill jobs at random moments, start them again, and compare with an undisturbed release: ``make chaos``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from support import object_store
from support.cluster import Cluster
from support.processes import descendants, python_workers
from support.releases import DiedError, Lake
from support.repository import ROOT
from support.workspaces import SMALL, Workspace, clean_environment, corpus, delta_jars, write_delta
from wordveil.config.load import load_config
from wordveil.release.events import VACUUMED
from wordveil.spark.platform import delta_table
from wordveil.spark.release.night import Night
from wordveil.spark.release.run import run_release
from wordveil.spark.release.stream import run_stream

NIGHTS = ("night-1", "night-2", "night-3")
"""The second has new, edited and deleted records; in the third kept columns change."""
LOCAL_KINDS = ("commit", "driver", "jvm", "python-worker")
CLUSTER_KINDS = ("executor", "worker", "python-worker", "driver")
COMMITS = 5
"""Of a night once the tables are there: intent, reserve, draws, settle, finished."""
BATCH_COMMITS = 9
"""Of a batch: land, those of a night, gate, public table, published."""
_PATIENCE = 300


class Story:
    """An input, the nights that read a version of it each, and what an undisturbed release of them holds."""

    def __init__(
        self, spark: Any, root: Path, records: int = 400, nights: int = len(NIGHTS), endpoint: str | None = None
    ) -> None:
        """``endpoint``: the S3 server that release and ledger are on."""
        self._spark = spark
        self._endpoint = endpoint
        self._home = "s3a://lake/kills" if endpoint else str(root)
        self.workspace = Workspace(root)
        self.root = root
        self.input = root / "input"
        table = corpus(records)
        for part in range(4):
            write_delta(table.slice(part * records // 4, records // 4), self.input, feed=True)
        self.versions = [3, 6, 11]
        self._undisturbed: dict[str, dict[str, list[str]]] = {}
        jars = {"s3": True} if endpoint else {"delta_jars": str(delta_jars())}
        self.local = {"master": "local[2]", **jars}
        """The section ``spark`` of a night on this machine."""
        if nights == 1:
            return
        source = f"delta.`{self.input}`"
        spark.sql(f"UPDATE {source} SET body = 'edited text' WHERE note % 7 = 0")
        write_delta(corpus(records + 40).slice(records, 40), self.input)
        spark.sql(f"DELETE FROM {source} WHERE note % 11 = 0")
        spark.sql(f"UPDATE {source} SET day = 'moved' WHERE note % 5 = 0")
        spark.sql(f"UPDATE {source} SET day = 'moved again', body = 'words' WHERE note % 13 = 0")
        for day in ("there and back", "d"):
            spark.sql(f"UPDATE {source} SET day = '{day}' || note % 3 WHERE note % 17 = 0")
        spark.sql(f"UPDATE {source} SET day = 'moved twice' WHERE note % 10 = 0")

    def reference(self, night: str) -> dict[str, list[str]]:
        """What an undisturbed release holds after a night."""
        for earlier in NIGHTS[: NIGHTS.index(night) + 1]:
            if earlier not in self._undisturbed:
                run_release(load_config(self.config("reference", earlier)), lambda: self._spark, run_id=earlier)
                self._undisturbed[earlier] = self.state("reference")
        return self._undisturbed[night]

    def config(self, name: str, night: str, **spark: Any) -> Path:
        """The configuration of one night of the release at ``name``."""
        settings = self.workspace.settings(
            release="support",
            input={
                "path": str(self.input),
                "format": "delta",
                "version": self.versions[NIGHTS.index(night)],
                "changes": "feed",
            },
            mechanism={"name": "exponential", "epsilon": 6.0, "gamma": 4.0},
            output={"path": f"{self._home}/{name}/release", "format": "delta"},
            ledger={"path": f"{self._home}/{name}/ledger"},
        )
        options = {"spark.sql.files.maxPartitionBytes": "1000000", "spark.sql.files.openCostInBytes": "1000000"}
        if self._endpoint:
            options |= object_store.session_options(self._endpoint)
        settings["spark"] = {"options": {**SMALL, **options}, **spark}
        path = self.root / f"{name}-{night}.yaml"
        path.write_text(yaml.safe_dump(settings))
        return path

    def start_local(self, config: Path, dying: int | None = None) -> subprocess.Popen[str]:
        """One night on this machine; killed after its commit number ``dying`` if that is given."""
        how = (
            ["-m", "wordveil"] if dying is None else [str(ROOT / "tests" / "support" / "killed_command.py"), str(dying)]
        )
        night = "-".join(config.stem.rsplit("-", 2)[-2:])
        command = [sys.executable, *how, "sanitise", "--config", str(config), "--run-id", night, "--json"]
        environment = {**clean_environment(), "PYTHONPATH": f"{ROOT / 'lib'}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
        if self._endpoint:
            environment |= object_store.environment(self._endpoint)
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )

    def submit(self, cluster: Cluster, config: Path) -> subprocess.Popen[str]:
        jars = ",".join(str(jar) for jar in sorted(delta_jars().glob("*.jar")))
        night = "-".join(config.stem.rsplit("-", 2)[-2:])
        command = [*cluster.spark_submit, "--master", cluster.master, "--jars", jars]
        environment = {**cluster.environment, "PYTHONPATH": f"{ROOT / 'lib'}:{ROOT / 'tests'}"}
        return subprocess.Popen(
            [*command, str(ROOT / "jobs" / "sanitise.py"), "--config", str(config), "--run-id", night, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def state(self, name: str) -> dict[str, list[str]]:
        """All rows of draws and ledger, but for the identifiers of tables, which differ from release to release."""
        rows_of = {}
        for table in ("release/draws", "ledger"):
            rows = self._spark.read.format("delta").load(f"{self._home}/{name}/{table}").drop("tables").collect()
            rows_of[table] = sorted(str(row.asDict(recursive=True)) for row in rows)
        return rows_of

    def differences(self, name: str, night: str) -> list[str]:
        """List what the release at ``name`` lacks or has beyond the undisturbed one after a night."""
        told = []
        undisturbed = self.reference(night)
        for table, rows in self.state(name).items():
            mine, theirs = Counter(rows), Counter(undisturbed[table])
            for sign, difference in (("too many", mine - theirs), ("missing", theirs - mine)):
                if difference:
                    told.append(
                        f"{table}: {sum(difference.values())} rows {sign}, {next(iter(difference))[:300]} for one"
                    )
        return told


def finish(process: subprocess.Popen[str], what: str) -> str:
    out, err = process.communicate(timeout=_PATIENCE)
    if process.returncode != 0:
        raise AssertionError(f"{what} ended with {process.returncode}: {out[-1000:]} {err[-3000:]}")
    return out


def find_victims(process: subprocess.Popen[str], kind: str, cluster: Cluster | None) -> list[int]:
    """Processes of a kind that can be killed now."""
    if kind == "driver":
        return [process.pid]
    if kind == "executor":
        assert cluster is not None
        return cluster.executors()
    roots = [process.pid, *(cluster.pids() if cluster else [])]
    if kind == "jvm":
        return [below.pid for root in roots for below, command in descendants(root) if "SparkSubmit" in command]
    return [worker.pid for root in roots for worker in python_workers(root)]


class Campaign:
    """Kills of one release after another, each night compared at its end."""

    def __init__(self, story: Story, seed: int, starts: int = 3) -> None:
        """A night is killed in up to ``starts`` starts, each of which continues where the last one ended."""
        self._story = story
        self._starts = starts
        self._seed = seed
        self._random = random.Random(seed)  # noqa: S311 - moments, not keys
        self.kills: Counter[str] = Counter()
        self.restarts = 0
        self._releases = 0

    def release(self, kinds: tuple[str, ...], cluster: Cluster | None = None, nights: tuple[str, ...] = NIGHTS) -> None:
        """One release, whose every night is disturbed by one of ``kinds``, then started once more and compared."""
        self._releases += 1
        name = f"release-{self._seed}-{self._releases}"
        for night in nights:
            kind = self._random.choice(kinds)
            config = self._story.config(name, night, **({} if cluster else self._story.local))
            for _ in range(self._random.randrange(1, self._starts + 1)):
                process = self._start(config, kind, cluster)
                self._disturb(process, kind, cluster)
                _, err = process.communicate(timeout=_PATIENCE)
                if process.returncode == 0:
                    break
                self.kills[kind] += kind == "commit" and process.returncode == -signal.SIGKILL
                self.restarts += 1
            else:
                again = self._story.submit(cluster, config) if cluster else self._story.start_local(config)
                finish(again, f"{name} {night} after {kind} ({err[-500:]})")
            if differences := self._story.differences(name, night):
                raise AssertionError(f"{name} {night} after {kind}: {'; '.join(differences)}")

    def _start(self, config: Path, kind: str, cluster: Cluster | None) -> subprocess.Popen[str]:
        if cluster:
            return self._story.submit(cluster, config)
        if kind == "commit":
            return self._story.start_local(config, dying=self._random.randrange(1, COMMITS + 1))
        return self._story.start_local(config)

    def _disturb(self, process: subprocess.Popen[str], kind: str, cluster: Cluster | None) -> None:
        """Kill once; on a cluster, which continues, several times."""
        if kind == "commit":
            return
        left = self._random.randrange(6, 16) if cluster and kind != "driver" else 1
        moment = time.monotonic() + self._random.uniform(2, 20)
        while process.poll() is None and left:
            if time.monotonic() >= moment and self._kill(process, kind, cluster):
                self.kills[kind] += 1
                left -= 1
                moment = time.monotonic() + self._random.uniform(1, 4)
            time.sleep(0.02)

    def _kill(self, process: subprocess.Popen[str], kind: str, cluster: Cluster | None) -> bool:
        if kind == "worker":
            assert cluster is not None
            worker = self._random.choice([*cluster.workers])
            cluster.kill_worker(worker)
            cluster.start_worker(worker)
            return True
        victims = find_victims(process, kind, cluster)
        if not victims:
            return False
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if kind == "driver" else os.kill)(self._random.choice(victims), signal.SIGKILL)
        return True


@contextlib.contextmanager
def session(endpoint: str) -> Iterator[Any]:
    """A session that writes inputs and reads what the jobs left, on disks and on the S3 server there."""
    from wordveil.config.schema import SparkSection
    from wordveil.spark.platform.session import build_session

    # Each start of a stream leaves a copy of the session in Java's memory.
    options = {**SMALL, "spark.driver.memory": "4g"}
    spark = build_session(SparkSection(master="local[2]", options=options, s3=True), delta=True)
    object_store.connect(spark, endpoint)
    try:
        yield spark
    finally:
        spark.stop()


def kill_batches(spark: Any, root: Path, batches: int, seed: int) -> Counter[str]:
    """Let each batch of a stream die once after a commit; return the deaths by step, once the release is whole."""
    lake = Lake(spark, Workspace(root))
    write_delta(corpus(2 * batches), root / "whole")
    files = spark.read.format("delta").load(str(root / "whole")).coalesce(1).write.option("maxRecordsPerFile", 2)
    files.format("delta").save(str(root / "source"))
    stream = {"path": str(root / "source"), "checkpoint": str(root / "checkpoint"), "max_files": 1}
    followed = lake.config(input={"changes": "feed"}, stream=stream)
    moments = random.Random(seed)  # noqa: S311 - moments, not keys
    deaths: Counter[str] = Counter()
    left = moments.randrange(BATCH_COMMITS)

    def die(step: str) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            deaths[step] += 1
            raise DiedError(step)

    def begin_next(_: Night) -> None:
        nonlocal left
        left = moments.randrange(BATCH_COMMITS)

    with patch.object(delta_table, "after_commit", die):
        is_over = False
        while not is_over:
            with contextlib.suppress(DiedError):
                run_stream(followed, lambda: spark, done=begin_next)
                is_over = True
            lake.forget()
    assert sum(count for step, count in deaths.items() if not step.startswith(("compact ", VACUUMED))) == batches
    assert len(lake.rows(lake.input)) == len(lake.draws()) == 2 * batches
    assert lake.reserved() == 0
    once = Lake(spark, lake.workspace)
    once.home, once.ledger = root / "once", root / "once-ledger"
    once.run(once.config())
    assert _texts_and_costs(lake) == _texts_and_costs(once)
    return deaths


def _texts_and_costs(lake: Lake) -> dict[str, tuple[str, Any]]:
    """What a release holds of each record, and what its ledger has charged for it."""
    spent = lake.spent()
    return {name: (row["text"], spent[name]) for name, row in lake.newest().items()}


def main() -> None:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="on disks and the cluster")
    parser.add_argument("--s3-kills", type=int, default=50)
    parser.add_argument("--batches", type=int, default=200, help="of a stream; each dies once")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    started = time.monotonic()

    def report(kills: Counter[str], **more: Any) -> None:
        print(json.dumps({"kills": kills, **more, "seconds": round(time.monotonic() - started)}), flush=True)

    with tempfile.TemporaryDirectory() as home, object_store.serve() as endpoint, session(endpoint) as spark:
        on_disks = Campaign(Story(spark, Path(home)), chosen.seed)
        with Cluster(Path(home) / "cluster") as cluster:
            while on_disks.kills.total() < chosen.kills:
                # A cluster continues when something of it dies, so that its nights are killed more often than those of
                # one machine.
                for where in (None, cluster, cluster):
                    on_disks.release(CLUSTER_KINDS if where else LOCAL_KINDS, where)
                report(on_disks.kills, restarts=on_disks.restarts)
        on_s3 = Campaign(Story(spark, Path(home) / "s3", endpoint=endpoint), chosen.seed)
        while on_s3.kills.total() < chosen.s3_kills:
            on_s3.release(LOCAL_KINDS)
            report(on_s3.kills, restarts=on_s3.restarts, tables="on S3")
        if chosen.batches:
            report(kill_batches(spark, Path(home) / "stream", chosen.batches, chosen.seed), tables="of a stream")
    print("no difference from undisturbed releases")


if __name__ == "__main__":
    main()
