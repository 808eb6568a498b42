"""Laplace with exact search, end to end in Spark, over the bare float32 matrix product that it cannot do without.

For each embedding one process runs, one after the other and on the same cores:

* bare: as many worker processes as Spark has task slots, each multiplying its share of queries with all rows of the
bundle's
  index in float32 (words and padding, with the column that turns a product into a distance; NumPy's BLAS on one thread,
  the best of several block sizes), and nothing else: no maximum, no noise, no text;
* spark: the main job's own path from Parquet to Parquet: scan, tokenise, draw, search, join, account, write.

The order is bare, spark, bare, ...; a ratio is the job's tokens a second over the mean of the two bare runs around it.
The job's time is that of the write, from its first task to the finished table, after a first small run has started the
workers. A profile of the same code in one process says where the rest goes.

    python research/benchmarks/laplace_exact.py [--smallest]

Writes research/results/laplace_exact.json and prints a table.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS; Spark's workers inherit it

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from common import (
    DATA,
    N_MAX,
    SLOTS,
    Job,
    load_embedding,
    machine,
    make_parser,
    save_results,
    timed,
    timed_calls,
    write_corpus,
)

BARE_BLOCKS = (512, 1024, 2048)


def _multiply(arguments: tuple[str, int, float]) -> tuple[int, float]:
    """Queries multiplied and the seconds it took, in one process, for about the given time."""
    index, block, seconds = arguments
    vectors = np.load(index)
    queries = np.random.default_rng(0).standard_normal((block, vectors.shape[1])).astype(np.float32)
    out = np.empty((block, len(vectors)), np.float32)
    np.matmul(queries, vectors.T, out=out)
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        np.matmul(queries, vectors.T, out=out)
        done += block
    return done, time.perf_counter() - started


def bare_product(pool: Any, index: str, seconds: float) -> dict[int, float]:
    """Queries a second of all slots together, by block size."""
    speeds = {}
    for block in BARE_BLOCKS:
        parts = pool.map(_multiply, [(index, block, seconds)] * SLOTS, chunksize=1)
        speeds[block] = sum(done / taken for done, taken in parts)
    return speeds


def profile(job: Job, corpus: Path, tokens: int) -> dict[str, float]:
    """Measure seconds a million tokens of each step, in this process, on one thread, without Spark."""
    from wordveil.assembly.bundles import build_bundle
    from wordveil.config.load import parse_config
    from wordveil.crypto.keys import load_key
    from wordveil.mechanisms.additive.laplace import Laplace
    from wordveil.neighbours.exact import ExactNearest, Float32Pass
    from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
    from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN

    settings = {**job.settings, "input": {**job.settings["input"], "path": str(corpus)}, "output": {"path": "unused"}}
    config = parse_config(settings, "benchmark")
    bundle = build_bundle(config)
    keys = load_key(config.key.file, None).for_release("bench")
    sanitiser = RecordSanitiser(RecordSettings("bench", "profile", config.policy, ()), bundle, keys)
    table = pq.read_table(corpus)
    rows = max(1, tokens // N_MAX)
    batch = pa.RecordBatch.from_arrays(
        [
            table["id"].combine_chunks()[:rows],
            table["text_body"].combine_chunks()[:rows],
            pa.nulls(min(rows, len(table)), pa.string()),
        ],
        names=["id", TEXT_COLUMN, REASON_COLUMN],
    )
    _ = list(sanitiser.sanitise(batch.slice(0, 2)))  # compiled code is ready then
    totals: dict[str, float] = {}
    patched: dict[tuple[Any, str], str] = {
        (Laplace, "_noise"): "noise: AES, ndtri, gammaincinv",
        (Laplace, "draw"): "draw",
        (Float32Pass, "multiply"): "product",
        (Float32Pass, "scan"): "scan for candidates",
        (ExactNearest, "_decide"): "float64 re-check",
        (ExactNearest, "search"): "search",
    }
    with timed_calls(totals, patched), timed(totals, "all"):
        drawn = sum(sum(part.column("privacy").field("tokens").to_pylist()) for part in sanitiser.sanitise(batch))
    parts = ("product", "scan for candidates", "float64 re-check")
    totals["search: rounding and the rest"] = totals["search"] - sum(totals[part] for part in parts)
    totals["draw: gather and the rest"] = totals["draw"] - totals["search"] - totals["noise: AES, ndtri, gammaincinv"]
    totals["text, contexts, accounting"] = totals["all"] - totals["draw"]
    for name in ("search", "draw"):
        del totals[name]
    return {name: seconds / drawn * 1e6 for name, seconds in totals.items()}


def bare_alone(index: str) -> float:
    """Measure seconds a million tokens of the bare product in this process."""
    done, taken = max((_multiply((index, block, 3.0)) for block in BARE_BLOCKS), key=lambda pair: pair[0] / pair[1])
    return taken / done * 1e6


def measure(name: str, records: int, rounds: int, seconds: float, pool: Any) -> dict[str, Any]:
    """Measure all figures of one embedding, in a session of their own."""
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        running.stop()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        job = Job(home, name, {"profile": "strict", "n_max": N_MAX})
        write_corpus(home / "warm", 4 * SLOTS)
        write_corpus(home / "corpus", records)
        job.run(home / "warm", "warm")
        index = job.save_index()
        runs = []
        before = bare_product(pool, index, seconds)
        for number in range(rounds):
            report = job.run(home / "corpus", str(number))
            after = bare_product(pool, index, seconds)
            bare = statistics.mean([max(before.values()), max(after.values())])
            runs.append({"spark": report.tokens_per_second, "bare": bare, "ratio": report.tokens_per_second / bare})
            before = after
        steps = profile(job, home / "corpus", 60_000)
        steps["bare product, same process"] = bare_alone(index)
    shape = load_embedding(name).vectors.shape
    return {
        "embedding": name,
        "words": shape[0],
        "dimension": shape[1],
        "tokens": report.tokens,
        "runs": runs,
        "ratio": statistics.median(run["ratio"] for run in runs),
        "seconds_per_million_tokens": steps,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Show the tables of the results."""
    console = Console()
    table = Table(title="Laplace exact in Spark over the bare float32 product")
    for heading in (
        "words x dimension",
        "tokens",
        "spark tok/s",
        "bare product tok/s",
        "ratio (median)",
        "ratios",
    ):
        table.add_column(heading, justify="right")
    for result in results:
        runs = result["runs"]
        table.add_row(
            f"{result['words']:,} x {result['dimension']}",
            f"{result['tokens']:,}",
            f"{statistics.median(run['spark'] for run in runs):,.0f}",
            f"{statistics.median(run['bare'] for run in runs):,.0f}",
            f"{result['ratio']:.3f}",
            " ".join(f"{run['ratio']:.2f}" for run in runs),
        )
    console.print(table)
    for result in results:
        steps = Table(title=f"Where the time goes, {result['words']:,} x {result['dimension']}, one process")
        steps.add_column("step")
        steps.add_column("s a million tokens", justify="right")
        steps.add_column("share", justify="right")
        whole = result["seconds_per_million_tokens"]["all"]
        for step, seconds in sorted(result["seconds_per_million_tokens"].items(), key=lambda item: -item[1]):
            steps.add_row(step, f"{seconds:.2f}", f"{seconds / whole:.1%}")
        console.print(steps)


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    arguments = parser.parse_args()
    rounds, seconds = (1, 0.1) if arguments.smallest else (2, 3.0)
    about = machine()
    plans = [("demo", 5000)]
    if arguments.smallest:
        plans = [("small", 20)]
    elif (DATA / "mixed_w2v_300d.f16.npz").exists():
        plans.append(("mixed", 1000))
    else:
        print(f"skipped 54,000 x 300: {DATA / 'mixed_w2v_300d.f16.npz'} is missing", file=sys.stderr)
    context = multiprocessing.get_context("spawn")
    with context.Pool(SLOTS) as pool:
        results = [measure(name, records, rounds, seconds, pool) for name, records in plans]
    save_results("laplace_exact", {"machine": about, "results": results}, smallest=arguments.smallest)
    show(results)


if __name__ == "__main__":
    main()
