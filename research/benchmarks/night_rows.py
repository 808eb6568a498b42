"""How many rows of each table a night reads and writes, where 1% of the records have changed and where all have.

Counters, not clocks: what Spark's scans gave, by its event log, and what Delta's log says that was written. Short
records of a hundred days in a Delta table with its change data feed on; a release in directories of days, with a budget
of each author; its first run, and nights after 1% of the records were edited, some of each day, after a day with 1%
more was added, and after all were edited.

    python research/benchmarks/night_rows.py [--records N ...]

Writes research/results/night_rows.json and prints a table.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from common import SLOTS, draft_mechanism, draft_release, machine, make_parser, save_results

RECORDS, SMALLEST = (100_000, 200_000), 200
AUTHORS, DAYS = 1000, 100
FEED = "feed"
COLUMNS = {"id": "id", "text": "body", "author": "author", "keep": ["day"]}


def write_config(home: Path, *, smallest: bool) -> Any:
    """Write the configuration of the release."""
    log = {"enabled": "true", "compress": "false", "dir": str(home / "events")}
    options = {f"spark.eventLog.{name}": value for name, value in log.items()}
    return draft_release(
        home,
        draft_mechanism(str(home), smallest=smallest),
        COLUMNS,
        output={"partition_by": ["day"]},
        budgets={"unit": "pure", "relation": "same_length", "author": 1e9, "on_exceeded": "keep_last"},
        spark={"master": f"local[{SLOTS}]", "options": options},
    )


def list_tables(home: Path) -> dict[str, Path]:
    """List the tables of a night, by name."""
    ours = {name: home / "release" / name for name in ("draws", "journal", "public")}
    return {"input": home / "input", **ours, "ledger": home / "ledger"}


def read_events(home: Path) -> Iterator[dict[str, Any]]:
    """Read the session's event log."""
    for path in sorted((home / "events").rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            for line in path.read_text("utf-8").splitlines():
                with_event: dict[str, Any] = json.loads(line) if line else {}
                if "Event" in with_event:
                    yield with_event


def list_nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """List all nodes of a plan."""
    yield plan
    for child in plan["children"]:
        yield from list_nodes(child)


def find_scans(plan: dict[str, Any], tables: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Find the accumulators that count the rows of a plan's scans, each with its table."""
    names = {str(path): name for name, path in tables.items()}
    for node in list_nodes(plan):
        location = node["metadata"].get("Location", "")
        place = re.search(r"\[file:([^\],]*)", location)
        name = names.get(place.group(1).rstrip("/")) if place else None
        for metric in node["metrics"] if name else ():
            if metric["name"] == "number of output rows":
                yield metric["accumulatorId"], FEED if "Cdc" in location or "ChangeFile" in location else str(name)


def count_read(home: Path, nights: list[tuple[str, float]]) -> dict[str, Counter[str]]:
    """Count rows that scans gave, by the night in which they ran (each with its name and when it began) and by
    table.
    """
    scans: dict[int, tuple[str, int]] = {}
    values: Counter[int] = Counter()
    began: dict[int, int] = {}
    for event in read_events(home):
        kind = event["Event"].rsplit(".", 1)[-1]
        if kind == "SparkListenerSQLExecutionStart":
            began[event["executionId"]] = event["time"]
        if "sparkPlanInfo" in event:
            found = find_scans(event["sparkPlanInfo"], list_tables(home))
            scans |= {accumulator: (table, event["executionId"]) for accumulator, table in found}
        elif kind == "SparkListenerStageCompleted":
            for value in event["Stage Info"]["Accumulables"]:
                if str(value.get("Value")).isdigit():
                    values[value["ID"]] = max(values[value["ID"]], int(value["Value"]))
    counted: dict[str, Counter[str]] = {name: Counter() for name, _ in nights}
    for accumulator, (table, execution) in scans.items():
        started = [name for name, at in nights if at <= began[execution] / 1000]
        if started:
            counted[started[-1]][table] += values[accumulator]
    return counted


def count_written(home: Path, since: dict[str, int]) -> dict[str, int]:
    """Count rows in the commits of each table after a version."""
    found = {}
    for name, path in list_tables(home).items():
        commits = sorted((path / "_delta_log").glob("*.json"))[since[name] + 1 :]
        actions = (json.loads(line) for commit in commits for line in commit.read_text("utf-8").splitlines())
        infos = (action["commitInfo"].get("operationMetrics", {}) for action in actions if "commitInfo" in action)
        found[name] = sum(int(info.get("numOutputRows", 0)) for info in infos)
    return found


def measure(home: Path, records: int, *, smallest: bool) -> dict[str, Any]:
    """Measure rows read and written of each table, by night."""
    from pyspark.sql import functions as F  # noqa: N812

    from wordveil.spark.platform.session import build_session
    from wordveil.spark.release.night import run_night

    (home / "events").mkdir()
    config = write_config(home, smallest=smallest)
    spark = build_session(config.spark, delta=True, is_short=True)
    number = F.col("id").cast("bigint")
    made = spark.range(records).select(
        F.format_string("r%010d", "id").alias("id"),
        F.format_string("a%d", number % AUTHORS).alias("author"),
        F.format_string("d%03d", F.floor(number * DAYS / records)).alias("day"),
        F.format_string("the house of number %d stands here", number % 7).alias("body"),
    )
    made.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(home / "input"))

    def edit(condition: str) -> Callable[[], object]:
        table = f"delta.`{home / 'input'}`"
        return lambda: spark.sql(f"UPDATE {table} SET body = concat('new ', body) WHERE {condition}")  # noqa: S608

    def add() -> None:
        added = made.where("id like '%07'").withColumns({"id": F.concat(F.lit("x"), "id"), "day": F.lit("new")})
        added.write.format("delta").mode("append").save(str(home / "input"))

    changes: dict[str, Callable[[], object]] = {
        "first run": lambda: None,
        "1% edited": edit("id LIKE '%07'"),
        "1% added": add,
        "all edited": edit("true"),
    }
    nights: list[tuple[str, float]] = []
    written = {}
    for name, change in changes.items():
        nights.append(("change", time.time()))
        change()
        before = {
            table: len(list((path / "_delta_log").glob("*.json"))) - 1 for table, path in list_tables(home).items()
        }
        nights.append((name, time.time()))
        run_night(config, lambda: spark)
        written[name] = count_written(home, before)
    spark.stop()
    read = count_read(home, nights)
    return {name: {"read": dict(read[name]), "written": written[name]} for name in changes}


def main() -> None:
    """Measure all sizes, each in a session of its own."""
    parser = make_parser(__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=RECORDS, metavar="N", help="how many records")
    chosen = parser.parse_args()
    content: dict[str, Any] = {"machine": machine(), "nights": {}}
    for records in (SMALLEST,) if chosen.smallest else chosen.records:
        with tempfile.TemporaryDirectory() as directory:
            content["nights"][str(records)] = measure(Path(directory), records, smallest=chosen.smallest)
    save_results("night_rows", content, smallest=chosen.smallest)
    for records, nights in content["nights"].items():
        table = Table("table", *nights, title=f"Rows read / written of {int(records):,} records")
        for name in ("input", FEED, "draws", "ledger", "journal", "public"):
            cells = (f"{of['read'].get(name, 0):,} / {of['written'].get(name, 0):,}" for of in nights.values())
            table.add_row(name, *cells)
        Console().print(table)


if __name__ == "__main__":
    main()
