"""The smallest run of each benchmark that is not among those of tests/unit/test_benchmarks.py."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from data_sets import DATA
from support import object_store
from support.benchmarks import BENCHMARKS, QUICK, list_benchmarks, list_written, run_smallest

ON_SPARK = (
    *("checks", "cluster", "connect", "laplace_exact", "large_input", "memory", "night", "night_rows"),
    *("object_stores", "releases", "scaling", "start_up", "tables", "task_start", "tickets"),
)
ON_DATA = {
    "estimates": ("news20_bydate.jsonl.xz",),
    "front_page": ("c50_reuters.jsonl.xz",),
    "exam": ("presidio_generated_large.jsonl.xz",),
    "koppel": ("c50_reuters.jsonl.xz",),
    "languages": ("sst2.jsonl.xz", "trec6.jsonl.xz", "snips7.jsonl.xz", "mr.jsonl.xz"),
    "meaning": ("aclImdb.jsonl.xz", "glove840B_300d_9910_u8.vecs.gz", "news20_bydate.jsonl.xz", "c50_reuters.jsonl.xz"),
    "poincare": ("mammal_closure_nk6540.tsv.xz",),
}
OTHERS = sorted({*list_benchmarks()} - {*QUICK, *ON_SPARK, *ON_DATA})


@pytest.mark.parametrize("name", OTHERS)
def test_the_smallest_run(name, monkeypatch, capsys):
    if name == "annoy_recall":
        pytest.importorskip("annoy")
    run_smallest(name, monkeypatch)
    assert capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", ON_DATA)
def test_the_smallest_run_over_a_data_set(name, monkeypatch, capsys):
    if missing := [file for file in ON_DATA[name] if not (DATA / file).exists()]:
        pytest.skip(f"{', '.join(missing)}: missing in {DATA}")
    run_smallest(name, monkeypatch)
    assert capsys.readouterr().out


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("benchmarks")
@pytest.mark.parametrize("name", ON_SPARK)
def test_the_smallest_run_on_spark(name):
    """In a process of its own, since each has its own session."""
    if name == "object_stores" and (reason := object_store.missing()):
        pytest.skip(reason)
    path = os.pathsep.join(sys.path)
    command = [sys.executable, BENCHMARKS / f"{name}.py", "--smallest"]
    before = list_written()
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout
    assert list_written() == before
