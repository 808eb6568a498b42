"""What a Python task costs before it reads a record: with Python's own care of archives, and with the worker's.

At the start of every task Spark has its Python worker forget what there is to import, and Python before 3.13 then reads
the listing of every archive on its path again. wordveil's worker has it read those that have changed. One session with
one worker, 20 queries of one task over one row each before and after: what is left is Spark's own start of a task.

    python research/benchmarks/task_start.py [--smallest]

Writes research/results/task_start.json and prints a table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from common import machine, make_parser, save_results

QUERIES = 20


def passed(batches: Iterator[Any]) -> Iterator[Any]:
    """Return the rows as they come."""
    return batches


def kept(batches: Iterator[Any]) -> Iterator[Any]:
    """Return the rows as they come, once the worker keeps its archives."""
    from wordveil.spark.sanitise.worker import keep_archives

    keep_archives()
    return batches


def tasks(spark: Any, queries: int, each: Callable[[Iterator[Any]], Iterator[Any]] = passed) -> list[float]:
    """Measure seconds of each query with one task that hands its row on."""
    rows = spark.range(0, 1, 1, 1)
    found = []
    for _ in range(queries):
        started = time.perf_counter()
        rows.mapInArrow(each, rows.schema).collect()
        found.append(time.perf_counter() - started)
    return found


def main() -> None:
    """Measure both, in one session."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    queries = 1 if smallest else QUERIES
    from wordveil.config.schema import SparkSection
    from wordveil.spark.platform.session import build_session

    content: dict[str, Any] = {"machine": machine()}
    spark = build_session(SparkSection(master="local[1]"))
    tasks(spark, 10)
    content["python"] = tasks(spark, queries)
    tasks(spark, 1, kept)
    content["wordveil"] = tasks(spark, queries)
    spark.stop()
    save_results("task_start", content, smallest=smallest)
    table = Table("archives read", "milliseconds a query of one task, median", title="Start of a Python task")
    for name, label in (("python", "at each task"), ("wordveil", "when they have changed")):
        table.add_row(label, f"{statistics.median(content[name]) * 1000:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
