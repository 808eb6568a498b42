"""Progress of a Spark job, measured by its tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark import SparkContext

_INTERVAL = 0.25
_PATIENCE = 10.0
TaskProgress = Callable[[int, int], None]
"""Callback for the numbers of finished tasks and of tasks known so far."""


def ignore(*_: object) -> None:
    """Ignore progress."""


@contextmanager
def watch_tasks(context: SparkContext, group: str, report: TaskProgress) -> Iterator[None]:
    """Run the body's Spark jobs as job group ``group`` and report on them; cancel them if the body is interrupted."""
    stop = threading.Event()
    ended: dict[int, tuple[int, int]] = {}

    def poll() -> None:
        with suppress(Exception):  # a session that ends has no tracker any more
            while report is not ignore and not stop.wait(_INTERVAL):
                report(*_tasks(context, group, ended))

    context.setJobGroup(group, "wordveil", interruptOnCancel=True)
    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    try:
        yield
    except BaseException:
        # A signal during a call to the JVM can break that connection. Do what is still possible.
        with suppress(Exception):
            context.cancelJobGroup(group)
            deadline = time.monotonic() + _PATIENCE
            while context.statusTracker().getActiveJobsIds() and time.monotonic() < deadline:
                time.sleep(_INTERVAL)  # jobs may still write
        raise
    finally:
        stop.set()
        poller.join()
        with suppress(Exception):
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _tasks(context: SparkContext, group: str, ended: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Count the tasks done and known. Jobs that have ``ended`` are not queried again."""
    tracker = context.statusTracker()
    tasks = dict(ended)
    for job in tracker.getJobIdsForGroup(group):
        if job in ended:
            continue
        info = tracker.getJobInfo(job)
        stages = [stage for number in (info.stageIds if info else ()) if (stage := tracker.getStageInfo(number))]
        tasks[job] = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
        if info and info.status in ("SUCCEEDED", "FAILED"):
            ended[job] = tasks[job]
    return sum(done for done, _ in tasks.values()), sum(known for _, known in tasks.values())
