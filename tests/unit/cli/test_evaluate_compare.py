"""``wordveil evaluate compare``: what it prints, writes and returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.evaluations import make_evaluation
from wordveil.cli import output
from wordveil.cli.app import main
from wordveil.report.files import write_evaluation


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """No row of a table is broken."""
    monkeypatch.setattr(output.results, "_width", 200)


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["evaluate", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compare", "a.json", "b.json"], 4, "a.json: cannot be read"),
        ([], 2, "--config: is missing. Name a configuration file."),
    ],
)
def test_faults_are_named_with_their_mend(out, capsys, arguments, code, message):
    assert call(*arguments) == code
    assert message in capsys.readouterr().err.replace("\n", " ")


@pytest.fixture
def both(out: Path) -> list[str]:
    places = []
    for name, attack in (("old", 0.4), ("new", 0.2)):
        write_evaluation(make_evaluation(attack), out / name)
        places.append(str(out / name / "evaluation.json"))
    return places


def test_two_evaluations_are_printed_side_by_side(both, out, capsys):
    page = out / "both.html"
    assert call("compare", *both, "--html", str(page)) == 0
    printed = capsys.readouterr()
    (line,) = [line for line in printed.out.splitlines() if "0.200" in line and "better" in line and "0.400" in line]
    assert "authors: svm-characters, adaptive" in line
    assert "this is not a test of their difference" in printed.err
    assert "old: release" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert call("compare", *both, "--html", str(page)) == 6


def test_two_evaluations_as_json(both, capsys):
    assert call("compare", *both, "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert values["names"] == ["old", "new"]
    assert [pair["change"] for pair in values["pairs"]].count("better") == 2


def test_names_with_brackets_are_printed_as_they_are(out, capsys):
    evaluation = make_evaluation()
    evaluation = type(evaluation).from_dict(json.loads(json.dumps(evaluation.to_dict()).replace("koppel", "[bold]x")))
    for name in ("one", "two"):
        write_evaluation(evaluation, out / name)
    assert call("compare", str(out / "one"), str(out / "two")) == 0
    assert "[bold]x" in capsys.readouterr().out


def test_the_command_starts_without_what_it_may_never_need():
    code = (
        "import sys, wordveil.cli.app; banned = {'sklearn', 'scipy', 'jinja2', 'pyspark'};"
        "print(*sorted(banned & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == []
