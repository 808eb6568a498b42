"""Files that are neither Parquet nor Delta are named as given, with how to read or convert them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PythonException

from wordveil.errors import InputError
from wordveil.input.files import FileFormat, find_format, require_format, require_parquet, walk_files
from wordveil.spark.platform.errors import describe_cause

TABLE = pa.table({"id": [1, 2], "body": ["a, b\nc", 'he said "x"']})
CSV = 'id,body\n1,"a, b\nc"\n2,"he said ""x"""\n'


def write(path: Path, name: str) -> Path:
    """A table in the format that the name says."""
    file = path / name
    texts = {
        "csv": CSV,
        "tsv": CSV.replace("d,b", "d\tb").replace('1,"', '1\t"').replace('2,"', '2\t"'),
        "jsonl": '{"id": 1, "body": "a, b\\nc"}\n{"id": 2, "body": "he said \\"x\\""}\n',
    }
    if file.suffix == ".orc":
        orc.write_table(TABLE, file)
    elif file.suffix == ".feather":
        feather.write_feather(TABLE, file, compression="uncompressed")
    else:
        file.write_text(texts[file.suffix[1:]])
    return file


SEPARATED = 'Set input.format: csv and input.options: {sep: "\\t"}.'


@pytest.mark.parametrize(
    ("name", "kind", "mend"),
    [
        ("t.csv", "CSV.", "Set input.format: csv."),
        ("t.tsv", "CSV with tabs.", SEPARATED),
        ("my tickets.jsonl", "JSON lines.", "Set input.format: json."),
        ("t.orc", "ORC.", "Set input.format: orc."),
        ("t.feather", "Arrow.", "Convert it: python -c"),
    ],
)
def test_other_format_is_read_and_converted_as_the_message_says(tmp_path, monkeypatch, name, kind, mend):
    file = write(tmp_path, name)
    with pytest.raises(InputError, match=re.escape(f"by its name it is {kind} {mend}")):
        require_format(str(file), "parquet")
    if mend.startswith("Set"):
        require_format(str(file), find_format(str(file)).kind)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        require_parquet("--from", name)
    message = str(error.value)
    assert message.startswith(f"--from = {name}: It is not a Parquet file; by its name it is {kind} Convert it: ")
    assert "damaged" not in message
    command = shlex.split(message.partition("Convert it: ")[2])
    assert command[:2] == ["python", "-c"]
    monkeypatch.setattr(sys, "argv", command[1:])
    exec(command[2], {})  # noqa: S102 - another test runs the whole command
    assert pq.read_table(tmp_path / f"{Path(name).stem}.parquet").equals(TABLE)


def test_a_directory_of_another_format_is_converted_as_a_whole(tmp_path, monkeypatch):
    folder = tmp_path / "tickets"
    (folder / ".hidden").mkdir(parents=True)
    for name in ("part-0.csv", "part-1.csv"):
        write(folder, name)
    (folder / "_SUCCESS").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"--from = tickets/ \(looked at part-0\.csv\): .*it is CSV\.") as error:
        require_parquet("--from", "tickets/")
    command = shlex.split(str(error.value).partition("Convert it: ")[2])
    subprocess.run([sys.executable, *command[1:]], check=True)
    assert pq.read_table(tmp_path / "tickets.parquet").num_rows == 4


def test_what_nobody_can_convert_in_a_line_is_named_too(tmp_path):
    for name, said in (("t.txt", "by its name it is plain text."), ("t", "It is not a Parquet file. ")):
        (tmp_path / name).write_text("words")
        with pytest.raises(InputError) as error:
            require_parquet("input.path", f"{tmp_path}/{name}")
        assert said in str(error.value)
        assert "Write it as Parquet first" in str(error.value)


