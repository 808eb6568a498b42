"""The laboratory's benchmarks run: those that take seconds here, the others in research/tests/test_benchmarks.py."""

from __future__ import annotations

import pytest

from support.benchmarks import BENCHMARKS, HELPERS, QUICK, list_benchmarks, run_smallest
from support.repository import ROOT


@pytest.mark.parametrize("name", QUICK)
def test_the_smallest_run(name, monkeypatch, capsys):
    run_smallest(name, monkeypatch)
    assert capsys.readouterr().out


def test_benchmarks_have_a_smallest_run_and_a_line_on_the_page():
    """The option is that of ``make_parser``. What is here without being a benchmark is among the helpers."""
    page = (ROOT / "research" / "docs" / "benchmarks.md").read_text("utf-8")
    for name in list_benchmarks():
        code = (BENCHMARKS / f"{name}.py").read_text("utf-8")
        assert "make_parser(__doc__)" in code, f"{name}.py has no --smallest: take make_parser of common.py"
        assert "\ndef main() -> None:" in code or "\ndef main(given" in code, name
        assert f"research/benchmarks/{name}.py" in page, name
    assert all((BENCHMARKS / f"{name}.py").exists() for name in HELPERS)
