"""What Spark Connect adds to `wordveil.sanitise`: the same records by a classic session and by one of Connect.

Both run on this machine with as many cores, and write what they draw as Parquet, in turns. `first` is a session's first
call, which sends the bundle; the others are medians of the calls after it.

    PYTHONPATH=tests python research/benchmarks/connect.py [--records N ...] [--runs N]

Writes research/results/connect.json and prints a table.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from common import N_MAX, draft_job, draft_mechanism, machine, make_parser, save_results, write_corpus
from support import connect

RECORDS, SMALLEST = (500, 5_000), 100
POLICY = {"profile": "strict", "n_max": N_MAX}
CLIENT = """
import json, sys, time
from pyspark.sql import SparkSession
from wordveil import Run, sanitise
how, url, bundle, policy = sys.argv[1:]
classic = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
session = (SparkSession.builder.remote(url) if url else classic).getOrCreate()
for line in sys.stdin:
    corpus, out = json.loads(line)
    started = time.perf_counter()
    records = session.read.parquet(corpus)
    given = {"run": Run.throwaway(), "id": "id", "text": "text_body", "policy": json.loads(policy), "how": how}
    sanitise(records, bundle=bundle, **given).write.parquet(out)
    print("seconds", time.perf_counter() - started, flush=True)
"""


def start(url: str, bundle: Path) -> subprocess.Popen[str]:
    """Return a process with a session, a classic one where ``url`` is empty."""
    command = [sys.executable, "-c", CLIENT, "archive" if url else "path", url, str(bundle), json.dumps(POLICY)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen(command, text=True, env=environment, **pipes)  # type: ignore[call-overload]


def run(session: Any, corpus: Path, out: Path) -> float:
    """Let a session sanitise a table. Returns the seconds."""
    session.stdin.write(json.dumps([str(corpus), str(out)]) + "\n")
    session.stdin.flush()
    seconds = next(line for line in session.stdout if line.startswith("seconds "))
    return float(seconds.split()[1])


def main() -> None:
    """Measure all sizes, in turns."""
    parser = make_parser(__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=RECORDS, metavar="N", help="how many records")
    parser.add_argument("--runs", type=int, default=9, metavar="N", help="how often each is repeated")
    chosen = parser.parse_args()
    from wordveil import build_bundle

    content: dict[str, Any] = {"machine": machine(), "first": {}, "records": {}}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        home = Path(directory)
        bundle = build_bundle(
            draft_job(str(home / "bundles"), draft_mechanism(directory, smallest=chosen.smallest), POLICY)
        )
        sizes = (SMALLEST,) if chosen.smallest else chosen.records
        corpora = {size: home / f"corpus-{size}" for size in (min(sizes) // 2, *sizes)}
        found = {size: write_corpus(path, size) for size, path in corpora.items()}
        port = stack.enter_context(connect.serve(home, {}))
        urls = {"classic": "", "connect": f"sc://127.0.0.1:{port}"}
        sessions = {name: stack.enter_context(start(url, bundle.path)) for name, url in urls.items()}
        content["first"] = {
            name: round(run(session, corpora[min(corpora)], home / f"first-{name}"), 2)
            for name, session in sessions.items()
        }
        for size in sizes:
            seconds: dict[str, list[float]] = {name: [] for name in sessions}
            for number in range(1 if chosen.smallest else chosen.runs):
                for name, session in sessions.items():
                    seconds[name].append(run(session, corpora[size], home / f"{name}-{size}-{number}"))
            medians = {name: round(statistics.median(times), 2) for name, times in seconds.items()}
            content["records"][str(found[size])] = medians
    save_results("connect", content, smallest=chosen.smallest)
    table = Table("records", "classic, s", "connect, s", "ratio")
    for name, row in {"first": content["first"], **content["records"]}.items():
        table.add_row(name, *(f"{value:,}" for value in row.values()), f"{row['connect'] / row['classic']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
