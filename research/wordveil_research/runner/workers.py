"""Work in processes that may die: each item is done in a process of a few, and its failure is its own.

A pool of :mod:`concurrent.futures` gives up all items when one process is killed, such as for want of memory. Here the
item of that process fails, and another process goes on with the rest. A process does many items one after the other, so
that what it has read or compiled serves them all.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from wordveil.errors import WordveilError

# Processes share the machine by items, not by threads.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_PACKAGE = Path(__file__).parents[2]
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_PATIENCE = 5.0


@dataclass(frozen=True)
class Done:
    """An item that has ended.

    Attributes
    ----------
    item
        which.
    problem
        why it failed; empty where it did not. It holds no text of data: of errors that are not this package's own, only
        the kind and the place in the code.
    seconds
        how long it took.
    """

    item: Any
    problem: str
    seconds: float


@dataclass
class _Worker:
    """A process and what it is doing."""

    process: ForkServerProcess
    pipe: Connection
    item: Any = None
    is_busy: bool = False
    started: float = field(default_factory=time.monotonic)

    def give(self, item: Any) -> None:
        self.item, self.is_busy, self.started = item, True, time.monotonic()
        # A process that has just died is noticed when its answer is waited for.
        with suppress(OSError):
            self.pipe.send(item)

    def collect(self) -> Done:
        """The answer, or that the process has died."""
        try:
            problem = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_PATIENCE)
            _kill_group(self.process)
            problem = _describe_end(self.process.exitcode)
        self.is_busy = False
        return Done(self.item, problem, time.monotonic() - self.started)


def do_all(task: Callable[[Any], None], items: Sequence[Any], processes: int) -> Generator[Done, None, None]:
    """Do a task on each item, in at most this many processes, and yield each item as it ends.

    The task and the items are pickled. The task leaves its result where the caller finds it. Leaving the iteration
    early ends all processes, and whatever they have started.

    Raises
    ------
    ValueError
        for fewer than one process.
    """
    if processes < 1:
        raise ValueError(f"processes = {processes}: expected at least 1.")
    # Forks of a process that has one thread and the imports: a fresh process would take seconds to load them.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([type(task).__module__])
    left = deque(items)
    workers: list[_Worker] = []
    try:
        while left or any(worker.is_busy for worker in workers):
            workers = [worker for worker in workers if worker.process.is_alive() or worker.is_busy]
            while left and sum(worker.is_busy for worker in workers) < processes:
                idle = next((worker for worker in workers if not worker.is_busy), None)
                if idle is None:
                    workers.append(idle := _start(context, task))
                idle.give(left.popleft())
            ready = wait([worker.pipe for worker in workers if worker.is_busy])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                yield worker.collect()
    finally:
        _end(workers)


def _start(context: ForkServerContext, task: Callable[[Any], None]) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, task))
    with _single_threads():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _single_threads() -> Iterator[None]:
    """Processes that are started meanwhile have one thread for each library, which read this when they are loaded."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        _kill_group(worker.process)
        worker.pipe.close()
    for worker in workers:
        worker.process.join(_PATIENCE)


def _kill_group(process: ForkServerProcess) -> None:
    """End a process with all that it has started. It leads a group, but for its first moments."""
    if process.pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _serve(pipe: Connection, task: Callable[[Any], None]) -> None:
    """What a process does: item after item, until nobody asks."""
    os.setsid()  # whatever an item starts ends with this process; and Control-C is the parent's to handle
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    os.dup2(2, 1)  # results alone go to standard output, and a library may print
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        try:
            task(item)
            problem = ""
        except Exception as error:  # noqa: BLE001 - the item fails, whatever went wrong, and others go on
            problem = describe_failure(error)
        pipe.send(problem)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)


def describe_failure(error: BaseException) -> str:
    """Why an item failed, without text of data.

    The message of this package's own errors is safe. Of others it may quote a record: the kind stays, and the last
    line of code that is no library's.
    """
    if isinstance(error, WordveilError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    here = [frame for frame in frames if _is_own(Path(frame.filename))] or frames
    if not here:
        return type(error).__name__
    return f"{type(error).__name__} in {here[-1].name} ({Path(here[-1].filename).name}, line {here[-1].lineno})"


def _is_own(path: Path) -> bool:
    return path.is_relative_to(_PACKAGE) or not any(path.is_relative_to(library) for library in _LIBRARIES)


def _describe_end(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            memory = " Was there enough memory?" if -code == signal.SIGKILL else ""
            return f"its process was ended by {name}.{memory}"
    return f"its process ended with code {code}."


def count_processors() -> int:
    """How many processes this machine gives to this one at a time."""
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