def test_parquet_by_any_name_or_absent_files_are_left_to_spark(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.csv")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.csv").read_bytes()[:40])
    (tmp_path / "empty").mkdir()
    (tmp_path / "overwritten.parquet").write_bytes(b"\0" * 40)
    for path in ("t.csv", "cut.parquet", "overwritten.parquet", "empty", "none.csv"):
        require_parquet("--from", f"file:{tmp_path}/{path}")
    require_parquet("--from", "s3a://bucket/t.csv")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("file:/lake/t.parquet", "in file:/lake/t.parquet. The file is damaged."),
        (
            "s3a://lake/t.jsonl",
            "in s3a://lake/t.jsonl. It is not a Parquet file; by its name it is JSON lines. Set input.format: json. If",
        ),
        ("s3a://lake/readme.txt", 'input.options: {wholetext: "true"}. If the others are, move it elsewhere; if it'),
        (
            "hdfs://host/t.csv.gz",
            "in hdfs://host/t.csv.gz. It is not a Parquet file; by its name it is CSV. Set input.format: csv.",
        ),
        ("s3a://KEY:a/b@lake/t.parquet", "in s3a://***@lake/t.parquet. The file is damaged."),
    ],
)
def test_a_file_that_spark_cannot_read_is_named_whole(file, said):
    error = ValueError(f": java.lang.X: [CANNOT_READ_FILE_FOOTER] Could not read footer for file: {file}. Please")
    assert said in describe_cause(error)


def test_describe_cause_of_a_column_of_another_type_says_so():
    said = "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading file s3a://lake/t.parquet."
    found = describe_cause(ValueError(f": java.lang.X: {said} Data type mismatches when reading Parquet column"))
    assert "in s3a://lake/t.parquet. A column of this file has another type" in found


def test_spark_message_of_a_path_is_passed_without_credentials():
    said = "[PATH_NOT_FOUND] Path does not exist: s3a://KEY:a/b@lake/raw?sig=b/c. SQLSTATE: 42K03"
    found = describe_cause(AnalysisException(said))
    assert found.endswith("Path does not exist: s3a://***@lake/raw?sig=*** SQLSTATE: 42K03")


def test_only_a_worker_is_quoted_as_one():
    said = "wordveil.errors.InputError: a message"
    assert describe_cause(PythonException(f"Traceback:\n{said}\n")) == "a message"
    for value in (said, "ModuleNotFoundError: No module named 'message'"):
        assert "message" not in describe_cause(ValueError(f"[CAST_INVALID_INPUT] The value '{value}' cannot be cast"))


def test_parquet_is_not_read_as_another_format(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"t\.csv: is a Parquet file\. Set input\.format: parquet"):
        require_format(str(tmp_path / "t.csv"), "csv")
    assert find_format(str(tmp_path / "t.csv")) == FileFormat("parquet")
    require_format(str(tmp_path), "delta")


def test_a_format_is_found_by_the_first_file(tmp_path):
    write(tmp_path, "part-0.tsv")
    assert find_format(str(tmp_path)).options_map == {"sep": "\t"}
    assert find_format("s3a://bucket/t.jsonl.gz") == FileFormat("json")
    assert find_format("s3a://bucket/t") == FileFormat("parquet")
    assert find_format(str(tmp_path / "none.txt")).options_map == {"wholetext": "true"}


def test_files_are_walked_as_spark_lists_them(tmp_path):
    """In the order of names, without what Spark skips; a directory ``_column=value`` is one of the table."""
    kept = ["a.parquet", "ds=1/b.parquet", "ds=1/hour=2/c", "_ds=3/d.parquet", "empty.parquet"]
    for name in (*kept, "_SUCCESS", ".a.parquet.crc", "_temporary/e", ".part=1/f", "g._COPYING_"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = [str(file.relative_to(tmp_path)) for file in walk_files(tmp_path)]
    assert sorted(found) == sorted(kept)
    assert found[:2] == ["a.parquet", "empty.parquet"]
    assert [*walk_files(tmp_path / "a.parquet")] == [tmp_path / "a.parquet"]
    assert [*walk_files(tmp_path / "none")] == []
