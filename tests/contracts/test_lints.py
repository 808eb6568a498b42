"""Every lint of the project finds what it forbids. Otherwise the project would look clean to a broken lint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import document_lints, lints
from support.documents import cut_document

NUMPY = "import numpy as np\n"
# For each lint of a file: where the file is, what is in it, and what is found.
BREACHES: dict[str, tuple[Callable[[Path, Path], list[str]], str, str, list[str]]] = {
    "import upwards, also inside functions": (
        lints.find_upward_imports,
        "crypto/keys.py",
        "def f():\n  from wordveil.errors import E\n  from wordveil.records import g\n  from wordveil import spark\n",
        ["keys.py:3 imports records", "keys.py:4 imports spark"],
    ),
    "import upwards inside the room that imports Spark": (
        lints.find_upward_imports,
        "spark/sanitise/job.py",
        "from wordveil.spark.input.source import a\nfrom wordveil.spark.release.run import b\n",
        ["job.py:2 imports release"],
    ),
    "concrete mechanism": (
        lints.find_concrete_mechanisms,
        "audit/module.py",
        "from wordveil.mechanisms.base import A\nfrom wordveil.mechanisms.tree.mechanism import Tree\n",
        ["audit/module.py:2 wordveil.mechanisms.tree.mechanism"],
    ),
    "concrete mechanism in its room": (
        lints.find_concrete_mechanisms,
        "mechanisms/module.py",
        "from wordveil.mechanisms.tree.mechanism import Tree\n",
        [],
    ),
    "whole configuration under any name": (
        lambda path, _: lints.find_configured(path),
        "spark/module.py",
        "from wordveil.config.load import Config as C\ndef f(c: C): ...\nclass A:\n    c: C\ndef g(d): ...\nB = C\n",
        ["A", "f", "the module"],
    ),
    "whole configuration for two values": (
        lints.find_wide,
        "assembly/module.py",
        (
            "def f(c: Config | None):\n  c.key, c.text.n_max, c.key\ndef g(c: Config):\n  f(c), c.key\n"
            "def h(*, c: Config):\n  c.key, c.text, c.output\ndef i(c: Config):\n  c.recipe(c.key)\n"
        ),
        ["f"],
    ),
    "no docstring": (
        lambda path, _: lints.find_undocumented(path),
        "module.py",
        'class A(B):\n    """A."""\n\n    def say(self): ...\n\n\ndef f(): ...\n\n\ndef _g(): ...\n',
        ["the module", "A.say", "f"],
    ),
    "docstring without a verb": (
        lambda path, _: lints.find_docstrings_without_verb(path),
        "module.py",
        'def f():\n    """Count."""\n\n\nclass A:\n    def g(self):\n        """How many."""\n',
        ["g"],
    ),
}


def write_module(root: Path, place: str, code: str) -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, "utf-8")
    return path


@pytest.mark.parametrize(("lint", "place", "code", "found"), BREACHES.values(), ids=[*BREACHES])
def test_file_lint_breach_found(tmp_path: Path, lint: Callable[[Path, Path], Any], place: str, code: str, found: Any):
    assert lint(write_module(tmp_path, place, code), tmp_path) == found


@pytest.mark.parametrize(
    "code",
    [
        "import random",
        "from random import random",
        f"{NUMPY}np.random.seed(1)",
        "from numpy import random",
        "from numpy.random import default_rng",
        f"{NUMPY}np.random.default_rng()",
        f"{NUMPY}np.random.Generator(np.random.PCG64())",
    ],
)
def test_randomness_lint_global_state_found_in_every_room(tmp_path: Path, code: str):
    for room in ("mechanisms", *lints.SAMPLING):
        assert lints.find_global_randomness(write_module(tmp_path, f"{room}/module.py", code), tmp_path) != []


@pytest.mark.parametrize("call", ["np.random.default_rng(seed)", "np.random.Generator(np.random.PCG64(seed))"])
def test_randomness_lint_seed_allowed_where_samples_are_drawn(tmp_path: Path, call: str):
    for room in ("mechanisms", *lints.SAMPLING):
        path = write_module(tmp_path, f"{room}/module.py", f"{NUMPY}{call}\n")
        assert (lints.find_global_randomness(path, tmp_path) == []) == (room in lints.SAMPLING)


def test_laboratory_lint_import_found():
    sources = {
        "a": f"def f():\n    from {lints.LABORATORY}.runner import run",
        "b": f"import {lints.LABORATORY}",
        "c": "import os",
    }
    assert lints.find_importers(sources) == ["a", "b"]


def test_reach_lint_unreached_module_found():
    modules = {
        "wordveil": "from wordveil.a import b",
        "wordveil.a": "",
        "wordveil.a.b": 'LAZY = {"c": "wordveil.c", "d": "wordveil.d:D"}',
        "wordveil.c": "",
        "wordveil.d": "",
        "wordveil.lost": "import wordveil.a.b",
        "wordveil.more": "import wordveil.lost",
    }
    assert lints.find_unreached(modules, ["wordveil"]) == ["wordveil.lost", "wordveil.more"]


def test_class_lint_repeated_name_found():
    assert lints.find_repeated_classes(["class A: ...\nclass B: ...", "class C:\n    class A: ..."]) == {"A"}


def test_private_lint_each_kind_of_use_found():
    source = (
        "from wordveil.text import codec, _a\nimport other\nother._no\ncodec._b\ncodec.__doc__\ncodec.c\n"
        'patch.setattr(codec, "_d", 1)\npatch.setattr(other, "_no", 1)\npatch.setattr("wordveil.text.codec._e", 1)\n'
    )
    assert sorted(lints.find_private_uses(source)) == ["_a", "_b", "_d", "_e"]


def test_name_lint_long_name_of_a_test_found():
    long = "test_" + "x" * 56
    assert lints.find_long_test_names(f"def {long}(): ...\ndef {long[:-1]}(): ...\ndef {long[5:]}_(): ...") == [long]


@pytest.mark.parametrize("link", ["[a](b.md)", "[a](#b)", "![a](b.png)", "[a\nb](docs/none.md#b)"])
def test_link_lint_broken_link_found(tmp_path: Path, link: str):
    path = tmp_path / "a.md"
    path.write_text(f"# A\n\n## Other\n\n{link} [fine](#other)\n")
    assert len(document_lints.find_broken_links(path)) == 1


def test_import_lint_missing_name_found():
    source = "from wordveil import Run, santise\nfrom wordveil.nowhere import a\nfrom pyspark import b\n"
    assert document_lints.find_missing_imports(source) == ["wordveil.santise", "wordveil.nowhere.a"]


def test_name_lint_missing_module_or_file_found():
    spans = [
        "wordveil.records",
        "wordveil.records.sanitiser",
        "wordveil.spark.sanitise",
        "jobs/plan.py",
        "wordveil.key",
    ]
    missing = ["wordveil.steward", "wordveil.building.make", "wordveil.spark.santise", "jobs/plans.py"]
    assert document_lints.find_missing_names([*spans, *missing]) == missing


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
def test_command_lint_unknown_word_found(text: str):
    assert [fault for words in document_lints.find_commands(text) for fault in document_lints.find_faults(words)] != []


def test_command_lint_group_may_be_a_command():
    assert {"evaluate", "evaluate compare", "release gate"} <= {*document_lints.list_commands()}
    assert "release" not in {*document_lints.list_commands()}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bundle: /lake/bundles", ["bundle"]),
        ("text: {unkown: mask}", ["text.unkown"]),
        ("mechanism: {training: {epoch: 3}}", ["mechanism.training.epoch"]),
        ("gate:\n  min_record: 1000", ["gate.min_record"]),
        ("output: {path: a, orders: input}", ["output.orders"]),
        ("spark: {options: {spark.executor.cores: 2}}", []),
    ],
)
def test_key_lint_unknown_key_found(text: str, found: list[str]):
    assert document_lints.find_unknown_keys(yaml.safe_load(text), [document_lints.load_schema()]) == found


def test_width_lint_long_line_found_outside_tables_and_code():
    long = "word " * 30
    document = f"{long}\n\n- {long}\n\n| {long} |\n\n```\n{long}\n```\n\n    {long}\n"
    assert document_lints.find_long_lines(cut_document(document)) == [1, 3]


def test_table_lint_row_after_an_empty_line_found():
    document = "| a | b |\n| --- | :-: |\n| c | d |\n\n| e | f |\n| g | h |\n\n```\n| code |\n```\n"
    assert document_lints.find_headless_tables(cut_document(document)) == [5]
