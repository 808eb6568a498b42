"""``wordveil evaluate compare``: what it prints, writes and returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.evaluations import make_evaluation
from support.workspaces import Command
from wordveil.cli import output
from wordveil.report.files import write_evaluation


def test_two_evaluations_are_printed_side_by_side(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output.results, "_width", 200)  # no row of a table is broken
    both = [
        write_evaluation(make_evaluation(attack), tmp_path / name).data for name, attack in (("old", 0.4), ("new", 0.2))
    ]
    page = tmp_path / "both.html"
    code, out, err = run("evaluate", "compare", *both, "--html", page)
    assert code == 0
    (line,) = [line for line in out.splitlines() if "0.200" in line and "better" in line and "0.400" in line]
    assert "authors: svm-characters, adaptive" in line
    assert "this is not a test of their difference" in err
    assert "old: release" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert run("evaluate", "compare", *both, "--html", page)[0] == 6
    values = json.loads(run("evaluate", "compare", *both, "--json")[1])
    assert values["names"] == ["old", "new"]
    assert [pair["change"] for pair in values["pairs"]].count("better") == 2
    code, _, err = run("evaluate", "compare", "a.json", "b.json")
    assert (code, "a.json: cannot be read" in err) == (4, True)
