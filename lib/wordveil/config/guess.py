"""Roles of a table's columns, guessed from their names and types alone: no row is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wordveil.input.columns import is_reserved

_IDS = ("id", "uuid", "guid", "key")
_ID_TYPES = ("string", "tinyint", "smallint", "int", "bigint")
_TEXTS = ("text", "body", "message", "content", "comment", "description")
_AUTHORS = ("author", "writer", "user", "customer", "sender")
_DAYS = ("ds", "dt", "date", "day")
_DAY_TYPES = ("string", "date")
_FIELD = re.compile(r"\w+")
# Columns of files of text.
TEXT_FILE_TEXT, TEXT_FILE_ID = "value", "file_name"

TO_FILL = ("mechanism.epsilon", "mechanism.public", "key")
RELEASE_TO_FILL = ("budgets",)


@dataclass(frozen=True)
class Column:
    """Column of a table: its name, its type as Spark writes it, and whether the table is partitioned by it."""

    name: str
    type: str
    partition: bool = False

    @property
    def parts(self) -> list[str]:
        """Words of the name in lower case: ``ticketId`` and ``ticket_id`` give ticket, id."""
        return re.findall(r"[a-z0-9]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", self.name).lower())

    @property
    def usable(self) -> bool:
        """True if the output can have a column of this name."""
        return not is_reserved(self.name) and "`" not in self.name


@dataclass(frozen=True)
class Guess:
    """Guessed roles of the columns; None if no name shows a role, or several do.

    ``id_candidates`` and ``text_candidates`` are the columns that could be the id or the text by name if the guess is
    None. ``not_kept`` are the other columns, which the configuration leaves out. ``day`` is the kept partition column
    of days, by which a release may read a slice.
    """

    id: str | None
    text: str | None
    author: str | None
    keep: tuple[str, ...]
    not_kept: tuple[str, ...]
    id_candidates: tuple[str, ...]
    text_candidates: tuple[str, ...]
    day: str | None = None

    def to_fill(self, *, is_release: bool = False) -> list[str]:
        """List the settings that the user has to fill in, in a draft of a job or of a release."""
        missing = [f"input.{name}" for name in ("id", "text") if getattr(self, name) is None]
        return [*missing, *TO_FILL, *(RELEASE_TO_FILL if is_release else ())]


def guess_columns(columns: Sequence[Column], table: str = "") -> Guess:
    """Guess the roles of columns by names and types alone.

    ``table``: the table's name, which an id often repeats (``tickets``, ``ticket_id``).
    """
    plain = [column for column in columns if not column.partition]
    keep = tuple(column.name for column in columns if column.partition and column.usable and not _is_author(column))
    if [column.name for column in plain] == [TEXT_FILE_TEXT, TEXT_FILE_ID]:  # files of text, each of which is a record
        return Guess(TEXT_FILE_ID, TEXT_FILE_TEXT, None, keep, (), (), ())
    ids = [
        column
        for column in plain
        if column.usable and column.type in _ID_TYPES and {*column.parts[-1:]} & {*_IDS} and not _is_author(column)
    ]
    record_id = _one_id(ids, table)
    fields = [field for column in plain for field in _find_fields(column)]
    texts = [
        column
        for column in (*plain, *fields)
        if column.type == "string" and _text_rank(column) is not None and column is not record_id
    ]
    text = _first(texts)
    authors = [
        column
        for column in plain
        if _is_author(column) and column.type in _ID_TYPES and column not in (record_id, text)
    ]
    author = min(authors, key=lambda column: (column.parts[-1] not in _IDS, columns.index(column)), default=None)
    others = [column for column in plain if column.usable and column.type in _ID_TYPES and column not in (text, author)]
    strings = [
        column
        for column in (*plain, *fields)
        if column.type in ("string", "binary") and column not in (record_id, author)
    ]
    could_be_text = [] if text else texts or strings
    # Candidates for the text are not offered for publication.
    named = {column.name for column in (record_id, text, author, *could_be_text) if column} | {*keep}
    kept = [column for column in columns if column.partition and column.name in keep]
    days = [column.name for column in kept if column.type in _DAY_TYPES and {*column.parts[-1:]} & {*_DAYS}]
    return Guess(
        id=record_id.name if record_id else None,
        text=text.name if text else None,
        author=author.name if author else None,
        keep=keep,
        not_kept=tuple(column.name for column in columns if column.name not in named),
        id_candidates=() if record_id else tuple(column.name for column in ids or others),
        text_candidates=tuple(column.name for column in could_be_text),
        day=days[0] if len(days) == 1 else None,
    )


def _find_fields(column: Column) -> Iterator[Column]:
    """Yield the fields inside a struct, at any depth, by the names that ``input.text`` takes. Those with unusual names
    are left out.
    """
    if not column.type.startswith("struct<"):
        return
    depth, start, inner = 0, 0, column.type[len("struct<") : -1] + ","
    for index, sign in enumerate(inner):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(sign, 0)
        if sign == "," and not depth:
            name, _, kind = inner[start:index].partition(":")
            start = index + 1
            if _FIELD.fullmatch(name.strip()) and _FIELD.fullmatch(column.name.replace(".", "")):
                field = Column(f"{column.name}.{name.strip()}", kind.strip())
                yield field
                yield from _find_fields(field)


def _one_id(ids: Sequence[Column], table: str) -> Column | None:
    """Choose the id among columns that look like ids. A wrong one would be published, so return None if it is
    unclear.
    """
    named_so = [column for column in ids if len(column.parts) == 1]
    if named_so:
        return min(named_so, key=lambda column: _IDS.index(column.parts[0]))
    own = [column for column in ids if table.lower().startswith("_".join(column.parts[:-1]))]
    for choice in (ids, own):
        if len(choice) == 1:
            return choice[0]
    return None


def _text_rank(column: Column) -> tuple[bool, int] | None:
    """Rank names like ``body`` before names like ``mail_body``, in the order of :data:`_TEXTS`."""
    last = column.parts[-1].removesuffix("s") if column.parts else ""
    return (len(column.parts) > 1, _TEXTS.index(last)) if last in _TEXTS else None


def _first(texts: Sequence[Column]) -> Column | None:
    """Choose the text by the best name; None if two columns have equally good names."""
    ranked = sorted(texts, key=lambda column: _text_rank(column) or (True, len(_TEXTS)))
    if len(ranked) > 1 and _text_rank(ranked[0]) == _text_rank(ranked[1]):
        return None
    return ranked[0] if ranked else None


def _is_author(column: Column) -> bool:
    return bool(column.parts) and column.parts[0].removesuffix("s") in _AUTHORS
