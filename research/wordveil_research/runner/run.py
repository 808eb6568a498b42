"""Run an experiment: measure its cells in processes, keep each result, and report them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from wordveil.scores.evaluation import Evaluation
from wordveil.scores.score import Score
from wordveil_research.runner.base import Cell, Experiment, Surroundings
from wordveil_research.runner.kept import KeptCells
from wordveil_research.runner.workers import do_all

CELLS = "cells"
"""The directory of kept results, below that of the report."""
QUICK = "This was a quick run on a small part of the data: its figures show that the experiment runs, and nothing else."


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total
        cells, kept ones among them.
    failed
        those that failed.
    cell
        the one that ended last; empty before the first.
    seconds_left
        an estimate from the cells of this run; None before the first has ended.
    """

    done: int
    total: int
    failed: int
    cell: str
    seconds_left: float | None


@dataclass(frozen=True)
class Failure:
    """A cell that could not be measured, and why."""

    cell: str
    problem: str


@dataclass(frozen=True)
class Measured:
    """The cells of a run.

    Attributes
    ----------
    results
        the scores of each cell that was measured, by its name, in the order of the plan.
    failures
        the others.
    kept
        how many results were there before this run.
    seconds
        how long this run took.
    """

    results: dict[str, tuple[Score, ...]]
    failures: tuple[Failure, ...]
    kept: int
    seconds: float


@dataclass(frozen=True)
class _Measure:
    """Measures a cell and keeps its result: what a process is given."""

    experiment: Experiment
    around: Surroundings
    kept: KeptCells

    def __call__(self, cell: Cell) -> None:
        self.kept.save(cell, tuple(self.experiment.measure(cell, self.around)))


def run_experiment(
    experiment: Experiment,
    around: Surroundings,
    out: Path,
    processes: int = 1,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Evaluation:
    """Measure all cells of an experiment that are not kept in ``out`` yet, and report them.

    :func:`measure_cells` and :func:`report_cells` do the two halves, and say what they raise.
    """
    return report_cells(experiment, around, measure_cells(experiment, around, out, processes, progress))


def measure_cells(
    experiment: Experiment,
    around: Surroundings,
    out: Path,
    processes: int = 1,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Measured:
    """Measure all cells of an experiment that are not kept in ``out`` yet.

    Parameters
    ----------
    experiment
        which; it is pickled.
    around
        where it runs.
    out
        the directory of the report. Results are in its directory :data:`CELLS`, one file a cell, written whole.
    processes
        how many cells are measured at the same time, each with one thread of linear algebra.
    progress
        is called before the first cell and after each.

    Raises
    ------
    InputError
        that names all data files that are missing, before anything is measured.
    ValueError
        where two cells of one name have different settings.
    """
    started = time.monotonic()
    kept = KeptCells.open(out / CELLS, experiment, around)
    around.work.mkdir(parents=True, exist_ok=True)
    cells = _plan(experiment, around)
    left = [cell for cell in cells if kept.load(cell) is None]
    before, failures = len(cells) - len(left), []
    progress(Progress(before, len(cells), 0, "", None))
    with closing(do_all(_Measure(experiment, around, kept), left, processes)) as ended:
        for number, (cell, problem) in enumerate(ended, 1):
            if problem:
                failures.append(Failure(cell.name, problem))
            seconds_left = (time.monotonic() - started) / number * (len(left) - number)
            progress(Progress(before + number, len(cells), len(failures), cell.name, seconds_left))
    results = {cell.name: scores for cell in cells if (scores := kept.load(cell)) is not None}
    return Measured(results, tuple(failures), before, time.monotonic() - started)


def _plan(experiment: Experiment, around: Surroundings) -> list[Cell]:
    """Plan the cells, each once. Raises :class:`ValueError`."""
    cells: dict[str, Cell] = {}
    for cell in experiment.plan(around):
        if cells.setdefault(cell.name, cell).settings != cell.settings:
            raise ValueError(f"{cell.name}: two cells of {experiment.name} have this name and different settings.")
    return list(cells.values())


def report_cells(experiment: Experiment, around: Surroundings, measured: Measured) -> Evaluation:
    """Write the experiment's report, with a note for each cell that failed and for a quick run.

    Where cells have failed and the experiment cannot report without them, the report is a plain one of all scores.
    """
    try:
        evaluation = experiment.report(around, measured.results)
    except Exception:
        if not measured.failures:
            raise
        evaluation = _report_plainly(experiment, measured.results.values())
    notes = [QUICK] if around.is_quick else []
    notes += [f"Not measured: {failure.cell}: {failure.problem}" for failure in measured.failures]
    return replace(evaluation, notes=(*notes, *evaluation.notes))


def _report_plainly(experiment: Experiment, results: Iterable[Sequence[Score]]) -> Evaluation:
    scores = tuple(score for part in results for score in part)
    note = "Cells are missing that this experiment's report needs, so that these are all figures as they were measured."
    return Evaluation(experiment.title, {"experiment": experiment.name}, scores, notes=(note,))
