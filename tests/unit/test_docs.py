"""The documents agree with the code: links and anchors resolve, commands, options, modules and files exist,
configuration keys are those of the schema, and prose ends at 120 columns.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup

from support.commands import wordveil_group
from support.documents import DOCS, Document, cut_document, read_document
from support.repository import ROOT, find_offenders
from wordveil.config.load import Config
from wordveil.text.draft import DraftPolicy
from wordveil.text.policy import PROFILES

WIDTH = 120
LIST = ROOT / "llms.txt"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path: Path) -> set[str]:
    """The anchors of a file's headings, as GitHub makes them."""
    found: set[str] = set()
    for _, line in read_document(path).prose:
        if heading := re.match(r"#{1,6} (.+)", line):
            plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])).lower()
            slug = plain.replace(" ", "-")
            number = next(n for n in range(len(found) + 1) if (f"{slug}-{n}" if n else slug) not in found)
            found.add(f"{slug}-{number}" if number else slug)
    return found


def broken_links(path: Path) -> list[str]:
    """Relative links to files or anchors that are not there."""
    found = []
    for match in LINK.finditer("\n".join(line for _, line in read_document(path).prose)):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        if not place.exists() or (anchor and anchor not in anchors(place)):
            found.append(target)
    return found


def test_links_resolve():
    assert find_offenders(broken_links, [*DOCS, LIST]) == {}


def test_the_list_for_language_models_follows_its_convention():
    """A name, a summary as a quote, and sections whose lines are a link and what it leads to."""
    lines = LIST.read_text("utf-8").split("\n")
    assert lines[0] == "# wordveil"
    assert lines[2].startswith("> ")
    sections = lines[next(n for n, line in enumerate(lines) if line.startswith("## ")) :]
    assert [line for line in sections if line and not re.match(r"## \w|- \[[^\]]+\]\([^)]+\): [\w`]", line)] == []
    linked = {match[1] for match in LINK.finditer("\n".join(sections))}
    assert {"README.md", "docs/index.md", "docs/settings.md", "docs/in-code.md", "conf/release.yaml"} <= linked


@pytest.mark.parametrize("link", ["[a](b.md)", "[a](#b)", "![a](b.png)", "[a\nb](docs/none.md#b)"])
def test_broken_links_are_seen(tmp_path, link):
    path = tmp_path / "a.md"
    path.write_text(f"# A\n\n## Other\n\n{link} [fine](#other)\n")
    assert len(broken_links(path)) == 1


# A command ends where the shell or the sentence has something else.
END = re.compile(r"^(?:[|;&>)#]|&&|\.\.\.|2>.*)$")
# One begins a line, or follows the shell's punctuation or "Run": elsewhere the name is a word of a sentence.
START = re.compile(
    r"(?:^|(?:[&|({`]|\b(?:Run|by)\b))\s*(?:\.venv/bin/|~/driver/bin/)?wordveil (?=[a-z])"
    r"|(?<![\w/])jobs/(?=(\w+)\.py )"
)


def commands(text: str) -> Iterator[list[str]]:
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


def wrong(words: list[str]) -> list[str]:
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


def missing_imports(source: str) -> list[str]:
    """What a piece of Python imports from the package and the package does not have."""
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wordveil"
        for alias in node.names
        if importlib.util.find_spec(node.module or "") is None
        or not hasattr(importlib.import_module(node.module or ""), alias.name)
    ]


def test_python_is_python_and_imports_what_exists():
    def missing(path: Path) -> list[str]:
        blocks = [text for language, text in read_document(path).code if language == "python"]
        return [name for text in blocks for name in missing_imports(text)]

    assert find_offenders(missing, DOCS) == {}


def test_missing_imports_are_seen():
    source = "from wordveil import Run, santise\nfrom wordveil.nowhere import a\nfrom pyspark import b\n"
    assert missing_imports(source) == ["wordveil.santise", "wordveil.nowhere.a"]


def missing_names(spans: Iterable[str]) -> list[str]:
    """Modules and attributes of the package, and files of the repository, that are named and do not exist."""
    found = []
    for span in spans:
        if re.match(r"(lib|tests|scripts|research|conf|jobs|examples|airflow_dags)/[\w./-]+$", span):
            exists = "NAME" in span or (ROOT / span).exists()
        elif re.match(r"wordveil(\.\w+)+$", span) and not span.endswith((".key", ".yaml")):
            module, _, name = span.rpartition(".")
            exists = importable(span) or (importable(module) and hasattr(importlib.import_module(module), name))
        else:
            continue
        found += [] if exists else [span]
    return found


def importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of what it is in
        return False


def test_modules_and_files_exist():
    assert find_offenders(lambda path: missing_names(read_document(path).spans), DOCS) == {}


def test_missing_modules_and_files_are_seen():
    spans = [
        "wordveil.records",
        "wordveil.records.sanitiser",
        "wordveil.spark.sanitise",
        "jobs/plan.py",
        "wordveil.key",
    ]
    wrong_ones = ["wordveil.steward", "wordveil.building.make", "wordveil.spark.santise", "jobs/plans.py"]
    assert missing_names([*spans, *wrong_ones]) == wrong_ones


def code_of(path: Path) -> list[str]:
    found = read_document(path)
    return [*(text for language, text in found.code if language in ("", "sh", "bash")), *found.spans]


def test_commands_and_options_exist():
    def faults(path: Path) -> list[str]:
        return [fault for text in code_of(path) for words in commands(text) for fault in wrong(words)]

    assert find_offenders(faults, DOCS) == {}


def test_the_documents_name_every_command():
    named = {
        " ".join(words[:count])
        for path in DOCS
        for text in code_of(path)
        for words in commands(text)
        for count in (1, 2)
    }
    assert {*command_names()} - named == set()


def command_names() -> Iterator[str]:
    """The commands, and those of groups. A group is a command itself where it runs without one of them."""
    for name, command in wordveil_group().commands.items():
        is_group = isinstance(command, TyperGroup)
        if not is_group or command.invoke_without_command:
            yield name
        if is_group:
            yield from (f"{name} {inner}" for inner in command.commands)


def test_a_group_may_be_a_command_itself():
    assert {"evaluate", "evaluate compare", "release gate"} <= {*command_names()}
    assert "release" not in {*command_names()}


@pytest.mark.parametrize(
    "text",
    [
        "wordveil plan --wrods a",
        "wordveil plant --json",
        "wordveil evaluate --confg a.yaml",
        "wordveil evaluate compare a b --config c",
        "spark-submit --master yarn jobs/release.py gate --yes",
        "a && wordveil release \\\n  publish --tabel x",
    ],
)
def test_unknown_commands_and_options_are_seen(text):
    assert [fault for words in commands(text) for fault in wrong(words)] != []


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {
        target
        for path in DOCS
        for text in code_of(path)
        for target in re.findall(r"(?:^|[;&] )make ([a-z-]+)", text, re.MULTILINE)
    }
    assert {"quickstart", "test"} <= named <= targets


@functools.cache
def schema() -> dict[str, Any]:
    return Config.model_json_schema()


