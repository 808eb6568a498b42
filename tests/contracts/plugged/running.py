"""Runs the contracts over the mechanisms of an installed package: ``toys`` of tests/plugin or ``papers`` of research.

A process of its own: ``tests/contracts/test_plugin.py`` starts it and reads what came out. The arguments are a folder
for results and one of these words.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
CONTRACTS = str(TESTS / "contracts" / "test_mechanisms.py")
# The contracts that a toy breaks, and more that it keeps.
KEPT = "batch_size or follows_key or bound or vary or records or offsets or epsilon or guarantee"
BROKEN = f"(noise-of-the-batch or no-key or too-little-noise) and ({KEPT})"


def run(folder: Path, name: str, *arguments: str) -> None:
    """Run tests in this process, and write what became of them."""
    pytest.main(["-p", "no:cacheprovider", "-q", "-n", "0", f"--junitxml={folder / name}.xml", *arguments])


def run_toys(folder: Path) -> None:
    """Write golden outputs into the folder, and run."""
    os.environ |= {"WORDVEIL_GOLDEN": str(folder), "WORDVEIL_REGOLD": "1"}
    run(folder, "written", CONTRACTS, "-k", "randomised and golden")
    del os.environ["WORDVEIL_REGOLD"]
    run(folder, "contracts", CONTRACTS, "-k", f"randomised or say or {BROKEN}")
    run(folder, "checks", *(str(Path(__file__).with_name(f"check_{name}.py")) for name in ("toy", "files")))


def run_papers(folder: Path) -> None:
    """Run all contracts, and the laboratory's own tests."""
    audits = str(TESTS / "unit" / "audit" / "test_bundle.py")
    run(folder, "contracts", CONTRACTS, audits, "-k", "syntf or random or say")
    research = TESTS.parent / "research"
    # What needs no package that the product's tests do not install.
    own = (
        str(research / "tests" / name) for name in ("mechanisms", "methods/test_plugged.py", "methods/test_koppel.py")
    )
    run(folder, "checks", "-c", str(research / "pyproject.toml"), *own)


if __name__ == "__main__":
    {"toys": run_toys, "papers": run_papers}[sys.argv[2]](Path(sys.argv[1]))
