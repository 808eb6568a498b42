"""A mechanism of an installed package keeps the contracts that those of wordveil keep, and a broken one breaks them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from support.plugins import PLUGIN, RESEARCH, environment_with, install_plugin

TESTS = Path(__file__).parents[1]
Outcomes = dict[str, dict[str, bool]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What the toys did."""
    folder = tmp_path_factory.mktemp("toys")
    found = run_installed(PLUGIN, "toys", folder, tmp_path_factory.mktemp("installed"))
    assert (folder / "randomised-response.json").exists()
    return found


def run_installed(source: Path, name: str, folder: Path, home: Path) -> Outcomes:
    """Install a package and, for each run of ``plugged/running.py``, list the tests and whether each passed."""
    command = [sys.executable, TESTS / "contracts" / "plugged" / "running.py", folder, name]
    subprocess.run(command, cwd=TESTS.parent, env=environment_with(install_plugin(home, source)), check=True)
    # Of a report's tests those that failed or were skipped have a child.
    reports = {path.stem: ET.parse(path).iter("testcase") for path in folder.glob("*.xml")}  # noqa: S314 - pytest's own
    return {
        name: {f"{test.get('classname')}::{test.get('name')}": len(test) == 0 for test in report}
        for name, report in reports.items()
    }


def test_a_sound_mechanism_keeps_every_contract(outcomes: Outcomes) -> None:
    assert outcomes["written"] == {"tests.contracts.test_mechanisms::test_golden_outputs[randomised-response]": True}
    found = {name: passed for name, passed in outcomes["contracts"].items() if "randomised" in name or "say" in name}
    assert all(found.values()), found
    assert len(found) > 18
    assert {*outcomes["written"]} < {*found}


def test_the_configuration_and_the_comparison_know_it(outcomes: Outcomes) -> None:
    """And its lists and public files."""
    assert all(outcomes["checks"].values()), outcomes["checks"]
    files = [name for name in outcomes["checks"] if "check_files" in name]
    assert (len(files), len(outcomes["checks"]) - len(files)) == (8, 2)


@pytest.mark.parametrize(
    ("toy", "broken"),
    [
        ("noise-of-the-batch", "test_batch_size_does_not_matter"),
        ("no-key", "test_noise_follows_key_context_and_release"),
        ("too-little-noise", "test_two_words_distinguished_no_better_than_the_bound"),
    ],
)
def test_a_broken_mechanism_breaks_the_contract_that_it_breaks(outcomes: Outcomes, toy: str, broken: str) -> None:
    found = {name: passed for name, passed in outcomes["contracts"].items() if toy in name}
    failed = [name for name, passed in found.items() if not passed]
    assert any(f"::{broken}[" in name for name in failed), failed
    assert 2 * len(failed) < len(found)


@pytest.mark.long
def test_papers_mechanisms_keep_every_contract_as_shipped(tmp_path: Path) -> None:
    """Their golden outputs are as before."""
    found = run_installed(RESEARCH, "papers", tmp_path / "papers", tmp_path / "installed")
    assert [test for tests in found.values() for test, passed in tests.items() if not passed] == []
    for mechanism in ("syntf", "random"):
        assert f"tests.contracts.test_mechanisms::test_golden_outputs[{mechanism}]" in found["contracts"]
    assert (len(found["contracts"]) > 30, len(found["checks"]) > 10) == (True, True)
