"""A real standalone cluster with authentication and encryption: a master and two workers with their own scratch."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from support.processes import descendants, find_ports
from support.repository import ROOT
from support.workspaces import clean_environment
from wordveil.spark.platform.session import SHORT_JAVA

SPARK_HOME = Path(pyspark.__file__).parent
EXECUTOR = "CoarseGrainedExecutorBackend"


def find_namespace() -> list[str]:
    """The command that gives a process file systems of its own; empty where this machine forbids it."""
    for command in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        if (
            shutil.which("unshare")
            and subprocess.run(
                [*command, "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True
            ).returncode
            == 0
        ):
            return command
    return []


class Cluster:
    """``hidden``: directories that exist on the driver and are empty for the workers. ``options``: more for Spark.

    The workers are two hosts to Spark, so that it will start a second copy of a slow task.
    """

    def __init__(self, home: Path, hidden: Iterable[Path] = (), options: Mapping[str, str] | None = None) -> None:
        self._home = home
        self._hidden = list(hidden)
        self._options = dict(options or {})
        self._processes: list[subprocess.Popen[bytes]] = []
        self._named: dict[str, subprocess.Popen[bytes]] = {}
        self.workers = {"worker-1": "127.0.0.1", "worker-2": "127.0.0.2"}
        (self._port,) = find_ports(1)
        self.master = f"spark://127.0.0.1:{self._port}"
        self._properties = home / "spark.conf"
        self.spark_submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--properties-file", str(self._properties)]
        self._java = f"{SHORT_JAVA} -Dlog4j2.configurationFile={ROOT / 'lib/wordveil/data/log4j2.properties'}"
        self.environment = {
            **clean_environment(),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "OMP_NUM_THREADS": "1",
            "SPARK_DAEMON_JAVA_OPTS": self._java,
            "SPARK_SUBMIT_OPTS": self._java,
        }

    def __enter__(self) -> Self:
        self._home.mkdir(parents=True)
        options = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(32),
            "spark.network.crypto.enabled": "true",
            "spark.io.encryption.enabled": "true",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.task.maxFailures": "4",
            "spark.executor.extraJavaOptions": self._java,
            **self._options,
        }
        lines = "".join(f"{name} {value}\n" for name, value in options.items())
        self._properties.write_text(lines)
        self._start(
            "master", [], "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(self._port)
        )
        hide = "".join(f"mount -t tmpfs none '{path}' && " for path in self._hidden)
        self._shell = [*find_namespace(), "sh", "-c", f'{hide}exec "$@"', "sh"]
        for name in self.workers:
            self.start_worker(name)
        return self

    def start_worker(self, name: str) -> None:
        """Start a worker: one of :attr:`workers`, at the beginning or when it has been killed."""
        home = self._home / name
        home.mkdir(exist_ok=True)
        self._start(
            name,
            self._shell,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", self.workers[name], "--cores", "1", "--memory", "1g", "--work-dir", str(home / "work")),
            self.master,
        )

    def kill_worker(self, name: str) -> None:
        """Kill a worker, and with its namespace its executors, without warning."""
        process = self._named.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._processes.remove(process)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, shell: Sequence[str], main: str, *arguments: str) -> None:
        options = ("--webui-port", "0", "--properties-file", str(self._properties))
        command = [*shell, str(SPARK_HOME / "bin" / "spark-class"), main, *options, *arguments]
        environment = {**self.environment, "SPARK_LOCAL_DIRS": str(self._home / name / "scratch")}
        with (self._home / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self._processes.append(process)
        self._named[name] = process

    def submit(self, *arguments: object, scratch: Path, local: int | None = None) -> subprocess.Popen[str]:
        """Submit ``jobs/sanitise.py``, with its temporary files under ``scratch``; to ``local`` cores if given."""
        master = self.master if local is None else f"local[{local}]"
        command = [*self.spark_submit, "--master", master, str(ROOT / "jobs" / "sanitise.py")]
        environment = {**self.environment, "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch)}
        return subprocess.Popen(
            [*command, *map(str, arguments)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def executors(self) -> list[int]:
        return [below.pid for pid in self.pids() for below, command in descendants(pid) if EXECUTOR in command]

    def kill_an_executor(self) -> int:
        """Kill an executor without warning; its process id."""
        chosen = self.executors()[0]
        os.kill(chosen, signal.SIGKILL)
        return chosen
