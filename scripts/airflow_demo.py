"""Run both DAGs in a real Airflow on this machine: a night over the quickstart's articles, then its analytics.

`make airflow-demo` creates a fresh Airflow under build/airflow-demo with scheduler, DAG processor, triggerer and API
server on the loopback interface, and a folder of DAGs as `wordveil init --airflow` writes it. It unpauses both DAGs and
prints how their runs ended. Airflow runs in its own process group, which the demo ends in any case. `--backfill` also
backfills the two days before; `--stay` leaves Airflow running until Enter is pressed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

import yaml

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "airflow-demo"
BIN = ROOT / ".venv-airflow" / "bin"
NIGHTLY, ANALYTICS = "sanitise_articles", "verify_articles"
# How long to wait for Airflow, and for the runs of a DAG, in seconds.
READY, DONE = 600, 1800
ENDED = ("success", "failed")
# Pauses before a call that the server could not answer is repeated, in seconds. Airflow 3.3.2 answers 500 to calls
# about asset events while a DAG run that an event created has no start date.
RETRY_PAUSES = (1, 2, 4, 8, 16)
SERVER_ERROR = 500


def last_days() -> list[date]:
    """Return the last three days in UTC, oldest first; Airflow schedules a run for the newest."""
    today = datetime.now(UTC).date()
    return [today - timedelta(days=number) for number in (3, 2, 1)]


def write_articles(home: Path, days: list[date]) -> None:
    """Write the quickstart's articles as a Delta table, a part of them each day."""
    from gensim.test.utils import datapath

    from wordveil.config.schema import SparkSection
    from wordveil.spark.platform.session import build_session

    articles = [article.strip() for article in Path(datapath("lee_background.cor")).read_text("utf-8").splitlines()]
    rows = [
        (f"{number:03d}", text, str(days[number * len(days) // len(articles)])) for number, text in enumerate(articles)
    ]
    spark = build_session(SparkSection(master="local[2]", options={"spark.sql.shuffle.partitions": "2"}), delta=True)
    frame = spark.createDataFrame(rows, "article string, body string, ds string")
    frame.write.format("delta").partitionBy("ds").save(str(home / "articles"))
    spark.stop()


def write_config(home: Path) -> None:
    """Write a key and the release's configuration."""
    from wordveil.cli.app import app

    app(args=["key", "new", str(home / "wordveil.key")], standalone_mode=False)
    config = {
        "format_version": 2,
        "release": "articles",
        "input": {
            "path": str(home / "articles"),
            "format": "delta",
            "id": "article",
            "text": "body",
            "keep": ["ds"],
            "where": "ds = :ds",
        },
        "mechanism": {
            "name": "tree",
            "epsilon": 8.0,
            "sizes": [20],
            "output": "representative",
            "embedding": "demo",
            "public": True,
        },
        "bundle_store": str(home / "bundles"),
        "build_missing": True,
        "text": {"profile": "readable"},
        "key": {"file": str(home / "wordveil.key")},
        "output": {
            "path": str(home / "release"),
            "format": "delta",
            "public": str(home / "public"),
            "partition_by": ["ds"],
        },
        "ledger": {"path": str(home / "ledger")},
        "gate": {"min_records": 50, "max_empty_rate": 0.01, "quarantine_rate": 0.05},
    }
    (home / "release.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def write_settings(home: Path) -> None:
    """Write the settings of the release's DAGs."""
    from wordveil.spark.platform.delta import fetched_jars

    settings = {
        "config": str(home / "release.yaml"),
        "analytics": str(home / "analytics"),
        "spark_submit": str(ROOT / ".venv" / "bin" / "spark-submit"),
        "spark_conf": {
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.ui.enabled": "false",
            **({"spark.jars": ",".join(map(str, fetched_jars()))} if fetched_jars() else {}),
        },
    }
    path = home / "dags" / "wordveil_releases" / "articles.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(settings))


def build_environment(home: Path, port: int) -> dict[str, str]:
    """Build Airflow's settings; the connection as a secrets backend would provide it."""
    settings = {
        "CORE__DAGS_FOLDER": home / "dags",
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__PARALLELISM": "2",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "API__HOST": "127.0.0.1",
        "API__PORT": port,
        "API__BASE_URL": f"http://127.0.0.1:{port}",
        "API__WORKERS": "1",
        "API__SECRET_KEY": secrets.token_hex(16),
        "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "2",
        "OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(home / "lineage.json"), "append": True}
        ),
    }
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "SPARK", "PYSPARK"))},
        **{f"AIRFLOW__{name}": str(value) for name, value in settings.items()},
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW_CONN_WORDVEIL_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "PYTHONPATH": str(ROOT / "lib"),
        "COLUMNS": "120",
        # The shell starts Airflow's parts by name.
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }


