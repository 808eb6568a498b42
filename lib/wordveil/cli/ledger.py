"""The command ``wordveil ledger``."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from wordveil.cli.options import JarsOption, JsonOption, SetOption, require_release, session_of, starter, status
from wordveil.cli.output import print_note, results
from wordveil.config.load import Config, load_config
from wordveil.config.schema import SparkSection
from wordveil.errors import ConfigError, Fault
from wordveil.release.budgets import PURE, Budget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLE_ROWS = 20


class By(StrEnum):
    """What a row of the report is about."""

    RECORD = "record"
    AUTHOR = "author"
    RELEASE = "release"


def ledger(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The YAML configuration of a release.")] = None,
    overrides: SetOption = None,
    *,
    path: Annotated[
        str | None, typer.Option("--ledger", metavar="PATH", help="A ledger, in place of a configuration.")
    ] = None,
    by: Annotated[By, typer.Option("--by", help="What a row is about.")] = By.RELEASE,
    release: Annotated[str | None, typer.Option("--release", metavar="NAME", help="This release alone.")] = None,
    author: Annotated[str | None, typer.Option("--author", metavar="AUTHOR", help="This author alone.")] = None,
    record: Annotated[str | None, typer.Option("--record", metavar="ID", help="This record alone.")] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="One row a context: what was drawn, and what is reserved.")
    ] = False,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV on standard output.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, metavar="N", help=f"Print N rows at most; a table {TABLE_ROWS} by default."),
    ] = None,
    jars: JarsOption = None,
) -> None:
    """Show what is spent, reserved and left, by record, author or release, the dearest first. Internal: it tells who
    has records.
    """
    from wordveil.spark.platform.errors import job_errors
    from wordveil.spark.release import ledger_report

    settings = _settings(config, overrides, path, as_json=as_json, as_csv=as_csv)
    section = SparkSection(delta_jars=jars)
    start = session_of(settings) if settings else starter(section, delta=True)
    place = settings.ledger.path if settings and settings.ledger else path or ""
    selection = ledger_report.Selection(release, author, record)
    with job_errors("nothing was changed"):
        with status() as progress:
            progress("starting Spark")
            spark = start()
            progress("reading the ledger")
            entries = ledger_report.read_ledger(spark, place, selection)
            budget = _budget(settings) or Budget(PURE, ledger_report.relation_of(entries))
            if rows:
                found = ledger_report.list_contexts(entries, budget)
            else:
                name = settings.release if settings else None
                limited = not selection.cuts(by.value)
                found = ledger_report.sum_costs(entries, by.value, budget, release=name, limited=limited)
            found = ledger_report.order_by_cost(found)
            if not (as_json or as_csv):
                # One more than is shown, to tell that there are more.
                shown = list(_plain(found.limit((limit or TABLE_ROWS) + 1), budget))
        stream = _plain(found if limit is None else found.limit(limit), budget)
        if as_json:
            write_json(stream)
        elif as_csv:
            write_csv(stream, [*found.columns, "unbounded", "unit", "for"])
    if not (as_json or as_csv):
        _print(
            shown, budget, found.columns, limit or TABLE_ROWS, unlimited=_unlimited(settings, selection.cuts(by.value))
        )


def _settings(
    config: Path | None, overrides: list[str] | None, path: str | None, *, as_json: bool, as_csv: bool
) -> Config | None:
    faults = []
    if (config is None) == (path is None):
        faults.append(Fault("--config", "", "name exactly one of --config and --ledger."))
    if config is None and overrides:
        faults.append(
            Fault(
                "--set", overrides[0][:80], "changes a configuration, and there is none. Remove it, or name --config."
            )
        )
    if as_json and as_csv:
        faults.append(Fault("--csv", "", "and --json are two forms of one result. Choose one."))
    if faults:
        raise ConfigError("command line", faults)
    if config is None:
        return None
    settings = load_config(config, overrides or ())
    require_release(settings, config)
    return settings


def _budget(config: Config | None) -> Budget | None:
    """The configuration's budget; without one, what the release's own costs are: pure, under its relation."""
    if config is None:
        return None
    return config.budgets.budget if config.budgets else Budget(PURE, config.relation)


def _unlimited(config: Config | None, cuts: bool) -> str | None:  # noqa: FBT001
    """Why nothing is left over that could be shown."""
    if config is None or config.budgets is None:
        return "no budgets are configured here, so there are no limits to hold this against."
    return (
        "a limit holds for all that its record, author or release has used, and this is a part: left is not shown."
        if cuts
        else None
    )


def _plain(rows: DataFrame, budget: Budget) -> Iterator[dict[str, Any]]:
    """Rows as plain values, one at a time: None for what is infinite, and whether something is."""
    for row in rows.toLocalIterator():
        yield plain_row(row.asDict(), budget)


def plain_row(values: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
    """One row of a report: infinite costs are None and ``unbounded`` is true; ``unit`` and ``for`` say what costs
    are.
    """
    unbounded = any(value == math.inf for value in values.values() if isinstance(value, float))
    plain = {name: None if isinstance(value, float) and value == math.inf else value for name, value in values.items()}
    return {**plain, "unbounded": unbounded, "unit": budget.unit, "for": str(budget.relation)}


def write_json(rows: Iterator[dict[str, Any]]) -> None:
    """An array on standard output, a row a line, however many there are."""
    sys.stdout.write("[")
    for number, row in enumerate(rows):
        sys.stdout.write(f"{',' if number else ''}\n{json.dumps(row)}")
    sys.stdout.write("\n]\n")


def write_csv(rows: Iterator[dict[str, Any]], names: list[str]) -> None:
    """CSV with a header on standard output."""
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def ledger_table(rows: list[dict[str, Any]], budget: Budget, names: list[str]) -> Table:
    """The rows for people."""
    hidden = {"metric", "relation", "run_id", "epoch"} & set(names)
    shown = [name for name in names if name not in hidden]
    unit = "nats" if budget.unit == PURE else f"epsilon of {budget.unit}"
    table = Table(title=f"Ledger, {unit} between texts related by {budget.relation}", title_justify="left")
    texts = ("release", "record_id", "author", "state")
    for name in shown:
        table.add_column(name.removesuffix("_id"), justify="left" if name in texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(name, row[name], unbounded=row["unbounded"]) for name in shown))
    return table


def _cell(name: str, value: Any, *, unbounded: bool) -> str:
    if value is None:
        return "unbounded" if unbounded and name in ("spent", "reserved", "corpus", "cost") else "none"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _print(rows: list[dict[str, Any]], budget: Budget, names: list[str], limit: int, *, unlimited: str | None) -> None:
    results.print(ledger_table(rows[:limit], budget, names))
    if len(rows) > limit:
        print_note(f"the first {limit} rows. --limit N shows more, --json and --csv all.")
    if "left" in names and unlimited:
        print_note(unlimited)
