"""Ugly and damaged input: a clear error or a row in quarantine, nothing lost, and no text of a record in what is
said.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.workspaces import WORDS, Workspace, options_set, read_output, write_delta
from wordveil.errors import ConfigError, InputError, SparkJobError, WordveilError
from wordveil.spark.platform.versions import VERSION
from wordveil.spark.sanitise.job import run_sanitise

CANARY = "zqxbadinputzqx"
KINDS = pytest.mark.parametrize("kind", ["parquet", "delta"])


def bodies(count: int) -> list[str]:
    return [f"{WORDS[i]} {CANARY}{i} {WORDS[i + 1]}" for i in range(count)]


def records(count: int, first: int = 0) -> pa.Table:
    return pa.table({"id": [f"r{first + i}" for i in range(count)], "body": bodies(count), "day": ["d"] * count})


@pytest.fixture(autouse=True)
def quiet(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No test lets a text of a record out, on whatever stream."""
    yield
    shown = capfd.readouterr()
    assert CANARY not in shown.out + shown.err


class Job:
    """A workspace and how its input is stored."""

    def __init__(self, spark, workspace: Workspace, kind: str) -> None:
        self.spark, self.workspace, self.kind = spark, workspace, kind
        self.path = workspace.root / "corpus"

    def add(self, table: pa.Table, **options: bool) -> None:
        """One more file, and for Delta one more commit."""
        if self.kind == "delta":
            write_delta(table, self.path, **options)
        else:
            self.path.mkdir(exist_ok=True)
            pq.write_table(table, self.path / f"part-{len(list(self.path.glob('*.parquet')))}.parquet")

    def run(self, **sections):
        sections["input"] = {"format": self.kind, **sections.get("input", {})}
        return run_sanitise(self.workspace.config(**sections), lambda: self.spark)

    def rows(self) -> list[dict]:
        return read_output(self.workspace.root / "output")

    def reasons(self) -> dict:
        return {row["id"]: row["reason"] for row in self.rows()}

    def fails(self, kind: type[WordveilError] | tuple[type[WordveilError], ...], **sections) -> str:
        """The message; nothing was written, and nothing of a record is in it."""
        with pytest.raises(kind) as error:
            self.run(**sections)
        assert not (self.workspace.root / "output").exists()
        assert not list(self.workspace.root.glob(".output*"))
        assert CANARY not in str(error.value)
        return str(error.value)

    def file(self, number: int = 0) -> Path:
        """A data file without its checksum, which would be what fails."""
        file = sorted(self.path.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)[number]
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
        return file


@pytest.fixture
def job(spark, workspace: Workspace, request: pytest.FixtureRequest) -> Job:
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    return Job(spark, workspace, parameters.get("kind", "parquet"))


def delta_only(spark, workspace: Workspace) -> Job:
    return Job(spark, workspace, "delta")


