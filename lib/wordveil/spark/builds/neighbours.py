"""Lists of neighbours computed by Spark's executors, for vocabularies that take a single machine too long."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from pyspark import SparkFiles
from pyspark.sql import SparkSession
from threadpoolctl import threadpool_limits

from wordveil.neighbours.blocks import ListTask, Span
from wordveil.neighbours.lists import NeighbourLists, NeighbourSearch
from wordveil.spark.platform.errors import job_errors


@dataclass(frozen=True)
class SpanLists:
    """Task of an executor: the lists of one span. The points are public and reach it as a Spark file."""

    file: str
    metric: str
    most: int | None
    within: float

    def __call__(self, span: Span) -> tuple[Span, NeighbourLists]:
        """Return the span and its lists."""
        with threadpool_limits(1):
            search = _search(str(Path(SparkFiles.get(self.file)).absolute()), self.metric, self.most, self.within)
            return span, search.block(*span)


@lru_cache(maxsize=1)
def _search(file: str, metric: str, most: int | None, within: float) -> NeighbourSearch:
    return ListTask(metric, np.load(file, mmap_mode="r"), most, within).search()


def compute_on_executors(
    session: Callable[[], SparkSession],
) -> Callable[[ListTask, Sequence[Span]], Iterable[tuple[Span, NeighbourLists]]]:
    """Return a function that computes blocks on the executors of ``session``, started only if there is work."""

    def compute(task: ListTask, spans: Sequence[Span]) -> Iterator[tuple[Span, NeighbourLists]]:
        if not spans:
            return
        context = session().sparkContext
        with tempfile.TemporaryDirectory(prefix="wordveil-points-") as directory, job_errors():
            file = Path(directory) / f"wordveil-points-{task.digest}.npy"
            np.save(file, task.points)
            context.addFile(str(file))
            work = SpanLists(file.name, task.metric, task.max_length, task.within)
            # One task for each block; the driver takes their results one at a time.
            yield from context.parallelize(list(spans), len(spans)).map(work).toLocalIterator(prefetchPartitions=True)

    return compute
