"""Lints of documents: links, commands, modules, configuration keys and long lines."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from support.commands import wordveil_group
from support.documents import Document, read_document
from support.repository import ROOT
from wordveil.config.load import Config

WIDTH = 120
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def find_anchors(path: Path) -> set[str]:
    """The anchors of a file's headings, as GitHub makes them."""
    found: set[str] = set()
    for _, line in read_document(path).prose:
        if heading := re.match(r"#{1,6} (.+)", line):
            plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])).lower()
            slug = plain.replace(" ", "-")
            number = next(n for n in range(len(found) + 1) if (f"{slug}-{n}" if n else slug) not in found)
            found.add(f"{slug}-{number}" if number else slug)
    return found


def find_broken_links(path: Path) -> list[str]:
    """Relative links to files or anchors that are not there."""
    found = []
    for match in LINK.finditer("\n".join(line for _, line in read_document(path).prose)):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        if not place.exists() or (anchor and anchor not in find_anchors(place)):
            found.append(target)
    return found


# A command ends where the shell or the sentence has something else.
END = re.compile(r"^(?:[|;&>)#]|&&|\.\.\.|2>.*)$")
# One begins a line, or follows the shell's punctuation or "Run": elsewhere the name is a word of a sentence.
START = re.compile(
    r"(?:^|(?:[&|({`]|\b(?:Run|by)\b))\s*(?:\.venv/bin/|~/driver/bin/)?wordveil (?=[a-z])"
    r"|(?<![\w/])jobs/(?=(\w+)\.py )"
)


def find_commands(text: str) -> Iterator[list[str]]:
    """The command lines of a text, each from its first subcommand on."""
    for line in re.sub(r"\\\n *", " ", text).split("\n"):
        for match in START.finditer(line):
            rest = re.split(r"(?:;|&&|\||\$\()", line[match.end() :])[0]
            try:
                words = shlex.split(rest, comments=True)
            except ValueError:
                words = rest.split()
            if match[1]:
                words[0] = words[0].removesuffix(".py")
            stop = next((n for n, word in enumerate(words) if END.match(word)), len(words))
            yield words[:stop]


def find_faults(words: list[str]) -> list[str]:
    """What of a command line the command line does not have."""
    command: Any = wordveil_group()
    path: list[str] = []
    for word in words:
        if not isinstance(command, TyperGroup):
            break
        found = command.commands.get(word)
        if found is None and command.invoke_without_command:
            break
        if found is None:
            return [] if word.startswith("-") and path else [f"no command {' '.join([*path, word])}"]
        path.append(word)
        command = found
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known.add("--help")
    given = [word.split("=")[0].rstrip(",.:") for word in words[len(path) :] if re.match(r"\[?--?[a-z]", word)]
    return [
        f"{' '.join(path)} has no {option}" for option in (word.strip("[]") for word in given) if option not in known
    ]


def find_missing_imports(source: str) -> list[str]:
    """What a piece of Python imports from the package and the package does not have."""
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wordveil"
        for alias in node.names
        if importlib.util.find_spec(node.module or "") is None
        or not hasattr(importlib.import_module(node.module or ""), alias.name)
    ]


def find_missing_names(spans: Iterable[str]) -> list[str]:
    """Modules and attributes of the package, and files of the repository, that are named and do not exist."""
    found = []
    for span in spans:
        if re.match(r"(lib|tests|scripts|research|conf|jobs|examples|airflow_dags)/[\w./-]+$", span):
            exists = "NAME" in span or (ROOT / span).exists()
        elif re.match(r"wordveil(\.\w+)+$", span) and not span.endswith((".key", ".yaml")):
            module, _, name = span.rpartition(".")
            exists = is_importable(span) or (is_importable(module) and hasattr(importlib.import_module(module), name))
        else:
            continue
        found += [] if exists else [span]
    return found


def is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of what it is in
        return False


@functools.cache
def load_schema() -> dict[str, Any]:
    return Config.model_json_schema()


def alternatives(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The object schemas that a node may be."""
    if "$ref" in node:
        return alternatives(load_schema()["$defs"][node["$ref"].rsplit("/", 1)[1]])
    choices = [choice for kind in ("anyOf", "oneOf", "allOf") for choice in node.get(kind, ())]
    return [found for choice in choices for found in alternatives(choice)] or [node]


def find_unknown_keys(value: object, nodes: list[dict[str, Any]], place: str = "") -> list[str]:
    """Keys of a configuration, or of a part of one, that no schema of ``nodes`` has."""
    if not isinstance(value, dict):
        return []
    objects = [found for node in nodes for found in alternatives(node)]
    found = []
    for key, inner in value.items():
        where = f"{place}.{key}".lstrip(".")
        below = [node["properties"][key] for node in objects if key in node.get("properties", {})]
        if below:
            found += find_unknown_keys(inner, below, where)
        elif not any(node.get("type") == "object" and node.get("additionalProperties", True) for node in objects):
            found.append(where)
    return found


def list_commands() -> Iterator[str]:
    """The commands, and those of groups. A group is a command itself where it runs without one of them."""
    for name, command in wordveil_group().commands.items():
        is_group = isinstance(command, TyperGroup)
        if not is_group or command.invoke_without_command:
            yield name
        if is_group:
            yield from (f"{name} {inner}" for inner in command.commands)


def find_long_lines(found: Document) -> list[int]:
    return [
        number
        for number, line in found.prose
        if len(line) > WIDTH and not line.lstrip().startswith("|") and not line.lstrip().startswith("![")
    ]


def find_headless_tables(found: Document) -> list[int]:
    """Find tables that an empty line cuts off from their head: pages show them as text."""
    rows = {number: line for number, line in found.prose if line.startswith("|")}
    first = [number for number in rows if number - 1 not in rows]
    return [number for number in first if not re.fullmatch(r"\|[ :|-]+", rows.get(number + 1, ""))]
