"""Runs the contracts and the checks of this folder over the mechanisms of an installed package (``tests/plugin``).

A process of its own: ``tests/contracts/test_plugin.py`` starts it and reads what came out. The argument is a folder for
golden outputs and results.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
BROKEN = "noise-of-the-batch or no-key or too-little-noise"


def run(folder: Path, name: str, *arguments: str) -> None:
    """Run tests in this process, and write what became of them."""
    pytest.main(["-p", "no:cacheprovider", "-q", "-n", "0", f"--junitxml={folder / name}.xml", *arguments])


def main() -> None:
    """Write golden outputs, and run."""
    folder, contracts = Path(sys.argv[1]), str(TESTS / "contracts" / "test_mechanisms.py")
    os.environ |= {"WORDVEIL_GOLDEN": str(folder), "WORDVEIL_REGOLD": "1"}
    run(folder, "written", contracts, "-k", "randomised and golden")
    del os.environ["WORDVEIL_REGOLD"]
    run(folder, "contracts", contracts, "-k", f"randomised or say or ({BROKEN}) and not golden and not threads")
    run(folder, "checks", *(str(Path(__file__).with_name(f"check_{name}.py")) for name in ("toy", "files")))


if __name__ == "__main__":
    main()
