"""What commands print: results to standard output, notes and errors for people to standard error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

people = Console(stderr=True, highlight=False)
results = Console(highlight=False)


# What a table of two columns has beside their text.
_BORDERS = 7


def print_table(title: str, facts: Mapping[str, Any], notes: Sequence[str] = ()) -> None:
    """Print facts as a table, with notes for people below it.

    A fact that the table would break inside a word, such as a digest or a path, follows below the table and is whole,
    so that it can be copied.
    """
    shown = {name: str(value) for name, value in facts.items()}
    room = results.width - _BORDERS - max(map(cell_len, shown), default=0)
    whole = {name: text for name, text in shown.items() if any(cell_len(part) > room for part in text.split())}
    table = Table(title=title, show_header=False, title_justify="left")
    for name, text in shown.items():
        if name not in whole:
            table.add_row(name, text)
    results.print(table)
    for name, text in whole.items():
        print_whole(name, text)
    for note in notes:
        print_note(note)


def print_whole(name: str, text: str) -> None:
    """Print a fact to be copied, unbroken: after its name, or on a line of its own where both do not fit."""
    for line in text.splitlines():
        end = " " if cell_len(f"{name}: {line}") <= results.width else "\n"
        results.print(f"{name}:{end}{line}", markup=False, soft_wrap=True)


def print_note(note: str) -> None:
    """Print a sentence for people."""
    people.print(f"note: {note}", markup=False, soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print the result as JSON."""
    print(json.dumps(value, indent=1))  # noqa: T201 - the result itself
