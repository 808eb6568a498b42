"""Errors of Spark jobs in one line that cannot quote a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from wordveil.errors import InputError, SparkJobError

_FILE = re.compile(
    r"(?:reading file|footer for file:?|File|Version file) ((?:file|hdfs|s3a?|abfss?|gs):/[^\s'\"]*\.(?:parquet|json))",
    re.ASCII,
)
_JAVA = re.compile(r"^(?::|Caused by:) [\w.$]+: \[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", re.MULTILINE | re.ASCII)
_LOST_COMMIT = "The Delta log lacks a commit. Restore the missing file of _delta_log, or the table from a copy."
_LOST_FILE = (
    "A data file is gone: deleted, or vacuumed away from an older version. Restore it, or read a newer version."
)
# What can be done, by the beginning of Spark's error condition.
_HINTS = {
    "DELTA_VERSIONS_NOT_CONTIGUOUS": _LOST_COMMIT,
    "DELTA_TRUNCATED_TRANSACTION_LOG": _LOST_COMMIT,
    "DELTA_LOG_FILE_NOT_FOUND": _LOST_COMMIT,
    "DELTA_STATE_RECOVER_ERROR": _LOST_COMMIT,
    "DELTA_TABLE_NOT_FOUND": "Not a Delta table. Say `format: parquet` if it is one of Parquet.",
    "DELTA_MISSING_DELTA_TABLE": "Not a Delta table. Say `format: parquet` if it is one of Parquet.",
    "TABLE_OR_VIEW_NOT_FOUND": "The session's catalogue has no such table. Check the name, and the catalogue that the session is set up with.",
    "REQUIRES_SINGLE_PART_NAMESPACE": "The session's catalogue has no such table. Check the name, and the catalogue that the session is set up with.",
    "PARSE_SYNTAX_ERROR": "Not the name of a table. Write database.table, odd names in backticks.",
    "UNABLE_TO_INFER_SCHEMA": "There is no data file in it that tells the columns.",
    "FAILED_READ_FILE.FILE_NOT_EXIST": _LOST_FILE,
    "FAILED_READ_FILE": "The file is damaged or cannot be read. Restore it; it is never skipped.",
    "CANNOT_READ_FILE_FOOTER": "The file is damaged. Restore it; it is never skipped.",
    "CAST_INVALID_INPUT": "A value cannot be cast in input.where. Use try_cast there.",
}


@contextmanager
def job_errors(outcome: str = "nothing was written") -> Iterator[None]:
    """Turns an error of a Spark job into a :class:`SparkJobError`, which says the ``outcome``."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with silence_query_logs():
            yield
    except (PySparkException, Py4JError) as error:
        raise SparkJobError(f"the Spark job failed and {outcome}: {describe_cause(error)}") from None


@contextmanager
def input_errors(setting: str, source: str, kind: str = "table") -> Iterator[None]:
    """Turns an error of Spark into an :class:`InputError` that names the ``setting``, its value ``source``, cause and
    mend.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with silence_query_logs():
            yield
    except (PySparkException, Py4JError) as error:
        raise InputError(f"{setting} = {source}: not readable as a {kind}: {describe_cause(error)}") from None


@contextmanager
def silence_query_logs() -> Iterator[None]:
    """Keeps PySpark from printing the errors of queries itself: their messages may quote values of records."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


def error_condition(error: BaseException) -> str:
    """Spark's name for what happened; the type of the error where there is none."""
    found = getattr(error, "getCondition", lambda: None)()
    if found is None and (java := _JAVA.search(str(error))):
        found = java[1]
    return found or type(error).__name__


def describe_cause(error: BaseException) -> str:
    """A line that names the cause and cannot quote a record: a worker's own error, a file name, or Spark's error
    class.
    """
    text = str(error)
    if worker := re.search(r"wordveil\.errors\.\w+: (.*)", text):
        return worker[1]
    if module := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
        return f"the workers' Python has no {module[1]}. Install wordveil there, or set PYSPARK_PYTHON to a Python that has it."
    name, file = error_condition(error), _FILE.search(text)
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return f"{name}. A disk is full: the output's, or Spark's scratch (spark.local.dir, SPARK_LOCAL_DIRS). Make room and start again."
    hint = next((hint for start, hint in _HINTS.items() if name.startswith(start)), "Spark's own log has the details.")
    return f"{name}{f' in {file[1]}' if file else ''}. {hint}"
