"""Output of commands: results to standard output, notes and errors for people to standard error.

Everything that commands print passes through here, and none of it is markup: names of authors, records, columns and
paths are untrusted. :func:`~wordveil.report.values.show_value` shows each value.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from wordveil.credentials import hide_credentials
from wordveil.report.values import show_cell, show_value

_LOGGER = logging.getLogger(__name__)
people = Console(stderr=True, markup=False, emoji=False, highlight=False)
results = Console(markup=False, emoji=False, highlight=False)

# Width of a two-column table beside its text, in characters.
_BORDERS = 7
# Width of the border of a column, and the least one of a column of texts, which may be folded.
_BORDER, _TEXT_WIDTH = 3, 12
# Seconds after which a long stage is named again without a terminal.
LINE_INTERVAL = 15.0


def make_text(value: object, style: str = "") -> Text:
    """Format a value for the terminal, in a style of ours; list and tuple items each have a line."""
    if isinstance(value, Text):
        return value
    lines = value if isinstance(value, list | tuple) else (value,)
    return Text("\n".join(map(show_value, lines)), style)


def _show_rows(
    title: object, rows: Iterable[Sequence[object]], columns: Iterable[tuple[object, Mapping[str, Any]]], **options: Any
) -> None:
    """Print a table that cuts off nothing. ``columns``: headings, and rich's options of each; ``options``: of all."""
    table = RichTable(title=make_text(title, "table.title"), title_justify="left", **options)
    for heading, widths in columns:
        table.add_column(make_text(heading), overflow="fold", **widths)
    for row in rows:
        table.add_row(*map(make_text, row))
    results.print(table)


def print_table(title: str, facts: Mapping[str, Any], notes: Sequence[str] = ()) -> None:
    """Print facts as a table, with notes for people below it. A list or tuple is shown on several lines.

    A fact that the table would break inside a word, such as a digest or a path, follows below the table and is whole,
    so that it can be copied.
    """
    shown = [(show_value(name), make_text(value)) for name, value in facts.items()]
    room = results.width - _BORDERS - max((cell_len(name) for name, _ in shown), default=0)
    whole = [fact for fact in shown if any(cell_len(part) > room for part in fact[1].plain.split())]
    _show_rows(title, [fact for fact in shown if fact not in whole], [("", {}), ("", {})], show_header=False)
    for name, text in whole:
        print_whole(name, text.plain.split("\n"))
    for note in notes:
        print_note(note)


def print_grid(
    title: object,
    rows: Iterable[Sequence[object]],
    left: Sequence[object],
    right: Sequence[object] = (),
    last: Sequence[object] = (),
    *,
    has_lines: bool = False,
    **widths: Mapping[str, Any],
) -> None:
    """Print rows as a table, given the headings of its columns: the first, those of figures, and the last.

    ``widths``: rich's options of columns, by heading; those with a ``ratio`` share the rest of the terminal.
    """
    parts = {"left": left, "right": right, "full": last}
    columns = [
        (heading, {"justify": justify.replace("full", "left"), **widths.get(str(heading), {})})
        for justify, headings in parts.items()
        for heading in headings
    ]
    _show_rows(title, rows, columns, show_lines=has_lines)


def print_figures(title: str, headings: Mapping[str, bool], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of rows, or a table for each row if the terminal would break a figure.

    ``headings``: of the columns, and whether each has figures, or texts.
    """
    columns = zip(headings.values(), zip(headings, *rows, strict=True), strict=True)
    figures = [max(map(cell_len, cells)) for is_figure, cells in columns if is_figure]
    room = results.width - 1 - _BORDER * len(headings) - _TEXT_WIDTH * (len(headings) - len(figures))
    if sum(figures) > room:
        for row in rows:
            print_table(title, dict(zip(headings, row, strict=True)))
        return
    _show_rows(
        title,
        rows,
        [
            (heading, {"justify": "right" if is_figure else "left", "no_wrap": is_figure})
            for heading, is_figure in headings.items()
        ],
    )


def print_whole(name: str, lines: Sequence[str]) -> None:
    """Print a fact to be copied, unbroken: after its name, or on its own line if both do not fit."""
    begin = show_value(name)
    for line in map(show_value, lines):
        end = " " if cell_len(f"{begin}: {line}") <= results.width else "\n"
        results.print(Text(f"{begin}:{end}{line}"), soft_wrap=True)


def print_line(line: str, style: str = "") -> None:
    """Print a sentence as a part of the result."""
    results.print(make_text(line, style), soft_wrap=True)


def print_text(text: str) -> None:
    """Print a text of this package as it is, so that it can be written to a file."""
    sys.stdout.write(text)


def print_document(text: str, markdown: str) -> None:
    """Print a document of this package as it is, or on a terminal its ``markdown`` rendered."""
    if not results.is_terminal:
        print_text(text)
        return
    from rich.markdown import Markdown

    results.print(Markdown(markdown))


def print_note(note: str) -> None:
    """Print a sentence for people."""
    tell(f"note: {note}")


def print_error(error: Exception) -> None:
    """Print the error of a command that failed."""
    tell(f"wordveil: {error}", "red")


def print_usage_error(error: Any) -> None:
    """Print an error of the command line, as click describes it."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # the help, which has no untrusted values
        return
    if (context := getattr(error, "ctx", None)) is not None:
        tell(context.get_usage())
        tell(f"Try '{context.command_path} --help' for help.")
    tell(f"Error: {error.format_message()}")


def print_traceback(error: Exception) -> None:
    """Print an unexpected error as Python does."""
    for part in traceback.format_exception(error):
        tell(part.removesuffix("\n"))


def tell(text: str, style: str = "") -> None:
    """Print a message without credentials, indented after its first line: no value looks like another message."""
    first, *below = hide_credentials(text).split("\n")
    for line in (first, *(line if line.startswith("  ") else f"  {line}" for line in below)):
        people.print(make_text(line, style), soft_wrap=True)


def print_json(value: Mapping[str, Any], indent: int | None = 1) -> None:
    """Print the result as exact JSON, which escapes all characters except ASCII."""
    print(json.dumps(value, indent=indent))  # noqa: T201 - the result itself


def print_json_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print an array of JSON, a row a line, for any number of rows."""
    sys.stdout.write("[")
    for number, row in enumerate(rows):
        sys.stdout.write(f"{',' if number else ''}\n{json.dumps(row)}")
    sys.stdout.write("\n]\n")


def print_csv_rows(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Print CSV with a header, a row a line, for any number of rows; :func:`show_cell` guards cells."""
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: show_cell(value) for name, value in row.items()} for row in rows)


