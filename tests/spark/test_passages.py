"""Passages in a release and in a job: one loss a text, its symbol and its meaning beside it, and an edit paid for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.releases import Lake
from support.workspaces import WORDS, Workspace, read_output, write_delta
from wordveil.records.schema import SYMBOLS_FILE
from wordveil.release.verify import MANIFEST
from wordveil.spark.release.night import run_night
from wordveil.spark.release.stream import run_stream
from wordveil.spark.sanitise.job import run_sanitise

EPSILON = 4.0
FIRST, SECOND = WORDS[:20], WORDS[20:40]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with sixty passages on two subjects."""
    made = Workspace(tmp_path_factory.mktemp("passages"))
    lines = [
        " ".join([*words[start % 15 : start % 15 + 5], words[start % 20]])
        for words in (FIRST, SECOND)
        for start in range(30)
    ]
    (made.root / "passages.txt").write_text("\n".join(lines), "utf-8")
    return made


def passages(workspace: Workspace) -> dict[str, Any]:
    mechanism = {
        "name": "passages",
        "epsilon": EPSILON,
        "clusters": 2,
        "passages": str(workspace.root / "passages.txt"),
        "encoder": "passages",
    }
    return {"mechanism": mechanism, "text": {"profile": "passages"}}


def corpus() -> pa.Table:
    texts = [" ".join(FIRST[:6]), " ".join(SECOND[:9]), "", "zzunknownzz"]
    return pa.table({"id": ["a", "b", "c", "d"], "body": texts, "day": ["d0"] * 4})


def test_a_night_costs_epsilon_a_text_and_an_edit_as_much_again(spark: Any, workspace: Workspace):
    lake = Lake(spark, workspace)
    lake.write(corpus())
    config = lake.config(**passages(workspace))
    lake.run(config, run_id="night-1")
    lake.update("id = 'a'", body=" ".join(SECOND[:7]))
    assert " ".join(SECOND[:7]) in [row["body"] for row in lake.rows(lake.input)]
    lake.forget()
    assert run_night(config, lambda: spark, run_id="night-2").publication is not None
    assert lake.spent() == {"a": 2, "b": 1, "c": 1, "d": 1}
    manifest = json.loads((lake.public / MANIFEST).read_text("utf-8"))["manifest"]
    meanings = manifest["symbols"]["meanings"]
    assert len(meanings) == 3
    assert meanings[2] == {"written": "", "keywords": ""}
    rows = lake.rows(lake.public)
    assert len(rows) == 4
    for row in rows:
        (symbol,) = row["symbols"]
        assert row["text"] == meanings[symbol]["written"]
        assert row["privacy"]["epsilon_pure"] <= EPSILON
        assert (row["privacy"]["relation"], row["privacy"]["tokens"]) == ("any_text", 1)


def test_a_job_writes_what_symbols_mean_beside_its_rows(spark: Any, workspace: Workspace, tmp_path: Path):
    path = workspace.write_corpus(corpus(), "job-corpus")
    output = str(tmp_path / "out")
    config = workspace.config(input={"path": str(path)}, output={"path": output}, **passages(workspace))
    report = run_sanitise(config, lambda: spark)
    assert (report.released, report.tokens) == (4, 4)
    meanings = json.loads((tmp_path / "out" / SYMBOLS_FILE).read_text("utf-8"))["meanings"]
    rows = read_output(output)
    assert [meanings[row["symbols"][0]]["written"] for row in rows] == [row["text"] for row in rows]


@pytest.mark.long
def test_night_of_a_stream_charges_each_text_once(spark: Any, workspace: Workspace, tmp_path: Path):
    lake = Lake(spark, Workspace(tmp_path))
    write_delta(corpus(), tmp_path / "source")
    places = {"path": str(tmp_path / "source"), "checkpoint": str(tmp_path / "checkpoint")}
    config = lake.config(input={"changes": "feed"}, stream=places, **passages(workspace))
    nights: list[Any] = []
    run_stream(config, lambda: spark, done=nights.append)
    run_stream(config, lambda: spark, done=nights.append)
    assert [night.report.released for night in nights] == [4]
    assert lake.spent() == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert {len(row["symbols"]) for row in lake.rows(lake.public)} == {1}
