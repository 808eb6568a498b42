"""Real Airflow for tests: DAG runs in a process of its own, whose spark-submit may pass commands to this one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from support.commands import keep_signals
from support.repository import ROOT
from support.workspaces import SMALL, clean_environment, delta_jars
from wordveil.cli.app import main

BIN = ROOT / ".venv-airflow" / "bin"
SUBMIT = str(Path(sys.executable).parent / "spark-submit")
# spark-submit for tests of how Airflow reacts to a command's end: the command itself runs in the session that the tests
# share. The real spark-submit runs an application that is not one of the project's.
_RELAY = """#!{python} -S
import json, os, socket, sys
given = sys.argv[1:]
at = next(number for number, word in enumerate(given) if word.endswith(".py"))
if os.path.dirname(given[at]) != {jobs!r} and not os.path.islink(given[at]):
    os.execv({submit!r}, [{submit!r}, *given])
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    line.sendall(json.dumps([os.environ.get("WORDVEIL_KEY"), *given[at:]]).encode() + b"\\n")
    answer = json.loads(line.makefile("r").readline())
sys.stdout.write(answer["output"])
sys.exit(answer["code"])
"""


@dataclass
class Run:
    """What Airflow recorded of a DAG run, and what it logged meanwhile."""

    state: str
    run_id: str
    interval: list[str]
    tasks: dict[str, list[Any]]
    xcom: dict[str, Any]
    events: list[dict[str, Any]]
    queued: list[str]
    rendered: list[str]
    log: str = ""
    commands: list[list[str]] = field(default_factory=list)

    @property
    def states(self) -> dict[str, str]:
        """The tasks' states."""
        return {name: state for name, (state, _) in self.tasks.items()}


class Airflow:
    """A database, and a process that runs DAGs over it."""

    def __init__(self, home: Path) -> None:
        if not (BIN / "airflow").exists():
            pytest.fail("Airflow is not installed. `make airflow` installs it.", pytrace=False)
        self.home = home
        self.dags = home / "dags"
        self.releases = self.dags / "wordveil_releases"
        self.releases.mkdir(parents=True)
        for path in (ROOT / "airflow_dags").glob("*.py"):
            (self.dags / path.name).symlink_to(path)
        (self.dags / "wordveil_jobs").symlink_to(ROOT / "jobs")
        self.environment = {
            **clean_environment(),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
                {"type": "file", "log_file_path": str(home / "lineage.json"), "append": True}
            ),
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "tests",
            "AIRFLOW_CONN_WORDVEIL_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT / 'lib'}:{ROOT / 'tests'}",
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        self.log = home / "log"
        subprocess.run(
            [BIN / "airflow", "db", "migrate"], env=self.environment, cwd=home, capture_output=True, check=True
        )
        self.listener = socket.socket(socket.AF_UNIX)
        address = str(home / "submit")
        self.listener.bind(address)
        self.listener.listen()
        self.relay = home / "relay-submit"
        self.relay.write_text(
            _RELAY.format(python=sys.executable, address=address, jobs=str(self.dags / "wordveil_jobs"), submit=SUBMIT)
        )
        self.relay.chmod(0o755)
        self.keys: list[str | None] = []
        self.after: Callable[[list[str]], None] = lambda _: None
        read, write = os.pipe()
        self.log_file = self.log.open("w")
        self.process = subprocess.Popen(
            [BIN / "python", ROOT / "tests" / "dags" / "airflow_driver.py", "dags", "test", self.dags, str(write)],
            env=self.environment,
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=self.log_file,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[write],
            start_new_session=True,
        )
        os.close(write)
        self.answers = os.fdopen(read)

    def close(self) -> None:
        """End the process and those that it started. All runs have ended; by itself it takes seconds."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.answers.close()
        self.log_file.close()
        self.listener.close()

    def run(
        self,
        dag: str,
        settings: Mapping[str, Any],
        *,
        logical_date: str | None = None,
        environment: Mapping[str, str | None] | None = None,
        conf: Mapping[str, Any] | None = None,
        by_asset: bool = False,
    ) -> Run:
        """Run a DAG once; ``settings``: those of its release. Runs the commands that spark-submit passes on meanwhile.

        A person approves at once.
        """
        order = {
            "logical_date": logical_date,
            "conf": conf or {},
            "retry_seconds": 1,
            "by_asset": by_asset,
            "approved": "approve",
            "checked": [],
        }
        commands: list[list[str]] = []
        answer, log = self._send(dag, settings, environment, order, commands)
        return Run(**answer, log=log, commands=commands)

    def check_first_task(
        self,
        dag: str,
        settings: Mapping[str, Any],
        *confs: Mapping[str, Any],
        environment: Mapping[str, str | None] | None = None,
    ) -> list[tuple[str, str]]:
        """Let the DAG's first task check each of ``confs``, unchecked parameters: errors and messages, or arguments."""
        answer, _ = self._send(dag, settings, environment, {"checked": confs or [{}]}, [])
        return [(error, message) for error, message in answer["found"]]

    def _send(
        self,
        dag: str,
        settings: Mapping[str, Any],
        environment: Mapping[str, str | None] | None,
        order: Mapping[str, Any],
        commands: list[list[str]],
    ) -> tuple[dict[str, Any], str]:
        (self.releases / f"{dag.partition('_')[2]}.yaml").write_text(yaml.safe_dump(dict(settings)))
        start = self.log.stat().st_size
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"dag": dag, "environment": environment or {}, **order}) + "\n")
        self.process.stdin.flush()
        while True:
            ready, _, _ = select.select([self.answers, self.listener], [], [], 300)
            assert ready, "Airflow does not answer: " + self._read_log(start)[-3000:]
            if self.listener in ready:
                commands.append(self._run_command())
                continue
            answer = json.loads(self.answers.readline() or '{"broken": "it ended"}')
            assert "broken" not in answer, answer["broken"] + self._read_log(start)[-5000:]
            return answer, self._read_log(start)

    def _read_log(self, start: int) -> str:
        with self.log.open(errors="replace") as log:
            log.seek(start)
            return log.read()

    def _run_command(self) -> list[str]:
        line, _ = self.listener.accept()
        with line, line.makefile("r") as words:
            key, application, *arguments = json.loads(words.readline())
            self.keys.append(key)
            given = [Path(application).stem, *arguments]
            output = io.StringIO()
            code = 1
            held = {"WORDVEIL_KEY": key} if key else {}
            with (
                keep_signals(),
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(output),
                patch.dict(os.environ, held),
            ):
                try:
                    main(given)
                except SystemExit as left:
                    code = int(left.code or 0)
            self.after(given)
            line.sendall(json.dumps({"output": output.getvalue(), "code": code}).encode() + b"\n")
        return given


def spark_conf() -> dict[str, str]:
    """Options for the real spark-submit, as small runs need them."""
    return {
        "spark.jars": ",".join(str(jar) for jar in sorted(delta_jars().iterdir())),
        **SMALL,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
    }
