"""``python -m wordveil_research``: what it prints, writes and returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wordveil.cli import output
from wordveil.report.files import read_evaluation
from wordveil_research.__main__ import main
from wordveil_research.runner.registry import EXPERIMENTS


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Check that no row of a table is broken."""
    monkeypatch.setattr(output.results, "_width", 200)


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an output directory beside data, and the small experiment by its name."""
    monkeypatch.setitem(EXPERIMENTS, "word-counts", "experimenting")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("a a b c")
    (tmp_path / "out" / "work").mkdir(parents=True)
    return tmp_path / "out"


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main([*arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_an_experiment_writes_its_report_and_says_what_it_did(out, capsys):
    (out / "work" / "cells.txt").write_text("needed a count\nother b count")
    assert call("word-counts", "--out", str(out), "--processes", "1") == 0
    printed = capsys.readouterr()
    assert "Words counted" in printed.out and "0.500" in printed.out
    assert "2 cells were measured" in printed.err and "0 were kept" in printed.err
    assert [score.value for score in read_evaluation(out).scores] == [0.5, 0.25]
    assert (out / "report.html").exists() and (out / "scores.csv").exists()
    assert call("word-counts", "--out", str(out), "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == json.loads((out / "evaluation.json").read_text())
    assert "0 cells were measured" in printed.err and "2 were kept" in printed.err


def test_another_embedding_is_for_experiments_that_take_one(out, capsys):
    assert call("fdd-table3", "--out", str(out), "--embedding", "glove") == 2
    err = capsys.readouterr().err
    assert "--embedding = glove" in err and "f19-table1, fdd-table4, eraee-table1, eraee-tables." in err


def test_a_failed_cell_is_reported_and_the_exit_code_says_so(out, capsys):
    (out / "work" / "cells.txt").write_text("needed a count\nother b refuse")
    assert call("word-counts", "--out", str(out)) == 1
    err = capsys.readouterr().err
    assert "Not measured: other: embedding.path = x: there is no such file." in err
    assert "1 cells failed" in err
    assert "Not measured: other" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none", "--out", "out"], 2, "no experiment has this name"),
        (["word-counts", "--out", "out", "--data", "elsewhere"], 4, "needs words.txt, which is missing"),
        (["word-counts", "--out", "data/words.txt"], 2, "--out = data/words.txt: cannot be written"),
    ],
)
def test_faults_are_named_with_their_mend(out, capsys, arguments, code, message):
    assert call(*arguments) == code
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert list((out / "work").iterdir()) == []
