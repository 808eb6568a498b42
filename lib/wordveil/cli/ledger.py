"""The command ``wordveil ledger``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from wordveil.cli.options import (
    JarsOption,
    SetOption,
    absolute_path,
    prepare_plain_session,
    prepare_session,
    read_release_config,
)
from wordveil.cli.output import print_csv_rows, print_figures, print_json_rows, print_note, show_status
from wordveil.cli.scaffold import Call, command
from wordveil.errors import ConfigError, Fault, usage_error
from wordveil.release.budgets import PURE, Budget, count_runs_left

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from wordveil.config.load import Config

TABLE_ROWS = 20


@command()
def ledger(
    call: Call,
    config: Annotated[Path | None, Option("--config", "-c", help="The YAML configuration of a release.")] = None,
    overrides: SetOption = None,
    *,
    path: Annotated[
        str | None,
        Option(
            "--ledger", metavar="PATH", callback=absolute_path, help="The path of a ledger, instead of a configuration."
        ),
    ] = None,
    by: Annotated[
        Literal["record", "author", "release"],
        Option("--by", help="What each row adds up: a release, a record or an author."),
    ] = "release",
    release: Annotated[str | None, Option("--release", metavar="NAME", help="Show only this release.")] = None,
    author: Annotated[str | None, Option("--author", metavar="AUTHOR", help="Show only this author.")] = None,
    record: Annotated[str | None, Option("--record", metavar="ID", help="Show only this record.")] = None,
    rows: Annotated[
        bool, Option("--rows", help="Show one row for each context: what was drawn, and what is reserved.")
    ] = False,
    tables: Annotated[
        bool,
        Option("--tables", help="Show what each publication of a shuffled release is for a record that it publishes."),
    ] = False,
    as_csv: Annotated[
        bool, Option("--csv", rich_help_panel="Output", help="Print the rows as CSV on standard output.")
    ] = False,
    limit: Annotated[
        int | None,
        Option("--limit", min=1, metavar="N", help=f"Print at most N rows. A table has {TABLE_ROWS} by default."),
    ] = None,
    jars: JarsOption = None,
) -> None:
    """Show what is spent, reserved and left, by record, author or release, most expensive first.

    Confidential: reveals who has records.

    Example: `wordveil ledger --config reviews.yaml --by author`
    """
    from wordveil.spark.platform.errors import job_errors
    from wordveil.spark.release import ledger_report

    is_table = not (call.as_json or as_csv)
    settings = _settings(config, overrides, path, as_json=call.as_json, as_csv=as_csv)
    start = prepare_session(settings, is_short=True) if settings else prepare_plain_session(jars, is_short=True)
    location = settings.ledger.path if settings and settings.ledger else path or ""
    selection = ledger_report.Selection(release, author, record)
    if tables:
        if rows or author or record:
            raise usage_error("--tables", "", "lists publications. Remove --rows, --author and --record.")
        with job_errors("nothing was changed"):
            found = ledger_report.list_tables(start(), location, release)
        _print_tables(found[:limit], as_json=call.as_json, as_csv=as_csv)
        return
    is_partial = selection.cuts(by)
    with job_errors("nothing was changed"):
        with show_status() as progress:
            progress("starting Spark")
            spark = start()
            progress("reading the ledger")
            entries = ledger_report.read_ledger(spark, location, selection)
            budget = settings.ledger_budget if settings else Budget(PURE, ledger_report.relation_of(entries))
            if rows:
                costs = ledger_report.list_contexts(entries, budget)
            else:
                name = settings.release if settings else None
                costs = ledger_report.sum_costs(entries, by, budget, release=name, limited=not is_partial)
            costs = ledger_report.order_by_cost(costs)
            if is_table:
                # One row more than the table shows reveals that there are more.
                shown = list(_plain(costs.limit((limit or TABLE_ROWS) + 1), budget))
                runs = 0 if rows else ledger_report.count_runs(entries)
        stream = _plain(costs if limit is None else costs.limit(limit), budget)
        if call.as_json:
            print_json_rows(stream)
        elif as_csv:
            print_csv_rows(stream, [*costs.columns, "unbounded", "unit", "for"])
    if is_table:
        unlimited = _unlimited(is_limited=bool(settings and settings.budgets), is_partial=is_partial)
        print_costs(shown, budget, costs.columns, limit or TABLE_ROWS, unlimited=unlimited)
        if shown and not rows and (more := count_runs_left(shown[0], runs)) is not None:
            print_note(
                f"at the mean rate of the {runs:,} runs so far, the first row reaches its limit in {more:,} more."
            )


def _print_tables(tables: list[dict[str, Any]], *, as_json: bool, as_csv: bool) -> None:
    names = ["release", "publication", "records", "groups", "rows", "local_epsilon", "epsilon", "delta"]
    names += ["epsilon_sum", "delta_sum"]
    if as_json:
        print_json_rows(iter(tables))
    elif as_csv:
        print_csv_rows(iter(tables), names)
    else:
        _print_figures("Published tables, nats for each record", names, tables)


def _settings(
    config: Path | None, overrides: list[str] | None, path: str | None, *, as_json: bool, as_csv: bool
) -> Config | None:
    faults = []
    if (config is None) == (path is None):
        faults.append(Fault("--config", "", "name exactly one of --config and --ledger."))
    if config is None and overrides:
        problem = "changes a configuration, but none is named. Remove it, or name --config."
        faults.append(Fault("--set", overrides[0][:80], problem))
    if as_json and as_csv:
        faults.append(Fault("--csv", "", "cannot be combined with --json. Choose one of them."))
    if faults:
        raise ConfigError("command line", faults)
    return None if config is None else read_release_config(config, overrides)


def _unlimited(*, is_limited: bool, is_partial: bool) -> str | None:
    """Return the reason to hide the column ``left``, if any."""
    if not is_limited:
        return "no budgets are configured here, so there are no limits to compare with."
    return (
        "a limit applies to everything that a record, author or release has used. This report covers only a part "
        "of it, so the column left is not shown."
        if is_partial
        else None
    )


def _plain(rows: DataFrame, budget: Budget) -> Iterator[dict[str, Any]]:
    """Yield rows as plain values, one at a time, as :func:`plain_row` makes them."""
    for row in rows.toLocalIterator():
        yield plain_row(row.asDict(), budget)


def plain_row(values: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
    """Make one row of a report from a row of costs: infinite ones are None, and ``unbounded`` is true."""
    unbounded = any(value == math.inf for value in values.values() if isinstance(value, float))
    plain = {name: None if isinstance(value, float) and value == math.inf else value for name, value in values.items()}
    return {**plain, "unbounded": unbounded, "unit": budget.unit, "for": str(budget.relation)}


_TEXTS = ("release", "record_id", "author", "state")
_COSTS = ("spent", "reserved", "returned", "corpus", "cost")
# A rest below this share of what was used is an error of rounding in its sum.
_ROUNDING = 1e-6


def _print_figures(title: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    headings = {name.removesuffix("_id").replace("_", " "): name not in _TEXTS for name in names}
    print_figures(title, headings, [[_cell(name, row) for name in names] for row in rows])


def _cell(name: str, row: Mapping[str, Any]) -> str:
    value = row[name]
    if value is None:
        return "unbounded" if row.get("unbounded") and name in _COSTS else "none"
    if name == "left":
        used = row["corpus"] if "corpus" in row else row["spent"] + row["reserved"] + row["returned"]
        value = 0.0 if abs(value) < _ROUNDING * used else value
    if isinstance(value, float) and abs(value) >= 1e5:  # six digits would show an exponent
        return f"{value:,.0f}"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def print_costs(
    rows: list[dict[str, Any]], budget: Budget, names: list[str], limit: int, *, unlimited: str | None = None
) -> None:
    """Print rows of costs for people, without columns of figures that are 0 in all of them.

    ``names``: the columns. ``limit``: the largest number of rows. ``unlimited``: the reason why there is no limit.
    """
    hidden = {"metric", "relation", "run_id", "epoch"}
    hidden |= {name for name in ("reserved", "returned", "delta") if all(row[name] == 0 for row in rows if name in row)}
    title = f"Ledger, {budget.unit_name} between texts related by {budget.relation}"
    _print_figures(title, [name for name in names if name not in hidden], rows[:limit])
    if len(rows) > limit:
        print_note(f"these are the first {limit} rows. --limit N shows more; --json and --csv print all.")
    if "left" in names and unlimited:
        print_note(unlimited)
