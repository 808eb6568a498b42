"""How far a Spark job is, by its tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

_INTERVAL = 0.25
TaskProgress = Callable[[int, int], None]
"""Called with the tasks that are done and all tasks known so far."""


@contextmanager
def watched(context: SparkContext, group: str, report: TaskProgress) -> Iterator[None]:
    """Runs the body's Spark jobs as job group ``group`` and reports on them; cancels them if the body is interrupted."""
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(_INTERVAL):
            report(*_tasks(context, group))

    context.setJobGroup(group, "wordveil", interruptOnCancel=True)
    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    try:
        yield
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        stop.set()
        poller.join()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _tasks(context: SparkContext, group: str) -> tuple[int, int]:
    tracker = context.statusTracker()
    done = known = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            stage_info = tracker.getStageInfo(stage)
            if stage_info:
                done += stage_info.numCompletedTasks
                known += stage_info.numTasks
    return done, known
