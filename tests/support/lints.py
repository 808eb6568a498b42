"""Lints of the package: what each finds in a file, by the room that the file is in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.repository import LIB, MODULES

LABORATORY = "wordveil_research"
# A module that is imported when it is needed is named by a string.
LAZY = re.compile(r"(wordveil(?:\.\w+)+)(?::\w+)?")
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
def parse_file(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def list_imports(path: Path) -> tuple[Import, ...]:
    return tuple(find_imports(path))


def find_imports(path: Path) -> Iterator[Import]:
    tree = parse_file(path)
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
    """List the rooms that a module is in, with their order; inside the room that imports Spark there are two."""
    parts = dotted.split(".")
    return [(ROOMS, parts[0]), *([(SPARK_ROOMS, parts[1])] if parts[0] == "spark" and len(parts) > 1 else [])]


def dotted(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def find_upward_imports(path: Path, root: Path = LIB) -> list[str]:
    found = []
    for item in list_imports(path):
        if item.module.startswith("wordveil."):
            pairs = zip(rooms_of(dotted(path, root)), rooms_of(item.module.removeprefix("wordveil.")), strict=False)
            for (order, here), (_, there) in pairs:
                if order.index(there) > order.index(here):
                    found.append(f"{path.name}:{item.line} imports {there}")
                if there != here:
                    break
    return found


# What the outside may know of mechanisms: what all have in common.
SHARED = {f"wordveil.mechanisms.{name}" for name in ("base", "settings", "inputs", "laws", "keep_rate", "registry")}
KNOWN_MECHANISMS = {
    # The blind bundle of an audit: what still tells two texts apart with it is structure.
    ("audit/canaries/audit.py", "wordveil.mechanisms.tables.exponential"),
    ("audit/canaries/audit.py", "wordveil.mechanisms.tables.mechanism"),
}


def find_concrete_mechanisms(path: Path, root: Path = LIB) -> list[str]:
    """Imports of one mechanism outside their room: such code would treat one mechanism as no other."""
    place = path.relative_to(root)
    return [
        f"{place}:{item.line} {item.module}"
        for item in list_imports(path)
        if item.module.startswith("wordveil.mechanisms.")
        and item.module not in SHARED
        and (str(place), item.module) not in KNOWN_MECHANISMS
        and place.parts[0] != "mechanisms"
    ]


# Functions of the room that imports Spark which take a whole configuration: the entries of commands. They load what a
# command needs of it, and hand sections and values on.
ENTRIES = {
    "evaluate/canaries.py": {"audit_release"},
    "evaluate/job.py": {"evaluate_output"},
    "plan/plan.py": {"make_plan"},
    "plan/sample.py": {"check_preview"},
    "platform/session.py": {"start_session"},
    "release/erase.py": {"erase"},
    "release/evaluate.py": {"evaluate_release"},
    "release/gate.py": {"run_gate"},
    "release/night.py": {"run_night"},
    "release/publish.py": {"publish"},
    "release/run.py": {"run_release", "withdraw"},
    "release/stream.py": {"run_stream"},
    "sanitise/job.py": {"run_sanitise"},
}


def find_configured(path: Path) -> list[str]:
    """Functions, classes and other statements of a file that name the whole configuration."""
    tree = parse_file(path)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "wordveil.config.load"
        for alias in node.names
        if alias.name == "Config"
    }
    uses = (
        getattr(statement, "name", "the module")
        for statement in tree.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id in names
    )
    return sorted({*uses})


# A public function, whose argument users have.
TAKES_ALL = {("spark/platform/session.py", "start_session")}


def find_wide(path: Path, root: Path = LIB) -> list[str]:
    """List the functions that take the whole configuration for two values, and neither call nor pass it."""
    found = []
    for function in ast.walk(parse_file(path)):
        if not isinstance(function, ast.FunctionDef) or (str(path.relative_to(root)), function.name) in TAKES_ALL:
            continue
        for taken in (*function.args.args, *function.args.kwonlyargs):
            if taken.annotation is None or "Config" not in ast.unparse(taken.annotation).split(" | "):
                continue
            nodes = [*ast.walk(function)]
            called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
            reads = (node for node in nodes if isinstance(node, ast.Attribute) and id(node) not in called)
            owners = {id(node.value): node.attr for node in reads}
            uses = [owners.get(id(node)) for node in nodes if isinstance(node, ast.Name) and node.id == taken.arg]
            found += [function.name] if None not in uses and len({*uses}) < 3 else []
    return found


def list_public(nodes: list[ast.stmt]) -> list[ast.FunctionDef | ast.ClassDef]:
    return [
        node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


@cache
def documented_methods() -> frozenset[str]:
    """Names of methods documented in some class: an override need not say it again."""
    classes = [node for path in MODULES for node in ast.walk(parse_file(path)) if isinstance(node, ast.ClassDef)]
    return frozenset(method.name for one in classes for method in list_public(one.body) if ast.get_docstring(method))


def says_itself(method: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a method is a property of a single line, such as ``size``."""
    properties = [item for item in method.decorator_list if isinstance(item, ast.Name) and item.id == "property"]
    return bool(properties) and len(method.body) == 1


