"""Laplace exact in Spark on one core and on two, and over 1, 4 and 16 times as many records.

Cores: each session is a fresh process over the same bundle and corpus. In turns, so that a machine that slows down
slows all:

* pinned: local[1], the driver, its JVM and the worker all bound to one core: one core against two, all told;
* free: local[1], bound to nothing: the JVM's own threads (compiler, garbage collection) run on the other cores;
* both: local[2], bound to two cores.

Size: one local session with a slot a core sanitises 1, 4 and 16 times as many records, after a first small run has
started the workers. If the job is linear, seconds a million tokens fall towards a constant: what is fixed is spread
over more.

    python research/benchmarks/scaling.py [--smallest] [--rounds N]

Writes research/results/scaling.json and prints tables.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from common import N_MAX, SLOTS, FreshSession, Job, built_job, machine, make_parser, save_results, write_corpus

TARGET = 1.85
RECORDS, ROUNDS = 800, 3
SMALLEST = 312  # 16 times as many are the whole newswire of the data directory


def speed(job: Job, master: str, cores: set[int], corpora: Path, name: str) -> float:
    """Measure tokens a second of a fresh session, after a small run that starts its worker."""
    with FreshSession(job, master, cores) as session:
        session.run(corpora / "warm", f"{name}-warm")
        run = session.run(corpora / "corpus", name)
    return float(run["tokens"] / run["seconds"])


def by_cores(job: Job, corpora: Path, rounds: int) -> dict[str, Any]:
    """Measure tokens a second on one core and two, in turns."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise SystemExit("This benchmark needs two cores.")
    ways = {
        "pinned": ("local[1]", {usable[0]}),
        "free": ("local[1]", set(usable[:2])),
        "both": ("local[2]", set(usable[:2])),
    }
    speeds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way, (master, cores) in ways.items():
            speeds[way].append(speed(job, master, cores, corpora, f"{way}-{number}"))
    ratios = {
        f"both_over_{way}": statistics.median(b / a for a, b in zip(speeds[way], speeds["both"], strict=True))
        for way in ("pinned", "free")
    }
    return {"tokens_per_second": speeds, **ratios, "target": TARGET, "met": ratios["both_over_pinned"] >= TARGET}


def by_size(job: Job, corpora: Path, sizes: list[int]) -> list[dict[str, Any]]:
    """Measure seconds a million tokens, one session, corpora of growing size."""
    rows = []
    with FreshSession(job, f"local[{SLOTS}]") as session:
        session.run(corpora / "warm", "size-warm")
        for size in sizes:
            run = session.run(corpora / f"size-{size}", f"size-{size}")
            rows.append({"records": size, **run, "seconds_per_million_tokens": run["seconds"] / run["tokens"] * 1e6})
    return rows


def show(cores: dict[str, Any], sizes: list[dict[str, Any]]) -> None:
    """Show the tables of the results."""
    table = Table(title="Laplace exact in Spark, 20,000 x 100, by cores")
    for heading in ("session", "tok/s (median)", "local[2] over it (median of the rounds)", "target"):
        table.add_column(heading, justify="right")
    for way, name in (
        ("pinned", "local[1], one core"),
        ("free", "local[1], two cores"),
        ("both", "local[2], two cores"),
    ):
        ratio = cores.get(f"both_over_{way}")
        table.add_row(
            name,
            f"{statistics.median(cores['tokens_per_second'][way]):,.0f}",
            f"{ratio:.2f}" if ratio else "",
            f"{TARGET}" if way == "pinned" else "",
        )
    Console().print(table)
    table = Table(title=f"The same by size, local[{SLOTS}]")
    for heading in ("records", "tokens", "seconds", "s a million tokens", "over the smallest's"):
        table.add_column(heading, justify="right")
    for row in sizes:
        table.add_row(
            f"{row['records']:,}",
            f"{row['tokens']:,}",
            f"{row['seconds']:.2f}",
            f"{row['seconds_per_million_tokens']:.2f}",
            f"{row['seconds_per_million_tokens'] / sizes[0]['seconds_per_million_tokens']:.2f}",
        )
    Console().print(table)


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of the comparison by cores")
    arguments = parser.parse_args()
    smallest = arguments.smallest
    (count, size, rounds) = (20, 4, 1) if smallest else (RECORDS, SMALLEST, arguments.rounds)
    before = machine()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        job = built_job(home, "small" if smallest else "demo", {"profile": "strict", "n_max": N_MAX})
        write_corpus(home / "warm", 4 * SLOTS)
        write_corpus(home / "corpus", count)
        sizes = [size * times for times in (1, 4, 16)]
        records = [write_corpus(home / f"size-{size}", size) for size in sizes]
        if records != sizes:
            raise SystemExit(f"There are texts for {records[-1]:,} records only, {sizes[-1]:,} are needed.")
        cores, rows = by_cores(job, home, rounds), by_size(job, home, sizes)
    content = {"machine": before, "embedding": "demo", "by_cores": cores, "by_size": rows}
    save_results("scaling", content, smallest=smallest)
    show(cores, rows)


if __name__ == "__main__":
    main()
