"""The notebook of examples/ and the page on how it works run from top to bottom."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from support.commands import Commands, run_page
from support.repository import ROOT


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("cluster")  # it starts Java beside that of other tests, as the tests on clusters do
def test_the_notebook_runs_in_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its cells print what they say."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(ROOT / "examples" / "first_day.ipynb", as_version=4)
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


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


PAGE = ROOT / "docs" / "how-it-works.md"
LIB = ROOT / "lib" / "wordveil"


@pytest.mark.long
def test_the_page_runs_from_top_to_bottom(spark: Any, call: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run_page(PAGE, {"spark": spark}, call)


def test_the_page_names_files_that_exist():
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", PAGE.read_text("utf-8")))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (LIB / name).exists()] == []