def find_undocumented(path: Path) -> list[str]:
    tree = parse_file(path)
    found = [] if ast.get_docstring(tree) else ["the module"]
    for node in list_public(tree.body):
        found += [] if ast.get_docstring(node) else [node.name]
        methods = list_public(node.body) if isinstance(node, ast.ClassDef) else []
        inherited = documented_methods() if isinstance(node, ast.ClassDef) and node.bases else frozenset()
        found += [
            f"{node.name}.{method.name}"
            for method in methods
            if not ast.get_docstring(method) and method.name not in inherited and not says_itself(method)
        ]
    return found


def find_docstrings_without_verb(path: Path) -> list[str]:
    """List the functions whose docstring begins with a word of :data:`NO_VERBS`."""
    functions = [
        node for node in ast.walk(parse_file(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [node.name for node in functions if (ast.get_docstring(node) or "-").split()[0] in NO_VERBS]


def find_seeded_generators(path: Path, root: Path) -> set[int]:
    """Where ``np.random`` makes a generator from a seed, or names its type, in rooms that may."""
    if not {root / room for room in SAMPLING} & {*path.parents}:
        return set()
    nodes = list(ast.walk(parse_file(path)))
    calls = [node.func for node in nodes if isinstance(node, ast.Call) and node.args]
    made = [func for func in calls if isinstance(func, ast.Attribute) and func.attr in ("default_rng", "PCG64")]
    named = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "Generator"]
    return {id(node.value) for node in (*made, *named)}


def find_global_randomness(path: Path, root: Path = LIB) -> list[str]:
    """Uses of the ``random`` module or of NumPy's random numbers, but for :func:`find_seeded_generators`."""
    found = [
        f"{path.name}:{item.line} {item.module}"
        for item in list_imports(path)
        if item.module in ("random", "numpy.random")
    ]
    seeded = find_seeded_generators(path, root)
    for node in ast.walk(parse_file(path)):
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


def find_repeated_classes(sources: Iterable[str]) -> set[str]:
    """List the names that more than one class of these files has."""
    names = [node.name for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    return {name for name in names if names.count(name) > 1}


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def find_private_uses(source: str) -> list[str]:
    """List private names that a file imports from the package, reads from what it imported, or patches there."""
    tree = ast.parse(source)
    imported = [
        alias
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wordveil"
        for alias in node.names
    ]
    names = {alias.asname or alias.name for alias in imported}
    found = [alias.name for alias in imported if is_private(alias.name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            found += [node.attr] if is_private(node.attr) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            patched, *rest = node.args or [None]
            if isinstance(patched, ast.Name) and patched.id in names:
                found += [str(one.value) for one in rest if isinstance(one, ast.Constant) and is_private(one.value)]
            elif isinstance(patched, ast.Constant) and str(patched.value).startswith("wordveil."):
                last = str(patched.value).rpartition(".")[2]
                found += [last] if is_private(last) else []
    return found


def find_long_test_names(source: str) -> list[str]:
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if node.name.startswith("test_") and len(node.name) > 60]
