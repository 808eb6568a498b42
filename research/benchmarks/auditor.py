"""The auditor measured: draws and seconds to catch each broken mechanism, and false alarms on sound ones.

The broken mechanisms are the tests' (tests/support/broken_mechanisms.py). Draws are those of each word in either phase
of the first round of two-phase tests, or records of noise; they are doubled from 250 until the findings that must
refute a mechanism do so in nine of ten audits with other seeds. Seconds are of the processor, for one such audit. A
false alarm is an audit of a sound mechanism in which any finding refutes, at a family-wise 1%.

    python research/benchmarks/auditor.py [--smallest]

Writes research/results/auditor.json and prints two tables.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from rich.console import Console
from rich.table import Table

from common import machine, make_parser, save_results
from support.audits import ALPHA, SHIPPED, audit_shipped, list_refuted
from support.broken_mechanisms import BROKEN, SOUND, Case

FEWEST, MOST = 250, 1_024_000
DRAWS, ENOUGH = 300, 0.9


def catch(case: Case, draws: int, seeds: int) -> tuple[float, float]:
    """Return the share of audits that catch a case, and the median seconds of one."""
    caught, seconds = 0, []
    for seed in range(seeds):
        started = time.process_time()
        found = list_refuted(case.audit(seed, draws))
        seconds.append(time.process_time() - started)
        caught += case.caught_by <= found
    return caught / seeds, statistics.median(seconds)


def measure_broken(name: str, seeds: int) -> dict[str, Any]:
    case, draws = BROKEN[name], FEWEST
    if case.has_fixed_draws:
        share, seconds = catch(case, case.draws, seeds)
        return {"broken": name, "caught_by": sorted(case.caught_by), "draws": None, "share": share, "seconds": seconds}
    share, seconds = catch(case, draws, seeds)
    while share < ENOUGH and draws < MOST:
        draws *= 2
        share, seconds = catch(case, draws, seeds)
    return {"broken": name, "caught_by": sorted(case.caught_by), "draws": draws, "share": share, "seconds": seconds}


def measure_sound(name: str, seeds: int) -> dict[str, Any]:
    started = time.process_time()
    audit = SOUND.get(name) or partial(audit_shipped, name)
    alarms = sum(bool(list_refuted(audit(seed, DRAWS))) for seed in range(1_000, 1_000 + seeds))
    return {"sound": name, "audits": seeds, "alarms": alarms, "seconds": (time.process_time() - started) / seeds}


def show(console: Console, rows: list[dict[str, Any]]) -> None:
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(table)


def main() -> None:
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    seeds, audits = (1, 1) if smallest else (10, 100)
    count = 2 if smallest else None
    content: dict[str, Any] = {"machine": machine(), "alpha": ALPHA, "seeds": seeds, "draws_of_sound": DRAWS}
    console = Console()
    content["broken"], content["sound"] = [], []
    for name in list(BROKEN)[:count]:
        content["broken"].append(measure_broken(name, seeds))
        console.log(content["broken"][-1])
    for name in [*SOUND, *SHIPPED][:count]:
        content["sound"].append(measure_sound(name, audits))
        console.log(content["sound"][-1])
    show(console, content["broken"])
    show(console, content["sound"])
    save_results("auditor", content, smallest=smallest)


if __name__ == "__main__":
    main()
