"""Columns that a condition in Spark SQL reads, found without Spark.

The exposures of a release must follow from its configuration alone. When in doubt, refuse: a false positive costs a
message, a false negative leaks. So if it is unclear what is read, the text counts as read. Before a record is read,
this is compared with Spark's own answer (:mod:`wordveil.spark.input.condition`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from wordveil.errors import Fault, shown_value
from wordveil.privacy.relations import Exposure, Relation
from wordveil.records.paths import read_path

PARAMETER = r"[A-Za-z_][A-Za-z0-9_]*"
"""Name of a parameter, a regular expression."""

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_TOKEN = re.compile(
    rf"""
      (?P<skipped> \s+ | --(?:\\\n|[^\r\n])* )
    | (?P<literal> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' )
    | "(?P<double> (?:[^"\\]|\\.|"")* )"
    | `(?P<name> (?:[^`]|``)* )`
    | (?P<word> \w+ )
    | :(?P<parameter> {PARAMETER} )
    | (?P<sign> :: | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NO_OPERANDS = frozenset(
    {"ALL", "AND", "BETWEEN", "CASE", "DISTINCT", "ELSE", "IN", "IS", "LIKE", "NOT", "OR", "RLIKE", "THEN", "WHEN"}
)
_QUERIES = frozenset({"FROM", "TABLE", "VALUES", "WITH"})


@dataclass(frozen=True)
class Token:
    """Piece of a condition. A ``name`` is in backticks or, as some sessions read it, in double quotes."""

    kind: Literal["word", "name", "literal", "parameter", "sign"]
    value: str

    @property
    def keyword(self) -> str:
        """Plain word in upper case, or a sign; otherwise empty."""
        return self.value.upper() if self.kind in ("word", "sign") else ""

    @property
    def is_operand(self) -> bool:
        """True if it can be an operand of a product, by itself."""
        return self.kind != "sign" and self.keyword not in _NO_OPERANDS


def tokens(condition: str) -> Iterator[Token]:
    """Cut a condition into pieces as Spark's lexer does, without spaces and comments."""
    for piece in _cut(condition):
        kind, value = piece.lastgroup, piece[piece.lastgroup or 0]
        match kind:
            case "name":
                yield Token("name", value.replace("``", "`"))
            case "double":
                yield Token("name", value.replace('""', '"'))
            case "word" | "literal" | "parameter" | "sign":
                yield Token(kind, value)


def _cut(condition: str) -> Iterator[re.Match[str]]:
    offset = 0
    while offset < len(condition):
        if _COMMENT_EDGE.match(condition, offset):
            offset = _after_comment(condition, offset)
            continue
        piece = _TOKEN.match(condition, offset)
        assert piece is not None, "any character is a sign"
        offset = piece.end()
        yield piece


def join_conditions(conditions: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[str, dict[str, str]]:
    """Join ``conditions`` to one that holds if one of them does, and its parameters.

    Each is given with its own; an empty one always holds.
    """
    parts: list[str] = []
    joined: dict[str, str] = {}
    for number, (condition, params) in enumerate(conditions):
        part, end = "", 0
        for piece in _cut(condition):
            if piece.lastgroup == "parameter":
                part, end = f"{part}{condition[end : piece.end()]}_{number}", piece.end()
        parts.append(f"(\n{part}{condition[end:]}\n)")  # on lines of its own: it may end in a comment
        joined |= {f"{name}_{number}": value for name, value in params.items()}
    return (" OR ".join(parts) or "false", joined) if all(condition for condition, _ in conditions) else ("", {})


def _after_comment(condition: str, start: int) -> int:
    """Find the end of a bracketed comment; such comments nest.

    An unclosed one ends at the first closing bracket, so that the rest of the condition is checked too.
    """
    depth, first = 0, None
    for edge in _COMMENT_EDGE.finditer(condition, start):
        depth += 1 if edge[0] == "/*" else -1
        first = edge.end() if first is None and edge[0] == "*/" else first
        if depth == 0:
            return edge.end()
    return len(condition) if first is None else first


def find_reading(condition: str, columns: Sequence[str]) -> str:
    """Find the part of a condition that reads or may read one of the text ``columns``.

    Returns the end of a sentence; empty if there is none. A struct with a text among its fields counts as read wherever
    it or any field is named.
    """
    pieces = [*tokens(condition)]
    if "${" in condition:
        return "has a variable ${...}, which Spark replaces with SQL from elsewhere"
    names = [f".{fold_name(name)}." for name in _names(pieces)]
    for column in columns:
        root = read_path(column)[0]
        if any(f".{fold_name(part)}." in name for name in names for part in (column, root)):
            return f"names {root}, the text column" if root == column else f"names {root}, where the text {column} is"
    if _has_query(pieces):
        return "has a subquery, and it is unclear what it reads"
    if ("IDENTIFIER", "(") in pairwise(token.keyword for token in pieces):
        return "has IDENTIFIER(...), and it is unclear what it names"
    return "has a * that selects all columns, including the text" if _has_star(pieces) else ""


def find_condition_faults(where: str | None, texts: Sequence[str], relation: Relation) -> Iterator[Fault]:
    """List a condition that reads the text under a policy whose bound holds for any two texts: it could admit only
    one.
    """
    if where and relation is Relation.ANY_TEXT and (how := find_reading(where, texts)):
        problem = (
            f"{how}. The presence of a record would reveal something about its text, but the text policy's bound "
            "holds for any two texts. Filter on kept columns or in a view of public columns, or use a policy of "
            "text.profile: readable, under which exposes lists condition."
        )
        yield Fault("input.where", shown_value(where), problem)


def find_exposures(condition: str | None, texts: Sequence[str]) -> tuple[str, ...]:
    """List the exposures that the condition adds. If it reads the text, each record shows that its text meets it."""
    return (str(Exposure.CONDITION),) if condition and find_reading(condition, texts) else ()


def _names(pieces: Sequence[Token]) -> Iterator[str]:
    """Yield all names with the dots between them."""
    name = ""
    for token in pieces:
        if token.kind in ("word", "name"):
            name = name + token.value if name.endswith(".") else token.value
            yield name
        else:
            name = f"{name}." if token.value == "." else ""


def fold_name(name: str) -> str:
    """Fold a name: equal for all names that Java takes for the same regardless of case, and for a few more."""
    return "".join(letter.upper()[0].lower()[0] for letter in name)


def _has_query(pieces: Sequence[Token]) -> bool:
    words = [token.keyword for token in pieces]
    if {"SELECT", "USING"} & set(words):
        return True
    return any(before == "(" and word in _QUERIES for before, word in pairwise(["(", *words]))


def _has_star(pieces: Sequence[Token]) -> bool:
    """Return whether some ``*`` multiplies nothing: it has no operand before it or none after it."""
    edge = Token("sign", "")
    for before, star, after in zip([edge, *pieces], pieces, [*pieces[1:], edge], strict=False):
        if star.keyword != "*":
            continue
        if not (before.is_operand or before.keyword in (")", "]")) or not (
            after.is_operand or after.keyword in ("(", "+", "-", "~", ".")
        ):
            return True
    return False
