"""Experiments and comparisons of ``wordveil evaluate``: what runs without a configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wordveil.cli.output import Table, print_json, print_line, print_note, print_rows, print_table, show_bar
from wordveil.cli.pages import check_page, save_page
from wordveil.cli.report_file import writing
from wordveil.errors import ConfigError, Fault

if TYPE_CHECKING:
    from wordveil.evaluation.experiments.runner import Measured
    from wordveil.evaluation.experiments.runner import Progress as Cells
    from wordveil.evaluation.report.compare import Comparison
    from wordveil.evaluation.report.evaluation import Evaluation
    from wordveil.evaluation.report.tables import Figure, Measure, ScoreTable

WORK = "work"
_NO_SUBJECT = "measure"


def run_experiment_command(
    name: str,
    out: Path | None,
    data: Path,
    *,
    seeds: int = 5,
    quick: bool = False,
    processes: int | None = None,
    as_json: bool = False,
) -> None:
    """Run an experiment, write its report into ``out``, and print it.

    A run that was interrupted goes on when it is started again with the same ``out``. Where cells could not be
    measured, the report says which and why, and the exit code is 1.

    Parameters
    ----------
    name
        of the experiment.
    out
        the directory of the report, of the kept cells and of what they share.
    data
        the directory of the data sets.
    seeds
        how many times whatever is random is repeated.
    quick
        whether a small part of the data will do.
    processes
        how many cells are measured at the same time; by default as many as there are processors.
    as_json
        whether to print the evaluation as JSON.

    Raises
    ------
    ConfigError
        for an unknown name and a directory that is missing or cannot be written.
    InputError
        that names all data files that are missing.
    """
    from wordveil.evaluation.experiments.base import Surroundings
    from wordveil.evaluation.experiments.registry import find_experiment
    from wordveil.evaluation.experiments.runner import measure_cells, report_cells
    from wordveil.evaluation.experiments.workers import count_processors
    from wordveil.evaluation.report.files import write_evaluation

    experiment = find_experiment(name)
    if out is None:
        raise ConfigError("command line", [Fault("--out", "", "--experiment writes a report. Name its directory.")])
    around = Surroundings(data, out / WORK, seeds, quick)
    with writing("--out", str(out)):
        out.mkdir(parents=True, exist_ok=True)
    with show_cells(name) as progress:
        measured = measure_cells(experiment, around, out, processes or count_processors(), progress)
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


def run_compare_command(first: Path, second: Path, *, html: str | None = None, as_json: bool = False) -> None:
    """Print two evaluations side by side, and write them as a page where ``html`` names a file.

    Parameters
    ----------
    first, second
        the ``evaluation.json`` of each, or its directory.
    html
        the file of the page; it must not exist yet.
    as_json
        whether to print the comparison as JSON.

    Raises
    ------
    InputError
        for a file that is not an evaluation.
    OutputExistsError
        where the page exists.
    """
    from wordveil.evaluation.report.compare import choose_names, compare_evaluations, render_comparison
    from wordveil.evaluation.report.files import read_evaluation

    page = check_page(html) if html else None
    names = choose_names(first, second)
    comparison = compare_evaluations(read_evaluation(first), read_evaluation(second), names)
    if page:
        save_page(page, render_comparison(comparison))
    if as_json:
        print_json(comparison.to_dict())
    else:
        print_comparison(comparison)
    if page:
        print_note(f"{page}: the page, which its owner alone can read.")


def print_scores(evaluation: Evaluation) -> None:
    """Print what was measured: a table for each group of figures, each figure with its interval."""
    from wordveil.evaluation.report.tables import make_sections

    print_table(evaluation.title, evaluation.facts)
    for section in make_sections(evaluation.scores):
        for table in section.tables:
            print_rows(_score_table(": ".join(filter(None, (section.title, table.heading))), table))
            for number, note in enumerate(table.notes, 1):
                print_line(f"({number}) {note}")
    for note in evaluation.notes:
        print_note(note)


def _score_table(title: str, shown: ScoreTable) -> Table:
    table = Table(title)
    table.add_column("subject" if shown.by_subject else _NO_SUBJECT)
    measures = [_measure_name(measure) for measure in shown.measures]
    for heading in measures if shown.by_subject else (*shown.subjects, "chance"):
        table.add_column(heading, justify="right")
    if not shown.by_subject:
        for name, measure, figures in zip(measures, shown.measures, shown.figures, strict=True):
            table.add_row(name, *map(_figure, figures), measure.chance)
        return table
    for place, subject in enumerate(shown.subjects):
        table.add_row(subject, *(_figure(figures[place]) for figures in shown.figures))
    if any(measure.chance for measure in shown.measures):
        table.add_row("chance", *(measure.chance for measure in shown.measures))
    return table


def _measure_name(measure: Measure) -> str:
    return f"{measure.task}: {measure.method}"


def _figure(figure: Figure | None) -> list[str]:
    """The lines of a cell."""
    if figure is None:
        return []
    marks = "".join(f" ({number})" for number in figure.notes)
    return [f"{figure.value}{marks}", *filter(None, [figure.interval])]


def print_comparison(comparison: Comparison) -> None:
    """Print two evaluations side by side: a table for each group of figures."""
    from wordveil.evaluation.report.compare import NOTE, list_rows

    first, second = comparison.names
    for group, rows in list_rows(comparison).items():
        table = Table(group)
        for heading in ("subject", "measure"):
            table.add_column(heading)
        for heading in (first, second, "difference", "chance", f"{second} is"):
            table.add_column(heading, justify="right")
        for row in rows:
            table.add_row(
                row["subject"],
                f"{row['task']}: {row['method']}",
                list(filter(None, (row["first"], row["first_interval"]))),
                list(filter(None, (row["second"], row["second_interval"]))),
                row["difference"],
                row["chance"],
                row["change"],
            )
        print_rows(table)
    if not comparison.pairs:
        print_note("the two have no figure in common.")
    if comparison.alone:
        counts = [sum(name == one for name, _ in comparison.alone) for one in comparison.names]
        print_note(f"measured once: {counts[0]:,} figures of {first} alone, {counts[1]:,} of {second} alone.")
    print_note(NOTE)


@contextmanager
def show_cells(name: str) -> Iterator[Callable[[Cells], None]]:
    """Show a bar of cells with the time that is left on a terminal; show nothing elsewhere."""
    with show_bar(name, is_counted=True) as update:

        def show(cells: Cells) -> None:
            text = "" if cells.seconds_left is None else f"about {_minutes(cells.seconds_left)} left"
            failed = f", {cells.failed:,} failed" if cells.failed else ""
            update(cells.cell or name, done=cells.done, known=cells.total, after=text + failed)

        yield show


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
