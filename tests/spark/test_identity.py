"""The same input gives the same rows, however it is cut, batched, spread or retried; anything that should change them
does.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pytest

from support.workspaces import Workspace, clean_environment, corpus, options_set, read_output
from wordveil.spark.sanitise.job import run_sanitise

RECORDS = 60
TWINS = (20, 41)
"""Records with the same text."""
READABLE = {"profile": "readable"}


def records() -> pa.Table:
    table = corpus(RECORDS)
    bodies = table["body"].to_pylist()
    for number in TWINS:
        bodies[number] = " ".join(["waaa"] * 20)
    return table.set_column(1, "body", pa.array(bodies))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The records as a table of two files, and ``parts``, the same in another order in seven."""
    workspace = Workspace(tmp_path_factory.mktemp("identity"))
    workspace.write_corpus(records(), files=2)
    workspace.write_corpus(records().sort_by([("body", "descending")]), "parts", files=7)
    return workspace


@pytest.fixture(scope="module")
def reference(spark, filled: Workspace) -> list[dict]:
    """The rows of Laplace's mechanism under the profile strict."""
    found = rows_of(spark, filled, "reference")
    assert len(found) == RECORDS
    return found


def rows_of(spark, workspace: Workspace, name: str, **sections) -> list[dict]:
    config = workspace.config(output={"path": str(workspace.root / name)}, **sections)
    run_sanitise(config, lambda: spark, overwrite=True)
    return read_output(workspace.root / name)


def rows_of_parts(spark, workspace: Workspace, **sections) -> list[dict]:
    """Of the files in another order, with each record in a batch of its own."""
    with options_set(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}):
        return rows_of(spark, workspace, "other", input={"path": str(workspace.root / "parts")}, **sections)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(READABLE, id="readable", marks=pytest.mark.long),
        pytest.param(
            {"profile": "strict", "length": "sample", "n_max": 10, "output": "bag"}, id="bag", marks=pytest.mark.long
        ),
    ],
)
def test_partitions_and_batches_change_nothing(spark, filled: Workspace, text):
    expected = rows_of(spark, filled, "one", text=text)
    assert len(expected) == RECORDS
    assert rows_of_parts(spark, filled, text=text) == expected


def test_partitions_and_batches_change_nothing_under_strict(spark, filled: Workspace, reference):
    assert rows_of_parts(spark, filled) == reference


@pytest.mark.long
def test_cores_change_nothing_and_a_rerun_repeats_the_rows(filled: Workspace, reference):
    """Two cores here, three in a process of their own. tests/e2e/test_cluster.py has two workers of a core."""
    config = filled.write_config(output={"path": str(filled.root / "cores")}, spark={"master": "local[3]"})
    command = [sys.executable, "-m", "wordveil", "sanitise", "--config", str(config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment())
    assert json.loads(done.stdout)["records"] == RECORDS
    assert read_output(filled.root / "cores") == reference


def test_edited_record_gets_fresh_noise_and_others_keep_theirs(spark, filled: Workspace, reference):
    table = records()
    bodies = table["body"].to_pylist()
    bodies[17] += " waaa"
    filled.write_corpus(table.set_column(1, "body", pa.array(bodies)), name="edited")
    edited = rows_of(spark, filled, "other", input={"path": str(filled.root / "edited")})
    changed = [mine["id"] for mine, theirs in zip(reference, edited, strict=True) if mine != theirs]
    assert changed == ["r00017"]
    assert reference[17]["content_tag"] != edited[17]["content_tag"]
    before, after = reference[17]["text"].split(), edited[17]["text"].split()
    assert sum(mine == theirs for mine, theirs in zip(before, after, strict=False)) < len(before) / 2


def test_equal_texts_of_two_records_get_unequal_noise(reference):
    first, second = (reference[number] for number in TWINS)
    assert first["text"] != second["text"]
    assert first["content_tag"] != second["content_tag"]