@contextlib.contextmanager
def run_airflow(home: Path, settings: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the parts of Airflow in their own process group, and end it on leaving.

    The log servers stay off: they would listen on all interfaces.
    """
    parts = ("api-server", "scheduler --skip-serve-logs", "dag-processor", "triggerer --skip-serve-logs")
    started = " & ".join(f"airflow {part} > {part.split()[0]}.log 2>&1" for part in parts)
    process = subprocess.Popen(  # noqa: S603
        ["/bin/sh", "-c", f"{started} & wait"], env=dict(settings), cwd=home, start_new_session=True
    )
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


class Api:
    """Airflow's API, without a login: everybody is an administrator on this loopback interface."""

    def __init__(self, base: str, pauses: tuple[float, ...] = RETRY_PAUSES) -> None:
        self.base = base
        self.pauses = pauses
        self.token = ""

    def call(self, path: str, *, method: str = "GET", body: Mapping[str, Any] | None = None) -> Any:
        """Make one call, and return its answer as plain values.

        Repeats the call after a pause while the server answers 5xx or not in time, as often as there are ``pauses``:
        all calls of this demo are idempotent. Then it raises what the last try raised.
        """
        headers = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
        }
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.base + path, data, headers, method=method)  # noqa: S310 - on the loopback interface
        for pause in self.pauses:
            try:
                return self._send(request)
            except HTTPError as error:
                if error.code < SERVER_ERROR:
                    raise
            except TimeoutError:
                pass
            time.sleep(pause)
        return self._send(request)

    @staticmethod
    def _send(request: Request) -> Any:
        with urlopen(request, timeout=30) as answer:  # noqa: S310 - on the loopback interface
            return json.loads(answer.read())

    def is_ready(self) -> bool:
        """Return whether the API answers, the scheduler is alive and both DAGs are known."""
        with contextlib.suppress(URLError, OSError, KeyError, ValueError):
            self.token = self.token or self.call("/auth/token")["access_token"]
            health = self.call("/api/v2/monitor/health")
            known = {dag["dag_id"] for dag in self.call("/api/v2/dags")["dags"]}
            return health["scheduler"]["status"] == "healthy" and {NIGHTLY, ANALYTICS} <= known
        return False

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """Return the DAG's runs, oldest first."""
        return list(self.call(f"/api/v2/dags/{dag}/dagRuns?order_by=id&limit=50")["dag_runs"])

    def nights(self, days: list[date]) -> list[dict[str, Any]]:
        """Return the runs of the nightly DAG for these days; at midnight Airflow adds one that has no records to wait
        for.
        """
        wanted = {str(day) for day in days}
        return [run for run in self.runs(NIGHTLY) if str(run["data_interval_start"])[:10] in wanted]

    def tasks(self, dag: str, run: str) -> dict[str, str]:
        """Return the state of each task of a run."""
        found = self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances")["task_instances"]
        return {one["task_id"]: str(one["state"]) for one in found}

    def consumed_events(self, dag: str, run: str) -> set[int]:
        """Return the ids of the asset events that a run was started with."""
        found = self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/upstreamAssetEvents")["asset_events"]
        return {event["id"] for event in found}


def poll(done: Callable[[], bool], seconds: float, *, is_alive: Callable[[], bool], pause: float = 2) -> bool:
    """Call ``done`` until it holds. False if it does not within ``seconds``, or if ``is_alive`` no longer holds."""
    limit = time.monotonic() + seconds
    while not done():
        if not is_alive() or time.monotonic() > limit:
            return False
        time.sleep(pause)
    return True


