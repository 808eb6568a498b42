"""The product stands without its laboratory, and no module is reached by tests alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from support.commands import wordveil_group
from support.repository import LIB, MODULES, ROOT

LABORATORY = "wordveil_research"
# A module that is imported when it is needed is named by a string.
LAZY = re.compile(r"(wordveil(?:\.\w+)+)(?::\w+)?")
# Where users and operators begin. The commands are imported when they are called.
COMMANDS = [f"wordveil.cli.{name}" for name in wordveil_group().commands]
STARTS = ("wordveil", "wordveil.__main__", "wordveil.cli.app", *COMMANDS)
PROGRAMS = [path for folder in ("jobs", "airflow_dags", "scripts") for path in (ROOT / folder).rglob("*.py")]


def find_names(source: str) -> Iterator[str]:
    """What a file imports, also lazily: a string that is a module's name counts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and (match := LAZY.fullmatch(str(node.value))):
            yield match[1]


def find_importers(sources: Mapping[str, str]) -> list[str]:
    """The files that import the laboratory."""
    return [
        file for file, source in sources.items() if any(name.split(".")[0] == LABORATORY for name in find_names(source))
    ]


def find_unreached(modules: Mapping[str, str], starts: Iterable[str]) -> list[str]:
    """The modules, by name with their source, that no chain of imports leads to."""
    left = [*starts]
    reached: set[str] = set()
    while left:
        name = left.pop()
        if name in modules and name not in reached:
            reached.add(name)
            left += [*find_names(modules[name]), name.rpartition(".")[0]]
    return sorted(modules.keys() - reached)


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(LIB.parent).with_suffix("").parts).removesuffix(".__init__")


def test_the_product_does_not_import_the_laboratory():
    programs = [path for folder in ("jobs", "airflow_dags", "examples") for path in (ROOT / folder).rglob("*.py")]
    paths = [*MODULES, *programs, *(ROOT / "tests").rglob("*.py")]
    assert find_importers({str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}) == []


def test_an_import_of_the_laboratory_is_seen():
    sources = {"a": f"def f():\n    from {LABORATORY}.runner import run", "b": f"import {LABORATORY}", "c": "import os"}
    assert find_importers(sources) == ["a", "b"]


def test_no_module_is_reached_by_tests_alone():
    modules = {name_module(path): path.read_text("utf-8") for path in MODULES}
    programs = [name for path in PROGRAMS for name in find_names(path.read_text("utf-8"))]
    assert find_unreached(modules, [*STARTS, *programs]) == []


def test_an_unreached_module_is_seen():
    modules = {
        "wordveil": "from wordveil.a import b",
        "wordveil.a": "",
        "wordveil.a.b": 'LAZY = {"c": "wordveil.c", "d": "wordveil.d:D"}',
        "wordveil.c": "",
        "wordveil.d": "",
        "wordveil.lost": "import wordveil.a.b",
        "wordveil.more": "import wordveil.lost",
    }
    assert find_unreached(modules, ["wordveil"]) == ["wordveil.lost", "wordveil.more"]
