"""The laboratory's benchmarks, and the smallest run of each."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

from support.repository import ROOT

BENCHMARKS = ROOT / "research" / "benchmarks"
HELPERS = {"common", "audit_peers_cases", "generator_inference_xla", "peers_mldp"}
"""What benchmarks import or start; nothing that measures by itself."""
QUICK = ("auditor", "canaries", "generalisation", "peers", "type_values", "typed_tokens")
"""Those that take a second or two, and no Spark, no data directory and nothing that the laboratory alone installs."""


def list_benchmarks() -> list[str]:
    return sorted({path.stem for path in BENCHMARKS.glob("*.py")} - HELPERS)


def list_written() -> dict[str, int]:
    """When files of results and pictures were changed."""
    folders = (ROOT / "research" / "results", ROOT / "docs" / "pictures")
    return {str(path): path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()}


def run_smallest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, and check that it keeps nothing."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", [name, "--smallest"])
    before, cores = list_written(), os.sched_getaffinity(0)
    try:
        importlib.import_module(name).main()
    finally:
        os.sched_setaffinity(0, cores)  # some measure on one core
    assert list_written() == before
