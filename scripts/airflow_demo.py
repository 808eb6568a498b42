"""A real Airflow on this machine: the nightly DAG over the quickstart's articles, and the analytics that its asset
starts.

`make airflow-demo` makes a fresh Airflow under build/airflow-demo with scheduler, DAG processor, triggerer and API
server on the loopback interface, unpauses both DAGs and shows how they ended. Airflow runs in a process group of its
own, which is ended whatever happens. `--backfill` also backfills the two days before; `--screenshots DIR` takes
pictures of graph and asset with Chromium; `--stay` leaves Airflow running until Enter is pressed.
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
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

import yaml

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "airflow-demo"
BIN = ROOT / ".venv-airflow" / "bin"
NIGHTLY, ANALYTICS, ASSET = "sanitise_nightly", "analytics_on_release", "wordveil_release"
READY, DONE = 180, 1200
ENDED = ("success", "failed")


def make_lake(home: Path, days: list[date]) -> None:
    """The quickstart's articles as a Delta table, a part of them each day; a key; the configuration."""
    from gensim.test.utils import datapath

    from wordveil.cli.app import app
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
            "name": "exponential",
            "epsilon": 4.5,
            "gamma": 3.0,
            "neighbours": 256,
            "tight": True,
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


def environment(home: Path, port: int) -> dict[str, str]:
    """Airflow's settings; connection and Variables as a secrets backend would hold them."""
    from wordveil.spark.platform.delta import fetched_jars

    spark = {
        "spark_submit": str(ROOT / ".venv" / "bin" / "spark-submit"),
        "spark_conf": {
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.ui.enabled": "false",
            **({"spark.jars": ",".join(map(str, fetched_jars()))} if fetched_jars() else {}),
        },
    }
    settings = {
        "CORE__DAGS_FOLDER": ROOT / "airflow_dags",
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
        f"AIRFLOW_VAR_{NIGHTLY.upper()}": json.dumps({"config": str(home / "release.yaml"), **spark}),
        f"AIRFLOW_VAR_{ANALYTICS.upper()}": json.dumps({"output": str(home / "analytics"), **spark}),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "PYTHONPATH": str(ROOT / "lib"),
        "COLUMNS": "120",
        # Standalone starts the parts by their name.
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }


