"""Published tables as Spark reads them: on any file system of a cluster. Executors hash the files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.release.manifest import File, Snapshot
from wordveil.release.verify import Verified, summarise, verify_table
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files


def verify_by_spark(
    spark: SparkSession, path: str, manifest: str | None = None, public_key: str | None = None, at_least: int = 0
) -> Verified:
    """As :func:`wordveil.release.verify.verify_table`, in a session that has Delta."""
    with job_errors("nothing was verified"):
        return verify_table(SparkTable(DeltaTable(spark, path, "table")), manifest, public_key, at_least)


class SparkTable:
    """See :class:`wordveil.release.verify.PublishedTable`."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self.path = table.path

    def version(self) -> int:
        """The newest version; -1 where there is no table."""
        return self._table.version()

    def read_log(self, version: int) -> Snapshot:
        """A version as its log has it."""
        snapshot = self._table.snapshot(version)
        metadata = json.loads(snapshot.metadata().json())["metaData"]
        protocol = json.loads(snapshot.protocol().json())["protocol"]
        rows = self._table.list_files(snapshot)
        return summarise(self.path, version, metadata, protocol, [row.asDict() for row in rows])

    def describe(self, version: int, signed: Iterable[File] = ()) -> Snapshot:
        """What readers of a version see. Files that were ``signed`` are not read again while they have the same size:
        another content is found by whoever verifies them.
        """
        log, present = self.read_log(version), Files(self._table.spark, self.path).list_files()
        digests: dict[str, dict[str, Any]]
        digests = {file.path: {"sha256": file.sha256} for file in signed if present.get(file.path) == file.bytes}
        digests |= self._hash_files([file.path for file in log.files if file.path in present.keys() - digests.keys()])
        files = tuple(file._replace(**digests.get(file.path, {})) for file in log.files)
        # Spark fails where a file is gone. Delta counts by its log alone, unless a column is asked for.
        is_complete = all(file.sha256 for file in files)
        seen = self._table.read(version).agg(F.count("_metadata.file_name")).first() if is_complete else None
        return replace(log, files=files, records=seen[0] if seen else log.records)

    def read_text(self, path: str) -> str | None:
        """The text of a file, of the table or another; None where there is none."""
        file = Files(self._table.spark, path)
        return file.read() if file.exists() else None

    def _hash_files(self, paths: list[str]) -> dict[str, dict[str, Any]]:
        """``bytes`` and ``sha256`` of files of the table."""
        if not paths:
            return {}
        directory = Files(self._table.spark, self.path)
        root = str(directory.path.toUri().getPath()).rstrip("/") + "/"
        # Hadoop keeps checksums beside local files: a changed file must be named, and not fail the job.
        directory.verify_checksums(on=False)
        try:
            contents = self._table.spark.read.format("binaryFile").load([f"{self.path}/{path}" for path in paths])
            hashed = contents.select("path", "length", F.sha2("content", 256).alias("digest")).collect()
        finally:
            directory.verify_checksums(on=True)
        return {row.path.split(root, 1)[1]: {"bytes": row.length, "sha256": row.digest} for row in hashed}
