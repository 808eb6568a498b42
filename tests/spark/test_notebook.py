"""The notebook of examples/ runs from top to bottom, in a kernel of its own with a Spark session of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FILE = Path(__file__).parents[2] / "examples" / "first_day.ipynb"
# It starts a Java virtual machine beside that of other tests, as the tests on clusters do.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("cluster")]


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


def test_the_notebook_runs_and_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(FILE, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    shown = {cell.id: printed(cell) for cell in notebook.cells if cell.cell_type == "code"}
    assert "2 faults" in shown["faults"]
    assert "each different word costs at most 8.000" in shown["plan"]
    assert len(shown["words"].splitlines()) == 4
    before, after = (line.split(":", 1)[1].strip() for line in shown["sanitise"].splitlines())
    assert before != after
    assert re.findall(r"[^\w']+", before)[:5] == re.findall(r"[^\w']+", after)[:5], "punctuation and spaces are kept"
    prices = ast.literal_eval(shown["prices"].splitlines()[0])
    assert prices["records"] == 60
    assert prices["cheapest"] <= prices["most_expensive"] <= 8 * prices["words_drawn"]
