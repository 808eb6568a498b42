"""The main job by spark-submit on a standalone cluster, over the same job in local mode: the same cores, in turns.

The cluster is the tests' (tests/cluster.py): a master and two workers of one core each on this machine, scratch of
their own, no sight of the driver's bundle and key, authentication and encryption on. Local mode is ``local[2]`` by the
same spark-submit. Seconds are the run's own, from reading the table to its publication. The table also has the time
from the command to the report.

    python research/benchmarks/cluster.py [--smallest]

Writes research/results/cluster.json and prints a table. Needs a machine that lets a process have file systems of its
own.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from common import N_MAX, Job, built_job, machine, make_parser, save_results, write_corpus

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from support.cluster import Cluster, find_namespace

RECORDS, ROUNDS = 1600, 3


def config(job: Job, corpus: Path, output: Path, spark: dict[str, Any]) -> Path:
    """Return the job's configuration as a file."""
    settings = {
        **job.settings,
        "input": {**job.settings["input"], "path": str(corpus)},
        "output": {"path": str(output)},
        "key": {"file": str(job.home / "keys" / "key")},
        "build_missing": False,
        "spark": spark,
    }
    file = output.with_suffix(".yaml")
    file.write_text(json.dumps(settings))
    return file


def run(cluster: Cluster, job: Job, way: str, number: int) -> dict[str, Any]:
    """Run once: return tokens, seconds of the run, and seconds from the command to its end."""
    name = f"{way}-{number}"
    file = config(job, job.home / "corpus", job.home / f"out-{name}", {})
    started = time.perf_counter()
    process = cluster.submit(
        "--config", file, "--json", scratch=job.home / "driver", local=2 if way == "local" else None
    )
    out, errors = process.communicate()
    if process.returncode:
        raise SystemExit(errors[-4000:])
    report = json.loads(out[out.index("{") :])
    return {"tokens": report["tokens"], "seconds": report["seconds"], "command_seconds": time.perf_counter() - started}


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    if not find_namespace():
        raise SystemExit("This machine does not allow processes to have separate file systems.")
    before = machine()
    runs: dict[str, list[dict[str, Any]]] = {"local": [], "cluster": []}
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        job = built_job(home, "small" if smallest else "demo", {"profile": "strict", "n_max": N_MAX})
        for name in ("keys", "driver"):
            (home / name).mkdir()
        (home / "key").rename(home / "keys" / "key")
        write_corpus(home / "corpus", 20 if smallest else RECORDS)
        with Cluster(home / "cluster", [home / "bundles", home / "keys", home / "driver"]) as cluster:
            for number in range(1 if smallest else ROUNDS):
                for way, found in runs.items():
                    found.append(run(cluster, job, way, number))
    seconds = {way: statistics.median(one["seconds"] for one in found) for way, found in runs.items()}
    ratio = statistics.median(b["seconds"] / a["seconds"] for a, b in zip(runs["local"], runs["cluster"], strict=True))
    content = {"machine": before, "embedding": "demo", "runs": runs, "cluster_over_local_seconds": ratio}
    save_results("cluster", content, smallest=smallest)
    table = Table(title="Laplace exact, 20,000 x 100, two cores")
    for heading in ("way", "tokens", "seconds", "tok/s", "from command to report"):
        table.add_column(heading, justify="right")
    for way, found in runs.items():
        whole = statistics.median(one["command_seconds"] for one in found)
        tokens = found[0]["tokens"]
        table.add_row(way, f"{tokens:,}", f"{seconds[way]:.1f}", f"{tokens / seconds[way]:,.0f}", f"{whole:.1f} s")
    Console().print(table)
    print(f"the cluster takes {ratio:.2f} of local mode's seconds (median of the rounds)")


if __name__ == "__main__":
    main()
