"""Whether a published table is the one that was signed: what its readers see is compared with the manifest.

The files alone do not decide that. Delta's log gives a table its columns, the values of its partition columns, and the
rows that readers skip. All of this is compared, at exactly the version that was signed, and at the newest version.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.errors import ReleaseError
from wordveil.release.manifest import File, Manifest, Snapshot, compare, open_document
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files

MANIFEST = "_manifest.json"
"""The manifest's name inside the public table. Readers of Delta and Parquet skip it."""
_MAPPING = "delta.columnMapping.mode"


@dataclass(frozen=True)
class Verified:
    """A manifest that its table agrees with, and the digest of the manifest's file."""

    manifest: Manifest
    manifest_sha256: str


def verify_table(
    spark: SparkSession, table: str, manifest: str | None, public_key: str | None, at_least: int = 0
) -> Verified:
    """Check a published table against its manifest. This needs neither key nor configuration.

    Parameters
    ----------
    spark
        a session that has Delta.
    table
        the path of the published table.
    manifest
        the path of the manifest; None: the one inside the table.
    public_key
        the release's public key, 64 hexadecimal digits, from another source than the table; None: any key will do.
    at_least
        the smallest number of the publication. Nothing else reveals an older publication that somebody has put back.

    Raises
    ------
    ReleaseError
        If the table is not the one that was signed; the message says what differs.
    """
    published = DeltaTable(spark, table, "table")
    file = Files(spark, manifest or f"{published.path}/{MANIFEST}")
    if not file.exists():
        raise ReleaseError(f"manifest {file.path}: no such file. Name it with --manifest.")
    if not published.exists():
        raise ReleaseError(f"table {table}: is not a Delta table. Name the directory of a published table.")
    text = file.read()
    try:
        document = json.loads(text)
    except ValueError:
        raise ReleaseError(f"manifest {file.path}: is not JSON. Use the one that was published.") from None
    signed = open_document(document, public_key)
    if signed.publication < at_least:
        raise ReleaseError(
            f"publication = {signed.publication}: is older than {at_least}, which you have seen. Somebody has put an "
            "older table back: what was withdrawn since may be in it. Do not use it; ask its owner to publish again."
        )
    with job_errors("nothing was verified"):
        compare_with(published, signed)
    return Verified(signed, hash_text(text))


def compare_with(table: DeltaTable, signed: Manifest) -> None:
    """Raise :class:`ReleaseError` unless readers of a table see what was signed, whether they name its version or
    none.
    """
    newest = table.version()
    if newest < signed.public_version:
        raise ReleaseError(
            f"table {table.path}: is at version {newest}, and version {signed.public_version} was signed. It was "
            "restored from an older state. Publish again."
        )
    compare(signed.snapshot, describe(table, signed.public_version))
    if newest > signed.public_version and _read_log(table, newest) != _read_log(table, signed.public_version):
        raise ReleaseError(
            f"table {table.path}: version {signed.public_version} is the one that was signed, but version {newest} is "
            "another: somebody has written to the table, or it is being published at this moment. Verify again, and "
            "then find out who has written."
        )


def describe(table: DeltaTable, version: int) -> Snapshot:
    """What readers of a version of a table see. Reads all its files; the executors hash them.

    Raises :class:`ReleaseError` for a version that is gone, and for deletion vectors and mapped columns: not all
    readers know them, so that two readers would see two tables.
    """
    log = _read_log(table, version)
    digests = _hash_files(table, [file.path for file in log.files])
    files = tuple(file._replace(**digests.get(file.path, {})) for file in log.files)
    # Spark fails where a file is gone. Delta counts by its log alone, unless a column is asked for.
    is_complete = all(file.sha256 for file in files)
    seen = table.read(version).agg(F.count("_metadata.file_name")).first() if is_complete else None
    return replace(log, files=files, records=seen[0] if seen else log.records)


def hash_text(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _read_log(table: DeltaTable, version: int) -> Snapshot:
    """A version of a table as its log has it: no rows are counted, and no file is hashed."""
    snapshot = table.snapshot(version)
    metadata = json.loads(snapshot.metadata().json())["metaData"]
    protocol = json.loads(snapshot.protocol().json())["protocol"]
    rows = table.list_files(snapshot)
    if any(row.deletionVector is not None for row in rows):
        raise ReleaseError(
            f"table {table.path}: version {version} deletes rows by deletion vectors, which wordveil does not write. "
            "The table is not the one that was signed."
        )
    if metadata.get("configuration", {}).get(_MAPPING, "none") != "none":
        raise ReleaseError(
            f"table {table.path}: version {version} gives columns other names than its files ({_MAPPING}), which "
            "wordveil does not write. The table is not the one that was signed."
        )
    files = (
        File(
            unquote(row.path), row.size, "", dict(row.partitionValues or {}), hash_text(row.stats) if row.stats else ""
        )
        for row in rows
    )
    return Snapshot(
        schema=json.loads(metadata["schemaString"]),
        partition_by=tuple(metadata["partitionColumns"]),
        reader_version=protocol["minReaderVersion"],
        reader_features=tuple(sorted(protocol.get("readerFeatures") or ())),
        records=-1,
        files=tuple(sorted(files, key=lambda file: file.path)),
    )


def _hash_files(table: DeltaTable, paths: list[str]) -> dict[str, dict[str, Any]]:
    """``bytes`` and ``sha256`` of those files of a table that exist."""
    directory = Files(table.spark, table.path)
    root = str(directory.path.toUri().getPath()).rstrip("/") + "/"
    present = directory.list_files()
    if not (names := [f"{table.path}/{path}" for path in paths if path in present]):
        return {}
    # Hadoop keeps checksums beside local files: a changed file must be named, and not fail the job.
    directory.verify_checksums(on=False)
    try:
        contents = table.spark.read.format("binaryFile").load(names)
        hashed = contents.select("path", "length", F.sha2("content", 256).alias("digest")).collect()
    finally:
        directory.verify_checksums(on=True)
    return {row.path.split(root, 1)[1]: {"bytes": row.length, "sha256": row.digest} for row in hashed}
