"""The house stays as it was planned: modules import downwards only, Spark and Airflow keep to their rooms, a worker loads
nothing heavy, all that is public says what it is, and nothing draws from global random state."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib" / "wordveil"
FILES = sorted(path for path in LIB.rglob("*.py") if LIB / "data" not in path.parents)

# A module imports only from rooms that stand before its own, or from its own.
ROOMS = (
    *(
        "errors",
        "compiled",
        "geometry",
        "keys",
        "randomness",
        "vocabulary",
        "embedding",
        "neighbours",
        "privacy",
        "mechanisms",
        "text",
    ),
    *(
        "stored",
        "bundle",
        "ngrams",
        "records",
        "preview",
        "comparison",
        "calibration",
        "audit",
        "evaluation",
        "training",
        "release",
        "conditions",
        "sections",
        "yaml_file",
        "parameters",
        "contradictions",
        "config",
        "arguments",
        "drafting",
        "shipping",
        "building",
        "spark",
        "display",
        "printing",
        "reporting",
        "console",
        "key_commands",
        "release_commands",
        "ledger_commands",
        "ngram_commands",
        "analytics_command",
        "cli",
        "__main__",
    ),
)


@dataclass(frozen=True)
class Import:
    """One imported module, and whether type checkers alone follow it."""

    module: str
    line: int
    typing_only: bool


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports(path: Path) -> Iterator[Import]:
    """Every import of a file, those inside functions included."""
    tree = tree_of(path)
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        typing_only = id(node) in guarded
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, typing_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import hides its room"
            yield Import(node.module or "", node.lineno, typing_only)
            if node.module == "wordveil":
                yield from (
                    Import(f"wordveil.{alias.name}", node.lineno, typing_only) for alias in node.names if alias.name in ROOMS
                )


def room_of(path: Path) -> str:
    return path.relative_to(LIB).parts[0].removesuffix(".py")


def upward(path: Path) -> list[str]:
    """Imports of a file from rooms that stand after its own."""
    here = ROOMS.index(room_of(path))
    targets = [(found.line, found.module.split(".")[1]) for found in imports(path) if found.module.startswith("wordveil.")]
    return [f"{path.name}:{line} imports {room}" for line, room in targets if ROOMS.index(room) > here]


def test_every_module_stands_in_a_room():
    assert {room_of(path) for path in FILES} - {"__init__"} <= set(ROOMS)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path != LIB / "__init__.py"], ids=lambda path: str(path.relative_to(LIB))
)
def test_imports_come_from_rooms_above(path):
    assert upward(path) == []


def test_the_package_itself_imports_no_room():
    assert [found for found in imports(LIB / "__init__.py") if found.module.startswith("wordveil")] == []


def test_the_lint_sees_imports_wherever_they_stand(tmp_path, monkeypatch):
    path = tmp_path / "keys.py"
    path.write_text("from wordveil.errors import E\ndef f():\n    from wordveil.records import g\n    from wordveil import spark\n")
    monkeypatch.setattr(sys.modules[__name__], "LIB", tmp_path)
    assert upward(path) == ["keys.py:3 imports records", "keys.py:4 imports spark"]


def importers(package: str, *folders: str) -> set[str]:
    """Files that import a package when they run, relative to the project."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if LIB / "data" not in path.parents]
    return {
        str(path.relative_to(ROOT))
        for path in paths
        if any(found.module.split(".")[0] == package and not found.typing_only for found in imports(path))
    }


def test_spark_keeps_to_its_room():
    found = importers("pyspark", "lib")
    assert all(path.startswith("lib/wordveil/spark/") for path in found), found


def test_airflow_keeps_to_its_dags():
    assert importers("airflow", "lib", "jobs", "benchmarks", "examples") == set()


# Numba loads yaml where it finds it, so that cannot be asked of a worker.
HEAVY = ("gensim", "pydantic", "typer", "rich")


@pytest.mark.parametrize(
    ("module", "banned"), [("wordveil.records", (*HEAVY, "pandas", "pyspark")), ("wordveil.spark.worker", HEAVY)]
)
def test_the_path_of_a_worker_loads_nothing_heavy(module, banned):
    if module == "wordveil.spark.worker" and not (LIB / "spark" / "worker.py").exists():
        pytest.skip("there is no worker yet")
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}} & {set(banned)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", HEAVY)
def test_what_a_worker_must_not_load_could_be_loaded(name):
    """Else the test above would pass for want of the packages."""
    assert importlib.util.find_spec(name) is not None


def public(nodes: list[ast.stmt]) -> list[ast.FunctionDef | ast.ClassDef]:
    return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")]


@cache
def documented_methods() -> frozenset[str]:
    """Names of methods documented in some class: an override need not say it again."""
    classes = [node for path in FILES for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
    return frozenset(method.name for one in classes for method in public(one.body) if ast.get_docstring(method))


def says_itself(method: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a method is a property of a single line, such as ``size``."""
    properties = [item for item in method.decorator_list if isinstance(item, ast.Name) and item.id == "property"]
    return bool(properties) and len(method.body) == 1


def undocumented(path: Path) -> list[str]:
    tree = tree_of(path)
    found = [] if ast.get_docstring(tree) else ["the module"]
    for node in public(tree.body):
        found += [] if ast.get_docstring(node) else [node.name]
        methods = public(node.body) if isinstance(node, ast.ClassDef) else []
        inherited = documented_methods() if isinstance(node, ast.ClassDef) and node.bases else frozenset()
        found += [
            f"{node.name}.{method.name}"
            for method in methods
            if not ast.get_docstring(method) and method.name not in inherited and not says_itself(method)
        ]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LIB)))
def test_all_that_is_public_has_a_docstring(path):
    assert undocumented(path) == []


def global_randomness(path: Path) -> list[str]:
    """Uses of the ``random`` module or of NumPy's random numbers."""
    found = [f"{path.name}:{item.line} {item.module}" for item in imports(path) if item.module in ("random", "numpy.random")]
    for node in ast.walk(tree_of(path)):
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "random"
            and isinstance(node.value, ast.Name)
            and node.value.id in ("np", "numpy")
        ):
            found.append(f"{path.name}:{node.lineno} np.random")
        if isinstance(node, ast.ImportFrom) and node.module == "numpy" and any(alias.name == "random" for alias in node.names):
            found.append(f"{path.name}:{node.lineno} numpy.random")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LIB)))
def test_nothing_draws_from_global_random_state(path):
    assert global_randomness(path) == []


@pytest.mark.parametrize(
    "code",
    [
        "import random",
        "from random import random",
        "import numpy as np\nnp.random.seed(1)",
        "from numpy import random",
        "from numpy.random import default_rng",
    ],
)
def test_the_lint_sees_random_numbers(tmp_path, code):
    path = tmp_path / "module.py"
    path.write_text(code)
    assert global_randomness(path) != []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(LIB)))
def test_files_stay_readable(path):
    assert len(path.read_text("utf-8").splitlines()) <= 400
