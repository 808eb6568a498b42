"""What a small night takes as one command and as three, and what it takes to look at a release.

Each start of Java, Spark and Delta's classes takes some seconds, however few records are new. Some thousand short
records of film reviews (without the data directory of gensim's news articles), as a Delta table with its change data
feed on, and two releases of it. In each round 1% of the records are edited. Then one release has its night by `release
night` and the other by `sanitise`, `release gate` and `release publish`, in turns, each command a process of its own.
After that `release show` looks at a release, without Java and with Spark, in turns.

    python research/benchmarks/night.py [--rounds N] [--smallest]

Writes research/results/night.json and prints a table.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import yaml
from rich.console import Console
from rich.table import Table

from common import SLOTS, draft_settings, machine, make_parser, save_results
from tables import reviews

ROUNDS, RECORDS, WORDS_A_RECORD = 3, 5000, 60
COMMANDS = ("sanitise", "release gate", "release publish")
# This variable may name another file system for Spark, so tables are not read without it.
BY_SPARK = {"HADOOP_CONF_DIR": "/nowhere"}


def write_input(path: str, pieces: list[str]) -> None:
    """Write the records as a Delta table. Without records, edit 1% of the existing ones."""
    from wordveil.config.schema import SparkSection
    from wordveil.spark.platform.session import build_session

    spark = build_session(SparkSection(master=f"local[{SLOTS}]"), delta=True)
    if pieces:
        rows = spark.createDataFrame(
            [(f"r{number:06d}", text) for number, text in enumerate(pieces)], "id string, body string"
        )
        rows.coalesce(2).write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)
    else:
        spark.sql(f"UPDATE delta.`{path}` SET body = concat('edited ', body) WHERE id LIKE '%07'")  # noqa: S608
    spark.stop()


def run_apart(path: Path, pieces: list[str]) -> None:
    """:func:`write_input` in a process of its own, so that no session stays."""
    code = "import json, sys; from night import write_input; write_input(sys.argv[1], json.load(sys.stdin))"
    command = [sys.executable, "-c", code, str(path)]
    subprocess.run(command, input=json.dumps(pieces), text=True, check=True, cwd=Path(__file__).parent)


def command(config: Path, name: str, **environment: str) -> float:
    """Measure seconds of one command in a process of its own."""
    started = time.perf_counter()
    words = [sys.executable, "-m", "wordveil", *name.split(), "--config", str(config), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{name}: {done.stdout}{done.stderr}")
    return time.perf_counter() - started


def write_config(home: Path, name: str) -> Path:
    """Write the configuration of a release over the input."""
    settings = draft_settings(
        home,
        {"name": "tree", "epsilon": 8.0, "sizes": [20], "embedding": "demo"},
        {"id": "id", "text": "body"},
        text={"n_max": 64},
        output={"path": str(home / name)},
        ledger={"path": str(home / f"{name}-ledger")},
        spark={"master": f"local[{SLOTS}]"},
    )
    path = home / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def main() -> None:
    """Measure all rounds."""
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="how many nights either release has")
    chosen = parser.parse_args()
    smallest, rounds = chosen.smallest, 1 if chosen.smallest else chosen.rounds
    content: dict[str, Any] = {"machine": machine(), "seconds": {}}

    def measure(config: Path, label: str, name: str, **environment: str) -> None:
        content["seconds"].setdefault(label, []).append(command(config, name, **environment))

    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        words = " ".join(reviews(2000)).split()[: (200 if smallest else RECORDS) * WORDS_A_RECORD]
        pieces = [" ".join(words[start : start + WORDS_A_RECORD]) for start in range(0, len(words), WORDS_A_RECORD)]
        run_apart(home / "input", pieces)
        content["records"] = len(pieces)
        one, three = write_config(home, "one"), write_config(home, "three")
        for config in (one, three):
            command(config, "release night")
        for _ in range(rounds):
            run_apart(home / "input", [])
            measure(one, "release night", "release night")
            for name in COMMANDS:
                measure(three, name, name)
            measure(one, "release show", "release show")
            measure(one, "release show, by Spark", "release show", **BY_SPARK)
    parts = [content["seconds"][name] for name in COMMANDS]
    content["seconds"]["the three commands"] = [sum(night) for night in zip(*parts, strict=True)]
    save_results("night", content, smallest=smallest)
    table = Table("what", "seconds, median", title=f"A night of {content['records']:,} records")
    for label, seconds in content["seconds"].items():
        table.add_row(label, f"{statistics.median(seconds):.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
