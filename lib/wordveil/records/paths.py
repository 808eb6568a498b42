"""Names of columns that lead into structs."""

from __future__ import annotations

import re

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def parse_path(name: str) -> tuple[str, ...]:
    """The parts of a column's name, as Spark reads it: ``message.body`` is a field of a struct, and in backticks a dot
    is a part of a name.

    Raises :class:`ValueError` for a name that cannot be read so.
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
    raise ValueError(f"{name!r} is no name of a column: parts are separated by dots, unusual ones in backticks.")


def read_path(name: str) -> tuple[str, ...]:
    """The same; a name that cannot be read so is a column's own name as it is."""
    try:
        return parse_path(name)
    except ValueError:
        return (name,)
