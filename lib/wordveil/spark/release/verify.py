"""Published tables as Spark reads them: on any file system of a cluster. Executors hash the files."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.release.checkpoints import LogError
from wordveil.release.published_log import State, make_state
from wordveil.release.verify import PublishedTable, Verified, verify_table
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files, load_path


def verify_by_spark(
    spark: SparkSession,
    path: str,
    manifest: str | None = None,
    public_key: str | None = None,
    at_least: int = 0,
    table_epsilon: float | None = None,
) -> Verified:
    """Verify as :func:`wordveil.release.verify.verify_table` does, in a session that has Delta."""
    with job_errors("nothing was verified"):
        return verify_table(SparkTable(DeltaTable(spark, path, "table")), manifest, public_key, at_least, table_epsilon)


class SparkTable(PublishedTable):
    """Table as Spark reads it."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table
        self.path = table.path

    def list_store(self) -> Mapping[str, int]:
        return self._files().list_files()

    def read_file(self, path: str) -> bytes:
        if directory := self.find_directory():  # past Hadoop's checksums: a changed file must be named
            return (directory / path).read_bytes()
        files = self._files()
        return files.read_bytes(files.below(path))

    def read_text(self, path: str) -> str | None:
        file = Files(self._table.spark, path)
        return file.read() if file.exists() else None

    def find_directory(self) -> Path | None:
        return self._table.find_directory()

    def newest_version(self) -> int:
        return self._table.version()

    def is_read_as(self, version: int, state: State) -> bool:
        """Return whether Spark finds the log's state."""
        snapshot = self._table.snapshot(version)
        actions = [json.loads(action.json()) for action in (snapshot.metadata(), snapshot.protocol())]
        actions += [{"add": row.asDict(recursive=True)} for row in self._table.list_files(snapshot)]
        try:
            return str(make_state([item for action in actions for item in action.items()])) == str(state)
        except LogError:
            return False

    def hash_files(self, paths: Collection[str]) -> Mapping[str, tuple[int, str]]:
        if not paths:
            return {}
        directory = self._files()
        root = str(directory.path.toUri().getPath()).rstrip("/") + "/"
        # Hadoop keeps checksums beside local files: a changed file must be named, and not fail the job.
        directory.verify_checksums(on=False)
        try:
            reader = self._table.spark.read.format("binaryFile")
            contents = load_path(self._table.spark, reader, [f"{self.path}/{path}" for path in paths])
            hashed = contents.select("path", "length", F.sha2("content", 256).alias("digest")).collect()
        finally:
            directory.verify_checksums(on=True)
        return {row.path.split(root, 1)[1]: (row.length, row.digest) for row in hashed}

    def count_rows(self, version: int, paths: Collection[str]) -> int:  # noqa: ARG002 - Spark asks the log for them
        """Count the rows as Spark does. Delta counts by its log alone, unless a column is asked for."""
        seen = self._table.read(version).agg(F.count("_metadata.file_name")).first()
        assert seen is not None
        return int(seen[0])

    def _files(self) -> Files:
        return Files(self._table.spark, self.path)