def alternatives(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The object schemas that a node may be."""
    if "$ref" in node:
        return alternatives(schema()["$defs"][node["$ref"].rsplit("/", 1)[1]])
    choices = [choice for kind in ("anyOf", "oneOf", "allOf") for choice in node.get(kind, ())]
    return [found for choice in choices for found in alternatives(choice)] or [node]


def unknown_keys(value: object, nodes: list[dict[str, Any]], place: str = "") -> list[str]:
    """Keys of a configuration, or of a part of one, that no schema of ``nodes`` has."""
    if not isinstance(value, dict):
        return []
    objects = [found for node in nodes for found in alternatives(node)]
    found = []
    for key, inner in value.items():
        where = f"{place}.{key}".lstrip(".")
        below = [node["properties"][key] for node in objects if key in node.get("properties", {})]
        if below:
            found += unknown_keys(inner, below, where)
        elif not any(node.get("type") == "object" and node.get("additionalProperties", True) for node in objects):
            found.append(where)
    return found


def configurations(path: Path) -> Iterator[Any]:
    """The parts of configurations in a document: YAML blocks, and code that begins with a top-level key."""
    keys = "|".join(schema()["properties"])
    for language, text in read_document(path).code:
        plain = "\n".join(text.split("\n"))
        if language == "yaml" or (not language and re.match(rf"\s*({keys}): ?[{{\n\"\w]", plain)):
            indent = len(plain) - len(plain.lstrip())
            lines = [line[indent:] for line in plain.split("\n")]
            # Examples beside each other may have the same key: each is a document of its own.
            for part in re.split(r"\n(?=[a-z])", "\n".join(lines)):
                if re.match(rf"({keys}):", part) or (language == "yaml" and part.strip()):
                    yield yaml.safe_load(part)
    for span in read_document(path).spans:
        if re.match(rf"({keys}): \{{", span) and "..." not in span:
            yield yaml.safe_load(span)


def test_configurations_name_keys_of_the_schema():
    def unknown(path: Path) -> list[str]:
        return [key for part in configurations(path) for key in unknown_keys(part, [schema()])]

    assert find_offenders(unknown, DOCS) == {}


# Settings in prose, as section.key. Spark's own options begin with "spark." too.
DOTTED = re.compile(r"^(\w+)\.(\w+)(?:\.(\w+))?(?::.*)?$")


def settings(path: Path) -> Iterator[list[str]]:
    """Settings that a document names as ``section.key``, and those of ``--set``."""
    sections = {name for name, node in schema()["properties"].items() if unknown_keys({"": 1}, [node])} - {"spark"}
    for span in read_document(path).spans:
        match = DOTTED.match(span)
        if match and match[1] in sections and match[2] not in ("py", "yaml", "json"):
            yield [part for part in match.groups() if part]
    for text in code_of(path):
        for given in re.findall(r"--set ['\"]?([a-z_]+(?:\.[a-z_]+)*)=", text):
            yield given.split(".")


def test_settings_in_prose_are_those_of_the_schema():
    def unknown(path: Path) -> list[str]:
        values = [functools.reduce(lambda value, part: {part: value}, reversed(parts), 1) for parts in settings(path)]
        return [key for value in values for key in unknown_keys(value, [schema()])]

    assert find_offenders(unknown, DOCS) == {}


@pytest.mark.parametrize(
    "text",
    [
        "bundle: /lake/bundles",
        "text: {unkown: mask}",
        "mechanism: {training: {epoch: 3}}",
        "gate:\n  min_record: 1000",
        "output: {path: a, orders: input}",
    ],
)
def test_unknown_keys_are_seen(text):
    assert len(unknown_keys(yaml.safe_load(text), [schema()])) == 1


def test_free_keys_are_allowed():
    assert unknown_keys({"spark": {"options": {"spark.executor.cores": 2}}}, [schema()]) == []


def long_lines(found: Document) -> list[int]:
    return [
        number
        for number, line in found.prose
        if len(line) > WIDTH and not line.lstrip().startswith("|") and not line.lstrip().startswith("![")
    ]


def test_prose_ends_at_120_columns():
    assert find_offenders(lambda path: long_lines(read_document(path)), DOCS) == {}


def test_long_lines_are_seen_outside_tables_and_code():
    long = "word " * 30
    assert long_lines(cut_document(f"{long}\n\n- {long}\n\n| {long} |\n\n```\n{long}\n```\n\n    {long}\n")) == [1, 3]


def test_code_and_prose_are_told_apart():
    found = cut_document(
        "# A\n\n1. item\n   more\n\n       code\n\n   prose `a\n   b`\n\n"
        "text\n\n    code\n    more\n\n```yaml\na: 1\n```\n"
    )
    assert [(language, text.split()) for language, text in found.code] == [
        ("", ["code"]),
        ("", ["code", "more"]),
        ("yaml", ["a:", "1"]),
    ]
    assert found.spans == ("a b",)


def test_the_threat_model_says_what_each_profile_does():
    """Every value of its table, so that nobody takes what one profile hides for what another does."""
    page = (ROOT / "docs" / "threat-model.md").read_text()
    header, rows = re.search(r"^(\| what \|.*`strict`.*)\n\|[ -|]*\n((?:\|.*\n)+)", page, re.MULTILINE).groups()
    profiles = re.findall(r"`(\w+)`", header)
    assert set(profiles) == set(PROFILES)
    policies = [DraftPolicy(**PROFILES[profile]) for profile in profiles]
    for row in rows.splitlines():
        parts = [part.strip() for part in row.strip("|").split("|")]
        usual = re.search(r"`(\w+): ", parts[2])[1]
        for policy, cell in zip(policies, parts[3:], strict=True):
            state, name, value = re.fullmatch(r"(hidden|shows): `(?:(\w+): )?(\w+)`", cell).groups()
            assert getattr(policy, name or usual) == value, (parts[0], cell)
            prevents = f"`{name or usual}: {value}`" in parts[2] or f"or `{value}`" in parts[2] or name == "punctuation"
            assert prevents is (state == "hidden"), (parts[0], cell)
