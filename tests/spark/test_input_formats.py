"""Inputs in other formats than Parquet and Delta, on real Spark: the same records give the same rows, a malformed row
is quarantined without any of its content, and no message quotes one.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.orc as orc
import pytest

from support.workspaces import WORDS, Workspace, corpus, read_input, read_output
from wordveil.errors import ConfigError, InputError
from wordveil.spark.input.inspect import read_columns
from wordveil.spark.input.source import open_input
from wordveil.spark.plan.plan import make_plan
from wordveil.spark.plan.sample import check_preview, make_preview
from wordveil.spark.sanitise.job import run_sanitise

SECRET = "pelican zebra"
ROWS = 30


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Records whose texts have line breaks, quotes, commas and backslashes."""
    made = corpus(ROWS).select(["id", "body", "day"])
    marks = ["", '"', ",", "\n", "\\", '",', '\n"']
    texts = [
        f"{WORDS[i]} {marks[i % len(marks)]} {text} {marks[i % 5]}" for i, text in enumerate(made["body"].to_pylist())
    ]
    return made.set_column(1, "body", pa.array(texts))


@pytest.fixture(scope="module")
def expected(spark, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What the same records become as Parquet."""
    workspace = Workspace(tmp_path_factory.mktemp("expected"))
    workspace.write_corpus(table)
    run_sanitise(workspace.config(), lambda: spark)
    rows = read_output(workspace.root / "output")
    assert all(row["status"] == "released" for row in rows)
    return rows


def write(table: pa.Table, path: Path, kind: str) -> None:
    """The table in two files of a format."""
    path.mkdir()
    for number, part in enumerate((table.slice(0, 11), table.slice(11))):
        file = path / f"part-{number}.{kind}"
        if kind == "csv":
            pacsv.write_csv(part, file)
        elif kind == "orc":
            orc.write_table(part, file)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in part.to_pylist()))


def run(spark, workspace: Workspace, **source: Any):
    return run_sanitise(workspace.config(input=source), lambda: spark, overwrite=True)


def folder_with(workspace: Workspace, **files: str) -> Path:
    """The input's directory with files of these contents; two underscores stand for the dot of a name."""
    folder = workspace.root / "corpus"
    folder.mkdir()
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    return folder


@pytest.mark.parametrize("kind", ["csv", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("orc", "json"))])
def test_a_format_gives_the_rows_of_the_same_parquet_table(spark, workspace: Workspace, table, expected, kind):
    write(table, workspace.root / "corpus", kind)
    report = run(spark, workspace, format=kind)
    assert report.released == ROWS
    assert read_output(workspace.root / "output") == expected
    plan = make_plan(workspace.config(input={"format": kind}), lambda: spark)
    assert plan.columns == dict.fromkeys(("id", "body", "day"), "string")
    config = workspace.config(input={"format": kind, "where": "day <> 'd1'"})
    preview = make_preview(check_preview(config, 5, None), lambda: spark)
    assert preview.sample is not None
    assert (preview.sample.sample.records, preview.sample.rows) == (5, ROWS - ROWS // 3)


def test_a_source_by_its_class_and_a_compressed_file(spark, workspace: Workspace, table, expected):
    write(table, workspace.root / "corpus", "csv")
    for file in [*(workspace.root / "corpus").iterdir()]:
        file.with_suffix(".csv.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    for kind in ("csv", "com.databricks.spark.csv"):
        run(spark, workspace, format=kind, columns="id STRING, body STRING, day STRING")
        assert read_output(workspace.root / "output") == expected
    write(table, workspace.root / "as-orc", "orc")
    kind = "org.apache.spark.sql.execution.datasources.orc.OrcFileFormat"
    run(spark, workspace, path=str(workspace.root / "as-orc"), format=kind)
    assert read_output(workspace.root / "output") == expected


MALFORMED = {
    "csv": f'id,body,day\na,waaa,d1\nb,{SECRET},d1,more\nc,{SECRET}\nd,waab,d1\ne,"{SECRET}, d1\nf,waac,d1\n',
    "json": '{"id": "a", "body": "waaa", "day": "d1"}\n'
    f'{{"id": "b", "body": "{SECRET}\n'
    f'{{"id": "c", "body": "{SECRET}", "day": "d1"\n'
    '{"id": "d", "body": "waab", "day": "d1"}\n'
    f"{SECRET}\n",
}


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("json", None),
        ("csv", "day = 'd1'"),
        pytest.param("csv", None, marks=pytest.mark.long),
        pytest.param("json", "day = 'd1'", marks=pytest.mark.long),
    ],
)
def test_a_malformed_row_is_quarantined_without_its_content(spark, workspace: Workspace, kind, where):
    folder_with(workspace, **{f"a__{kind}": MALFORMED[kind]})
    source = {"format": kind} | ({"where": where} if where else {})
    report = run(spark, workspace, columns="id STRING, body STRING, day STRING", **source)
    assert (report.released, report.quarantined) == (2, {"malformed": 3})
    rows = read_output(workspace.root / "output")
    assert sorted(row["id"] for row in rows if row["status"] == "released") == ["a", "d"]
    refused = [row for row in rows if row["status"] == "quarantined"]
    assert {(row["id"], row["day"], row["text"], row["reason"]) for row in refused} == {(None, None, None, "malformed")}


