"""Delta tables of a release and of the ledger, with appends that happen exactly once, and compare-and-swap."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, DataFrameWriter, Row, SparkSession
from pyspark.sql.types import StructType

from wordveil.errors import ReleaseError
from wordveil.release.layout import DELTA_LOG, TABLE_VERSION, VERSION_PROPERTY
from wordveil.release.verify import lost_version
from wordveil.spark.platform.delta import find_property, open_snapshot
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import java_class, list_items, set_options
from wordveil.spark.platform.locks import hold_lock
from wordveil.spark.platform.progress import ignore

_LOGGER = logging.getLogger(__name__)
FILE_ROWS = 1_000_000
"""Largest number of rows of an appended file, unless an output has its own."""
_SWAP = "wordveil swap"
_DEFAULT = "spark.databricks.delta.properties.defaults."
# After a conflict the table is read again. A table that changes during this many attempts is not used as intended.
_ATTEMPTS = 50
PROPERTIES: dict[str, str] = {
    VERSION_PROPERTY: str(TABLE_VERSION),
    # A purge must rewrite files: a deletion vector would leave the text in them.
    "delta.enableDeletionVectors": "false",
}


def _delta() -> Any:
    """Import Delta's own class of tables. Jobs that write Parquet run without delta-spark."""
    from delta.tables import DeltaTable as Table

    return Table


def _list_defaults(spark: SparkSession, names: Collection[str]) -> list[str]:
    """List the session's options of defaults for properties of new tables other than ``names``."""
    given = [row.key for row in spark.sql("SET").collect() if row.key.startswith(_DEFAULT)]
    return [key for key in given if f"delta.{key.removeprefix(_DEFAULT)}" not in names]


# Called after each commit with the name of the step. Tests replace it with a function that kills the process.
after_commit: Callable[[str], None] = ignore
Result = TypeVar("Result")


@dataclass(frozen=True)
class Decision(Generic[Result]):
    """Decision on one version of a table: rows to append, or None, and a result for the caller."""

    rows: DataFrame | None
    result: Result


