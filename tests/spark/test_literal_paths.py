"""Inputs and outputs whose paths have signs of a pattern: exactly these are read, and none of their neighbours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from support.workspaces import Workspace, corpus, read_output, write_delta
from wordveil.errors import InputError
from wordveil.input.source import Source
from wordveil.spark.evaluate.job import evaluate_output
from wordveil.spark.input.inspect import read_columns
from wordveil.spark.input.source import open_input
from wordveil.spark.sanitise.job import run_sanitise

# By the path that is named, a neighbour that it would match as a pattern.
NEIGHBOURS = {
    "t[12]": "t1",
    "t{1,2}": "t1",
    "t*": "tx",
    "t?": "tx",
    "t\\*": "t*",
    "t[!a]": "tb",
    "t%5B1%5D": "t[1]",
    "t 1,t2": "t 1",
    "t:1": "t1",
}
OPTIONS = {"text": {"wholetext": "true"}}
COLUMNS = {"text": ("file_name", "value")}
OTHERS = [pytest.param(kind, marks=pytest.mark.long) for kind in ("json", "orc", "text")]


def write(path: Path, kind: str, word: str, name: str = "part-0") -> None:
    """A table of one record in which each column, and its name, says ``word``."""
    path.mkdir(exist_ok=True, parents=True)
    table, file = pa.table({"id": [word], "body": [word], word: [word]}), path / f"{name}.{kind}"
    if kind == "delta":
        write_delta(table, path, feed=True)
    elif kind == "parquet":
        pq.write_table(table, file)
    elif kind == "orc":
        orc.write_table(table, str(file))
    elif kind == "csv":
        file.write_text(f"id,body,{word}\n{word},{word},{word}\n")
    elif kind == "json":
        file.write_text(json.dumps({"id": word, "body": word, word: word}))
    else:
        file.write_text(word)


def neighbours_of(path: Path) -> list[Path]:
    """What a path below names of :data:`NEIGHBOURS` would match as a pattern: by each of its names, and by all."""
    parts = [(NEIGHBOURS.get(part, part), part) for part in path.parts]
    every = [
        Path(*(other if place == at else own for place, (other, own) in enumerate(parts))) for at in range(len(parts))
    ]
    return [*(one for one in every if one != path), Path(*(other for other, _ in parts))]


@pytest.mark.parametrize("kind", ["parquet", "csv", "delta", *OTHERS])
def test_a_path_with_signs_of_a_pattern_is_read_literally(spark, tmp_path: Path, kind: str):
    columns, path = COLUMNS.get(kind, ("id", "body")), tmp_path.joinpath(*NEIGHBOURS)
    neighbours = neighbours_of(path)
    assert len(neighbours) == len(NEIGHBOURS) + 1
    for word, places in (("wrong", neighbours), ("right", [path])):
        write(tmp_path / word, kind, word)
        for place in places:  # copied: Delta's writer without Spark reads some of these names otherwise
            shutil.copytree(tmp_path / word, place)
    source = Source(*columns, path=str(path), format=kind, options=OPTIONS.get(kind, {}))
    frame = open_input(spark, source).read()
    assert [row[columns[1]] for row in frame.collect()] == ["right"]
    assert "wrong" not in frame.columns
    if kind not in ("text", "orc"):
        named = [*sorted(["id", "body"], reverse=kind != "json"), "right"]
        assert [column.name for column in read_columns(lambda: spark, str(path))] == named


@pytest.mark.parametrize("kind", ["csv", *OTHERS[:1]])
def test_files_and_directories_may_have_such_names(spark, tmp_path: Path, kind: str):
    """A neighbour's text is not taken for the names of columns, either."""
    write(tmp_path / "ds=[ab]", kind, "right", "part[12]{a,b}")
    write(tmp_path / "ds=a", kind, "right", "part1a")
    source = Source("id", "body", path=str(tmp_path), format=kind, keep=("ds",))
    assert sorted(row.ds for row in open_input(spark, source).read().collect()) == ["[ab]", "a"]
    write(tmp_path / "alone", kind, "right", "part[12]")
    source = Source("id", "body", path=str(tmp_path / "alone"), format=kind)
    assert [row.id for row in open_input(spark, source).read().collect()] == ["right"]


@pytest.mark.parametrize("kind", ["parquet", *OTHERS[:2]])
def test_a_file_whose_name_has_a_colon_is_refused(spark, tmp_path: Path, kind: str):
    """Hadoop makes a path of a checksum's name, and takes what is before the colon for a scheme."""
    write(tmp_path / "table", kind, "right", "2026-11-20T03:00:00")
    source = Source("id", "body", path=str(tmp_path / "table"), format=kind)
    with pytest.raises(InputError, match="name of a file has a colon, which Hadoop does not read"):
        open_input(spark, source).read()


@pytest.mark.long
def test_an_output_with_signs_of_a_pattern_is_evaluated(spark, workspace: Workspace):
    """By its own rows: those of a neighbour have none of the ids."""
    for name, table in (("t1", corpus(20).slice(10)), ("t[12]", corpus(10))):
        workspace.write_corpus(table, f"in-{name}")
    config = workspace.config(
        input={"path": str(workspace.root / "in-t[12]")},
        output={"path": str(workspace.root / "out-t[12]")},
        evaluation={"label": "day", "attackers": [], "tasks": ["linear-words"]},
    )
    assert run_sanitise(config, lambda: spark).records == 10
    others = pa.Table.from_pylist([{**row, "id": f"x{row['id']}"} for row in read_output(workspace.root / "out-t[12]")])
    workspace.write_corpus(others, "out-t1")
    assert {row["id"] for row in read_output(workspace.root / "out-t[12]")} == set(corpus(10)["id"].to_pylist())
    evaluate_output(config, lambda: spark)
