"""Central epsilon of shuffled tables: by the number of rows, for randomised response, for any randomiser, and by the
closed form of Feldman, McMillan, Talwar 2021.

    python research/benchmarks/shuffled_tables.py [--smallest]

Some seconds. Writes research/results/shuffled_tables.json and prints a table.
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.table import Table

from common import machine, make_parser, save_results
from wordveil.privacy.shuffling import bound_epsilon, closed_form

DELTA = 1e-8
SYMBOLS = {2: 4, 3: 4, 4: 16, 5: 37, 6: 100, 8: 750}
"""Symbols by local loss: about a quarter of e^loss keeps four symbols of five."""
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


def main() -> None:
    """Compute, write, print."""
    smallest = make_parser(__doc__).parse_args().smallest
    about = machine()
    bounds = [bound_table(loss, rows) for loss in SYMBOLS for rows in ROWS[: 1 if smallest else None]]
    save_results("shuffled_tables", {"machine": about, "delta": DELTA, "bounds": bounds}, smallest=smallest)
    table = Table("local", "symbols", "rows", "response", "any", "closed form", "s", title=f"Epsilon at delta {DELTA}")
    for bound in bounds:
        table.add_row(*("-" if value is None else f"{value:,}" for value in bound.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