@pytest.fixture(scope="module")
def three_commits(spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Delta table of three files of five records, each in its own commit; :func:`copied` copies it."""
    job = delta_only(spark, Workspace(tmp_path_factory.mktemp("three")))
    for start in range(3):
        job.add(records(5, 5 * start))
    return job.path


@pytest.fixture
def copied(spark, workspace: Workspace, three_commits: Path) -> Job:
    """A job over that table, whose files may be changed."""
    job = delta_only(spark, workspace)
    shutil.copytree(three_commits, job.path)
    return job


def test_an_empty_delta_table_gives_an_empty_table(spark, workspace: Workspace):
    job = delta_only(spark, workspace)
    spark.sql(f"CREATE TABLE delta.`{job.path}` (id STRING, body STRING, day STRING) USING delta")
    assert job.run().records == 0
    assert job.rows() == []


def test_a_directory_without_files_is_named(job: Job):
    job.path.mkdir()
    assert "It has no data file" in job.fails(InputError)


def test_files_that_lack_a_column_lose_no_record(job: Job):
    """Spark takes the columns from one file; what another one lacks is null there, and a null id or text has its
    reason.
    """
    job.add(records(2))
    job.add(records(2, 2).drop_columns(["day"]).append_column("extra", pa.array([1, 2])))
    job.add(pa.table({"id": ["r4"], "day": ["d"]}))
    job.add(pa.table({"body": [CANARY], "day": ["d"]}))
    assert job.run().records == 6
    assert job.reasons() == {"r0": None, "r1": None, "r2": None, "r3": None, "r4": "null_text", None: "null_id"}


def test_a_record_of_50_mb(job: Job):
    giant = (f"{CANARY} {WORDS[0]} " * (50 * 2**20 // 18))[: 50 * 2**20]
    job.add(pa.table({"id": ["giant", "small"], "body": [giant, WORDS[0]], "day": ["d", "d"]}))
    assert job.run().quarantined == {"oversize": 1}
    assert job.reasons() == {"giant": "oversize", "small": None}
    allowed = job.run(input={"max_bytes": 2**26}, output={"path": str(job.workspace.root / "allowed")})
    assert allowed.released == 2


@pytest.mark.long
def test_a_record_of_a_million_tokens(job: Job):
    text = " ".join(WORDS[i % len(WORDS)] for i in range(1_000_000))
    job.add(pa.table({"id": ["giant", "small"], "body": [text, f"{WORDS[0]} {CANARY}"], "day": ["d", "d"]}))
    report = job.run(mechanism={"name": "exponential"}, text={"profile": "readable", "types": "none", "names": "words"})
    assert (report.released, report.words) == (2, 1_000_002)
    giant = next(row for row in job.rows() if row["id"] == "giant")
    assert giant["privacy"]["tokens"] == 1_000_000
    assert len(giant["text"].split()) == 1_000_000


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-6])


def damage(file: Path) -> None:
    raw = file.read_bytes()
    file.write_bytes(b"PAR1" + b"\0" * (len(raw) // 2) + raw[4 + len(raw) // 2 :])


def replace_by_a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.skipif(VERSION < (4, 0), reason="Spark 3.5 does not name every damaged file")
@pytest.mark.parametrize("kind", ["parquet", pytest.param("delta", marks=pytest.mark.long)])
def test_job_with_one_damaged_file_of_many_fails_and_skips_none(spark, workspace, three_commits, kind):
    job = Job(spark, workspace, kind)
    if kind == "delta":
        shutil.copytree(three_commits, job.path)
    else:
        for number in range(3):
            job.add(records(5, 5 * number))
    file = job.file(1)
    sound = file.read_bytes()
    for harm in (truncate, damage):
        harm(file)
        message = job.fails((SparkJobError, InputError))
        assert file.name in message
        assert "Restore it" in message
        file.write_bytes(sound)
    replace_by_a_directory(file)
    if kind == "parquet":
        # A directory is no file of the table: as Spark lists it there are two, and those are read whole.
        assert job.run().records == 10
        return
    assert file.name in job.fails((SparkJobError, InputError))
    file.rmdir()
    message = job.fails(SparkJobError)
    assert file.name in message
    assert "it was deleted, or vacuumed" in message


@pytest.mark.long
def test_a_vacuumed_version_of_a_delta_table_fails_the_job(spark, workspace: Workspace):
    job = delta_only(spark, workspace)
    job.add(records(5))
    job.add(records(5, 5))
    spark.sql(f"DELETE FROM delta.`{job.path}` WHERE id = 'r1'")
    with options_set(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        spark.sql(f"VACUUM delta.`{job.path}` RETAIN 0 HOURS")
    assert "vacuumed from an older version" in job.fails(SparkJobError, input={"version": 1})
    assert job.run().records == 9


@pytest.mark.parametrize("number", [0, 1])
def test_a_delta_log_that_lacks_a_commit_is_named(copied: Job, number: int):
    (copied.path / "_delta_log" / f"{number:020}.json").unlink()
    message = copied.fails(InputError)
    assert f"input.path = {copied.path}" in message
    assert "The Delta log lacks a commit. Restore the missing file of _delta_log" in message


def test_a_damaged_commit_of_a_delta_log_is_named(copied: Job):
    log = copied.path / "_delta_log"
    commit = log / f"{1:020}.json"
    commit.write_text('{"add": ' + CANARY)
    (log / f".{commit.name}.crc").unlink(missing_ok=True)
    assert commit.name in copied.fails((InputError, SparkJobError))


@KINDS
def test_what_is_no_table_is_named(job: Job, kind: str):
    assert f"input.path = {job.path}: there is no such file or directory." in job.fails(InputError)
    job.path.write_text(CANARY)
    said = "It is not a Parquet file." if kind == "parquet" else "cannot be read as a Delta table"
    assert f"input.path = {job.path}: {said}" in job.fails(InputError)
    below = job.path / "more"
    assert f"input.path = {below}: there is no such file or directory." in job.fails(
        InputError, input={"path": str(below)}
    )
    assert "input.path = nowhere://x/y: cannot be read as a table" in job.fails(
        InputError, input={"path": "nowhere://x/y"}
    )


def test_a_parquet_table_is_no_delta_table(spark, workspace: Workspace):
    Job(spark, workspace, "parquet").add(records(3))
    assert "It is not a Delta table. Set `format: parquet`" in delta_only(spark, workspace).fails(InputError)


def test_a_value_that_the_condition_cannot_cast_is_not_quoted(job: Job):
    job.add(records(3))
    message = job.fails(SparkJobError, input={"where": "cast(id AS INT) > 3"})
    assert "CAST_INVALID_INPUT. A value cannot be cast in input.where. Use try_cast there." in message


def test_output_that_cannot_be_created_is_named_before_any_draw(job: Job):
    """Below a file; and in /sys, where nobody can."""
    job.add(records(3))
    (job.workspace.root / "file").write_text("x")
    for place in (job.workspace.root / "file" / "output", Path("/sys/output")):
        message = job.fails(ConfigError, output={"path": str(place)})
        assert f"output.path = {place}: no directory can be created beside it" in message
