"""Packages with mechanisms of their own, installed for a test in a folder and without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.repository import ROOT

PLUGIN = ROOT / "tests" / "plugin"
RESEARCH = ROOT / "research"
# What an installer without a network does: the module, and beside it the metadata that the build backend makes.
_METADATA = "import sys; from setuptools.build_meta import prepare_metadata_for_build_wheel as f; f(sys.argv[1])"


def install_plugin(home: Path, source: Path = PLUGIN) -> Path:
    """Install a package's modules into a folder of ``home`` and return that folder."""
    site = home / "site"
    shutil.copytree(source, site, ignore=shutil.ignore_patterns("tests", "benchmarks", "docs", "results", "*cache*"))
    subprocess.run([sys.executable, "-c", _METADATA, site], cwd=site, check=True, capture_output=True)
    return site


def write_distribution(site: Path, name: str, points: dict[str, str], group: str = "wordveil.mechanisms") -> None:
    """Write the metadata of an installed package, version 1.0, that names ``points`` in an entry-point group."""
    home = site / f"{name.replace('-', '_')}-1.0.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {value}\n" for point, value in points.items()]
    (home / "entry_points.txt").write_text("".join([f"[{group}]\n", *lines]))


def environment_with(*folders: Path) -> dict[str, str]:
    """The environment of a process that has this project, its tests' support and ``folders`` on its path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    paths = [*map(str, folders), str(ROOT / "tests"), str(ROOT / "lib"), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}
