"""The documents agree with the code: links, commands, options, modules, files and configuration keys exist."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import document_lints
from support.documents import DOCS, cut_document, read_document
from support.repository import ROOT, find_offenders
from wordveil.text.draft import DraftPolicy
from wordveil.text.policy import PROFILES

LIST = ROOT / "llms.txt"


def test_the_list_for_language_models_follows_its_convention():
    """A name, a summary as a quote, and sections whose lines are a link and what it leads to."""
    lines = LIST.read_text("utf-8").split("\n")
    assert document_lints.find_broken_links(LIST) == []
    assert lines[0] == "# wordveil"
    assert lines[2].startswith("> ")
    sections = lines[next(n for n, line in enumerate(lines) if line.startswith("## ")) :]
    assert [line for line in sections if line and not re.match(r"## \w|- \[[^\]]+\]\([^)]+\): [\w`]", line)] == []
    linked = {match[1] for match in document_lints.LINK.finditer("\n".join(sections))}
    assert {"README.md", "docs/index.md", "docs/settings.md", "docs/in-code.md", "conf/release.yaml"} <= linked


def code_of(path: Path) -> list[str]:
    found = read_document(path)
    return [*(text for language, text in found.code if language in ("", "sh", "bash")), *found.spans]


def test_the_documents_name_every_command():
    named = {
        " ".join(words[:count])
        for path in DOCS
        for text in code_of(path)
        for words in document_lints.find_commands(text)
        for count in (1, 2)
    }
    assert {*document_lints.list_commands()} - named == set()


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {
        target
        for path in DOCS
        for text in code_of(path)
        for target in re.findall(r"(?:^|[;&] )make ([a-z-]+)", text, re.MULTILINE)
    }
    assert {"quickstart", "test"} <= named <= targets


def configurations(path: Path) -> Iterator[Any]:
    """The parts of configurations in a document: YAML blocks, and code that begins with a top-level key."""
    keys = "|".join(document_lints.load_schema()["properties"])
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


# Settings in prose, as section.key. Spark's own options begin with "spark." too.
DOTTED = re.compile(r"^(\w+)\.(\w+)(?:\.(\w+))?(?::.*)?$")


def settings(path: Path) -> Iterator[list[str]]:
    """Settings that a document names as ``section.key``, and those of ``--set``."""
    sections = {
        name
        for name, node in document_lints.load_schema()["properties"].items()
        if document_lints.find_unknown_keys({"": 1}, [node])
    } - {"spark"}
    for span in read_document(path).spans:
        match = DOTTED.match(span)
        if match and match[1] in sections and match[2] not in ("py", "yaml", "json"):
            yield [part for part in match.groups() if part]
    for text in code_of(path):
        for given in re.findall(r"--set ['\"]?([a-z_]+(?:\.[a-z_]+)*)=", text):
            yield given.split(".")


def nest(parts: list[str]) -> Any:
    return functools.reduce(lambda value, part: {part: value}, reversed(parts), 1)


LINTS: dict[str, Callable[[Path], list[Any]]] = {
    "links resolve": document_lints.find_broken_links,
    "modules and files exist": lambda path: document_lints.find_missing_names(read_document(path).spans),
    "prose ends at 120 columns": lambda path: document_lints.find_long_lines(read_document(path)),
    "tables have heads": lambda path: document_lints.find_headless_tables(read_document(path)),
    "Python imports what exists": lambda path: [
        name
        for language, text in read_document(path).code
        if language == "python"
        for name in document_lints.find_missing_imports(text)
    ],
    "commands and options exist": lambda path: [
        fault
        for text in code_of(path)
        for words in document_lints.find_commands(text)
        for fault in document_lints.find_faults(words)
    ],
    "configurations and settings name keys of the schema": lambda path: [
        key
        for part in (*configurations(path), *map(nest, settings(path)))
        for key in document_lints.find_unknown_keys(part, [document_lints.load_schema()])
    ],
}


@pytest.mark.parametrize("lint", LINTS.values(), ids=LINTS)
def test_documents_agree_with_the_code(lint: Callable[[Path], list[Any]]):
    assert find_offenders(lint, DOCS) == {}


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
