"""A pool of processes in which an item that fails, or kills its process, fails alone.

A process does many items one after the other, so that what it has read or compiled serves them all.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sysconfig
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from wordveil.errors import WordveilError

# Processes share the machine by items, not by threads.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_LIBRARIES = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
Item = TypeVar("Item")


def do_all(task: Callable[[Item], None], items: Sequence[Item], processes: int) -> Generator[tuple[Item, str]]:
    """Do a task on each item, in at most this many processes. Yield each item as it ends, and why it failed.

    The second is empty for an item that did not fail. It holds no text of data. The task and the items are pickled.
    The task itself keeps its result. Leaving the iteration early kills all processes, and whatever they have started.

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
    # Processes inherit these, and libraries read them when they are loaded.
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    pool = ProcessPool(processes, initializer=_prepare_process, context=context)
    try:
        futures = {pool.schedule(_do, (task, item)): item for item in items}
        for future in as_completed(futures):
            yield futures[future], _find_problem(future)
    finally:
        workers = multiprocessing.active_children()
        pool.stop()
        for worker in workers:
            _kill_group(worker.pid)
        pool.join()


def _prepare_process() -> None:
    os.setsid()  # whatever an item starts is killed with this process
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    os.dup2(2, 1)  # results alone go to standard output, and a library may print


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)


def _do(task: Callable[[Item], None], item: Item) -> str:
    """Do one item. Returns why it failed: an exception itself may hold text, or not be picklable."""
    try:
        task(item)
    except Exception as error:  # noqa: BLE001 - the item fails, whatever went wrong, and others go on
        return describe_failure(error)
    return ""


def _find_problem(future: ProcessFuture[str]) -> str:
    try:
        return future.result()
    except ProcessExpired as error:
        _kill_group(error.pid)
        return _describe_end(error.exitcode)


def _kill_group(leader: int | None) -> None:
    """Kill what a process has started, and the process where it still runs."""
    if leader is not None:
        # Not even the process is there any more, or it has just been started and leads no group yet.
        with suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)


def describe_failure(error: BaseException) -> str:
    """Why an item failed, without text of data.

    The message of wordveil's own errors is safe. Others may quote a record: of them, the result has the class and the
    last line of code outside the installed libraries.
    """
    if isinstance(error, WordveilError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    here = [frame for frame in frames if not any(map(Path(frame.filename).is_relative_to, _LIBRARIES))] or frames
    if not here:
        return type(error).__name__
    return f"{type(error).__name__} in {here[-1].name} ({Path(here[-1].filename).name}, line {here[-1].lineno})"


def _describe_end(code: int) -> str:
    if code >= 0:
        return f"its process ended with code {code}."
    memory = " Was there enough memory?" if -code == signal.SIGKILL else ""
    return f"its process was ended by {signal.Signals(-code).name}.{memory}"
