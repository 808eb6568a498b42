"""A large and ugly corpus through the main job: memory, files and tasks.

100,000,000 tokens in records of very unequal length, in a few large files and 20,000 small ones, and one record of
1,000,000 tokens. The vocabulary is small (2,000 words x 8), so that the corpus and not the search takes the time; what
is measured hardly depends on it. A thread samples the resident memory of the driver (Python and JVM) and of Spark's
Python workers.

    python research/benchmarks/large_input.py [--smallest] [--mechanism exponential]

Writes research/results/large_input_<mechanism>.json and prints a table.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from common import SLOTS, machine, make_parser, save_results

WORDS, DIMENSION = 2000, 8
MECHANISMS: dict[str, dict[str, Any]] = {
    "laplace": {"name": "laplace", "epsilon": 8.0},
    "exponential": {"name": "exponential", "epsilon": 8.0, "neighbours": 256},
}
LARGE_FILES = 6


def texts(rng: np.random.Generator, tokens: int) -> pa.Array:
    """Return texts of ``tokens`` words in all; lengths are log-normal: half under 60 words, one in a hundred over
    1,000.
    """
    lengths = np.maximum(1, rng.lognormal(4.1, 1.2, max(8, 2 * tokens // 60)).astype(np.int64))
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), tokens)) + 1]
    words = pa.array([f"w{number}" for number in range(WORDS)]).take(
        pa.array(rng.integers(0, WORDS, int(lengths.sum())))
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), words), " ")


def write_corpus(path: Path, tokens: int, small_files: int, longest: int) -> None:
    """Three quarters of the tokens in large files, a quarter in small ones, and one record of ``longest`` tokens."""
    rng = np.random.default_rng(0)
    path.mkdir()
    number = 0

    def write(name: str, column: pa.Array) -> None:
        nonlocal number
        ids = pa.array(range(number, number + len(column)), pa.int64())
        number += len(column)
        pq.write_table(pa.table({"id": ids, "body": column}), path / name, row_group_size=20_000)

    for place in range(LARGE_FILES):
        write(f"large-{place}.parquet", texts(rng, tokens * 3 // 4 // LARGE_FILES))
    for place in range(small_files):
        write(f"small-{place:05d}.parquet", texts(rng, max(1, tokens // 4 // small_files)))
    write("longest.parquet", pa.array([" ".join(f"w{word}" for word in rng.integers(0, WORDS, longest))]))


def write_embedding(path: Path) -> None:
    """Seeded normal vectors."""
    vectors = np.random.default_rng(1).standard_normal((WORDS, DIMENSION)).astype(np.float32)
    lines = [f"{WORDS} {DIMENSION}", *(f"w{n} " + " ".join(map(str, row)) for n, row in enumerate(vectors.tolist()))]
    path.write_text("\n".join(lines) + "\n")


class Memory:
    """Largest resident memory seen of this process, the JVM, and the Python workers."""

    def __init__(self) -> None:
        self.peak = {"driver python": 0, "jvm": 0, "largest worker": 0, "workers": 0}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            self._sample()

    def _sample(self) -> None:
        seen = {"driver python": psutil.Process().memory_info().rss, "jvm": 0, "largest worker": 0, "workers": 0}
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                line, size = " ".join(process.cmdline()), process.memory_info().rss
                if "java" in line:
                    seen["jvm"] = max(seen["jvm"], size)
                elif "daemon pyspark.worker" in line:
                    seen["largest worker"] = max(seen["largest worker"], size)
                    seen["workers"] += size
        self.peak = {name: max(self.peak[name], size) for name, size in seen.items()}


def task_seconds(events: Path) -> list[float]:
    """Measure how long the tasks of the writing stage ran, from Spark's event log."""
    stages: dict[int, list[float]] = {}
    for file in events.rglob("*"):
        if file.is_file():
            for line in file.read_text("utf-8", errors="replace").splitlines():
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    event = json.loads(line)
                    info = event["Task Info"]
                    stages.setdefault(event["Stage ID"], []).append((info["Finish Time"] - info["Launch Time"]) / 1000)
    return max(stages.values(), key=sum)


