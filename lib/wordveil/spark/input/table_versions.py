"""Versions of tables: Delta's, and Iceberg's snapshots; and statistics of texts in Delta's log.

Spark reads both by ``versionAsOf`` and ``timestampAsOf``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from wordveil.errors import ConfigError, Fault, InputError
from wordveil.input.columns import fold_name
from wordveil.input.source import Source
from wordveil.records.paths import read_path
from wordveil.spark.platform.delta import find_property
from wordveil.spark.platform.errors import error_condition, silence_query_logs
from wordveil.spark.platform.iceberg import find_iceberg_table
from wordveil.spark.platform.jvm import find_file_relation
from wordveil.spark.platform.session import require_encrypted_scratch

_NAMED, _FIRST = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
_TOO_EARLY = "is before the first version that the Delta table still has. Use a later time."
_TOO_LATE = "is after the latest version of the Delta table. Use an earlier time, or none to read the latest."
_NO_TIME = 'is not a date or time that Spark reads. Write it as in "2026-11-20 03:00:00".'
NO_VERSIONS = "only Delta and Iceberg tables have versions. Remove it."
_NO_VERSION = "the Delta table does not have this version, or no longer has it."
# Problems by the beginning of Spark's error condition, or by words of errors of Iceberg and of Delta before 4.1, which
# have no condition.
_PROBLEMS = {
    "UNSUPPORTED_FEATURE.TIME_TRAVEL": NO_VERSIONS,
    "DELTA_VERSION_NOT_FOUND": _NO_VERSION,
    "Cannot time travel Delta table": _NO_VERSION,
    "Cannot find snapshot with ID": (
        "the Iceberg table does not have this snapshot, or no longer has it. Choose another."
    ),
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": _TOO_LATE,
    "is after the latest": _TOO_LATE,
    "DELTA_TIMESTAMP_EARLIER": _TOO_EARLY,
    "is before the earliest version": _TOO_EARLY,
    "Cannot find a snapshot older than": (
        "is before the first snapshot that the Iceberg table still has. Use a later time."
    ),
    "DELTA_TIMESTAMP_INVALID": _NO_TIME,
    "INVALID_TIME_TRAVEL_TIMESTAMP": _NO_TIME,
}


@dataclass(frozen=True)
class TableVersion:
    """Version of a table that a frame reads.

    ``number``: Delta's version, or the id of Iceberg's snapshot, which is no counter. ``table_id``: the format's own
    identifier; a table that is deleted and created again has another.
    """

    number: int
    table_id: str
    is_delta: bool


def find_version(frame: DataFrame, source: Source) -> TableVersion | None:
    """Find the version that a frame reads, or None for tables without versions and for views.

    Raises :class:`InputError` for an Iceberg table of which no version can be read again.
    """
    if (snapshot := find_snapshot(frame)) is not None:
        return TableVersion(int(snapshot.version()), str(snapshot.metadata().id()), is_delta=True)
    if (iceberg := find_iceberg_table(frame)) is None:
        return None
    if iceberg.branch() is not None:
        raise _selected(source)
    number, newest = iceberg.snapshotId(), iceberg.table().currentSnapshot()
    if number is None and newest is None:
        raise InputError(
            f"{source.setting} = {source.name}: the Iceberg table has no snapshot yet. Write to it first; a write of "
            "no rows is enough."
        )
    chosen = newest.snapshotId() if number is None else number
    return TableVersion(int(chosen), str(iceberg.table().uuid()), is_delta=False)


def refresh_table(frame: DataFrame) -> None:
    """Refresh Iceberg's catalogue, which keeps tables as it last read them, for what other processes have written."""
    if (iceberg := find_iceberg_table(frame)) is not None:
        iceberg.table().refresh()


def find_snapshot(frame: DataFrame) -> Any:
    """Return the state of the Delta table that a frame reads, or None for other tables and for views."""
    if (files := find_file_relation(frame)) is None:
        return None
    location = files.location()
    return location.snapshotAtAnalysis() if "TahoeLog" in location.getClass().getSimpleName() else None


@contextmanager
def version_errors(source: Source) -> Iterator[None]:
    """Turn an error about a version that cannot be read into a fault of the setting that chose it."""
    try:
        with silence_query_logs():
            yield
    except PySparkException as error:
        name, message = error_condition(error), str(error)
        if "Can't time travel" in message:
            raise _selected(source) from None
        signs = (sign for sign in _PROBLEMS if name.startswith(sign) or sign in message)
        problem = _PROBLEMS.get(next(signs, ""))
        if problem is None:
            raise
        if problem == _NO_VERSION:
            numbers = re.findall(r"Available versions: \[(\d+), (\d+)\]", message)
            problem += f" It has {numbers[0][0]} to {numbers[0][1]}." if numbers else " Choose another."
        raise wrong_version(source, problem) from None


def wrong_version(source: Source, problem: str) -> ConfigError:
    """Make the error for the setting that chose a version."""
    setting, value = ("timestamp", source.timestamp) if source.timestamp else ("version", source.version)
    where = f"{source.setting} {source.name}"
    return ConfigError(where, [Fault(f"input.{setting}", "" if value is None else str(value), problem)])


def _selected(source: Source) -> InputError:
    return InputError(
        f"{source.setting} = {source.name}: is read at a branch, a tag or a snapshot of its own, so that no version "
        "can be chosen. Name the table itself, and set input.version to that snapshot."
    )


def require_hidden_texts(table: DataFrame, texts: Sequence[str], setting: str, name: str) -> None:
    """Raise :class:`PlatformError` for statistics of ``texts`` in a session that does not encrypt its scratch.

    By default a Delta table's log has the least and the greatest text of each file, cut off. To find the files, Delta
    shuffles the log, so that these texts get into Spark's scratch. ``setting``, ``name``: how the configuration names
    the table.
    """
    if (snapshot := find_snapshot(table)) is None:
        return
    if _has_statistics(find_property(snapshot, _NAMED), find_property(snapshot, _FIRST), texts):
        require_encrypted_scratch(
            table.sparkSession,
            f"{setting} = {name}: the table's log has the least and greatest texts of its files, which Delta shuffles "
            "to Spark's scratch",
            f"take the texts out of its statistics: ALTER TABLE ... SET TBLPROPERTIES ('{_NAMED}' = '...') with the "
            "columns that may have them, and write the files again that were written before.",
        )


def _has_statistics(named: str | None, first: str | None, texts: Sequence[str]) -> bool:
    """Return whether Delta may have statistics of ``texts``: of the columns ``named``, else of the ``first``."""
    if named is None:
        return first != "0"
    columns = {fold_name(read_path(column.strip())[0]) for column in named.split(",")}
    return any(fold_name(read_path(text)[0]) in columns for text in texts)
