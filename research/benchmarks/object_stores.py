"""What a release costs on S3: requests of each step, counted by S3A, beside the same steps on a disk.

The server is that of the tests, on this machine: its seconds are not Amazon's, and its requests are. Steps: the first
run, gate and publication, a night after 1% of the records were edited; alone the probe of a bucket, the lease of a
command, and the marker of a Parquet output.

    PYTHONPATH=tests python research/benchmarks/object_stores.py [--records N ...]

Writes research/results/object_stores.json and prints a table.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from common import SLOTS, draft_mechanism, draft_release, machine, make_parser, save_results
from support import object_store

RECORDS, SMALLEST = (10_000, 200_000), 200
COLUMNS = {"id": "id", "text": "body", "keep": ["day"]}
# What each of S3A's counters is on Amazon's bill.
REQUESTS = {
    "put": ("object_put_request", "object_multipart_initiated", "object_copy_requests"),
    "get": ("action_http_get_request",),
    "head": ("action_http_head_request",),
    "list": ("object_list_request", "object_continue_list_request"),
    "delete": ("object_delete_request", "object_bulk_delete_request"),
}


class Counter:
    """Requests of a session to a bucket."""

    def __init__(self, spark: Any) -> None:
        from wordveil.spark.platform.filesystem import Files

        self._system = Files(spark, "s3a://lake/").path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
        self.steps: dict[str, dict[str, Any]] = {}

    def read(self) -> dict[str, int]:
        """Read all requests so far, by kind."""
        statistics = self._system.getStorageStatistics()
        return {kind: sum(int(statistics.getLong(name) or 0) for name in names) for kind, names in REQUESTS.items()}

    @contextmanager
    def count(self, step: str) -> Iterator[None]:
        """Count and time the block."""
        before, started = self.read(), time.perf_counter()
        yield
        seconds = round(time.perf_counter() - started, 2)
        self.steps[step] = {"seconds": seconds, **{kind: now - before[kind] for kind, now in self.read().items()}}


def run_steps(spark: Any, config: Any, counter: Counter, name: str, records: int) -> None:
    """Run the steps of a release."""
    from pyspark.sql import functions as F  # noqa: N812

    from wordveil.spark.release.gate import run_gate
    from wordveil.spark.release.night import run_night
    from wordveil.spark.release.publish import publish
    from wordveil.spark.release.run import run_release

    made = spark.range(records).select(
        F.format_string("r%010d", "id").alias("id"),
        F.lit("day").alias("day"),
        F.format_string("the house of number %d stands here", F.col("id") % 7).alias("body"),
    )
    made.write.format("delta").option("delta.enableChangeDataFeed", "true").save(config.input.path)
    with counter.count(f"{name}: first run"):
        run_release(config, lambda: spark)
    with counter.count(f"{name}: gate and publication"):
        run_gate(config, lambda: spark)
        publish(config, lambda: spark)
    spark.sql(f"UPDATE delta.`{config.input.path}` SET body = concat('new ', body) WHERE id LIKE '%07'")  # noqa: S608
    with counter.count(f"{name}: a night with 1% edited"):
        run_night(config, lambda: spark)


def run_parts(spark: Any, counter: Counter) -> None:
    """Measure what commands do on object stores alone."""
    from wordveil.spark.platform.delta import require_exclusive_commits
    from wordveil.spark.platform.filesystem import Files
    from wordveil.spark.platform.locks import hold_lease
    from wordveil.spark.platform.output import MARKER

    with counter.count("probe"):
        require_exclusive_commits(spark, {"output.path": "s3a://lake/r"}, is_only_writer=False)
    with counter.count("lease"), hold_lease(spark, "s3a://lake/r/release"):
        pass
    with counter.count("marker"):
        Files(spark, f"s3a://lake/out/{MARKER}").write_new("{}")


def main() -> None:
    """Measure all sizes in one session, on the disk and on S3 in turns."""
    parser = make_parser(__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=RECORDS, metavar="N", help="how many records")
    chosen = parser.parse_args()
    from wordveil.config.schema import SparkSection
    from wordveil.spark.platform.session import build_session

    content: dict[str, Any] = {"machine": machine(), "releases": {}}
    with tempfile.TemporaryDirectory() as directory, object_store.serve() as endpoint:
        home = Path(directory)
        mechanism = draft_mechanism(directory, smallest=chosen.smallest)
        options = {"spark.sql.warehouse.dir": str(home / "warehouse")}
        spark = build_session(
            SparkSection(master=f"local[{SLOTS}]", s3=True, options=options), delta=True, is_short=True
        )
        object_store.connect(spark, endpoint)
        warm = Counter(spark)
        run_steps(spark, draft_release(home, mechanism, COLUMNS, str(home / "warm")), warm, "warm", 100)
        for records in (SMALLEST,) if chosen.smallest else chosen.records:
            counter = Counter(spark)
            for name, place in {"disk": str(home / str(records)), "S3": f"s3a://lake/{records}"}.items():
                run_steps(spark, draft_release(home, mechanism, COLUMNS, place), counter, name, records)
            content["releases"][str(records)] = counter.steps
        counter = Counter(spark)
        run_parts(spark, counter)
        content["parts"] = counter.steps
        spark.stop()
    save_results("object_stores", content, smallest=chosen.smallest)
    for name, steps in {**content["releases"], "parts": content["parts"]}.items():
        table = Table("step", "seconds", *REQUESTS, title=f"{name} records" if name.isdigit() else name)
        for step, row in steps.items():
            table.add_row(step, *(f"{value:,}" for value in row.values()))
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