def measure(mechanism: str, tokens: int, small_files: int, longest: int) -> dict[str, Any]:
    """Measure one run."""
    from wordveil.config.load import parse_config
    from wordveil.spark.platform.session import build_session
    from wordveil.spark.sanitise.job import run_sanitise

    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        started = time.perf_counter()
        write_corpus(home / "corpus", tokens, small_files, longest)
        made = time.perf_counter() - started
        write_embedding(home / "vectors.txt")
        (home / "key").touch(mode=0o600)
        (home / "key").write_text(os.urandom(32).hex())
        (home / "events").mkdir()
        settings = {
            "format_version": 2,
            "release": "large",
            "input": {"path": str(home / "corpus"), "id": "id", "text": "body"},
            "mechanism": {**MECHANISMS[mechanism], "embedding": str(home / "vectors.txt"), "public": True},
            "bundle_store": str(home / "bundles"),
            "build_missing": True,
            "text": {"profile": "readable"},
            "key": {"file": str(home / "key")},
            "output": {"path": str(home / "out")},
            "spark": {
                "master": f"local[{SLOTS}]",
                "options": {
                    "spark.eventLog.enabled": "true",
                    "spark.eventLog.compress": "false",
                    "spark.eventLog.dir": f"file:{home / 'events'}",
                    "spark.local.dir": str(home / "scratch"),
                },
            },
        }
        config = parse_config(settings, "benchmark")
        with Memory() as memory:
            report = run_sanitise(config, lambda: build_session(config.spark))
        from pyspark.sql import SparkSession

        SparkSession.getActiveSession().stop()
        tasks = task_seconds(home / "events")
        sizes = sorted(file.stat().st_size for file in (home / "out").rglob("*.parquet"))
        corpus = sum(file.stat().st_size for file in (home / "corpus").iterdir())
    return {
        "mechanism": mechanism,
        "tokens": report.tokens,
        "records": report.records,
        "input_files": LARGE_FILES + small_files + 1,
        "input_bytes": corpus,
        "seconds_to_make": made,
        "seconds": report.seconds,
        "tokens_per_second": report.tokens_per_second,
        "peak_resident_bytes": memory.peak,
        "tasks": len(tasks),
        "task_seconds": {"median": statistics.median(tasks), "largest": max(tasks), "second": sorted(tasks)[-2]},
        "output_files": len(sizes),
        "output_file_bytes": {"smallest": sizes[0], "median": statistics.median(sizes), "largest": sizes[-1]},
    }


def show(result: dict[str, Any]) -> None:
    """Show the table."""
    table = Table(title=f"A large and ugly corpus, {result['mechanism']}", show_header=False)
    for name in ("tokens", "records", "input_files", "tasks", "output_files"):
        table.add_row(name.replace("_", " "), f"{result[name]:,}")
    table.add_row("input", f"{result['input_bytes'] / 2**20:,.0f} MiB")
    table.add_row("seconds", f"{result['seconds']:,.0f} ({result['tokens_per_second']:,.0f} tokens a second)")
    for name, size in result["peak_resident_bytes"].items():
        table.add_row(f"peak resident memory, {name}", f"{size / 2**20:,.0f} MiB")
    for name, seconds in result["task_seconds"].items():
        table.add_row(f"task, {name}", f"{seconds:.1f} s")
    for name, size in result["output_file_bytes"].items():
        table.add_row(f"output file, {name}", f"{size / 2**20:,.2f} MiB")
    Console().print(table)


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--mechanism", choices=list(MECHANISMS), default="laplace")
    arguments = parser.parse_args()
    sizes = (10_000, 4, 500) if arguments.smallest else (100_000_000, 20_000, 1_000_000)
    before = machine()
    result = measure(arguments.mechanism, *sizes)
    save_results(f"large_input_{arguments.mechanism}", {"machine": before, **result}, smallest=arguments.smallest)
    show(result)


if __name__ == "__main__":
    main()
