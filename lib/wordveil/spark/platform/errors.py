"""Errors of Spark jobs in one line that cannot quote a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException, PythonException

from wordveil.credentials import hide_credentials
from wordveil.errors import InputError, SparkJobError
from wordveil.input.files import describe_foreign
from wordveil.spark.platform.filesystem import LOCALE
from wordveil.spark.platform.jvm import java_log
from wordveil.spark.platform.versions import find_query_loggers

_PATH = r"((?:file|hdfs|s3a?|abfss?|gs):/[^\s'\"]*\.\w+)"
_FILE = re.compile(rf"(?:reading file|footer for file:?|File|Version file) {_PATH}", re.ASCII)
_NOT_PARQUET = re.compile(rf": {_PATH} is not a Parquet file", re.ASCII)
_JAVA = re.compile(r"^(?::|Caused by:) [\w.$]+: \[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", re.MULTILINE | re.ASCII)
_STREAM = re.compile(r"terminated with exception: \[([A-Z][A-Z0-9_.]+)\]", re.ASCII)
_LOST_COMMIT = "The Delta log lacks a commit. Restore the missing file of _delta_log, or restore the table from a copy."
_LOST_FILE = (
    "A data file is missing: it was deleted, or vacuumed from an older version. Restore it, or read a newer version."
)
_NO_TABLE = (
    "The session's catalogue has no such table. Check the name, and which catalogue the session is configured with."
)
_SHOWN = 300
_FULL = (
    "A disk is full: the output's, or Spark's scratch (spark.local.dir, SPARK_LOCAL_DIRS). Free some space and start "
    "again."
)
# Remedies by words of the cause's message, which itself may quote a record.
_SIGNS = {
    "No space left on device": _FULL,
    "Disk quota exceeded": _FULL,
    "unmappable characters": LOCALE,
    "Empty partition column value": (
        "The name of a directory ends with =, without a value. Rename it, to NAME=__HIVE_DEFAULT_PARTITION__ for null."
    ),
    "Relative path in absolute URI": (
        "The name of a file has a colon, which Hadoop does not read. Rename it, such as to 2026-11-20T030000.parquet; "
        "names of directories may have one."
    ),
}
# Remedies by the beginning of Spark's error condition.
_HINTS = {
    "DELTA_VERSIONS_NOT_CONTIGUOUS": _LOST_COMMIT,
    "DELTA_TRUNCATED_TRANSACTION_LOG": _LOST_COMMIT,
    "DELTA_LOG_FILE_NOT_FOUND": _LOST_COMMIT,
    "DELTA_STATE_RECOVER_ERROR": _LOST_COMMIT,
    "DELTA_TABLE_NOT_FOUND": "It is not a Delta table. Set `format: parquet` if it is a Parquet table.",
    "DELTA_MISSING_DELTA_TABLE": "It is not a Delta table. Set `format: parquet` if it is a Parquet table.",
    "TABLE_OR_VIEW_NOT_FOUND": _NO_TABLE,
    "REQUIRES_SINGLE_PART_NAMESPACE": _NO_TABLE,
    "PATH_ALREADY_EXISTS": "Something is there. If an interrupted run left it, delete it.",
    "PARSE_SYNTAX_ERROR": "It is not the name of a table. Write database.table, and put unusual names in backticks.",
    "UNABLE_TO_INFER_SCHEMA": "It has no data file from which the columns can be read.",
    "CONFLICTING_PARTITION_COLUMN_NAMES": (
        "Directories beside each other name other columns. Give all the same columns, or name one by input.path."
    ),
    "FAILED_READ_FILE.FILE_NOT_EXIST": _LOST_FILE,
    "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH": (
        "A column of this file has another type than in other files of the input. Write the file again with their type."
    ),
    "FAILED_READ_FILE": "The file is damaged or cannot be read. Restore it; wordveil never skips a file.",
    "CANNOT_READ_FILE_FOOTER": "The file is damaged. Restore it; wordveil never skips a file.",
    "DELTA_SOURCE": (
        "Rows of the stream's source were updated or deleted, and a stream takes rows that are only appended. Update "
        "the release from that table itself, by `wordveil release night` with input.changes: feed."
    ),
    "CAST_INVALID_INPUT": "A value cannot be cast in input.where. Use try_cast there.",
}


@contextmanager
def job_errors(outcome: str = "nothing was written") -> Iterator[None]:
    """Turn an error of a Spark job into a :class:`SparkJobError` that names the ``outcome``."""
    try:
        with silence_query_logs():
            yield
    except (PySparkException, Py4JError) as error:
        raise SparkJobError(f"the Spark job failed and {outcome}: {describe_cause(error)}") from None


@contextmanager
def input_errors(setting: str, source: str, kind: str = "table") -> Iterator[None]:
    """Turn an error of Spark into an :class:`InputError` that names ``setting``, its value ``source`` and the cause."""
    try:
        with silence_query_logs():
            yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"{setting} = {source}: cannot be read as a {kind}: {describe_cause(error)}") from None


@contextmanager
def silence_query_logs() -> Iterator[None]:
    """Keep PySpark from printing the errors of queries itself: their messages may quote values of records."""
    loggers = find_query_loggers()
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


def error_condition(error: BaseException) -> str:
    """Return Spark's name of an error condition; the error's type if it has none."""
    condition = getattr(error, "getCondition", getattr(error, "getErrorClass", lambda: None))()
    if condition == "STREAM_FAILED" and (batch := _STREAM.search(str(error))):
        condition = batch[1]
    if condition is None and (java := _JAVA.search(str(error))):
        condition = java[1]
    return condition or type(error).__name__


def describe_cause(error: BaseException) -> str:
    """Describe the cause without records and credentials: a worker's error, a file, or Spark's condition."""
    text = hide_credentials(str(error))
    # Messages of Spark itself may quote a value that reads like an error of a worker.
    told = text if _is_of_worker(error) else ""
    if worker := re.search(r"wordveil\.errors\.\w+: (.*)", told):
        return worker[1]
    if module := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", told):
        return (
            f"the workers' Python has no module {module[1]}. Install wordveil there, or set PYSPARK_PYTHON to a Python "
            "that has it."
        )
    name, file = error_condition(error), _FILE.search(text)
    below = f"{text} {' '.join(str(cause.getMessage()) for cause in _list_causes(error))}"
    if sign := next((sign for sign in _SIGNS if sign in below), None):
        return f"{name}{f' in {file[1]}' if file else ''}. {_SIGNS[sign]}"
    if damaged := _NOT_PARQUET.search(text):  # Spark 3.5 has no name for it
        name, file = "CANNOT_READ_FILE_FOOTER", damaged
    if name.startswith("CANNOT_READ_FILE_FOOTER") and file and not file[1].endswith(".parquet"):
        lone = "If the others are, move it elsewhere; if it should be one, it is damaged: restore it."
        return f"{name} in {file[1]}. {describe_foreign(file[1])} {lone}"
    hint = next((hint for start, hint in _HINTS.items() if name.startswith(start)), "")
    return f"{name}{f' in {file[1]}' if file else ''}. {hint or _find_detail(error) or _write_trace(error)}"


def _is_of_worker(error: BaseException) -> bool:
    """Return whether Python code of a worker has failed."""
    names = (str(cause.getClass().getName()) for cause in _list_causes(error))
    return isinstance(error, PythonException) or any(name.endswith(".PythonException") for name in names)


def _find_detail(error: BaseException) -> str:
    """Return the first line of an error that Spark raises before it reads rows; empty for others."""
    if not isinstance(error, AnalysisException):
        return ""
    line = re.sub(r"^\[[A-Z0-9_.]+\] ", "", hide_credentials(str(error))).partition("\n")[0].strip()
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def _write_trace(error: BaseException) -> str:
    """Log an error's Java trace, and return a sentence that names the log.

    Java's messages may quote a record, so the log gets only the names of exceptions and of the code.
    """
    if (log := java_log.name()) is None:
        return "See Spark's own log for the details."
    lines = [f"{datetime.now(UTC):%H:%M:%S} {error_condition(error)}"]
    for cause in _list_causes(error):
        lines += [str(cause.getClass().getName()), *(f"  at {frame.toString()}" for frame in cause.getStackTrace())]
    java_log.write("\n".join([*lines, ""]))
    return f"Spark's log, without values of records, is {log}."


def _list_causes(error: BaseException) -> Iterator[Any]:
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()