class DeltaTable:
    """One Delta table by its path. ``kind`` names it in messages."""

    def __init__(self, spark: SparkSession, path: str, kind: str) -> None:
        self.spark = spark
        self.path = path.rstrip("/")
        self.kind = kind

    def snapshot(self, version: int | None = None) -> Any:
        """Return Delta's own view of a version, which Python does not offer; by default of the latest.

        Raises :class:`ReleaseError` if the log no longer has it.
        """
        logs = java_class(self.spark, "org.apache.spark.sql.delta.DeltaLog")
        log = logs.forTable(self.spark._jsparkSession, self.path)  # noqa: SLF001
        none = java_class(self.spark, "scala.Option").apply(None)
        latest = log.update(False, none, none)
        try:
            return latest if version is None else open_snapshot(log, version, none)
        except Py4JJavaError:
            raise lost_version(f"{self.kind} {self.path}", version or 0) from None

    def find_directory(self) -> Path | None:
        """Return the table's directory on this machine's disk, or None if it is elsewhere."""
        files = Files(self.spark, self.path)
        return Path(str(files.path.toUri().getPath())) if files.is_local else None

    def exists(self) -> bool:
        """Return whether there is a table."""
        return self.version() >= 0

    def version(self) -> int:
        """Return the latest version; -1 if there is no table."""
        return int(self.snapshot().version())

    def create(
        self,
        schema: StructType,
        *,
        partition_by: Sequence[str] = (),
        indexed: Sequence[str] | None = None,
        defaults: Collection[str] | None = None,
    ) -> None:
        """Create the table if there is none. Raises :class:`ReleaseError` for a table of another layout.

        ``indexed``: the columns whose minimum and maximum Delta may write into its log; by default the first 32. A text
        must not be among them: it would remain in the log after its deletion. ``defaults``: the properties that the
        table may take from the session's defaults for new tables; None: all.
        """
        if self.exists():
            self.check()
            return
        with hold_lock(self.spark, self.path):
            # Spelled as Hadoop does: Delta treats hdfs:///lake and hdfs:/lake as two paths, and refuses to create one
            # table at both.
            location = str(java_class(self.spark, "org.apache.hadoop.fs.Path")(self.path).toString())
            builder = _delta().createIfNotExists(self.spark).location(location).addColumns(schema)
            if indexed is not None:
                builder = builder.property("delta.dataSkippingStatsColumns", ",".join(f"`{name}`" for name in indexed))
            for name, value in PROPERTIES.items():
                builder = builder.property(name, value)
            if partition_by:
                builder = builder.partitionedBy(*partition_by)
            others = [] if defaults is None else _list_defaults(self.spark, defaults)
            with set_options(self.spark, dict.fromkeys(others)):
                builder.execute()
        self._end_commit(f"create {self.kind}")

    def identifier(self) -> str:
        """Return Delta's own identifier of the table; a table that is deleted and created again has another."""
        return str(self.snapshot().metadata().id())

    def check(self) -> None:
        """Raise :class:`ReleaseError` unless this version of wordveil reads the table."""
        if (number := find_property(self.snapshot(), VERSION_PROPERTY)) is None:
            raise ReleaseError(f"{self.kind} {self.path}: was not created by wordveil. Choose another path.")
        if number != str(TABLE_VERSION):
            raise ReleaseError(
                f"{self.kind} {self.path}: has format version {number}, and this wordveil reads {TABLE_VERSION}. Use "
                "the wordveil version that wrote it, or start a release with another name at another path."
            )

    def has(self, idempotency_key: str) -> bool:
        """Return whether :meth:`append` has written under ``idempotency_key``."""
        return self.number(idempotency_key) is not None

    def number(self, idempotency_key: str) -> int | None:
        """Return the last number with which :meth:`append` wrote under ``idempotency_key``, or None."""
        found = self.snapshot().transactions().get(f"wordveil {idempotency_key}")
        return int(found.get()) if found.isDefined() else None

    def idempotency_keys(self) -> set[str]:
        """Return the keys under which :meth:`append` has written."""
        names = (str(action.appId()) for action in list_items(self.snapshot().setTransactions()))
        return {name.removeprefix("wordveil ") for name in names if name.startswith("wordveil ")}

    def is_restored(self) -> bool:
        """Return whether RESTORE is newer than the last append of rows. It does not change :meth:`number`."""
        history = _delta().forPath(self.spark, self.path).history().select("operation").collect()
        last = next((row.operation for row in history if row.operation in ("RESTORE", "WRITE")), None)
        return bool(last == "RESTORE")

    def list_files(self, snapshot: Any) -> list[Row]:
        """List the log's rows about the data files of a :meth:`snapshot`."""
        return DataFrame(snapshot.allFiles().toDF(), self.spark).collect()

    def read(self, version: int | None = None) -> DataFrame:
        """Read the table, at ``version`` if it is given."""
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path)

    def append(
        self, frame: DataFrame, *, step: str, idempotency_key: str, number: int = 1, records_per_file: int | None = None
    ) -> None:
        """Append in one commit, unless one had the ``idempotency_key`` and this ``number`` or a larger one."""
        with hold_lock(self.spark, self.path):
            writer = frame.write.format("delta").mode("append").option("txnAppId", f"wordveil {idempotency_key}")
            writer = writer.option("txnVersion", number).option("maxRecordsPerFile", records_per_file or FILE_ROWS)
            try:
                writer.save(self.path)
            except Exception as error:
                if not _lost_race(error):
                    raise
        self._end_commit(step)

    def replace(self, rows: DataFrame, *, where: str | None = None, records_per_file: int | None = None) -> int:
        """Replace all rows in one commit, add their new columns, and return the commit's version.

        Others may have committed since. ``where``: replace only rows that meet this SQL on partition columns.
        """
        # Some sessions replace only partitions that have new rows. Withdrawn text would remain in the others.
        writer = rows.write.mode("overwrite").option("partitionOverwriteMode", "static").option("mergeSchema", "true")
        return self._write(writer.option("replaceWhere", where) if where else writer, records_per_file)

    def add(self, rows: DataFrame, *, records_per_file: int | None = None, token: str | None = None) -> int:
        """Append in one commit at each call, and return the commit's version. :meth:`find_commit` finds a ``token``."""
        return self._write(rows.write.mode("append"), records_per_file, token)

    def _write(self, writer: DataFrameWriter, records_per_file: int | None, token: str | None = None) -> int:
        token = token or secrets.token_hex(16)
        if records_per_file:
            writer = writer.option("maxRecordsPerFile", records_per_file)
        with hold_lock(self.spark, self.path):
            before = self.version()
            writer.format("delta").option("userMetadata", token).save(self.path)
            version = self.find_commit(token, before)
        assert version is not None
        self._end_commit(self.kind)
        return version

    def delete(self, ids: DataFrame, name: str, condition: str) -> None:
        """Delete the rows that meet ``condition`` and whose column ``name`` is in the column ``__id`` of ``ids``."""
        with hold_lock(self.spark, self.path):
            table = _delta().forPath(self.spark, self.path).alias("t")
            table.merge(ids.alias("s"), f"t.`{name}` = s.`__id` AND t.{condition}").whenMatchedDelete().execute()
        self._end_commit(f"delete {self.kind}")

    def compact(self, retain_hours: int, *, rewrite: bool = True) -> None:
        """Delete files that no version of the last ``retain_hours`` needs; ``rewrite``: merge small files first."""
        with hold_lock(self.spark, self.path):
            table = _delta().forPath(self.spark, self.path)
            if rewrite:
                table.optimize().executeCompaction()
            table.vacuum(retain_hours)
        self._end_commit(f"compact {self.kind}")

    def _end_commit(self, step: str) -> None:
        _LOGGER.debug("%s: committed %s", self.path, step)
        after_commit(step)

    def compare_and_append(self, decide: Callable[[DataFrame, int], Decision[Result]], *, step: str) -> Result:
        """Append the rows of ``decide(table, version)`` if the table is still at ``version``, else decide again.

        Returns the result of the decision that took effect. If two writers decide at once, the second decides on a
        table that has the first's rows. Raises :class:`ReleaseError` after many conflicts.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            with hold_lock(self.spark, self.path) as locked:
                snapshot = self.snapshot()
                version = int(snapshot.version())
                decision = decide(self.read(version), version)
                if decision.rows is None:
                    return decision.result
                writer = decision.rows.write.format("delta").mode("append").option("maxRecordsPerFile", FILE_ROWS)
                if locked:
                    # No other process can write. To compare numbers, Delta would compute its whole state, which takes
                    # about a second.
                    writer.save(self.path)
                    self._end_commit(step)
                    return decision.result
                # Swaps are numbered: Delta refuses or skips one that was decided before another swap was committed.
                token = secrets.token_hex(16)
                writer = writer.option("userMetadata", token).option("txnAppId", _SWAP)
                try:
                    writer.option("txnVersion", self._last_swap(snapshot) + 1).save(self.path)
                except Exception as error:
                    if not _lost_race(error):
                        raise
                if self.find_commit(token, version) is not None:
                    self._end_commit(step)
                    return decision.result
                _LOGGER.debug("%s: another writer was first, attempt %d of %d", self.path, attempt, _ATTEMPTS)
        raise ReleaseError(
            f"{self.kind} {self.path}: other processes wrote to it during each of {_ATTEMPTS} attempts. Try again "
            "later."
        )

    def _last_swap(self, snapshot: Any) -> int:
        """Return the number of the last swap, or 0, from the last commit if possible: Delta's state takes longer."""
        transactions = (action.get("txn", {}) for action in self._actions(int(snapshot.version())))
        if found := next((one for one in transactions if one.get("appId") == _SWAP), None):
            return int(found["version"])
        last = snapshot.transactions().get(_SWAP)
        return int(last.get()) if last.isDefined() else 0

    def _actions(self, version: int) -> list[dict[str, Any]]:
        commit = Files(self.spark, f"{self.path}/{DELTA_LOG}/{version:020d}.json").read()
        return [json.loads(line) for line in commit.splitlines()]

    def find_commit(self, token: str, after: int) -> int | None:
        """Find the version after ``after`` that was written under ``token``, or None."""
        for version in range(after + 1, self.version() + 1):
            if any(action.get("commitInfo", {}).get("userMetadata") == token for action in self._actions(version)):
                return version
        return None


def _lost_race(error: Exception) -> bool:
    """Return whether Delta refused a commit because another one was first."""
    marks = ("io.delta.exceptions.Concurrent", "DELTA_CONCURRENT")
    return "Concurrent" in type(error).__name__ or any(mark in str(error) for mark in marks)