def wait_for(what: str, done: Callable[[], bool], seconds: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until ``done`` holds. Exits if it does not in time, or if Airflow has ended."""
    if not poll(done, seconds, is_alive=lambda: process.poll() is None):
        sys.exit(f"{what}: did not end within {seconds} s, or Airflow has ended. See the logs in {HOME}.")


def count_ended(runs: list[dict[str, Any]]) -> int:
    """Return how many of these runs have ended."""
    return sum(run["state"] in ENDED for run in runs)


def are_analysed(api: Api, days: list[date]) -> bool:
    """Return whether the analytics of each publication has ended.

    Looks at the DAG runs first. Only when all of them have ended does it ask which asset events they were started
    with: one run can be started with the events of several publications.
    """
    published = sum(api.tasks(NIGHTLY, run["dag_run_id"]).get("night") == "success" for run in api.nights(days))
    runs = api.runs(ANALYTICS)
    if not runs or count_ended(runs) < len(runs):
        return False
    return len(set().union(*(api.consumed_events(ANALYTICS, run["dag_run_id"]) for run in runs))) >= published


def print_runs(api: Api, days: list[date]) -> bool:
    """Print each run with its tasks; returns whether all succeeded."""
    succeeded = True
    for dag, runs in ((NIGHTLY, api.nights(days)), (ANALYTICS, api.runs(ANALYTICS))):
        for run in runs:
            states = api.tasks(dag, run["dag_run_id"])
            succeeded &= run["state"] == "success"
            print(f"{dag}  {run['dag_run_id']}  {run['state']}")
            print("   " + "  ".join(f"{task} {state}" for task, state in states.items()))
    return succeeded


def unpause(api: Api, days: list[date]) -> list[date]:
    """Unpause both DAGs, and return the days of the articles; Airflow schedules a run for the newest.

    If midnight (UTC) has passed since the articles were written, or passes within a minute, writes them again for the
    three days before it.
    """
    while (datetime.now(UTC) + timedelta(minutes=1)).date() != datetime.now(UTC).date():
        time.sleep(1)
    if last_days() != days:
        days = last_days()
        shutil.rmtree(HOME / "articles")
        write_articles(HOME, days)
    for dag in (ANALYTICS, NIGHTLY):
        api.call(f"/api/v2/dags/{dag}", method="PATCH", body={"is_paused": False})
    return days


def main() -> None:
    """Create everything, run both DAGs, print the results."""
    from wordveil.cli.init import write_dags

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backfill", action="store_true", help="also backfill the two days before")
    parser.add_argument("--stay", action="store_true", help="leave Airflow running until Enter is pressed")
    options = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    (HOME / "airflow").mkdir(parents=True)
    days = last_days()
    write_articles(HOME, days)
    write_config(HOME)
    write_dags(HOME / "dags")
    write_settings(HOME)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = build_environment(HOME, port)
    migrate = [str(BIN / "airflow"), "db", "migrate"]
    subprocess.run(migrate, env=settings, cwd=HOME, check=True, capture_output=True)  # noqa: S603
    with run_airflow(HOME, settings) as process:
        api = Api(f"http://127.0.0.1:{port}")
        print(f"Airflow is starting at {api.base}")
        wait_for("Airflow's start", api.is_ready, READY, process)
        days = unpause(api, days)
        print(f"both DAGs are unpaused; {NIGHTLY} runs for {days[-1]}, as its schedule says")
        wait_for(NIGHTLY, lambda: count_ended(api.nights(days)) >= 1, DONE, process)
        published = api.nights(days)[0]["state"] == "success"
        if options.backfill and published:
            wanted = ["--from-date", str(days[0]), "--to-date", str(days[1]), "--max-active-runs", "1"]
            command = [str(BIN / "airflow"), "backfill", "create", "--dag-id", NIGHTLY, *wanted]
            subprocess.run(command, env=settings, cwd=HOME, check=True, capture_output=True)  # noqa: S603
            wait_for("the backfill", lambda: count_ended(api.nights(days)) >= len(days), DONE, process)
        if published:
            wait_for(ANALYTICS, lambda: are_analysed(api, days), DONE, process)
        succeeded = print_runs(api, days)
        print(f"public table: {HOME / 'public'}\nterms and topics: {HOME / 'analytics'}")
        print(f"logs: {HOME / 'airflow' / 'logs'}")
        if options.stay:
            input(f"{api.base} runs until Enter is pressed. ")
    if not succeeded:
        sys.exit(1)


if __name__ == "__main__":
    main()
