"""Errors of Spark jobs in one line that cannot quote a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from wordveil.errors import SparkJobError


@contextmanager
def job_errors(outcome: str = "nothing was written") -> Iterator[None]:
    """Turns an error of a Spark job into a :class:`SparkJobError`, which says the ``outcome``."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkJobError(f"the Spark job failed and {outcome}: {cause(error)}") from None


def cause(error: BaseException) -> str:
    """A line that names the cause and cannot quote a record: a worker's own error, a file name, or Spark's error class."""
    text = str(error)
    if worker := re.search(r"wordveil\.errors\.\w+: (.*)", text):
        return worker[1]
    if module := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
        return f"the workers' Python has no {module[1]}. Install wordveil there, or set PYSPARK_PYTHON to a Python that has it."
    condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    file = re.search(r"(?:file|hdfs|s3a?|abfss?|gs):/[^\s'\"]*\.parquet", text)
    return f"{condition}{f' in {file[0]}' if file else ''}. Spark's own log has the details."
