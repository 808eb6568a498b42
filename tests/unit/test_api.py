"""What ``import wordveil`` offers: loaded on first use, and documented so that a reference generator can read it."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numpydoc.docscrape import NumpyDocString

import wordveil
from support.repository import LIB
from support.toys import toy_settings, write_toy_bundle
from wordveil import api
from wordveil.errors import BundleError, ConfigError, WordveilError

NAMES = [name for name in wordveil.__all__ if name != "__version__"]
ENTRIES = ("Parameters", "Returns", "Yields", "Raises", "Attributes", "Other Parameters", "Warns", "Methods")


def callables() -> dict[str, Callable[..., Any]]:
    """The public functions, and the public methods of public classes."""
    found: dict[str, Callable[..., Any]] = {}
    for name in NAMES:
        value = getattr(wordveil, name)
        if not inspect.isclass(value):
            found[name] = value
            continue
        for method in vars(value):
            if not method.startswith("_") and callable(getattr(value, method)):
                found[f"{name}.{method}"] = getattr(value, method)
    return found


def parse(docstring: str) -> NumpyDocString:
    """The parsed docstring; a section that numpydoc does not know is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return NumpyDocString(inspect.cleandoc(docstring))


@pytest.mark.parametrize("name", NAMES)
def test_public_names_say_what_they_are(name):
    parsed = parse(getattr(wordveil, name).__doc__)
    assert " ".join(parsed["Summary"]).endswith(".")


@pytest.mark.parametrize("name", callables())
def test_public_functions_document_all_of_their_signature(name):
    function = callables()[name]
    parsed = parse(function.__doc__ or "")
    signature = inspect.signature(function)
    names = [item for item in signature.parameters if item != "self"]
    assert [entry.name for entry in parsed["Parameters"]] == names
    assert all("".join(entry.desc).strip() for section in ENTRIES for entry in parsed[section])
    assert all(entry.type for entry in parsed["Parameters"])
    assert bool(parsed["Returns"]) == (signature.return_annotation not in ("None", None))
    assert parsed["Raises"] or name == "Run.throwaway"
    assert parsed["Examples"] or name == "Run.record"


@pytest.mark.parametrize("name", callables())
def test_defaults_are_those_of_the_signature(name):
    parameters = inspect.signature(callables()[name]).parameters
    for entry in parse(callables()[name].__doc__ or "")["Parameters"]:
        argument, kind, default = entry.name, entry.type, parameters[entry.name].default
        _, said, value = kind.partition(", default ")
        if default is inspect.Parameter.empty:
            assert not said and "optional" not in kind, argument
        elif default is None:
            assert kind.endswith(", optional"), argument
        else:
            assert said and ast.literal_eval(value) in (default, dict(default) if value == "{}" else default), argument


def test_errors_of_the_documentation_exist():
    import wordveil.errors

    raised = {entry.type for function in callables().values() for entry in parse(function.__doc__ or "")["Raises"]}
    for name in raised:
        module, _, kind = name.rpartition(".")
        assert module == "wordveil.errors"
        assert issubclass(getattr(wordveil.errors, kind), WordveilError)


@pytest.mark.parametrize("name", NAMES)
def test_examples_call_what_is_there(name):
    owner = getattr(wordveil, name)
    texts = [owner.__doc__ or "", *(text.__doc__ or "" for key, text in callables().items() if key.startswith(name))]
    known = {f"wordveil.{key}": function for key, function in callables().items()}
    calls = 0
    for text in texts:
        lines = [line.strip()[4:] for line in text.splitlines() if line.strip().startswith((">>> ", "... "))]
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.Call) and (called := ast.unparse(node.func)) in known:
                target = known[called]
                inspect.signature(target).bind(*node.args, **{item.arg: item.value for item in node.keywords})
                calls += 1
    assert calls or name == "WordveilError"


def test_the_package_loads_nothing_until_a_name_is_used():
    code = """
import sys
import wordveil
heavy = {"pyspark", "pydantic", "numpy", "pyarrow", "yaml"}
print(sorted(heavy & set(sys.modules)), dir(wordveil) == sorted(wordveil.__all__))
wordveil.load_config
print("pydantic" in sys.modules, "pyspark" in sys.modules, "typer" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[] True", "True False False"]


def test_names_that_are_not_there_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'sanitize'"):
        _ = wordveil.sanitize
    assert set(NAMES) == set(api.__all__)
    assert all(getattr(wordveil, name) is getattr(api, name) for name in NAMES)


def test_type_checkers_see_the_same_names():
    tree = ast.parse((LIB / "__init__.py").read_text("utf-8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "wordveil.api"
        for alias in node.names
    }
    assert imported == set(NAMES)


def test_wrong_arguments_are_told_at_once():
    with pytest.raises(ConfigError) as error:
        wordveil.read_ledger(by="authors")
    assert "name exactly one of config and path" in str(error.value)
    assert "by = authors: allowed: record, author, release, context." in str(error.value)


def test_a_mapping_is_a_configuration_too():
    settings = toy_settings({"name": "laplace", "epsilon": 4.0, "embedding": "/lake/embedding", "public": True})
    config = wordveil.load_config(settings, ["mechanism.epsilon=15"])
    assert config.mechanism.nominal_epsilon == 15
    assert settings["mechanism"]["epsilon"] == 4.0
    assert wordveil.load_config(config) is config
    with pytest.raises(ConfigError, match="takes no overrides"):
        wordveil.load_config(config, ["release=other"])
    with pytest.raises(ConfigError, match=r"mechanism\.epsilon"):
        wordveil.load_config({**settings, "mechanism": {"name": "laplace"}})
    with pytest.raises(ConfigError, match=r"only for a release \(output\.format: delta\)"):
        wordveil.run_job(config, full_snapshot=True)
    with pytest.raises(ConfigError, match="names no ledger"):
        wordveil.read_ledger(config)


def test_a_bundle_is_opened_by_its_directory_or_by_its_store(tmp_path: Path):
    one = write_toy_bundle(tmp_path)
    assert wordveil.open_bundle(one).path == wordveil.open_bundle(str(tmp_path)).path == one
    two = write_toy_bundle(tmp_path, epsilon=2.0)
    with pytest.raises(BundleError, match=f"{two.name} .laplace, epsilon 2.*Set bundle to the directory of one"):
        wordveil.open_bundle(tmp_path)
