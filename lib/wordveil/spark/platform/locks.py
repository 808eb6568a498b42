"""Locks between processes that write to one local file system, where Delta's commits are not exclusive.

The Java virtual machine holds the lock, because it is the process that commits. It holds the lock until it ends,
however it ends, even if the Python that drives it ends first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import java_class

_POLL_SECONDS = 0.1
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