def accept_characters() -> None:
    """Show characters that a stream's encoding lacks as escapes; Python would fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_watched() -> bool:
    """Return whether messages for people go to a terminal."""
    return people.is_terminal


class _StageLines:
    """Progress for a log: a line when a stage begins, and another every 15 seconds while it lasts."""

    def __init__(self) -> None:
        self._stage = self._counts = ""
        self._begun = 0.0
        self._changed = threading.Event()
        self._is_over = False

    def begin(self, stage: str) -> None:
        """Print the start of a stage."""
        if (shown := show_value(stage)) == self._stage:
            return
        self._stage, self._counts, self._begun = shown, "", time.monotonic()
        self._changed.set()
        tell(f"wordveil: {shown}")

    def count(self, done: int, known: int) -> None:
        """Store the numbers of steps that are done and known, for the next line."""
        self._counts = f", {done} of {known} done" if known else ""

    def end(self) -> None:
        """Stop printing."""
        self._is_over = True
        self._changed.set()

    def repeat(self) -> None:
        """Print the lines between; runs in a thread."""
        while not self._is_over:
            if self._changed.wait(LINE_INTERVAL):
                self._changed.clear()
            elif self._stage:
                tell(f"wordveil: {self._stage}{self._counts}, {time.monotonic() - self._begun:.0f} s")


@contextmanager
def _show_lines() -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """Print a stage a line; nothing under spark-submit, which writes both streams to where JSON is read."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        yield lambda _: None, lambda _done, _known: None
        return
    lines = _StageLines()
    thread = threading.Thread(target=lines.repeat, daemon=True)
    thread.start()
    try:
        yield lines.begin, lines.count
    finally:
        lines.end()
        thread.join()


@contextmanager
def _log_stages(begin: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """Log how long each stage takes."""
    stage, begun = "", 0.0

    def log_and_begin(text: str) -> None:
        nonlocal stage, begun
        if stage:
            _LOGGER.debug("%s took %.2f s", stage, time.monotonic() - begun)
        stage, begun = text, time.monotonic()
        if text:
            begin(text)

    try:
        yield log_and_begin
    finally:
        log_and_begin("")


@contextmanager
def show_status() -> Iterator[Callable[[str], None]]:
    """Show the current stage on one line of a terminal; elsewhere, a line for each stage."""
    if not is_watched():
        with _show_lines() as (begin, _), _log_stages(begin) as log_and_begin:
            yield log_and_begin
        return
    line = people.status(make_text("checking"))
    with line, _log_stages(lambda text: line.update(make_text(text))) as log_and_begin:
        yield log_and_begin


@contextmanager
def show_progress() -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """Show a bar of Spark tasks or of a build's steps on a terminal; elsewhere, a line for each stage."""
    if not is_watched():
        with _show_lines() as (begin, count), _log_stages(begin) as log_and_begin:
            yield log_and_begin, count
        return
    with show_bar("checking") as update, _log_stages(update) as log_and_begin:
        yield log_and_begin, lambda done, known: update(done=done, known=known)


@contextmanager
def show_bar(text: str, *, is_counted: bool = False, has_rest: bool = False) -> Iterator[Callable[..., None]]:
    """Show a bar after ``text`` on a terminal; show nothing elsewhere.

    ``is_counted``: count steps instead of a percentage. ``has_rest``: show the remaining time. The yielded function
    takes changes: ``text``, the numbers of steps ``done`` and ``known``, and the text ``after`` the bar.
    """
    shown = MofNCompleteColumn() if is_counted else TaskProgressColumn()
    columns = [TextColumn("{task.description}", markup=False), BarColumn(), shown, TimeElapsedColumn()]
    if has_rest:
        columns.append(TimeRemainingColumn())
    columns.append(TextColumn("{task.fields[after]}", markup=False))
    with Progress(*columns, console=people, transient=True, disable=not is_watched()) as bar:
        task = bar.add_task(show_value(text), total=None, after="")

        def update(text: str | None = None, *, done: int | None = None, known: int = 0, after: str = "") -> None:
            shown = None if text is None else show_value(text)
            bar.update(task, description=shown, completed=done, total=known or None, after=show_value(after))

        yield update
