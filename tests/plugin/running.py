"""Registers the toys of :mod:`plugin.toy_mechanism`, and runs the contracts and the checks of this folder over them.

A process of its own: ``tests/contracts/test_plugin.py`` starts it and reads what came out. The argument is a folder for
golden outputs and results.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from plugin.toy_mechanism import NoiseOfTheBatch, NoKey, RandomisedResponse, TooLittleNoise, WellRead
from wordveil.mechanisms.registry import MECHANISMS

TESTS = Path(__file__).parents[1]
BROKEN = "noise-of-the-batch or no-key or too-little-noise"


def run(folder: Path, name: str, *arguments: str) -> None:
    """Run tests in this process, and write what became of them."""
    pytest.main(["-p", "no:cacheprovider", "-q", "-n", "0", f"--junitxml={folder / name}.xml", *arguments])


def main() -> None:
    """Register the toys before anything imports the configuration, and run."""
    if "wordveil.config.mechanisms" in sys.modules:
        raise RuntimeError("the configuration was imported before the toys were registered")
    MECHANISMS.update({toy.name: toy for toy in (RandomisedResponse, WellRead, NoiseOfTheBatch, NoKey, TooLittleNoise)})
    folder, contracts = Path(sys.argv[1]), str(TESTS / "contracts" / "test_mechanisms.py")
    os.environ |= {"WORDVEIL_GOLDEN": str(folder), "WORDVEIL_REGOLD": "1"}
    run(folder, "written", contracts, "-k", "randomised and golden")
    del os.environ["WORDVEIL_REGOLD"]
    run(folder, "contracts", contracts, "-k", f"randomised or say or ({BROKEN}) and not golden and not threads")
    run(folder, "checks", *(str(TESTS / "plugin" / f"check_{name}.py") for name in ("toy", "files")))


if __name__ == "__main__":
    main()
