"""Terminal tables of an evaluation, and of two of them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordveil.cli.output import ResultTable, print_line, print_note, print_rows, print_table

if TYPE_CHECKING:
    from wordveil.report.compare import EvaluationComparison
    from wordveil.report.tables import Figure, ScoreTable
    from wordveil.scores.evaluation import Evaluation

_NO_SUBJECT = "measure"


def print_scores(evaluation: Evaluation) -> None:
    """Print the main results in sentences, and a table for each group of figures."""
    from wordveil.report.page import write_headline
    from wordveil.report.tables import make_sections

    print_table(evaluation.title, evaluation.facts, write_headline(evaluation))
    for section in make_sections(evaluation.scores):
        for table in section.tables:
            print_rows(_score_table(": ".join(filter(None, (section.title, table.heading))), table))
            for number, note in enumerate(table.notes, 1):
                print_line(f"({number}) {note}")
    for note in evaluation.notes:
        print_note(note)


def _score_table(title: str, shown: ScoreTable) -> ResultTable:
    table = ResultTable(title)
    table.add_columns("subject" if shown.by_subject else _NO_SUBJECT)
    measures = [f"{measure.task}: {measure.method}" for measure in shown.measures]
    table.add_columns(*(measures if shown.by_subject else (*shown.subjects, "chance")), justify="right")
    if not shown.by_subject:
        for name, measure, figures in zip(measures, shown.measures, shown.figures, strict=True):
            table.add_row(name, *map(_figure, figures), measure.chance)
        return table
    for index, subject in enumerate(shown.subjects):
        table.add_row(subject, *(_figure(figures[index]) for figures in shown.figures))
    if any(measure.chance for measure in shown.measures):
        table.add_row("chance", *(measure.chance for measure in shown.measures))
    return table


def _figure(figure: Figure | None) -> list[str]:
    """Return the lines of a cell."""
    if figure is None:
        return []
    marks = "".join(f" ({number})" for number in figure.notes)
    return [f"{figure.value}{marks}", *filter(None, [figure.interval])]


def print_comparison(comparison: EvaluationComparison) -> None:
    """Print two evaluations side by side: a table for each group of figures."""
    from wordveil.report.compare import NOTE, list_rows

    first, second = comparison.names
    for group, rows in list_rows(comparison).items():
        table = ResultTable(group)
        table.add_columns("subject", "measure")
        table.add_columns(first, second, "difference", "chance", f"{second} is", justify="right")
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
        counts = [sum(name == side for name, _ in comparison.alone) for side in comparison.names]
        print_note(f"measured once: {counts[0]:,} figures of {first} alone, {counts[1]:,} of {second} alone.")
    print_note(NOTE)