@contextlib.contextmanager
def airflow(home: Path, settings: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The parts of Airflow in a process group of their own, which has ended when this has. The servers of logs stay
    off: they listen on all interfaces.
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
    """Airflow's API, without a login: all are administrators on this loopback interface."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.token = ""

    def call(self, path: str, *, method: str = "GET", body: Mapping[str, Any] | None = None) -> Any:
        """One call; its answer as plain values."""
        headers = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
        }
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.base + path, data, headers, method=method), timeout=30) as answer:  # noqa: S310 - on the loopback interface
            return json.loads(answer.read())

    def ready(self) -> bool:
        """Whether the API answers, the scheduler is alive and both DAGs are there."""
        with contextlib.suppress(URLError, OSError, KeyError, ValueError):
            self.token = self.token or self.call("/auth/token")["access_token"]
            health = self.call("/api/v2/monitor/health")
            known = {dag["dag_id"] for dag in self.call("/api/v2/dags")["dags"]}
            return health["scheduler"]["status"] == "healthy" and {NIGHTLY, ANALYTICS} <= known
        return False

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """The DAG's runs, the oldest first."""
        return list(self.call(f"/api/v2/dags/{dag}/dagRuns?order_by=id&limit=50")["dag_runs"])

    def tasks(self, dag: str, run: str) -> dict[str, str]:
        """The state of each task of a run."""
        found = self.call(f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances")["task_instances"]
        return {one["task_id"]: str(one["state"]) for one in found}


def wait_for(what: str, done: Any, seconds: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until ``done`` holds. Ends the demo where it does not in time, or Airflow has ended."""
    limit = time.monotonic() + seconds
    while not done():
        if process.poll() is not None or time.monotonic() > limit:
            sys.exit(f"{what}: not within {seconds} s. The logs in {HOME} tell more.")
        time.sleep(2)


def ended(api: Api, dag: str, count: int) -> bool:
    """Whether so many runs of a DAG have ended."""
    return sum(run["state"] in ENDED for run in api.runs(dag)) >= count


def analysed(api: Api) -> bool:
    """Whether each publication has had its analytics."""
    events = api.call("/api/v2/assets/events?limit=50")["asset_events"]
    return (
        bool(events)
        and all(event["created_dagruns"] for event in events)
        and ended(api, ANALYTICS, len(api.runs(ANALYTICS)))
    )


def show(api: Api) -> bool:
    """Print each run with its tasks; whether all ended well."""
    good = True
    for dag in (NIGHTLY, ANALYTICS):
        for run in api.runs(dag):
            states = api.tasks(dag, run["dag_run_id"])
            good &= run["state"] == "success"
            print(f"{dag}  {run['dag_run_id']}  {run['state']}")
            print("   " + "  ".join(f"{task} {state}" for task, state in states.items()))
    return good


def take_pictures(api: Api, folder: Path) -> None:
    """The graphs of both DAGs' runs, and the asset with its events."""
    folder.mkdir(parents=True, exist_ok=True)
    asset = next(one["id"] for one in api.call("/api/v2/assets")["assets"] if one["name"] == ASSET)
    pages = {
        "airflow-graph": f"/dags/{NIGHTLY}/runs/{quote(api.runs(NIGHTLY)[0]['dag_run_id'])}#graph",
        "airflow-analytics": f"/dags/{ANALYTICS}/runs/{quote(api.runs(ANALYTICS)[0]['dag_run_id'])}#graph",
        "airflow-asset": f"/assets/{asset}",
    }
    wanted = [f"{name}={api.base}{page}" for name, page in pages.items()]
    command = [str(BIN / "python"), str(ROOT / "scripts" / "airflow_pictures.py"), str(folder), *wanted]
    subprocess.run(command, check=True)  # noqa: S603


def main() -> None:
    """Make everything, run both DAGs, show what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=Path, metavar="DIR", help="take pictures of graph and asset into DIR")
    parser.add_argument("--backfill", action="store_true", help="also backfill the two days before")
    parser.add_argument("--stay", action="store_true", help="leave Airflow running until Enter is pressed")
    options = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    (HOME / "airflow").mkdir(parents=True)
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    days = [yesterday - timedelta(days=number) for number in (2, 1, 0)]
    make_lake(HOME, days)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = environment(HOME, port)
    subprocess.run([str(BIN / "airflow"), "db", "migrate"], env=settings, cwd=HOME, check=True, capture_output=True)  # noqa: S603
    with airflow(HOME, settings) as process:
        api = Api(port)
        print(f"Airflow is starting at {api.base}")
        wait_for("Airflow", api.ready, READY, process)
        for dag in (ANALYTICS, NIGHTLY):
            api.call(f"/api/v2/dags/{dag}", method="PATCH", body={"is_paused": False})
        print(f"both DAGs are unpaused; {NIGHTLY} runs for {yesterday}, as its schedule says")
        wait_for(NIGHTLY, lambda: ended(api, NIGHTLY, 1), DONE, process)
        if options.backfill and api.runs(NIGHTLY)[0]["state"] == "success":
            wanted = ["--from-date", str(days[0]), "--to-date", str(days[1]), "--max-active-runs", "1"]
            command = [str(BIN / "airflow"), "backfill", "create", "--dag-id", NIGHTLY, *wanted]
            subprocess.run(command, env=settings, cwd=HOME, check=True, capture_output=True)  # noqa: S603
            wait_for("the backfill", lambda: ended(api, NIGHTLY, len(days)), DONE, process)
        if api.runs(NIGHTLY)[0]["state"] == "success":
            wait_for(ANALYTICS, lambda: analysed(api), DONE, process)
        good = show(api)
        print(
            f"public table: {HOME / 'public'}\nterms and topics: {HOME / 'analytics'}\nlogs: {HOME / 'airflow' / 'logs'}"
        )
        if options.screenshots and good:
            take_pictures(api, options.screenshots)
        if options.stay:
            input(f"{api.base} is there until Enter is pressed. ")
    if not good:
        sys.exit(1)


if __name__ == "__main__":
    main()
