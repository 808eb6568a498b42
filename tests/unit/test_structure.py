"""The house stays as it was planned: modules import downwards only, Spark and Airflow keep to their rooms, a worker
loads nothing heavy, all that is public says what it is, and nothing draws from global random state.
"""

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

from support.repository import LIB, MODULES, ROOT, find_offenders

# Files are parsed once.
pytestmark = pytest.mark.xdist_group("structure")
# They draw samples of what they measure, or first weights of what they train, and never noise.
SAMPLING = ("measures", "audit", "evaluation", "generators")
# A module imports only from rooms that stand before its own, or from its own.
ROOMS = (
    *(
        "version",
        "credentials",
        "errors",
        "plugins",
        "compiled",
        "arrays",
        "geometry",
        "crypto",
        "neighbours",
        "embeddings",
    ),
    *("generators", "privacy", "scores", "mechanisms", "text", "artifacts", "records", "input", "release", "config"),
    *("measures", "audit", "evaluation", "assembly", "spark", "report", "api", "cli", "__main__"),
)
# A function's docstring begins with a verb, and never with one of these.
NO_VERBS = ("What", "How", "Whether", "Which", "Who", "Whose", "Where", "When", "The")
# The same inside the room that imports Spark.
SPARK_ROOMS = ("platform", "input", "sanitise", "builds", "plan", "analytics", "evaluate", "release")


@dataclass(frozen=True)
class Import:
    """One imported module, and whether type checkers alone follow it."""

    module: str
    line: int
    typing_only: bool


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    return tuple(find_imports(path))


def find_imports(path: Path) -> Iterator[Import]:
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
                    Import(f"wordveil.{alias.name}", node.lineno, typing_only)
                    for alias in node.names
                    if alias.name in ROOMS
                )


def rooms_of(dotted: str) -> list[tuple[tuple[str, ...], str]]:
    """The rooms that a module is in, with their order: its own, and inside the room that imports Spark another
    one.
    """
    parts = dotted.split(".")
    return [(ROOMS, parts[0]), *([(SPARK_ROOMS, parts[1])] if parts[0] == "spark" and len(parts) > 1 else [])]


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")


def upward(path: Path) -> list[str]:
    """Imports of a file from rooms that stand after its own."""
    found = []
    for item in imports(path):
        if item.module.startswith("wordveil."):
            pairs = zip(rooms_of(dotted(path)), rooms_of(item.module.removeprefix("wordveil.")), strict=False)
            for (order, here), (_, there) in pairs:
                if order.index(there) > order.index(here):
                    found.append(f"{path.name}:{item.line} imports {there}")
                if there != here:
                    break
    return found


def test_rooms_and_modules_are_the_same():
    assert {path.relative_to(LIB).parts[0].removesuffix(".py") for path in MODULES} - {"__init__"} == set(ROOMS)
    inside = {
        path.relative_to(LIB / "spark").parts[0].removesuffix(".py")
        for path in MODULES
        if LIB / "spark" in path.parents
    }
    assert inside - {"__init__"} == set(SPARK_ROOMS)


def test_imports_come_from_rooms_above():
    packages = {LIB / "__init__.py", LIB / "spark" / "__init__.py"}
    assert find_offenders(upward, [path for path in MODULES if path not in packages]) == {}


def test_the_package_itself_imports_the_public_face_alone():
    found = {item.module for item in imports(LIB / "__init__.py") if item.module.startswith("wordveil.")}
    assert found == {"wordveil.version", "wordveil.api"}


