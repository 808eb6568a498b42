"""A mechanism is added by one file, one entry of the registry and one YAML: a toy that is added so keeps the contracts,
and toys that are broken on purpose break them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONTRACTS = TESTS / "contracts" / "test_mechanisms.py"


def run_with_toy(toy: str, golden: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own in which the registry has the toy."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    paths = [str(TESTS), str(TESTS.parent / "lib"), *filter(None, [environment.get("PYTHONPATH")])]
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "WORDVEIL_TOY": toy, "WORDVEIL_GOLDEN": str(golden), **more}
    options = ["-p", "plugin.registering", "-p", "no:cacheprovider", "-q", "-n", "0"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=TESTS.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def counts(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How many tests passed, failed, ..."""
    return {
        word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout.splitlines()[-1])
    }


def test_a_sound_mechanism_keeps_every_contract(tmp_path: Path) -> None:
    written = run_with_toy(
        "RandomisedResponse", tmp_path, str(CONTRACTS), "-k", "randomised and golden", WORDVEIL_REGOLD="1"
    )
    assert written.returncode == 0, written.stdout
    assert (tmp_path / "randomised-response.json").exists()
    done = run_with_toy("RandomisedResponse", tmp_path, str(CONTRACTS), "-k", "randomised or say")
    assert done.returncode == 0, done.stdout
    assert counts(done)["passed"] > 25


def test_the_configuration_and_the_comparison_know_it(tmp_path: Path) -> None:
    done = run_with_toy("RandomisedResponse", tmp_path, str(TESTS / "plugin" / "check_toy.py"))
    assert done.returncode == 0, done.stdout
    assert counts(done) == {"passed": 6}


def test_the_configuration_knows_lists_and_public_files(tmp_path: Path) -> None:
    done = run_with_toy("WellRead", tmp_path, str(TESTS / "plugin" / "check_files.py"))
    assert done.returncode == 0, done.stdout
    assert counts(done) == {"passed": 20}
    done = run_with_toy("WellRead", tmp_path, str(CONTRACTS), "-k", "say")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("toy", "broken"),
    [
        ("NoiseOfTheBatch", "test_batch_size_does_not_matter"),
        ("NoKey", "test_noise_follows_key_context_and_release"),
        ("TooLittleNoise", "test_two_words_are_told_apart_no_better_than_the_bound_allows"),
    ],
)
def test_a_broken_mechanism_breaks_the_contract_that_it_breaks(tmp_path: Path, toy: str, broken: str) -> None:
    done = run_with_toy(toy, tmp_path, str(CONTRACTS), "-k", "randomised and not golden and not threads")
    assert done.returncode == 1, done.stdout
    failed = re.findall(r"^FAILED \S+::(\w+)\[", done.stdout, re.MULTILINE)
    assert broken in failed
    assert counts(done)["passed"] > len(failed)
