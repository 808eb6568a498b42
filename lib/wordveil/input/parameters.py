"""Named parameters of ``input.where``, and their values from the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from wordveil.errors import ConfigError, Fault, did_you_mean

NO_PARAMS: Mapping[str, str] = MappingProxyType({})
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_TOKEN = re.compile(
    rf"""
      --(?:\\\n|[^\r\n])*
    | [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*`
    | \w+
    | ::
    | :(?P<parameter> {_NAME} )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def parse_params(pairs: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` pairs. Raises :class:`ConfigError` with every fault: a bad name, or a repeated one."""
    params: dict[str, str] = {}
    faults = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(_NAME, name):
            problem = "should be NAME=VALUE, with a name of letters, digits and '_' that does not begin with a digit."
            faults.append(Fault("--param", name[:80], problem))
        elif name in params:
            faults.append(Fault("--param", name, "is given more than once."))
        params[name] = value
    if faults:
        raise ConfigError("command line", faults)
    return params


def find_parameter_names(condition: str) -> list[str]:
    """List the parameters that a condition uses, each once, in their order."""
    return list(dict.fromkeys(found["parameter"] for found in _find_parameters(condition)))


def join_conditions(conditions: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[str, dict[str, str]]:
    """Join ``conditions``, each with its parameters, to one that holds if one of them does; an empty one holds."""
    parts: list[str] = []
    joined: dict[str, str] = {}
    for number, (condition, params) in enumerate(conditions):
        part, end = "", 0
        for found in _find_parameters(condition):
            part, end = f"{part}{condition[end : found.end()]}_{number}", found.end()
        parts.append(f"(\n{part}{condition[end:]}\n)")  # on lines of its own: it may end in a comment
        joined |= {f"{name}_{number}": value for name, value in params.items()}
    return (" OR ".join(parts) or "false", joined) if all(condition for condition, _ in conditions) else ("", {})


def _find_parameters(condition: str) -> Iterator[re.Match[str]]:
    """Find the parameters of a condition as Spark's lexer does: outside of strings, quoted names and comments."""
    offset = 0
    while offset < len(condition):
        if _COMMENT_EDGE.match(condition, offset):
            offset = _after_comment(condition, offset)
            continue
        token = _TOKEN.match(condition, offset)
        assert token is not None, "any character is a token"
        offset = token.end()
        if token["parameter"]:
            yield token


def _after_comment(condition: str, start: int) -> int:
    """Find the end of a bracketed comment; such comments nest.

    An unclosed one ends at the first closing bracket, so that the rest of the condition is searched too.
    """
    depth, first = 0, None
    for edge in _COMMENT_EDGE.finditer(condition, start):
        depth += 1 if edge[0] == "/*" else -1
        first = edge.end() if first is None and edge[0] == "*/" else first
        if depth == 0:
            return edge.end()
    return len(condition) if first is None else first


def check_params(where: str | None, params: Mapping[str, str]) -> None:
    """Raise :class:`ConfigError` unless ``params`` are exactly those that the condition ``where`` uses."""
    used = find_parameter_names(where or "")
    faults = [
        Fault("input.where", f":{name}", "has no value.", f"Add --param {name}=... to the command.")
        for name in used
        if name not in params
    ]
    for name in params:
        if name not in used:
            fix = did_you_mean(name, used) or " Remove it."
            faults.append(Fault("--param", name, f"input.where does not use :{name}.{fix}"))
    if faults:
        raise ConfigError("command line", faults)
