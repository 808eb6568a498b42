"""CONTRIBUTING.md's tables of extensions name files that exist and that suffice, in a copy of the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from support.plugins import environment_with, install_plugin
from support.repository import LIB, ROOT
from wordveil.text.types.classes import CHARACTER_TYPES, CLASSES, TYPES
from wordveil.text.types.typed import Recogniser

SECTION = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Extensions")[1].split("\n## ")[0]
TABLES = {
    title: re.findall(
        r"`([^`]+)`", " ".join(line.split("|")[1] for line in rows.splitlines() if line.startswith("| `"))
    )
    for title, rows in re.findall(r"### (.+)\n((?:.|\n)*?)(?=\n### |\Z)", SECTION)
}
# Files that stand for NAME in each table.
NAMES = {
    "A mechanism": "tree",
    "An author attack or a text task": "linear",
    "A class of typed tokens": "",
    "A command": "plan",
    "An experiment": "fdd",
    "A benchmark or a figure": "tables",
}


def test_the_files_of_each_table_exist():
    assert set(NAMES) <= set(TABLES)
    missing = {
        path
        for title, paths in TABLES.items()
        for path in paths
        if not (ROOT / path.replace("NAME", NAMES.get(title, "NAME"))).exists()
    }
    assert missing == set()


@pytest.mark.parametrize(
    ("title", "files"),
    [("A mechanism", 8), ("An author attack or a text task", 4), ("A class of typed tokens", 5), ("A command", 4)],
)
def test_an_extension_has_few_files(title: str, files: int):
    assert len(TABLES[title]) == files


def test_every_class_is_found_by_its_examples():
    """So a new class is tested as soon as it is registered."""
    for kind in CHARACTER_TYPES:
        spans = Recogniser(CHARACTER_TYPES).find(pa.array([f"kqv {token} zwx" for token in CLASSES[kind].examples]))
        assert [TYPES[number] for number in spans.kinds] == [kind, kind], kind


ATTACK = """
from dataclasses import dataclass
import numpy as np
from wordveil.evaluation.classifiers import TextClassifier


@dataclass(frozen=True)
class FirstAuthor(TextClassifier):
    name = "first-author"
    definition = "The first author of all."

    def fit(self, known, seed):
        return self

    def predict(self, texts):
        return np.zeros(len(texts), np.int64)
"""
COMMAND = '''
from wordveil.cli.output import print_text


def hello() -> None:
    """Greet."""
    print_text("hello\\n")
'''
# What is added to registries: before which text, and what.
LINES = {
    "scores/methods.py": [
        ('    "svm-characters"', '    "first-author": Method("wordveil.evaluation.first_author:FirstAuthor"),\n')
    ],
    "text/types/classes.py": [
        (
            "    # Add a class here",
            '    TokenClass("ticket", ("T-0001", "T-0002"), lambda lists: ("#", lists.words), since=2),\n',
        )
    ],
    "cli/app.py": [('"init", "docs"', '"hello", ')],
}
SCRIPT = """
import numpy as np, pyarrow as pa
from wordveil.config.load import parse_config
from wordveil.scores.documents import Documents
from wordveil.scores.methods import AUTHOR_ATTACKS
from wordveil.text.types.classes import TYPES, TypeAction
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.surrogates import draw_values
from wordveil.cli.app import main

config = parse_config({
    "format_version": 2, "release": "toy", "input": {"path": "in", "id": "id", "text": "text", "author": "who"},
    "mechanism": {"name": "randomised-response", "epsilon": 5.0, "embedding": "demo", "public": True},
    "text": {"profile": "readable", "types_version": 2, "types": {"ticket": "surrogate"}},
    "bundle_store": "bundles", "key": {"env": "KEY"},
    "output": {"path": "out"}, "evaluation": {"attackers": ["first-author"]},
}, "job.yaml")
assert config.mechanism.mechanism.__module__ == "wordveil_toys"
attack = AUTHOR_ATTACKS[config.evaluation.attackers[0]]()
assert attack.fit(None, 0).predict(["a", "b"]).tolist() == [0, 0]
assert config.policy.type_actions["ticket"] == TypeAction.SURROGATE
lists, kinds = PublicLists.load("en"), np.array([TYPES.index("ticket")], np.int8)
actions = {"ticket": TypeAction.SURROGATE}
value = draw_values(kinds, actions, pa.array([""]), np.zeros((1, 4), np.uint64), lists)
assert value.to_pylist()[0].startswith("#")
main(["hello"])
"""


def copy_package(home: Path) -> Path:
    """A package in which every file is a link to that of the project, so that nothing is compiled again."""
    for folder, folders, files in os.walk(LIB):
        place = home / "wordveil" / Path(folder).relative_to(LIB)
        place.mkdir(parents=True)
        for name in [*files, *(name for name in folders if name in ("data", "__pycache__"))]:
            (place / name).symlink_to(Path(folder) / name)
        folders[:] = [name for name in folders if name not in ("data", "__pycache__")]
    return home / "wordveil"


def test_extensions_work_in_the_files_that_are_named(tmp_path: Path):
    package = copy_package(tmp_path / "lib")
    (package / "evaluation" / "first_author.py").write_text(ATTACK)
    (package / "cli" / "hello.py").write_text(COMMAND)
    for name, lines in LINES.items():
        text = (package / name).read_text("utf-8")
        for before, line in lines:
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, line + before)
        (package / name).unlink()
        (package / name).write_text(text, "utf-8")
        assert f"lib/wordveil/{name}" in {path for paths in TABLES.values() for path in paths}
    environment = {**environment_with(tmp_path / "lib", install_plugin(tmp_path)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
