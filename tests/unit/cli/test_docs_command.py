"""`wordveil docs`: the pages in the package, and messages that name them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.repository import MODULES, ROOT, find_offenders
from support.workspaces import Command
from wordveil.cli.docs import find_folder, find_pages

# Files of the repository. A user who installed a wheel cannot open them under these names.
REPOSITORY_PATH = re.compile(r"\b(?:docs|conf|jobs|airflow_dags|scripts|examples|research|tests|lib)/\w[\w./-]*")
NAMED_PAGE = re.compile(r"wordveil docs ((?:conf/)?[a-z][\w./-]*\w)")


def messages(source: str) -> Iterator[str]:
    """The strings of a module, those in f-strings included, without docstrings."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


@cache
def known_pages() -> frozenset[str]:
    return frozenset(find_pages())


def dead_ends(text: str) -> list[str]:
    """Files of the repository, targets of make, and pages that do not exist, which a message names."""
    pages = known_pages()
    found = [name for name in NAMED_PAGE.findall(text) if name not in pages]
    found += REPOSITORY_PATH.findall(NAMED_PAGE.sub("", text))
    return found + re.findall(r"`make [a-z-]+", text)


def test_messages_name_nothing_that_an_installed_package_lacks():
    def named(path: Path) -> list[str]:
        return [name for text in messages(path.read_text("utf-8")) for name in dead_ends(text)]

    assert find_offenders(named, MODULES) == {}


def test_dead_ends_are_seen_and_pages_pass():
    for message in (
        *("See conf/mechanisms.", "docs/choosing.md has a worked choice.", "Run `make poincare`."),
        *("`wordveil docs chosing` has it.", "Start from `wordveil docs conf/weekly.yaml`."),
    ):
        source = f'"""docs/a.md"""\nx = f"{{y}} {message}"\n'
        assert [name for text in messages(source) for name in dead_ends(text)] != [], message
    pages = "`wordveil docs choosing` or `wordveil docs conf/nightly.yaml`. `wordveil docs` lists pages."
    assert dead_ends(pages) == []


def test_every_document_and_configuration_is_a_page(run: Command):
    pages = find_pages()
    documents = {path.resolve() for path in (ROOT / "docs").rglob("*.md")}
    configurations = {path.resolve() for path in (ROOT / "conf").rglob("*") if path.is_file()}
    assert {path.resolve() for path in pages.values()} == documents | configurations
    listed = json.loads(run("docs", "--json")[1])
    assert {item["page"]: bool(item["title"].strip()) for item in listed["pages"]} == dict.fromkeys(pages, True)
    assert Path(listed["directory"]) == find_folder()


def test_a_page_is_printed_as_it_is_into_a_file(run: Command):
    for name in ("choosing", "choosing.md", "docs/choosing.md", "conf/nightly.yaml"):
        file = ROOT / (name if name.startswith("conf/") else "docs/choosing.md")
        assert run("docs", name)[:2] == (0, file.read_text("utf-8"))