def test_the_lint_sees_imports_wherever_they_stand(tmp_path, monkeypatch):
    path = tmp_path / "crypto" / "keys.py"
    path.parent.mkdir()
    path.write_text(
        "from wordveil.errors import E\ndef f():\n    from wordveil.records.sanitiser import g\n    from wordveil "
        "import spark\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "LIB", tmp_path)
    assert upward(path) == ["keys.py:3 imports records", "keys.py:4 imports spark"]


def test_the_lint_sees_imports_inside_the_room_that_knows_spark(tmp_path, monkeypatch):
    path = tmp_path / "spark" / "sanitise" / "job.py"
    path.parent.mkdir(parents=True)
    path.write_text("from wordveil.spark.input.source import a\nfrom wordveil.spark.release.run import b\n")
    monkeypatch.setattr(sys.modules[__name__], "LIB", tmp_path)
    assert upward(path) == ["job.py:2 imports release"]


# What the outside may know of mechanisms: what all have in common.
SHARED = {
    f"wordveil.mechanisms.{name}" for name in ("base", "settings", "inputs", "laws", "noise", "keep_rate", "registry")
}
KNOWN_MECHANISMS = {
    # The blind bundle of an audit: what still tells two texts apart with it is structure.
    ("audit/canaries/audit.py", "wordveil.mechanisms.tables.exponential"),
    ("audit/canaries/audit.py", "wordveil.mechanisms.tables.mechanism"),
}


def concrete_mechanisms(path: Path) -> list[str]:
    """Imports of one mechanism outside their room: such code would treat one mechanism as no other."""
    place = path.relative_to(LIB)
    return [
        f"{place}:{item.line} {item.module}"
        for item in imports(path)
        if item.module.startswith("wordveil.mechanisms.")
        and item.module not in SHARED
        and (str(place), item.module) not in KNOWN_MECHANISMS
        and place.parts[0] != "mechanisms"
    ]


def test_nothing_but_the_registry_knows_concrete_mechanisms():
    assert find_offenders(concrete_mechanisms, MODULES) == {}
    known = {(str(path.relative_to(LIB)), item.module) for path in MODULES for item in imports(path)}
    assert known >= KNOWN_MECHANISMS, "an exception that is not needed any more"


def test_the_lint_sees_concrete_mechanisms(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LIB", tmp_path)
    for room, seen in (("audit", ["audit/module.py:2 wordveil.mechanisms.tree.mechanism"]), ("mechanisms", [])):
        path = tmp_path / room / "module.py"
        path.parent.mkdir()
        path.write_text("from wordveil.mechanisms.base import A\nfrom wordveil.mechanisms.tree.mechanism import Tree\n")
        assert concrete_mechanisms(path) == seen


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
    assert importers("airflow", "lib", "jobs", "research", "examples") == set()


def test_jax_keeps_to_the_training_of_generators():
    found = {path for package in ("jax", "flax", "optax") for path in importers(package, "lib")}
    assert found
    assert all(path.startswith("lib/wordveil/generators/training/") for path in found), found


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


def test_what_a_worker_must_not_load_could_be_loaded():
    """Else the test above would pass for want of the packages."""
    assert all(importlib.util.find_spec(name) for name in HEAVY)


def public(nodes: list[ast.stmt]) -> list[ast.FunctionDef | ast.ClassDef]:
    return [
        node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


@cache
def documented_methods() -> frozenset[str]:
    """Names of methods documented in some class: an override need not say it again."""
    classes = [node for path in MODULES for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
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


def test_all_that_is_public_has_a_docstring():
    assert find_offenders(undocumented, MODULES) == {}


def test_the_lint_sees_what_has_no_docstring(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('class A(B):\n    """A."""\n\n    def say(self): ...\n\n\ndef f(): ...\n\n\ndef _g(): ...\n')
    assert undocumented(path) == ["the module", "A.say", "f"]


def without_verb(path: Path) -> list[str]:
    """List the functions whose docstring begins with a word of :data:`NO_VERBS`."""
    functions = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in functions if (ast.get_docstring(node) or "-").split()[0] in NO_VERBS]


def test_docstrings_of_functions_begin_with_verbs():
    assert find_offenders(without_verb, MODULES) == {}


def test_docstring_lint_question_word_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('def f():\n    """Count."""\n\n\nclass A:\n    def g(self):\n        """How many."""\n')
    assert without_verb(path) == ["g"]


def seeded_generators(path: Path) -> set[int]:
    """Where ``np.random`` makes a generator from a seed, or names its type, in rooms that may."""
    if not {LIB / room for room in SAMPLING} & {*path.parents}:
        return set()
    nodes = list(ast.walk(tree_of(path)))
    calls = [node.func for node in nodes if isinstance(node, ast.Call) and node.args]
    made = [func for func in calls if isinstance(func, ast.Attribute) and func.attr in ("default_rng", "PCG64")]
    named = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "Generator"]
    return {id(node.value) for node in (*made, *named)}


def global_randomness(path: Path) -> list[str]:
    """Uses of the ``random`` module or of NumPy's random numbers, but for :func:`seeded_generators`."""
    found = [
        f"{path.name}:{item.line} {item.module}" for item in imports(path) if item.module in ("random", "numpy.random")
    ]
    seeded = seeded_generators(path)
    for node in ast.walk(tree_of(path)):
        if (
            isinstance(node, ast.Attribute)
            and id(node) not in seeded
            and node.attr == "random"
            and isinstance(node.value, ast.Name)
            and node.value.id in ("np", "numpy")
        ):
            found.append(f"{path.name}:{node.lineno} np.random")
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "numpy"
            and any(alias.name == "random" for alias in node.names)
        ):
            found.append(f"{path.name}:{node.lineno} numpy.random")
    return found


def test_nothing_draws_from_global_random_state():
    assert find_offenders(global_randomness, MODULES) == {}


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


@pytest.mark.parametrize(
    ("code", "is_seeded"),
    [
        ("np.random.default_rng(seed)", True),
        ("np.random.Generator(np.random.PCG64(seed))", True),
        ("np.random.default_rng()", False),
        ("np.random.seed(1)", False),
        ("np.random.Generator(np.random.PCG64())", False),
    ],
)
def test_evaluations_draw_samples_by_a_seed(tmp_path, monkeypatch, code, is_seeded):
    monkeypatch.setattr(sys.modules[__name__], "LIB", tmp_path)
    for folder in (*SAMPLING, "mechanisms"):
        path = tmp_path / folder / "module.py"
        path.parent.mkdir()
        path.write_text(f"import numpy as np\n{code}\n")
        assert (global_randomness(path) == []) == (is_seeded and folder != "mechanisms")


def test_files_stay_readable():
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > 600} == {}
