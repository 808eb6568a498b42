"""A public table verifies without Spark, and each kind of damage to it is named."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from support.published import KEPT, SIGNED, copy_signed, load_kept_key, log, refuse, sign_again, verify
from wordveil.crypto.keys import encode_public_key
from wordveil.privacy.table import TableTerms
from wordveil.release.lake_table import UnusualTableError, find_obstacle, list_plain_files, open_plain


@pytest.fixture(params=["public", "a b+#1?ü"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The table at a plain path, and at one with characters that URIs escape."""
    return Path(shutil.copytree(KEPT, tmp_path / request.param))


@pytest.fixture(scope="module")
def public_key(tmp_path_factory: pytest.TempPathFactory) -> str:
    return encode_public_key(load_kept_key(tmp_path_factory.mktemp("key")).signing_key("kept-release"))


def test_a_table_verifies(table: Path, public_key: str):
    found = verify(table, public_key=public_key, at_least=2)
    assert (found.manifest.snapshot.records, found.manifest.public_version) == (4, SIGNED)
    assert verify(f"{table}/") == found
    assert verify(f"file://{table}") == verify(f"file:{table}") == found
    elsewhere = Path(shutil.move(table / "_manifest.json", table.parent / "signed.json"))
    assert verify(table, manifest=str(elsewhere)) == found


def test_a_manifest_that_is_not_there_or_of_another_is_named(table: Path, public_key: str):
    assert "publication = 2: is older than 3, which you have seen" in refuse(table, at_least=3)
    assert "Another key signed this manifest" in refuse(table, public_key=public_key[::-1])
    for missing in (f"{table}/none.json", f"{table}/none/none.json"):
        assert f"manifest {missing}: no such file" in refuse(table, manifest=missing)
    manifest = table / "_manifest.json"
    signed = json.loads(manifest.read_text("utf-8"))
    manifest.write_text("{", "utf-8")
    assert refuse(table) == f"manifest {manifest}: is not JSON. Use the one that was published."
    signed["manifest"]["release"] = "another"
    manifest.write_text(json.dumps(signed), "utf-8")
    assert "signature: does not match the manifest" in refuse(table)
    shutil.rmtree(table / "_delta_log")
    assert refuse(table) == f"table {table}: is not a Delta table. Name the directory of a published table."


def test_figures_of_a_shuffled_table_are_computed_again(tmp_path: Path):
    table, key = copy_signed(tmp_path), load_kept_key(tmp_path)
    honest = TableTerms(2.0, 3, 1.0, 0.2).measure(4)
    assert "is not shuffled" in refuse(table, table_epsilon=1.0)
    for added, words in (
        (replace(honest, epsilon=1.0), "epsilon 1 at delta 0.2 does not follow from a smallest group of 4 rows"),
        (replace(honest, records=5), "has 4 rows, and its manifest accounts for others"),
        (replace(honest, groups=2), "does not follow"),
    ):
        sign_again(table, key, tables=[asdict(added)])
        assert words in refuse(table)
    sign_again(table, key, tables=[asdict(honest)])
    assert verify(table, table_epsilon=1.4).manifest.tables == (honest,)
    assert "of one addition of rows is above 1.3" in refuse(table, table_epsilon=1.3)


def test_a_file_that_changed_is_named(table: Path):
    (file,) = (table / name for name in (one.path for one in verify(table).manifest.snapshot.files))
    sound = file.read_bytes()
    file.write_bytes(sound[:-5] + bytes([sound[-5] ^ 1]) + sound[-4:])
    assert f"Files changed: {file.name}." in refuse(table)
    file.write_bytes(b"no Parquet")
    assert f"Files changed: {file.name}. records: 4 was signed, and the table has -1." in refuse(table)
    file.unlink()
    assert f"Files missing: {file.name}." in refuse(table)


def test_a_log_that_lacks_the_version_is_named(table: Path):
    old = log(table, SIGNED).read_text("utf-8")
    for place in table.glob(f"_delta_log/{SIGNED:020d}.*"):
        place.unlink()
    assert f"is at version 1, and version {SIGNED} was signed. It was restored" in refuse(table)
    log(table, SIGNED).write_text(old, "utf-8")
    assert verify(table)
    log(table, 0).unlink()
    assert "its log no longer has version 2, or is damaged" in refuse(table) or "cannot be read" in refuse(table)


def write_commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    log(table, version).write_text("".join(f"{json.dumps(action)}\n" for action in actions), "utf-8")


def test_files_of_a_plain_table_are_those_of_its_version(tmp_path: Path):
    table = tmp_path / "a b"
    for text in ("one", "two"):
        write_deltalake(table, pa.table({"id": [text], "day": ["x y"]}), mode="append", partition_by=["day"])
    files = list_plain_files(open_plain(table))
    assert sorted(str(file.relative_to(table)) for file in table.rglob("*.parquet")) == files
    assert len(list_plain_files(open_plain(table, 0))) == 1
    DeltaTable(table).delete("id = 'one'")
    (left,) = list_plain_files(open_plain(table))
    assert left in files


@pytest.mark.parametrize(
    ("protocol", "opens"),
    [
        ({"minReaderVersion": 2, "minWriterVersion": 5}, False),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"]}, False),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}, True),
    ],
)
def test_tables_with_mapped_names_or_vectors_are_left_to_spark(tmp_path: Path, protocol, opens: bool):
    write_deltalake(tmp_path, pa.table({"id": ["a"]}))
    features = protocol.get("readerFeatures")
    write_commit(tmp_path, 1, {"protocol": {**protocol, **({"writerFeatures": features} if features else {})}})
    with pytest.raises(UnusualTableError):
        list_plain_files(open_plain(tmp_path))
    if opens:  # its columns are as they were
        assert open_plain(tmp_path).version() == 1


def test_table_is_left_to_spark_without_deltalake_or_log(tmp_path: Path, monkeypatch):
    with pytest.raises(UnusualTableError):
        open_plain(tmp_path / "none")
    write_deltalake(tmp_path, pa.table({"id": ["a"]}))
    with pytest.raises(UnusualTableError):
        open_plain(tmp_path, 9)
    assert open_plain(tmp_path).version() == 0
    with monkeypatch.context() as patch:
        patch.setattr("wordveil.release.lake_table.find_spec", lambda _: None)
        with pytest.raises(UnusualTableError, match="deltalake is not installed"):
            open_plain(tmp_path)
    log(tmp_path, 0).write_text("{", "utf-8")
    with pytest.raises(UnusualTableError):
        open_plain(tmp_path)


def test_disks_and_stores_are_read_and_clusters_left_to_spark():
    assert {find_obstacle(path) for path in ("/lake/a:/b", "file:/lake", "s3a://bucket/table")} == {""}
    for path in ("hdfs://host/table", "viewfs:/table", "/lake/a%20b", "/lake/a\\b", "/lake/a\nb"):
        assert find_obstacle(path).startswith("deltalake ")
