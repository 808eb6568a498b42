"""What `wordveil sanitise` costs over few rows: Java for few rows against Java for many; and at how many megabytes of
input both compilers of Java pay.

The quickstart's job over 300 articles, and over copies of them. Seconds of the processor, of all processes together,
hold on a busy machine, too.

    python research/benchmarks/start_up.py [--smallest]

Writes research/results/start_up.json and prints a table.
"""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import chdir
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from common import machine, make_parser, save_results
from wordveil.assembly.local_paths import SMALL_BYTES
from wordveil.cli.quickstart import BATCHES, CORPUS, HOME, prepare_home, read_rows

COPIES, REPEATS = (1, 256), 2
RUN = (
    "import sys; from wordveil.assembly import local_paths; local_paths.SMALL_BYTES = int(sys.argv.pop(1)); "
    "from wordveil.cli.app import main; main()"
)
ARRANGEMENTS = {"many rows": -1, "few rows": 2**40}
_SUBREAPER = 36  # of prctl


def write_copies(copies: int) -> float:
    """Write the quickstart's corpus ``copies`` times in its place, and return its megabytes."""
    articles = read_rows(HOME / CORPUS)
    for old in (HOME / CORPUS).rglob("*.parquet"):
        old.unlink()
    rows = [
        {"article": f"{number:06d}", "body": row["body"]}
        for number, row in enumerate(row for _ in range(copies) for row in articles.values())
    ]
    for batch in range(BATCHES):
        file = HOME / CORPUS / f"batch={batch + 1}" / "rows.parquet"
        pq.write_table(pa.Table.from_pylist(rows[batch::BATCHES]), file, use_dictionary=False)  # it finds the copies
    return sum(file.stat().st_size for file in (HOME / CORPUS).rglob("*.parquet")) / 2**20


def spend(limit: int, environment: dict[str, str]) -> float:
    """Processor seconds of one run and all that it starts. ``limit``: what counts as small."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", RUN, str(limit), "sanitise", "--config", "quickstart/job.yaml", "--overwrite"]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    while True:  # Java ends after its parent
        try:
            os.wait()
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure all arrangements in turns, over each number of copies."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    content: dict[str, Any] = {"machine": machine(), "small_bytes": SMALL_BYTES, "runs": []}
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        prepare_home()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        spend(2**40, environment)  # the bundle is built then
        for copies in COPIES[:1] if smallest else COPIES:
            size = write_copies(copies)
            found: dict[str, list[float]] = {name: [] for name in ARRANGEMENTS}
            for _ in range(1 if smallest else REPEATS):
                for name, limit in ARRANGEMENTS.items():
                    found[name].append(spend(limit, environment))
            content["runs"].append({"articles": 300 * copies, "megabytes": size, "seconds": found})
            prepare_home()
    save_results("start_up", content, smallest=smallest)
    table = Table("articles", "MB of Parquet", *ARRANGEMENTS, title="Processor seconds of one sanitise, median")
    for run in content["runs"]:
        medians = (f"{statistics.median(times):.1f}" for times in run["seconds"].values())
        table.add_row(f"{run['articles']:,}", f"{run['megabytes']:.1f}", *medians)
    Console().print(table)


if __name__ == "__main__":
    main()
