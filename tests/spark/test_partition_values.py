"""Values in the names of directories: they are read, kept and written as they are, or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from support.releases import Lake
from support.workspaces import Workspace, options_set, read_output
from wordveil.errors import ConfigError, InputError
from wordveil.input.source import Source
from wordveil.spark.input.inspect import read_columns
from wordveil.spark.input.source import open_input
from wordveil.spark.sanitise.job import run_sanitise

DIRECTORIES = {
    "zip=01234/code=1d/grade=1e3": ("01234", "1d", "1e3"),
    "zip=1234/code=1.0/grade=1000": ("1234", "1.0", "1000"),
    "zip=+7/code=0x1F/grade=007": ("+7", "0x1F", "007"),
    "zip=7/code=2026-11-20/grade=2026-11-20 03%3A00%3A00": ("7", "2026-11-20", "2026-11-20 03:00:00"),
    "zip=__HIVE_DEFAULT_PARTITION__/code=a%2Fb/grade=NaN": (None, "a/b", "NaN"),
    "zip=12345678901234567890123/code=-0/grade=%207": ("12345678901234567890123", "-0", " 7"),
    "zip=true/code=null/grade=1_000": ("true", "null", "1_000"),
}
NAMES = ("zip", "code", "grade")
GUESS = "spark.sql.sources.partitionColumnTypeInference.enabled"


@pytest.fixture(params=["parquet", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("csv", "json"))])
def written(request: pytest.FixtureRequest, workspace: Workspace) -> str:
    """The format of files in these directories, one record in each."""
    for number, folder in enumerate(DIRECTORIES):
        path = workspace.root / "corpus" / folder
        path.mkdir(parents=True)
        record = {"id": f"r{number}", "body": "apple"}
        if request.param == "parquet":
            pq.write_table(pa.Table.from_pylist([record]), path / "part.parquet")
        elif request.param == "csv":
            (path / "part.csv").write_text(f"id,body\nr{number},apple\n")
        else:
            (path / "part.json").write_text(json.dumps(record))
    return request.param


def find_ids(
    workspace: Workspace, spark: Any, cases: Mapping[str, Mapping[str, str]], **section: Any
) -> dict[str, list[str]]:
    """The ids that each condition chooses, with its parameters."""
    frames = [
        open_input(spark, workspace.config(input={**section, "where": where}).source, params)
        .read()
        .select("id", F.lit(where).alias("where"))
        for where, params in cases.items()
    ]
    found: dict[str, list[str]] = {where: [] for where in cases}
    for row in reduce(DataFrame.union, frames).collect():
        found[row.where].append(row.id)
    return {where: sorted(ids) for where, ids in found.items()}


def test_values_of_directories_are_kept_as_they_are_written(spark, workspace: Workspace, written: str):
    spark.conf.set(GUESS, "true")
    section: dict[str, Any] = {"format": written, "keep": list(NAMES)}
    config = workspace.config(input=section)
    if written == "parquet":  # the job writes what it reads, of whatever format
        run_sanitise(config, lambda: spark)
        rows = read_output(workspace.root / "output")
    else:
        rows = [row.asDict() for row in open_input(spark, config.source).read().collect()]
    values = {row["id"]: tuple(row[name] for name in NAMES) for row in rows}
    assert values == {f"r{number}": values for number, values in enumerate(DIRECTORIES.values())}
    assert spark.conf.get(GUESS) == "true"
    spark.conf.unset(GUESS)
    types = {column.name: column.type for column in read_columns(lambda: spark, str(workspace.root / "corpus"))}
    assert {types[name] for name in NAMES} == {"string"}
    cases = {
        "zip = '01234'": ({}, ["r0"]),
        "zip = :zip": ({"zip": "7"}, ["r3"]),
        "grade = '007' OR code = '1d'": ({}, ["r0", "r2"]),
        "try_cast(zip AS INT) = 7": ({}, ["r2", "r3"]),
        "zip IS NULL": ({}, ["r4"]),
    }
    found = find_ids(workspace, spark, {where: params for where, (params, _) in cases.items()}, **section)
    assert found == {where: ids for where, (_, ids) in cases.items()}


def test_types_that_input_columns_names_are_those_of_directories(spark, tmp_path: Path):
    for value in ("01", "2"):
        (tmp_path / f"hour={value}").mkdir()
        pq.write_table(pa.table({"id": [value], "body": ["apple"]}), tmp_path / f"hour={value}" / "part.parquet")
    source = {"id": "id", "text": "body", "path": str(tmp_path), "format": "parquet"}
    columns = "id STRING, body STRING, hour INT"
    frame = open_input(spark, Source(**source, columns=columns, where="hour < 10")).read()
    assert sorted(row.hour for row in frame.collect()) == [1, 2]
    (tmp_path / "hour=x").mkdir()
    pq.write_table(pa.table({"id": ["x"], "body": ["apple"]}), tmp_path / "hour=x" / "part.parquet")
    with pytest.raises(InputError, match=r"input\.path = "):
        open_input(spark, Source(**source, columns=columns)).read()


COMPARED_AS_TEXT = ("hour < :most", "'2' <= hour", "hour BETWEEN '1' AND :most", "hour = '010'", "hour IN ('9', '09')")
COMPARED = {
    "hour < 10": ["9"],
    "cast(hour AS INT) < :most": ["9"],
    "hour = :most": ["10"],
    "hour = '11'": [],
    "hour IN ('9', :most)": ["10", "9"],
    "ds >= :most AND ds < '2026-11-21'": ["10", "9"],
    "ds > date'2026-11-19'": ["10", "9"],
    "id < :most": [],
}


def test_numbers_of_directories_are_not_ordered_as_texts(spark, workspace: Workspace):
    for hour in ("9", "10"):
        path = workspace.root / "corpus" / "ds=2026-11-20" / f"hour={hour}"
        path.mkdir(parents=True)
        pq.write_table(pa.table({"id": [hour], "body": ["apple"]}), path / "part.parquet")
    given = {where: {"most": "10"} if ":most" in where else {} for where in (*COMPARED_AS_TEXT, *COMPARED)}
    for where in COMPARED_AS_TEXT:
        table = open_input(spark, workspace.config(input={"where": where, "keep": []}).source, given[where])
        with pytest.raises(ConfigError, match=r"input\.where.*compares hour as text.*cast\(hour AS INT\)"):
            table.read()
    assert find_ids(workspace, spark, {where: given[where] for where in COMPARED}, keep=[]) == COMPARED


NATURAL = {
    ("1e3", "1000"): {"k = '1000.0'": "DOUBLE", "k < '2'": "DOUBLE", "k = '1e3'": ["1e3"], "k = 'x'": []},
    ("1.5", "10.5"): {"k BETWEEN '1' AND '2'": "DOUBLE", "k = '1.50'": "DOUBLE", "k = '1.5'": ["1.5"]},
    ("1d", "3"): {"k = '1'": "DOUBLE", "k < '2'": ["1d"]},
    ("-1", "-2"): {"k < '0'": "INT", "k = '+7'": [], "k = '-01'": "INT"},
    ("9", "10000000000"): {"k < '95'": "BIGINT"},
    ("2026-11-1", "2026-11-20"): {"k < '2026-11-05'": "DATE", "k = '2026-11-01'": "DATE", "k > '2026-10-31'": None},
    ("2026-11-01", "2026-11-20"): {"k < '2026-11-05'": ["2026-11-01"], "k < '2026-11-5'": "DATE"},
    ("9", "10", "b"): {"k < '5'": ["10"]},
    ("1", "12"): {"concat('2026', k) < '20265'": "INT", "k < '120'": None, "k < '2'": "INT"},
}


@pytest.mark.parametrize("values", NATURAL)
def test_directory_numbers_and_days_are_not_compared_as_texts(spark, tmp_path: Path, values: tuple[str, ...]):
    """Unless that is the same: what is refused says the type, and what is not finds the records."""
    for value in values:
        (tmp_path / f"k={value}").mkdir()
        pq.write_table(pa.table({"id": [value], "body": ["apple"]}), tmp_path / f"k={value}" / "part.parquet")
    for where, found in NATURAL[values].items():
        table = open_input(spark, Source("id", "body", path=str(tmp_path), format="parquet", where=where))
        if isinstance(found, str):
            with pytest.raises(ConfigError, match=rf"compares k as text.*cast\(k AS {found}\)"):
                table.read()
        else:
            assert sorted(row.id for row in table.read().collect()) == sorted(values if found is None else found), where
    if "1000" in values:
        with options_set(spark, {"spark.sql.ansi.enabled": "false"}), pytest.raises(ConfigError, match="as text"):
            open_input(
                spark, Source("id", "body", path=str(tmp_path), format="parquet", where="k IN (1000.0, 7)")
            ).read()


def test_a_directory_that_would_become_null_is_refused(spark, workspace: Workspace):
    values = ["", "__HIVE_DEFAULT_PARTITION__"]
    for number, value in enumerate(values):
        table = pa.table({"id": ["r1", "r2", "r3"], "body": ["apple"] * 3, "day": ["d", None, value]})
        path = workspace.write_corpus(table, f"corpus-{number}")
        config = workspace.config(input={"path": str(path)}, output={"partition_by": ["day"]})
        with pytest.raises(InputError, match=r"output\.partition_by = day: .*read back as null"):
            run_sanitise(config, lambda: spark)
        assert not (workspace.root / "output").exists()
    workspace.write_corpus(pa.table({"id": ["r1", "r2"], "body": ["apple"] * 2, "day": values}))
    run_sanitise(workspace.config(), lambda: spark)
    assert [row["day"] for row in read_output(workspace.root / "output")] == values


@pytest.mark.long
def test_a_release_refuses_such_a_directory_before_it_reserves(spark, workspace: Workspace):
    lake = Lake(spark, workspace)
    table = pa.table({"id": ["r1", "r2"], "body": ["apple", "zebra"], "day": ["d", ""]})
    lake.write(table)
    config = lake.config(output={"partition_by": ["day"]})
    with pytest.raises(InputError, match=r"output\.partition_by = day"):
        lake.run(config)
    lake.write(table.set_column(2, "day", pa.array(["d", ":" * 90])), mode="overwrite")
    with pytest.raises(InputError, match=r"output\.partition_by = day: .* too long for the name of a directory"):
        lake.run(config)
    assert not lake.ledger.exists()
