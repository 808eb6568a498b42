"""Exclusion between processes that write to one file system, where Delta alone does not provide it: locks on a local
one, a statement of the user elsewhere.

The Java virtual machine holds the lock, because it is the process that commits. It holds the lock until it ends,
however it ends, even if the Python that drives it ends first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from wordveil.errors import ConfigError, Fault
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import java_class

_POLL_SECONDS = 0.1
# Local ones are locked here; the others create or rename a commit's file only where it does not exist.
_EXCLUSIVE = {"file", "hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "adl", "gs"}
_held = threading.local()


@contextmanager
def hold_lock(spark: SparkSession, path: str, waiting: Callable[[], None] = lambda: None) -> Iterator[bool]:
    """Hold the lock file ``.NAME.lock`` beside ``path``; ``waiting`` is called once if another process has it.

    Yields whether there is a lock: only paths on local file systems have one. A thread may hold a lock more than once.
    """
    files = Files(spark, path)
    if not files.is_local:
        yield False
        return
    mine: dict[str, int] = _held.__dict__.setdefault("locks", {})
    name = str(files.sibling(f".{files.path.getName()}.lock").toUri().getPath())
    if name in mine:
        mine[name] += 1
        try:
            yield True
        finally:
            mine[name] -= 1
        return
    channel = _acquire(spark, files, name, waiting)
    mine[name] = 1
    try:
        yield True
    finally:
        del mine[name]
        channel.close()


def require_exclusive_commits(spark: SparkSession, paths: Mapping[str, str], *, is_only_writer: bool) -> None:
    """Raise :class:`ConfigError` for ``paths``, by setting, where two writers may overwrite each other's commits.

    Delta's own log stores are exclusive on HDFS, Azure and Google; that for S3 is for a single driver, and others are
    not known. A session that names a log store for the scheme has its own answer.
    """
    if is_only_writer:
        return
    faults = []
    for setting, path in paths.items():
        scheme = str(Files(spark, path).path.toUri().getScheme() or "file")
        if scheme in _EXCLUSIVE or any(spark.conf.get(name, None) for name in _log_store_settings(scheme)):
            continue
        problem = (
            f"is on {scheme}, where Delta's commits are not exclusive: two writers overwrite each other's entries "
            "without an error, so that charges are lost."
        )
        mend = (
            "If one process at a time writes to this release and to all that share its ledger, say so with "
            f"output.writers: one. Else set {next(_log_store_settings(scheme))} to a log store with exclusive commits, "
            "or use HDFS, Azure or Google storage."
        )
        faults.append(Fault(setting, path, problem, mend))
    if faults:
        raise ConfigError("configuration", faults)


def _log_store_settings(scheme: str) -> Iterator[str]:
    """The options of Spark that name a log store for a scheme."""
    yield f"spark.delta.logStore.{scheme}.impl"
    yield "spark.delta.logStore.class"


def _acquire(spark: SparkSession, files: Files, name: str, waiting: Callable[[], None]) -> Any:
    """Open a channel on the file and lock it."""
    files.make_parent()
    channel = java_class(spark, "java.io.RandomAccessFile")(name, "rw").getChannel()
    has_reported = False
    try:
        while True:
            try:
                if channel.tryLock() is not None:
                    return channel
            except Py4JJavaError as error:
                # Another thread of this process has it.
                if error.java_exception.getClass().getSimpleName() != "OverlappingFileLockException":
                    raise
            if not has_reported:
                waiting()
                has_reported = True
            time.sleep(_POLL_SECONDS)
    except BaseException:
        channel.close()
        raise
