"""Locks between processes that write to one local file system, where Delta's commits are not exclusive, and leases.

The Java virtual machine holds the lock until it ends, because it commits, even if Python ends first.

Where no file can be locked, runs wait for each other by leases. A process that pauses for too long loses its lease
without notice: preventing two processes from overwriting each other's commits is up to Delta's log store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import java_class

_LOGGER = logging.getLogger(__name__)
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


_LEASE_SECONDS = 20.0
"""Time after which a lease that is not renewed is taken over."""
_LEASE_POLL_SECONDS = 1.0
_LOST_RACES = 5


@contextmanager
def hold_lease(spark: SparkSession, path: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lease on ``path`` until the block ends; ``waiting`` is called once if another process has it.

    The lease is an empty file beside ``path``, whose number grows with each renewal. A file that exists is never
    created again, so one of several processes gets it. No clocks are compared: a lease expires once a waiter has seen
    no renewal for 20 s.
    """
    lease = _Lease(Files(spark, path))
    lease.take(waiting)
    ended = threading.Event()
    renewal = threading.Thread(target=lease.renew_until, args=[ended], daemon=True)
    renewal.start()
    try:
        yield
    finally:
        ended.set()
        renewal.join()
        lease.give_back()


class _Lease:
    """Lease of one process. ``_held``: the number of its file."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._prefix = f".{files.path.getName()}.lease-"
        self._held = 0

    def take(self, waiting: Callable[[], None]) -> None:
        """Wait until there is no other lease, or it has expired, and take it."""
        seen, since, failures, has_reported = None, 0.0, 0, False
        while True:
            standing = self._list()
            if standing != seen:
                seen, since = standing, time.monotonic()
            if not standing or time.monotonic() - since > _LEASE_SECONDS:
                try:
                    self._create(max(standing, default=0) + 1)
                except Py4JError:
                    # Another process was faster, and may have renewed its lease or ended since; or nothing can be
                    # written here.
                    failures += 1
                    if failures > _LOST_RACES and not self._list():
                        raise
                else:
                    self._delete(standing)
                    return
            if standing and not has_reported:
                _LOGGER.debug("waiting for the lease %s%s of another process", self._prefix, max(standing))
                waiting()
                has_reported = True
            time.sleep(_LEASE_POLL_SECONDS)

    def renew_until(self, ended: threading.Event) -> None:
        """Renew the lease until ``ended``, or until another process has taken it over."""
        while not ended.wait(_LEASE_SECONDS / 4):
            with suppress(Py4JError):  # a store that does not answer is asked again
                if (before := self._held) not in self._list():
                    return
                self._create(before + 1)
                self._delete([before])

    def give_back(self) -> None:
        """Delete the lease. One that cannot be deleted expires."""
        with suppress(Py4JError):
            self._delete([self._held])

    def _list(self) -> list[int]:
        return [int(path.getName().removeprefix(self._prefix)) for path in self._files.list_beside(self._prefix)]

    def _create(self, number: int) -> None:
        """Create the file of a number. Raises Py4JError if it exists."""
        self._files.write_new("", self._file(number))
        self._held = number

    def _delete(self, numbers: list[int]) -> None:
        for number in numbers:
            self._files.delete(self._file(number))

    def _file(self, number: int) -> Any:
        return self._files.sibling(f"{self._prefix}{number}")
