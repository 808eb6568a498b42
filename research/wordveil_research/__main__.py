"""Run an experiment: ``python -m wordveil_research f19-table1 --out DIR``.

A run that was interrupted goes on when it is started again with the same ``--out``. Exit code 1: a cell could not be
measured, and the report names it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from wordveil.cli.evaluate import print_scores
from wordveil.cli.files import writing
from wordveil.cli.output import print_error, print_json, print_note, show_bar
from wordveil.errors import ConfigError, Fault, WordveilError
from wordveil.report.files import write_evaluation
from wordveil_research.runner.base import Surroundings
from wordveil_research.runner.registry import EXPERIMENTS, find_experiment
from wordveil_research.runner.run import Measured, Progress, measure_cells, report_cells

WORK = "work"


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The experiment, such as f19-table1.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The directory of the report and of kept cells.")],
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="The directory of the data sets.")] = Path("data"),
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="How many times to repeat what is random.")
    ] = 5,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, metavar="N", help="How many cells to measure at the same time."),
    ] = None,
    embedding: Annotated[
        str,
        typer.Option("--embedding", metavar="NAME|PATH", help="Other vectors than an experiment's Euclidean ones."),
    ] = "",
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Use a small part of the data, to see that it runs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the evaluation as JSON.")] = False,
) -> None:
    """Run an experiment, write its report into DIR, and print it."""
    experiment = find_experiment(name)
    if embedding and not experiment.embedding:
        takers = ", ".join(one for one in EXPERIMENTS if find_experiment(one).embedding)
        problem = f"{name} takes no other embedding: its rows compare given ones. These do: {takers}."
        raise ConfigError("command line", [Fault("--embedding", embedding, problem)])
    around = Surroundings(data, out / WORK, seeds, quick, embedding or experiment.embedding)
    with writing("--out", str(out)):
        out.mkdir(parents=True, exist_ok=True)
    with show_cells(name) as progress:
        measured = measure_cells(experiment, around, out, processes or len(os.sched_getaffinity(0)), progress)
    evaluation = report_cells(experiment, around, measured)
    with writing("--out", str(out)):
        files = write_evaluation(evaluation, out)
    if as_json:
        print_json(json.loads(files.data.read_text("utf-8")))
    else:
        print_scores(evaluation)
    print_note(f"{files.page}: the report; {files.data.name} and {files.scores.name} are beside it.")
    _print_cells(measured)
    if measured.failures:
        raise typer.Exit(1)


def _print_cells(measured: Measured) -> None:
    made = len(measured.results) - measured.kept
    print_note(
        f"{made:,} cells were measured in {_minutes(measured.seconds)}, {measured.kept:,} were kept from before."
    )
    if measured.failures:
        print_note(f"{len(measured.failures):,} cells failed. The same command tries them again, and keeps the others.")


@contextmanager
def show_cells(name: str) -> Iterator[Callable[[Progress], None]]:
    """Show a bar of cells with the time that is left on a terminal; show nothing elsewhere."""
    with show_bar(name, is_counted=True) as update:

        def show(cells: Progress) -> None:
            text = "" if cells.seconds_left is None else f"about {_minutes(cells.seconds_left)} left"
            failed = f", {cells.failed:,} failed" if cells.failed else ""
            update(cells.cell or name, done=cells.done, known=cells.total, after=text + failed)

        yield show


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def main(arguments: list[str] | None = None) -> None:
    """Run one experiment and exit with its code."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    try:
        app(args=arguments, prog_name="python -m wordveil_research")
    except WordveilError as error:
        print_error(error)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
