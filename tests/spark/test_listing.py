"""Files below an input that Spark leaves out: each is refused by its name, or counted where no reader takes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from support.workspaces import Workspace, corpus, write_delta
from wordveil.errors import InputError
from wordveil.input.source import Source
from wordveil.spark.input.listing import describe_hidden
from wordveil.spark.input.source import open_input
from wordveil.spark.platform.versions import from_arrow
from wordveil.spark.sanitise.job import run_sanitise

TABLE = pa.table({"id": ["r1"], "body": ["apple"]})


def parquet(path: Path) -> Path:
    """A file of one record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(TABLE, path)
    return path


def empty(path: Path) -> Path:
    """A file without content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def link_to_nothing(path: Path) -> Path:
    path.symlink_to(path.with_name("gone"))
    return path


def directory(path: Path) -> Path:
    return parquet(path / "more.parquet")


LEFT_OUT: dict[str, Callable[[Path], Path]] = {
    "first": lambda root: empty(root / "a.parquet"),
    "last": lambda root: empty(root / "z.parquet"),
    "other name": lambda root: empty(root / "z.snappy"),
    "folder": lambda root: directory(root / "2026"),
    "link": lambda root: link_to_nothing(root / "z.parquet"),
    "linked folder": lambda root: (root / "z").symlink_to(directory(root.with_name("elsewhere")).parent) or root / "z",
}


def read(spark, path: Path | None, kind: str = "parquet", **settings: object) -> list[str]:
    source = Source(**{"id": "id", "text": "body", "path": path and str(path), "format": path and kind, **settings})
    return sorted(row[source.id] for row in open_input(spark, source).read().collect())


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_file_that_spark_would_leave_out_is_named(spark, tmp_path: Path, kind: str):
    root = tmp_path / "t[12]"
    parquet(root / "part.parquet")
    assert read(spark, root) == ["r1"]
    file = LEFT_OUT[kind](root)
    with pytest.raises(InputError, match=rf"input\.path = {re.escape(f'{root}: ')}.*{re.escape(str(file))}"):
        read(spark, root)


def test_an_empty_file_of_a_partition_is_named(spark, tmp_path: Path):
    parquet(tmp_path / "ds=1" / "hour=[x]" / "part.parquet")
    file = empty(tmp_path / "ds=1" / "hour=y" / "part.parquet")
    with pytest.raises(InputError, match=re.escape(f"{file} is empty (0 bytes)")):
        read(spark, tmp_path)


def test_an_empty_file_of_a_catalogue_table_is_named(spark, tmp_path: Path):
    """Of partitions only in those that the condition selects: the others are not listed."""
    from_arrow(spark, TABLE.append_column("ds", pa.array(["1"]))).createOrReplaceTempView("listed")
    for name, parts in (("whole", ""), ("parts", "PARTITIONED BY (ds)")):
        spark.sql(f"CREATE TABLE {name} USING parquet {parts} LOCATION '{tmp_path / name}' AS TABLE listed")
    try:
        assert read(spark, None, table="whole") == read(spark, None, table="parts") == ["r1"]
        empty(tmp_path / "whole" / "z.parquet")
        empty(tmp_path / "parts" / "ds=2" / "z.parquet")
        spark.sql("ALTER TABLE parts ADD PARTITION (ds = '2')")
        for name in ("whole", "parts"):
            spark.catalog.refreshTable(name)
            with pytest.raises(InputError, match=rf"input\.table = {name}: .*z\.parquet is empty"):
                read(spark, None, table=name)
        assert read(spark, None, table="parts", where="ds = '1'") == ["r1"]
    finally:
        spark.sql("DROP TABLE whole")
        spark.sql("DROP TABLE parts")


def test_an_empty_file_of_rows_has_none_and_of_others_is_named(spark, tmp_path: Path):
    """A whole text would be a record, and an ORC file begins with its own sign."""
    for kind, content in (("csv", "id,body\nr1,apple\n"), ("json", '{"id": "r1", "body": "apple"}')):
        empty(tmp_path / kind / f"z.{kind}").with_name(f"a.{kind}").write_text(content)
        assert read(spark, tmp_path / kind, kind) == ["r1"]
        empty(tmp_path / kind / "more" / f"z.{kind}").write_text(content)
        with pytest.raises(InputError, match="in a directory that is no partition"):
            read(spark, tmp_path / kind, kind)
    empty(tmp_path / "text" / "z.txt").with_name("a.txt").write_text("apple")
    with pytest.raises(InputError, match=r"z\.txt is empty"):
        read(spark, tmp_path / "text", "text", id="file_name", text="value", options={"wholetext": "true"})
    orc.write_table(TABLE, str(empty(tmp_path / "orc" / "z.orc").with_name("a.orc")))
    with pytest.raises(InputError, match=r"z\.orc is empty"):
        read(spark, tmp_path / "orc", "orc")


def test_options_may_choose_files(spark, tmp_path: Path):
    parquet(tmp_path / "a.parquet")
    empty(tmp_path / "a.tmp")
    assert read(spark, tmp_path, options={"pathGlobFilter": "*.parquet"}) == ["r1"]
    (tmp_path / "a.tmp").unlink()
    directory(tmp_path / "2026")
    assert read(spark, tmp_path, options={"recursiveFileLookup": "true"}) == ["r1", "r1"]


def test_a_hidden_file_is_refused_where_it_is_the_input(spark, tmp_path: Path):
    parquet(tmp_path / "_part.parquet")
    with pytest.raises(InputError, match="_part"):
        read(spark, tmp_path / "_part.parquet", columns="id STRING, body STRING")


def test_hidden_files_are_counted_in_the_report(spark, workspace: Workspace):
    path = workspace.write_corpus(corpus(4))
    for name in ("_SUCCESS", ".part-9.parquet.crc", "_committed_12"):
        empty(path / name)
    assert not any("hidden" in note for note in run_sanitise(workspace.config(), lambda: spark).notes)
    for name in ("_x.parquet", ".x.parquet", "x.parquet._COPYING_"):
        parquet(path / name)
    (path / "_SUCCESS").unlink()  # no writer makes such a directory
    for name in ("_SUCCESS", "more/_old", "ds=1/_temporary/0"):
        parquet(path / name / "x.parquet")
    [note] = [
        note for note in run_sanitise(workspace.config(), lambda: spark, overwrite=True).notes if "hidden" in note
    ]
    assert note.startswith("6 with hidden names below ")


@pytest.mark.long
def test_files_beside_those_of_a_stream_are_counted(spark, tmp_path: Path):
    """Spark reads what the log of the stream names, and nothing else."""
    write_delta(TABLE, tmp_path / "source")
    writer = spark.readStream.format("delta").load(str(tmp_path / "source")).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start(str(tmp_path / "sink")).awaitTermination()
    assert describe_hidden(spark.read.parquet(str(tmp_path / "sink"))) == ()
    parquet(tmp_path / "sink" / "more.parquet")
    assert read(spark, tmp_path / "sink") == ["r1"]
    [note] = describe_hidden(spark.read.parquet(str(tmp_path / "sink")))
    place = f"file:{tmp_path}/sink"
    assert note.startswith(f"1 files below {place} were not read, such as {place}/more.parquet")


@pytest.mark.parametrize(
    ("names", "said"),
    [(("k=",), r"without a value\. Rename it"), (("k=1", "j=1"), "Directories beside each other name other columns")],
)
def test_directories_that_spark_cannot_read_are_said(spark, tmp_path: Path, names: tuple[str, ...], said: str):
    for name in names:
        parquet(tmp_path / name / "part.parquet")
    with pytest.raises(InputError, match=said):
        read(spark, tmp_path)
