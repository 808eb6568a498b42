"""Processes: those that a process has started, and servers that tests start, each in a process group of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

_PATIENCE = 60


def descendants(pid: int) -> Iterator[tuple[psutil.Process, str]]:
    """Those that a process and its children have started and that still run, with their command lines."""
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                yield process, " ".join(process.cmdline())


def python_workers(pid: int) -> list[psutil.Process]:
    """Spark's Python workers among them: forked by a daemon, which a Java process has started."""
    daemons: set[int] = set()
    workers = []
    for process, command in descendants(pid):
        if "daemon pyspark.worker" in command:
            with suppress(psutil.NoSuchProcess):
                if process.ppid() in daemons:
                    workers.append(process)
            daemons.add(process.pid)
    return workers


def find_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def run_server(command: Sequence[str], port: int, log: Path, **options: Any) -> Iterator[None]:
    """Run a server until the block ends, which begins once the port answers. ``options``: further ones of ``Popen``."""
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, **options)
    try:
        end = time.monotonic() + _PATIENCE
        while not _answers(port):
            assert process.poll() is None, f"the server has ended: {log.read_text()[-3000:]}"
            assert time.monotonic() < end, f"the server does not answer: {log.read_text()[-3000:]}"
            time.sleep(0.1)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