def test_a_quote_that_is_not_doubled_is_refused_by_file(spark, workspace: Workspace):
    """Spark would read a piece of the text as the day, which is published. What begins with a quote may be sound."""
    sound = 'id,body,day\na,"""waaa"" waab",d1\nb,waab "waac",d1\n'
    folder = folder_with(workspace, a__csv=sound, b__csv=f'id,body,day\nc,"waaa "{SECRET}", d1\n')
    with pytest.raises(InputError, match=r"corpus/b\.csv has a quote between quotes that is not written") as error:
        run(spark, workspace, format="csv")
    assert SECRET not in str(error.value)
    assert not (workspace.root / "output").exists()
    (folder / "b.csv").write_text(f'id,body,day\nc,"waaa ""{SECRET}""", d1\n')
    report = run(spark, workspace, format="csv")
    assert (report.released, report.quarantined) == (3, {})


def test_values_that_do_not_fit_their_types_are_malformed(spark, workspace: Workspace):
    folder_with(workspace, a__csv="id,body,day\n1,waaa,d1\nx,waab,d1\n3,waac,d1\n")
    report = run(spark, workspace, format="csv", columns="id BIGINT, body STRING, day STRING")
    assert (report.released, report.quarantined) == (2, {"malformed": 1})


def test_directories_are_columns_of_malformed_rows_too(spark, workspace: Workspace):
    folder = folder_with(workspace) / "day=d7"
    folder.mkdir()
    (folder / "a.csv").write_text("id,body\na,waaa\nb\n")
    report = run(spark, workspace, format="csv")
    assert (report.released, report.quarantined) == (1, {"malformed": 1})
    assert {row["day"] for row in read_output(workspace.root / "output")} == {"d7"}


@pytest.mark.parametrize("second", [f"{SECRET},b,c\nx,waaa,d1\n", "id,day,body\nx,d1,waaa\n"])
def test_files_with_other_headers_are_named_and_not_quoted(spark, workspace: Workspace, second):
    folder_with(workspace, a__csv="id,body,day\na,waaa,d1\n", b__csv=second)
    with pytest.raises(InputError, match=r"is not that of the other files") as error:
        read_input(spark, workspace.config(input={"format": "csv"}))
    assert SECRET not in str(error.value)


def test_a_file_without_a_header_is_not_quoted(spark, workspace: Workspace):
    folder = folder_with(workspace, a__csv=f"a,{SECRET},d1\nb,waaa,d1\n")
    with pytest.raises(ConfigError, match=r"The first line of its files must name the columns") as error:
        read_input(spark, workspace.config(input={"format": "csv"}))
    assert SECRET not in str(error.value)
    (folder / "a.csv").write_text(f"1,{SECRET},d1\nb,waaa,d1\n")
    with pytest.raises(InputError, match="does not look like names of columns") as refused:
        read_columns(lambda: spark, str(folder))
    assert SECRET not in str(refused.value)
    columns = "id STRING, body STRING, day STRING"
    assert run(spark, workspace, format="csv", options={"header": "false"}, columns=columns).released == 2


def test_columns_must_be_those_of_the_header(spark, workspace: Workspace):
    folder_with(workspace, a__csv="id,day,body\na,d1,waaa\n")
    with pytest.raises(ConfigError, match=r"input\.columns .*has other names than the first line"):
        read_input(spark, workspace.config(input={"format": "csv", "columns": "id STRING, body STRING, day STRING"}))
    with pytest.raises(ConfigError, match=r"input\.columns .*Spark cannot read it as names and types"):
        read_input(spark, workspace.config(input={"format": "csv", "columns": "id bigint,, x"}))


def test_a_text_file_is_a_record(spark, workspace: Workspace):
    folder_with(workspace, **{"a__txt": "waaa\nwaab", "b c__txt": "waaa"})
    source = {"format": "text", "options": {"wholetext": "true"}, "id": "file_name", "text": "value", "keep": []}
    assert run(spark, workspace, **source).released == 2
    assert [row["file_name"] for row in read_output(workspace.root / "output", "file_name")] == ["a.txt", "b%20c.txt"]


def test_sources_that_are_not_there_are_named(spark, workspace: Workspace, monkeypatch):
    folder_with(workspace)
    with pytest.raises(InputError, match=r"(?i)input\.path = .*avro"):
        read_input(spark, workspace.config(input={"format": "avro"}))
    with pytest.raises(InputError, match="DATA_SOURCE_NOT_FOUND"):
        read_input(spark, workspace.config(input={"format": "com.example.Nothing"}))
    monkeypatch.delenv("LAKE_PASSWORD", raising=False)
    settings = workspace.config(input={"format": "csv", "options_env": {"password": "LAKE_PASSWORD"}}).source
    with pytest.raises(ConfigError, match=r"input\.options_env\.password = LAKE_PASSWORD: is not set"):
        open_input(spark, settings)
    settings = workspace.config(input={"format": "csv", "options_env": {"password": "the_secret_itself"}}).source
    with pytest.raises(ConfigError, match=r"input\.options_env\.password: is not set"):
        open_input(spark, settings)


NOT_READ = [pa.timestamp("ns"), pa.time64("us"), pa.time64("ns"), pa.time32("ms")]


def test_columns_that_spark_cannot_read_may_stand_beside(spark, workspace: Workspace):
    table = corpus(3)
    for index, kind in enumerate(NOT_READ):
        table = table.append_column(f"at{index}", pa.array([1, 2, 3], kind))
    workspace.write_corpus(table)
    read = read_input(spark, workspace.config())
    assert sorted(row.id for row in read.collect()) == sorted(table["id"].to_pylist())
    for index in range(len(NOT_READ)):
        words = rf"input.keep = at{index}: is of the Parquet type .*(NANOS|TIME).*, which Spark does not read\. Write"
        with pytest.raises(InputError, match=words):
            read_input(spark, workspace.config(input={"keep": [f"at{index}"]}))
