"""The processes that a process has started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psutil


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
