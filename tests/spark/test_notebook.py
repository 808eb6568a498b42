"""The notebook of examples/ runs from top to bottom, in the session of the tests or in a kernel of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from pyspark.sql import SparkSession

from support.repository import ROOT

FILE = ROOT / "examples" / "first_day.ipynb"


def check_what_is_shown(shown: dict[str, str]) -> None:
    """Check what the cells print, by their ids."""
    assert "2 faults" in shown["faults"]
    assert "each different word costs at most 8.000" in shown["plan"]
    assert len(shown["words"].splitlines()) == 4
    before, after = (line.split(":", 1)[1].strip() for line in shown["sanitise"].splitlines())
    assert before != after
    assert re.findall(r"[^\w']+", before)[:5] == re.findall(r"[^\w']+", after)[:5], "punctuation and spaces are kept"
    prices = ast.literal_eval(shown["prices"].splitlines()[0])
    assert prices["records"] == 60
    assert prices["cheapest"] <= prices["most_expensive"] <= 8 * prices["words_drawn"]


def test_the_cells_show_what_they_say(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """All but the last line, which stops the session."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: spark)
    stopped: list[SparkSession] = []
    monkeypatch.setattr(SparkSession, "stop", lambda session: stopped.append(session))  # noqa: PLW0108 - bound
    names: dict[str, Any] = {}
    shown: dict[str, str] = {}
    for cell in nbformat.read(FILE, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)  # noqa: S102 - our own notebook
            shown[cell.id] = capsys.readouterr().out
    check_what_is_shown(shown)
    assert stopped == [spark]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("cluster")  # it starts Java beside that of other tests, as the tests on clusters do
def test_the_notebook_runs_in_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(FILE, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    check_what_is_shown({cell.id: printed(cell) for cell in notebook.cells if cell.cell_type == "code"})


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")
