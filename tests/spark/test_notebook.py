"""The notebooks of examples/ and the page on how it works run from top to bottom."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from nbclient import NotebookClient

from support.commands import Commands, run_page
from support.repository import ROOT
from wordveil.measures.estimates import Estimator
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.release.verify import MANIFEST


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("cluster")  # it starts Java beside that of other tests, as the tests on clusters do
def test_the_notebook_runs_in_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its cells print what they say."""
    shown = run_notebook("first_day", tmp_path, monkeypatch)
    assert "2 faults" in shown["faults"]
    assert "each different word costs at most 8.000" in shown["plan"]
    assert len(shown["words"].splitlines()) == 4
    before, after = (line.split(":", 1)[1].strip() for line in shown["sanitise"].splitlines())
    assert before != after
    assert re.findall(r"[^\w']+", before)[:5] == re.findall(r"[^\w']+", after)[:5], "punctuation and spaces are kept"
    prices = ast.literal_eval(shown["prices"].splitlines()[0])
    assert prices["records"] == 60
    assert prices["cheapest"] <= prices["most_expensive"] <= 8 * prices["words_drawn"]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("cluster")
def test_the_analysts_notebook_finds_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shown = run_notebook("analyst", tmp_path, monkeypatch)
    assert shown["duckdb"].splitlines()[-1] == "True", "DuckDB and pandas count alike"
    assert [int(line.split()[-1]) for line in shown["duckdb"].splitlines()[1:3]] == [
        int(count) for count in re.findall(r"sum\(count\)=(\d+)", shown["spark"])
    ]
    assert re.search(r"\b(play|wickets|england)\b", shown["tables"])
    real, of = map(int, re.findall(r"\d+", shown["changes"].splitlines()[0]))
    assert 50 < real < of == 1_000
    assert float(re.findall(r"\d\.\d\d", shown["classifier"])[0]) > 0.65


def test_the_analysts_cells_read_a_published_table(tmp_path: Path):
    """A manifest with strings for fractions, and a Delta table whose directory has files of an earlier version."""
    law, numbers = SymbolLaw.of_response(2.0, 4), np.random.default_rng(0).integers(0, 4, (2, 50))
    for drawn in numbers:
        columns: dict[str, Any] = {name: ["x"] * 50 for name in ("article", "desk", "text")}
        rows = pa.table({**columns, "part": [1] * 50, "symbols": drawn[:, None].tolist()})
        write_deltalake(str(tmp_path), rows, mode="overwrite")
    plain = law.to_dict()
    plain["shares"] = [[str(share) for share in shares] for shares in plain["shares"]]
    symbols = {"law": plain, "meanings": [{"written": word, "keywords": word} for word in "abcd"]}
    (tmp_path / MANIFEST).write_text(json.dumps({"manifest": {"symbols": symbols}}), "utf-8")
    notebook = nbformat.read(ROOT / "examples" / "analyst.ipynb", as_version=4)
    found: dict[str, Any] = {"table": str(tmp_path)}
    for cell in notebook.cells:
        if cell.id in ("columns", "counts", "duckdb"):
            exec(cell.source, found)  # noqa: S102
    expected = Estimator(law).estimate(np.bincount(numbers[1], minlength=4)[None]).counts[0]
    assert found["counts"]["estimate"].to_numpy() == pytest.approx(expected)
    assert found["by_part"]["drawn"].sum() == 50


def run_notebook(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Run a notebook in a kernel; what each cell printed, by its id."""
    monkeypatch.setenv("TMPDIR", str(home))
    notebook = nbformat.read(ROOT / "examples" / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return {cell.id: printed(cell) for cell in notebook.cells if cell.cell_type == "code"}


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
