"""The product stands without its laboratory, and no module is reached by tests alone."""

from __future__ import annotations

from pathlib import Path

from support.commands import wordveil_group
from support.lints import find_importers, find_names, find_unreached
from support.repository import LIB, MODULES, ROOT

# Where users and operators begin. The commands are imported when they are called.
COMMANDS = [f"wordveil.cli.{name}" for name in wordveil_group().commands]
STARTS = ("wordveil", "wordveil.__main__", "wordveil.cli.app", *COMMANDS)
PROGRAMS = [path for folder in ("jobs", "airflow_dags", "scripts") for path in (ROOT / folder).rglob("*.py")]


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(LIB.parent).with_suffix("").parts).removesuffix(".__init__")


def test_the_product_does_not_import_the_laboratory():
    programs = [path for folder in ("jobs", "airflow_dags", "examples") for path in (ROOT / folder).rglob("*.py")]
    paths = [*MODULES, *programs, *(ROOT / "tests").rglob("*.py")]
    assert find_importers({str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}) == []


def test_no_module_is_reached_by_tests_alone():
    modules = {name_module(path): path.read_text("utf-8") for path in MODULES}
    programs = [name for path in PROGRAMS for name in find_names(path.read_text("utf-8"))]
    assert find_unreached(modules, [*STARTS, *programs]) == []
