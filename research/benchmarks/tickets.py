"""A month of a nightly release of made support tickets: what its public table says of products and weeks.

Some thousand tickets of four weeks, a few customers with many of them, as a Delta table with its change data feed on,
and seven nights of four days. Between nights tickets change their priority alone, are edited, deleted, or come in days
late; a column is renamed, and a customer is erased. There are two releases: one with an author's limit that is small,
and one with the first double of it under which `wordveil plan --sample` leaves out 5% of a month's tickets at most.

    python research/benchmarks/tickets.py [--smallest]

A quarter of an hour. Writes research/results/tickets.json and prints tables: of each night counts and seconds, and of
each release the cells of product and week that lose most, against those of the input.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from rich.table import Table

from common import SLOTS, draft_mechanism, draft_settings, machine, make_parser, save_results
from wordveil.assembly.bundles import ready_bundle
from wordveil.config.load import Config, load_config
from wordveil.spark.platform.session import start_session
from wordveil.spark.release.erase import erase
from wordveil.spark.release.night import run_night

TICKETS, CUSTOMERS, DAYS, NIGHTS, LATE = 6069, 900, 28, 7, 0.03
SMALL_LIMIT = 12_000.0
ERASED = "c0010"
THINGS = {
    "router": ("router", "antenna", "firmware", "cable", "light", "signal"),
    "phone": ("phone", "screen", "battery", "camera", "charger", "speaker"),
    "invoice": ("invoice", "payment", "amount", "account", "discount", "month"),
    "tv": ("television", "channel", "remote", "picture", "sound", "recording"),
    "mail": ("mail", "folder", "attachment", "password", "inbox", "filter"),
}
OPENINGS = ("since yesterday the", "after the update the", "my", "for three days the", "the new", "again the")
FAULTS = ("does not work", "stopped twice", "is very slow", "was never right", "disappears every morning", "is wrong")
ENDINGS = ("please help", "I want my money back", "when will somebody call", "the shop could not help", "thank you")
PRIORITIES = ("low", "normal", "high")


def make_tickets(count: int) -> pa.Table:
    """Make the tickets of the month, in the order in which they arrive; ``night`` is that in which one does."""
    rng = np.random.default_rng(28)
    products, weight = list(THINGS), 1 / np.arange(1, CUSTOMERS + 1) ** 0.9
    customers = rng.choice(CUSTOMERS, count, p=weight / weight.sum())
    days = np.sort(rng.integers(0, DAYS, count))
    # Frequent customers have one product each; the others have any, and more of the first in the last week.
    drawn = rng.random(count) < np.where(days < 21, 0.2, 0.35)
    chosen = np.where(drawn, 0, np.where(customers < 60, customers % 5, rng.integers(0, 5, count)))
    late = rng.random(count) < LATE
    night = np.minimum(days // (DAYS // NIGHTS) + np.where(late, rng.integers(1, 3, count), 0), NIGHTS - 1)
    bodies = []
    for product in chosen:
        things = rng.choice(THINGS[products[product]], 4, replace=False)
        sentences = [f"{rng.choice(OPENINGS)} {thing} {rng.choice(FAULTS)}" for thing in things[: rng.integers(2, 5)]]
        bodies.append(f"{'. '.join(sentences)}. {rng.choice(ENDINGS)}, call 555 01{rng.integers(10, 99)}.")
    return pa.table(
        {
            "ticket_id": [f"t{number:05d}" for number in range(count)],
            "customer": [f"c{number:04d}" for number in customers],
            "product": [products[product] for product in chosen],
            "week": [f"W{day // 7 + 1}" for day in days],
            "priority": rng.choice(PRIORITIES, count).tolist(),
            "body": bodies,
            "night": pa.array(night, pa.int32()),
        }
    )


def change_input(path: Path, number: int) -> None:
    """Change earlier tickets before the night of this ``number``, by their ids."""
    table = DeltaTable(path)
    table.update(predicate=f"ticket_id LIKE '%{number}7'", updates={"priority": "'urgent'"})
    table.update(predicate=f"ticket_id LIKE '%{number}33'", updates={"body": "concat('edited: ', body)"})
    table.delete(f"ticket_id LIKE '%{number}55'")


def draft(home: Path, name: str, mechanism: dict[str, Any]) -> dict[str, Any]:
    """Draft the settings of a release of the tickets, without its limit."""
    shown = ["column:priority", "column:product", "column:week", "kept_changed", "presence", "edited", "withdrawn"]
    shown += ["case", "length", "punctuation", "stop_words", "unknown_words", "repetition", "types"]
    settings = draft_settings(
        home,
        mechanism,
        {"id": "ticket_id", "text": "body", "author": "customer", "keep": ["product", "week", "priority"]},
        input={"path": str(home / f"{name}-input")},
        output={"path": str(home / name)},
        ledger={"path": str(home / f"{name}-ledger")},
        budgets={"unit": "pure", "relation": "same_skeleton", "on_exceeded": "keep_last"},
        gate={"exposes": shown, "min_records": 1},
        spark={"master": f"local[{SLOTS}]"},
    )
    return settings | {"release": name, "text": {"profile": "readable", "repeat": "same"}}


def plan(path: Path) -> dict[str, Any]:
    """Return what ``wordveil plan --sample`` says of a configuration."""
    command = [sys.executable, "-m", "wordveil", "plan", "--config", str(path), "--sample", "1000", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"plan: {done.stdout}{done.stderr}")
    found = json.loads(done.stdout)
    return {name: found[name] for name in ("refusals", "author_records", "longest_cost")}


def count_cells(rows: pa.Table) -> dict[tuple[str, str], int]:
    """Count the rows of each product and week."""
    counted = rows.group_by(["product", "week"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["product"], row["week"]): row["count_all"] for row in counted}


def compare(path: Path, config: Config) -> dict[str, Any]:
    """Compare the public table with the input: the share of each cell that is missing, and kept values that differ."""
    truth, public = DeltaTable(path).to_pyarrow_table(), DeltaTable(f"{config.output.path}/public").to_pyarrow_table()
    cells, shown = count_cells(truth), count_cells(public)
    missing = {cell: 1 - shown.get(cell, 0) / number for cell, number in cells.items()}
    worst = max(missing, key=lambda cell: missing[cell])
    both = truth.select(["ticket_id", "priority"]).join(
        public.select(["ticket_id", "priority"]), "ticket_id", right_suffix="_shown", join_type="inner"
    )
    stale = sum(row["priority"] != row["priority_shown"] for row in both.to_pylist())
    mix, seen = (np.array([counts.get(cell, 0) for cell in cells]) / sum(counts.values()) for counts in (cells, shown))
    return {
        "records": truth.num_rows,
        "published": public.num_rows,
        "missing": 1 - public.num_rows / truth.num_rows,
        "worst_cell": " ".join(worst),
        "worst_missing": missing[worst],
        "largest_change_of_share": float(np.abs(seen - mix).max()),
        "stale_priorities": stale,
    }


def run_month(home: Path, name: str, limit: float, most: float, tickets: pa.Table, mechanism: dict[str, Any]) -> Any:
    """Run all nights of a release over an input of its own, under an author's limit.

    ``limit`` is doubled until plan leaves out the share ``most`` of last month's tickets, which were as this month's.
    """
    file, settings, found = home / f"{name}.yaml", draft(home, name, mechanism), {}
    path = Path(settings["input"]["path"])
    first = tickets.filter(pa.compute.equal(tickets["night"], 0))
    write_deltalake(path, first, configuration={"delta.enableChangeDataFeed": "true"})

    def load(chosen: float) -> Config:
        settings["budgets"]["author"] = chosen
        file.write_text(yaml.safe_dump(settings))
        return load_config(file)

    write_deltalake(last := home / f"{name}-last", tickets)
    settings["input"]["path"] = str(last)
    ready_bundle(load(limit))
    while (forecast := plan(file))["refusals"]["share"] > most:
        load(limit := 2 * limit)
    settings["input"]["path"], found["plan"] = str(path), forecast
    config = load(limit)
    spark = start_session(config)
    nights = []
    for number in range(NIGHTS):
        if number:
            arriving = tickets.filter(pa.compute.equal(tickets["night"], number))
            if number == NIGHTS - 2:  # the input's owner gives a column another name
                renamed = DeltaTable(path).to_pyarrow_table().rename_columns({"customer": "client"})
                write_deltalake(path, renamed, mode="overwrite", schema_mode="overwrite")
                settings["input"]["rename"] = {"client": "customer"}
                config = load(limit)
            if number >= NIGHTS - 2:
                arriving = arriving.rename_columns({"customer": "client"})
            write_deltalake(path, arriving, mode="append")
            change_input(path, number)
        started = time.perf_counter()
        made = run_night(config, lambda: spark)
        if made.report is None or made.publication is None:
            raise SystemExit(f"night {number + 1} was not published: {made.decision}")
        nights.append(
            {
                "seconds": round(time.perf_counter() - started, 1),
                "records": made.report.records,
                "refused": sum(made.report.refused.values()),
                "withdrawn": made.report.withdrawn,
                "kept_changed": made.report.kept_changed,
                "published": made.publication.document["manifest"]["records"],
                "left_out": sum((made.publication.document["manifest"].get("refused") or {}).values()),
            }
        )
    found |= {"limit": limit, "nights": nights, "cells": compare(path, config)}
    started = time.perf_counter()
    erased = erase(config, lambda: spark, authors=[ERASED])
    left = {place.place: place.named for place in erased.places}
    found["erasure"] = {
        "seconds": round(time.perf_counter() - started, 1),
        "records": erased.records,
        "gone": erased.is_gone,
        "left": left,
    }
    return found


def main() -> None:
    """Run both months, write, print."""
    smallest = make_parser(__doc__).parse_args().smallest
    content: dict[str, Any] = {"machine": machine(), "releases": {}}
    tickets = make_tickets(400 if smallest else TICKETS)
    with tempfile.TemporaryDirectory() as directory:
        home, mechanism = Path(directory), draft_mechanism(directory, smallest=smallest)
        for name, most in (("small-limit", 1.0), ("as-planned", 0.05)):
            content["releases"][name] = run_month(home, name, SMALL_LIMIT, most, tickets, mechanism)
    save_results("tickets", content, smallest=smallest)
    console = Console(width=140)
    for name, found in content["releases"].items():
        table = Table(*found["nights"][0], title=f"{name}: an author's limit of {found['limit']:,.0f}")
        for night in found["nights"]:
            table.add_row(*map(str, night.values()))
        console.print(table)
        console.print({key: found[key] for key in ("plan", "cells", "erasure")})


if __name__ == "__main__":
    main()
