"""Modules import downwards only, each is reached by the product, and a worker loads nothing heavy."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import lints
from support.commands import wordveil_group
from support.repository import LIB, MODULES, ROOT, find_offenders

TESTS = [path for folder in ("tests", "research/tests") for path in (ROOT / folder).rglob("*.py")]
# What was reached: these numbers only fall.
REPEATED_CLASSES = {"Kind", "Pairs"}
MAX_PRIVATE_USES = 61


def test_rooms_and_modules_are_the_same():
    assert {path.relative_to(LIB).parts[0].removesuffix(".py") for path in MODULES} - {"__init__"} == set(lints.ROOMS)
    inside = {
        path.relative_to(LIB / "spark").parts[0].removesuffix(".py")
        for path in MODULES
        if LIB / "spark" in path.parents
    }
    assert inside - {"__init__"} == set(lints.SPARK_ROOMS)


def test_imports_come_from_rooms_above():
    packages = {LIB / "__init__.py", LIB / "spark" / "__init__.py"}
    assert find_offenders(lints.find_upward_imports, [path for path in MODULES if path not in packages]) == {}


def test_the_package_itself_imports_the_public_face_alone():
    found = {item.module for item in lints.list_imports(LIB / "__init__.py") if item.module.startswith("wordveil.")}
    assert found == {"wordveil.version", "wordveil.api"}


def test_nothing_but_the_registry_knows_concrete_mechanisms():
    assert find_offenders(lints.find_concrete_mechanisms, MODULES) == {}
    known = {(str(path.relative_to(LIB)), item.module) for path in MODULES for item in lints.list_imports(path)}
    assert known >= lints.KNOWN_MECHANISMS, "an exception that is not needed any more"


def test_spark_only_entries_take_the_configuration():
    folder = LIB / "spark"
    found = {
        str(path.relative_to(folder)): {*lints.find_configured(path)} for path in MODULES if folder in path.parents
    }
    assert {place: names for place, names in found.items() if names} == lints.ENTRIES


def test_functions_take_sections_rather_than_the_configuration():
    """Modules of commands are the door itself."""
    assert find_offenders(lints.find_wide, [path for path in MODULES if path.parent != LIB / "cli"]) == {}


def importers(package: str, *folders: str) -> set[str]:
    """Files that import a package when they run, relative to the project."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if LIB / "data" not in path.parents]
    return {
        str(path.relative_to(ROOT))
        for path in paths
        if any(found.module.split(".")[0] == package and not found.typing_only for found in lints.list_imports(path))
    }


@pytest.mark.parametrize(
    ("packages", "room"), [(["pyspark"], "spark"), (["jax", "flax", "optax"], "generators/training")]
)
def test_large_packages_keep_to_their_room(packages: list[str], room: str):
    found = {path for package in packages for path in importers(package, "lib")}
    assert found
    assert all(path.startswith(f"lib/wordveil/{room}/") for path in found), found


def test_airflow_keeps_to_its_dags():
    assert importers("airflow", "lib", "jobs", "research", "examples") == set()


# Numba loads yaml where it finds it, so that cannot be asked of a worker.
HEAVY = ("gensim", "pydantic", "typer", "rich", "jinja2")


@pytest.mark.parametrize(
    ("module", "banned"),
    [("wordveil.records.sanitiser", (*HEAVY, "pandas", "pyspark")), ("wordveil.spark.sanitise.worker", HEAVY)],
)
def test_the_path_of_a_worker_loads_nothing_heavy(module, banned):
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}} & {set(banned)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
    assert all(importlib.util.find_spec(name) for name in HEAVY), "else they could not be loaded"


@pytest.mark.parametrize(
    "lint", [lints.find_undocumented, lints.find_docstrings_without_verb, lints.find_global_randomness]
)
def test_modules_are_documented_and_never_draw_at_random(lint: Callable[[Path], list[str]]):
    assert find_offenders(lint, MODULES) == {}


def test_class_names_repeated_in_the_package_stay_few():
    """Rename a class instead of adding its name: a name that two classes have cannot be searched for."""
    assert lints.find_repeated_classes(path.read_text("utf-8") for path in MODULES) <= REPEATED_CLASSES


def test_private_names_used_by_tests_stay_few():
    """A test of a private name breaks with each change inside: test what the public ones do with it."""
    uses = find_offenders(lambda path: lints.find_private_uses(path.read_text("utf-8")), TESTS)
    assert sum(map(len, uses.values())) <= MAX_PRIVATE_USES, uses


def test_names_of_tests_stay_short():
    """A name of 60 characters fits on a line of a report."""
    assert find_offenders(lambda path: lints.find_long_test_names(path.read_text("utf-8")), TESTS) == {}


def test_files_stay_readable():
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > 600} == {}


# Where users and operators begin. The commands are imported when they are called.
COMMANDS = [f"wordveil.cli.{name}" for name in wordveil_group().commands]
STARTS = ("wordveil", "wordveil.__main__", "wordveil.cli.app", *COMMANDS)
PROGRAMS = [path for folder in ("jobs", "airflow_dags", "scripts") for path in (ROOT / folder).rglob("*.py")]


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(LIB.parent).with_suffix("").parts).removesuffix(".__init__")


def test_the_product_does_not_import_the_laboratory():
    programs = [path for folder in ("jobs", "airflow_dags", "examples") for path in (ROOT / folder).rglob("*.py")]
    paths = [*MODULES, *programs, *(ROOT / "tests").rglob("*.py")]
    assert lints.find_importers({str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}) == []


def test_no_module_is_reached_by_tests_alone():
    modules = {name_module(path): path.read_text("utf-8") for path in MODULES}
    programs = [name for path in PROGRAMS for name in lints.find_names(path.read_text("utf-8"))]
    assert lints.find_unreached(modules, [*STARTS, *programs]) == []
