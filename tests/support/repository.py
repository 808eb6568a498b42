"""The repository's files, and marks of tests that need what may not be installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wordveil.text.language import find_version

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib" / "wordveil"
MODULES = sorted(path for path in LIB.rglob("*.py") if LIB / "data" not in path.parents)
"""The package's modules."""


def find_offenders(find: Callable[[Path], Any], paths: Iterable[Path]) -> dict[str, Any]:
    """What a lint finds in files, by file: those without a find are left out."""
    return {str(path.relative_to(ROOT)): finding for path in paths if (finding := find(path))}


def load_script(path: str) -> ModuleType:
    """A script of the repository, such as ``scripts/release.py``, as a module of its own."""
    file = ROOT / path
    spec = spec_from_file_location(f"script_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # data classes look up the module that they are in
    spec.loader.exec_module(module)
    return module


def needs(*packages: str) -> pytest.MarkDecorator:
    """The mark of a test that needs optional packages: it is skipped where one of them is not installed."""
    missing = [name for name in packages if find_version(name) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"{' and '.join(missing)} is not installed (pyproject.toml, extras)"
    )


NEEDS_ANNOY = needs("annoy")
