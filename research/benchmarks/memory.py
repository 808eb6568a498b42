"""Memory of the Python workers of one executor: what four take over one.

Each row is a fresh driver, a session of one or four slots, and a job that keeps all of them busy; meanwhile the parent
reads /proc five times a second. The bundle goes to the executor as an archive, as on a cluster: the driver then maps
another copy, and the pages counted are those that workers share with each other alone.

* bundle: PSS of the bundle's mapped index, added over all workers, from /proc/PID/smaps. A page that four map counts a
quarter in each.
* total: PSS of the workers, from smaps_rollup. Pages shared with pyspark's daemon (the interpreter, PyArrow) count in
part.
* private: what a worker does not share: its heap, buffers, compiled products; of a lone worker also the libraries'
pages that
  only it has mapped, which several workers share.
* driver: greatest resident size of the JVM and of the driver's Python.

Bundle and total are the greatest of the samples in which every worker has mapped the whole index, and had at the sample
before: workers are read one after the other, and pages that one counts while it is alone and the next one counts as
shared would count twice. Private is once the greatest of all samples (peak: the pass's preparation is in it) and once
the median of those samples (steady); both of the worker that takes most.

    PYTHONPATH=tests python research/benchmarks/memory.py [--smallest]

Writes research/results/memory.json and prints tables.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from common import (
    DATA,
    N_MAX,
    SLOTS,
    FreshSession,
    built_job,
    index_file,
    machine,
    make_parser,
    save_results,
    write_corpus,
)
from support.processes import descendants, python_workers

TARGET = 1.2
WORKERS = (1, 4)
RECORDS = {"small": 600, "demo": 600, "mixed": 80}
WHOLE = 0.95  # of the index's bytes, resident: the page at its end and rounding aside
MIB = 2**20


def look(process: psutil.Process, name: str) -> dict[str, int] | None:
    """Measure bytes of one worker, or None if it has just ended."""
    try:
        whole = process.memory_full_info()
        index = [mapped for mapped in process.memory_maps(grouped=False) if mapped.path.endswith(f"/{name}")]
    except psutil.NoSuchProcess:
        return None
    return {
        "pss": whole.pss,
        "private": whole.uss,
        "index_rss": sum(mapped.rss for mapped in index),
        "index_pss": sum(mapped.pss for mapped in index),
    }


def resident(pid: int) -> int:
    """VmHWM, the greatest resident size so far, in bytes; 0 once the process has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


class Watch:
    """Samples of a session's processes."""

    def __init__(self, driver: int, index: Path, count: int) -> None:
        self._driver, self._index, self._count = driver, index, count
        self._whole = index.stat().st_size * WHOLE
        self._steady: list[list[dict[str, int]]] = []
        self._all_mapped: set[int] = set()
        self._private_peak = self._jvm = self._python = 0

    def sample(self) -> None:
        """Look once."""
        processes = python_workers(self._driver)
        pids = {process.pid for process in processes}
        seen = [found for process in processes if (found := look(process, self._index.name)) is not None]
        self._private_peak = max([self._private_peak, *(one["private"] for one in seen)])
        mapped = [one for one in seen if one["index_rss"] >= self._whole]
        all_mapped = pids if len(mapped) == self._count == len(seen) else set()
        if all_mapped and all_mapped == self._all_mapped:
            self._steady.append(mapped)
        self._all_mapped = all_mapped
        self._python = max(self._python, resident(self._driver))
        jvms = [process.pid for process, line in descendants(self._driver) if "java" in line.split(" ")[0]]
        self._jvm = max([self._jvm, *map(resident, jvms)])

    def result(self) -> dict[str, Any]:
        """Return what the samples say, in bytes."""
        if not self._steady:
            raise SystemExit(
                f"Never saw {self._count} workers at once with the whole index mapped; more records are needed."
            )
        return {
            "samples": len(self._steady),
            "bundle_pss": max(sum(one["index_pss"] for one in sample) for sample in self._steady),
            "total_pss": max(sum(one["pss"] for one in sample) for sample in self._steady),
            "private_steady": statistics.median(max(one["private"] for one in sample) for sample in self._steady),
            "private_peak": self._private_peak,
            "driver_jvm": self._jvm,
            "driver_python": self._python,
        }


def measure(name: str, records: int) -> dict[str, Any]:
    """Measure all figures of one embedding."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        job = built_job(home, name, {"profile": "strict", "n_max": N_MAX})
        index = index_file(job)
        write_corpus(home / "corpus", records)
        for count in WORKERS:
            with FreshSession(job, f"local[{count}]", bundle="archive") as session:
                watch = Watch(session.pid or 0, index, count)
                run = session.run(home / "corpus", str(count), watch.sample)
            rows.append({"workers": count, **run, **watch.result()})
        size = index.stat().st_size
    return {
        "embedding": name,
        "index_bytes": size,
        "rows": rows,
        "bundle_pss_4_over_1": rows[-1]["bundle_pss"] / rows[0]["bundle_pss"],
    }


def show(results: list[dict[str, Any]]) -> None:
    """Show the tables of the results."""
    headings = {
        "bundle_pss": "bundle, all",
        "total_pss": "PSS, all",
        "private_steady": "private, one",
        "private_peak": "peak",
        "driver_jvm": "JVM",
        "driver_python": "driver",
    }
    for result in results:
        table = Table(title=f"Memory in MiB, {result['embedding']}, index {result['index_bytes'] / MIB:.1f} MiB")
        for heading in ("workers", *headings.values()):
            table.add_column(heading, justify="right")
        for row in result["rows"]:
            table.add_row(str(row["workers"]), *(f"{row[figure] / MIB:,.1f}" for figure in headings))
        Console().print(table)
        ratio = result["bundle_pss_4_over_1"]
        print(f"the bundle's pages over four workers are {ratio:.3f} of one worker's (target: at most {TARGET})")


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    names = ["small"] if smallest else ["demo", "mixed"]
    if "mixed" in names and not (DATA / "mixed_w2v_300d.f16.npz").exists():
        names.remove("mixed")
        print(f"skipped 54,000 x 300: {DATA / 'mixed_w2v_300d.f16.npz'} is missing", file=sys.stderr)
    before = machine()
    results = [measure(name, RECORDS[name]) for name in names]
    met = all(result["bundle_pss_4_over_1"] <= TARGET for result in results)
    save_results(
        "memory",
        {"machine": before, "slots": SLOTS, "target": TARGET, "met": met, "results": results},
        smallest=smallest,
    )
    show(results)


if __name__ == "__main__":
    main()
