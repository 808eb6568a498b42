"""What commands print: results to standard output, notes and errors for people to standard error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

people = Console(stderr=True, highlight=False)
results = Console(highlight=False)


def print_table(title: str, facts: Mapping[str, Any], notes: Sequence[str] = ()) -> None:
    """Print facts as a table, with notes for people below it."""
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value in facts.items():
        table.add_row(name, str(value))
    results.print(table)
    for note in notes:
        print_note(note)


def print_note(note: str) -> None:
    """Print a sentence for people."""
    people.print(f"note: {note}", markup=False, soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print the result as JSON."""
    print(json.dumps(value, indent=1))  # noqa: T201 - the result itself
