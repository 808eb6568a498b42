"""Names of columns and of struct fields, as Spark splits them, without Arrow, which the command line need not load."""

from __future__ import annotations

import re

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def parse_path(name: str) -> tuple[str, ...]:
    """Split a column's name into parts as Spark does; raise :class:`ValueError` for a malformed name.

    ``message.body`` is a field of a struct, and a dot in backticks belongs to a name.
    """
    parts, end = [], 0
    while part := _PART.match(name, end):
        parts.append(part[1].replace("``", "`") if part[1] else part[2])
        end = part.end()
        if end == len(name):
            return tuple(parts)
        if name[end] != ".":
            break
        end += 1
    raise ValueError(f"{name!r} is not a column name: separate its parts by dots, and put unusual ones in backticks.")


def read_path(name: str) -> tuple[str, ...]:
    """Split a column's name into parts; a malformed name is one part."""
    try:
        return parse_path(name)
    except ValueError:
        return (name,)
