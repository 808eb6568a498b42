"""Check an environment that has the package and nothing of its extras: it can be imported, and its command starts.

BIN/python scripts/check_import.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distributions, requires
from pathlib import Path

import wordveil


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


needed = [requirement.partition(";") for requirement in requires("wordveil") or []]
names = [(normalise(re.split(r"[^\w.-]", name)[0]), "extra" in condition) for name, _, condition in needed]
extras = {name for name, is_extra in names if is_extra} - {name for name, is_extra in names if not is_extra}
present = {normalise(distribution.name) for distribution in distributions()}
if found := sorted(extras & present - {"setuptools", "wordveil"}):
    sys.exit(f"wordveil: the package alone brings {', '.join(found)}, which belong to extras")
if not Path(wordveil.__file__).is_relative_to(sys.prefix):
    sys.exit(f"wordveil: {wordveil.__file__} is not the installed package")
command = Path(sys.prefix) / "bin" / "wordveil"
shown = subprocess.run([command, "--help"], capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own
print(f"wordveil {wordveil.__version__} alone, with {len(present)} packages: {len(shown.splitlines())} lines of help")
