"""Installed packages add mechanisms, attackers and tasks, and what is wrong with one names the package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.plugins import install_plugin, write_distribution
from wordveil.errors import PlatformError
from wordveil.mechanisms.registry import MECHANISMS, find_fault
from wordveil.plugins import Registry
from wordveil.scores import methods
from wordveil.scores.methods import AUTHOR_ATTACKS, TEXT_TASKS

REGISTRIES = [AUTHOR_ATTACKS, TEXT_TASKS]


def read_again(registry: Registry[Any] = MECHANISMS, fault: Callable[[str, Any], str] = find_fault) -> Registry[Any]:
    """A registry that has not looked at installed packages yet."""
    return Registry(registry.group, registry.shipped, fault)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_installed_mechanism_is_listed_last_and_loaded_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(install_plugin(tmp_path))
    registry = read_again()
    assert registry["tree"] is MECHANISMS["tree"]
    assert [*registry][: len(MECHANISMS)] == [*MECHANISMS]
    assert {*registry} - {*MECHANISMS} >= {"randomised-response", "well-read"}
    assert len(registry) == len([*registry])
    assert "wordveil_toys" not in sys.modules
    assert registry["randomised-response"].name == "randomised-response"
    assert registry.package_of("randomised-response") == "wordveil-toys 1.0"
    assert registry.package_of("tree") == ""
    del sys.modules["wordveil_toys"]


def test_a_mechanism_of_the_package_needs_no_look_at_others(site: Path):
    write_distribution(site, "twice", {"tree": "nowhere:Tree"})
    assert read_again()["tree"].name == "tree"


FAULTS: list[tuple[dict[str, str], str]] = [
    ({"tree": "nowhere:Tree"}, "the package first 1.0 names a mechanism tree, and so does wordveil. Remove one"),
    ({"mine": "nowhere:Mine"}, "first 1.0: nowhere:Mine, its mechanism mine, cannot be imported: ModuleNotFound"),
    ({"mine": "json:dumps"}, "json:dumps, its mechanism mine, is no subclass of wordveil.mechanisms.base.Mech"),
    ({"mine": "json:JSONDecoder"}, "is no subclass of wordveil.mechanisms.base.Mechanism"),
    ({"mine": "wordveil.mechanisms.tree.mechanism:Tree"}, "calls itself tree. Give both one name."),
]
METHOD_FAULTS = [
    ({"lost": "plugged_methods:Lost"}, "plugged_methods:Lost, its {kind} lost, calls itself found. Give both one"),
    ({"lost": "plugged_methods:nothing"}, "its {kind} lost, makes no method: it is neither a class nor a function."),
    ({"lost": "nowhere:Lost"}, "nowhere:Lost, its {kind} lost, cannot be imported: ModuleNotFoundError"),
]


@pytest.mark.parametrize(
    ("registry", "fault", "points", "message"),
    [
        *((MECHANISMS, find_fault, *row) for row in FAULTS),
        *((registry, methods.find_fault, *row) for registry in REGISTRIES for row in METHOD_FAULTS),
    ],
)
def test_what_is_wrong_with_an_entry_point_names_its_package(
    site: Path, registry: Registry[Any], fault: Callable[[str, Any], str], points: dict[str, str], message: str
):
    (site / "plugged_methods.py").write_text(METHOD)
    write_distribution(site, "first", points, registry.group)
    with pytest.raises(PlatformError) as error:
        dict(read_again(registry, fault))
    assert "the package first 1.0" in str(error.value)
    assert message.format(kind=registry.group.removeprefix("wordveil.").removesuffix("s")) in str(error.value)


def test_two_packages_cannot_have_one_name(site: Path):
    write_distribution(site, "first", {"mine": "json:dumps"})
    write_distribution(site, "second", {"mine": "json:loads"})
    with pytest.raises(
        PlatformError, match=r"(first|second) 1\.0 names a mechanism mine, and so does (first|second) 1"
    ):
        list(read_again())


METHOD = """
class First:
    name, definition = "first", "The first label of all."

class Lost:
    name = "found"

nothing = None
"""


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.group)
def test_an_installed_attacker_or_task_is_made_by_its_name(site: Path, registry: Registry[Any]):
    (site / "plugged_methods.py").write_text(METHOD)
    write_distribution(site, "first", {"first": "plugged_methods:First"}, registry.group)
    again = read_again(registry, methods.find_fault)
    assert [*again][: len(registry.shipped)] == [*registry.shipped]
    assert (again["first"]().name, again.package_of("first")) == ("first", "first 1.0")
