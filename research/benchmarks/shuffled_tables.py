"""Central epsilon of shuffled tables: by the number of rows, for randomised response, for any randomiser, and by the
closed form of Feldman, McMillan, Talwar 2021.

    python research/benchmarks/shuffled_tables.py [--smallest] [--job]

Some seconds. Writes research/results/shuffled_tables.json and prints a table. ``--job`` measures instead, in some
minutes, a job over a million sentences whose rows are shuffled, against one whose rows are in the order of keyed hashes
of their ids, and writes the result beside the bounds.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from common import RESULTS, machine, make_parser, real_texts, save_results
from tables import Tables
from wordveil.privacy.shuffling import bound_epsilon, closed_form

DELTA = 1e-8
SYMBOLS = {2: 4, 3: 4, 4: 16, 5: 37, 6: 100, 8: 750}
"""Symbols by local loss: about a quarter of e^loss keeps four symbols of five."""
RECORDS, ROUNDS = 1_000_000, 3
ROWS = (10_000, 100_000, 1_000_000, 10_000_000)


def bound_table(loss: int, rows: int) -> dict[str, Any]:
    """Compute the three bounds, and the seconds that the first takes."""
    start = time.perf_counter()
    response = bound_epsilon(loss, rows, DELTA, SYMBOLS[loss])
    seconds = time.perf_counter() - start
    return {
        "local_epsilon": loss,
        "symbols": SYMBOLS[loss],
        "rows": rows,
        "response": response,
        "any": bound_epsilon(loss, rows, DELTA),
        "closed_form": closed_form(loss, rows, DELTA),
        "seconds": round(seconds, 2),
    }


def time_jobs(*, smallest: bool) -> dict[str, Any]:
    """Measure both jobs in one session, in turns; the first round starts the session and is left out."""
    from wordveil.assembly.bundles import build_bundle
    from wordveil.spark.platform.session import build_session
    from wordveil.spark.sanitise.job import run_sanitise

    rows = 2_000 if smallest else RECORDS
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        tables = Tables(home, smallest=smallest)
        texts = [text[:120] for text in islice(real_texts(), 20_000)]
        ids = [f"r{number:08d}" for number in range(rows)]
        corpus = pa.table({"id": ids, "text_body": [texts[number % len(texts)] for number in range(rows)]})
        pq.write_table(corpus, home / "corpus.parquet", row_group_size=50_000)
        embedding = str(home / "embedding") if smallest else "glove"
        mechanism = {"name": "passages", "passages": "wordnet", "clusters": 4 if smallest else 37, "epsilon": 5.0}
        sections = {
            "mechanism": {**mechanism, "embedding": embedding, "public": True},
            "text": {"profile": "passages", "refused": "empty"},
        }
        outputs = {"hashed": {}, "shuffled": {"shuffle": {"epsilon": 4.0 if smallest else 0.5, "delta": DELTA}}}
        for number in range(1 + (1 if smallest else ROUNDS)):
            rounds.append({})
            for name, output in outputs.items():
                place = {"path": str(home / f"{name}-{number}"), "public_only": True, **output}
                config = tables.config(home / "corpus.parquet", name, "tree", output=place, **sections)
                build_bundle(config)
                started = time.perf_counter()
                run_sanitise(config, lambda config=config: build_session(config.spark))
                rounds[-1][name] = time.perf_counter() - started
    rounds = rounds[1:]
    ratio = statistics.median(one["shuffled"] / one["hashed"] for one in rounds)
    return {"machine": machine(), "records": rows, "rounds": rounds, "over_hashed": ratio}


def main() -> None:
    """Compute, write, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--job", action="store_true", help="what it costs to shuffle the rows of a job")
    arguments = parser.parse_args()
    smallest = arguments.smallest
    content = json.loads((RESULTS / "shuffled_tables.json").read_text())
    if arguments.job:
        job = time_jobs(smallest=smallest)
        save_results("shuffled_tables", {**content, "job": job}, smallest=smallest)
        print(f"the job over {job['records']:,} sentences takes {job['over_hashed']:.2f} of the time of order: hashed")
        return
    about = machine()
    bounds = [bound_table(loss, rows) for loss in SYMBOLS for rows in ROWS[: 1 if smallest else None]]
    content |= {"machine": about, "delta": DELTA, "bounds": bounds}
    save_results("shuffled_tables", content, smallest=smallest)
    table = Table("local", "symbols", "rows", "response", "any", "closed form", "s", title=f"Epsilon at delta {DELTA}")
    for bound in bounds:
        table.add_row(*("-" if value is None else f"{value:,}" for value in bound.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
