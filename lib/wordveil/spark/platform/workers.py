"""Check of Spark's Python workers, once for each session before anything is drawn.

A script that does not activate its environment gets workers of the first ``python3`` on the PATH, maybe of another
version or without this package. Spark reports that only in the first job, at the end of a Java stack trace.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wordveil.errors import PlatformError
from wordveil.spark.platform.connect import ask_worker, is_connect
from wordveil.spark.platform.errors import describe_cause, silence_query_logs
from wordveil.version import __version__

MODULES = ("wordveil", "numpy", "pyarrow", "numba", "scipy", "cryptography", "threadpoolctl", "annotated_types")
"""Modules that a worker imports to sanitise; all but the first come with wordveil."""
_checked: WeakKeyDictionary[SparkContext | SparkSession, str] = WeakKeyDictionary()


@dataclass(frozen=True)
class WorkerPython:
    """Answer of a worker: its Python, the versions of Python and wordveil, and the :data:`MODULES` that it lacks."""

    executable: str
    version: str
    wordveil: str
    missing: tuple[str, ...]


def require_workers(spark: SparkSession) -> None:
    """Check, once for a session, that its Python workers run this version and can import :data:`MODULES`."""
    executable = _find_executable(spark)
    owner = spark if is_connect(spark) else spark.sparkContext  # which all classic sessions share
    if _checked.get(owner) == executable:
        return
    if problem := describe_problem(_ask_worker(spark)):
        raise PlatformError(problem)
    _checked[owner] = executable


def _find_executable(spark: SparkSession) -> str:
    if is_connect(spark):
        return spark.conf.get("spark.pyspark.python", "") or "the server's Python"
    return str(spark.sparkContext.pythonExec)


def describe_problem(worker: WorkerPython) -> str:
    """Explain why a worker cannot do the work, and how to fix it; empty if nothing is wrong."""
    subject = f"Spark's workers run {worker.executable} (Python {worker.version})"
    if worker.version != _version_here():
        return f"{subject}, and this process runs Python {_version_here()}. {_hint()}"
    if worker.missing:
        *others, last = worker.missing
        names = f"{', '.join(others)} and {last}" if others else last
        return f"{subject}, which cannot import {names}. {_hint()}"
    if worker.wordveil != __version__:
        return (
            f"{subject}, which imports wordveil {worker.wordveil}, and this process imports wordveil {__version__}. "
            f"Install the same version in both places. {_hint()}"
        )
    return ""


def _ask_worker(spark: SparkSession) -> WorkerPython:
    question = _make_question()
    try:
        with silence_query_logs():
            if is_connect(spark):
                answer = ask_worker(spark, question, MODULES)
            else:
                (answer,) = spark.sparkContext.parallelize([MODULES], 1).map(question).collect()
    except (PySparkException, Py4JError) as error:
        raise PlatformError(_describe_failure(_find_executable(spark), error)) from None
    return WorkerPython(*answer)


def _make_question() -> Callable[[Iterable[str]], tuple[str, str, str, tuple[str, ...]]]:
    """Make the function that a worker runs. It travels as code, so the worker need not have this module."""

    def answer(modules: Iterable[str]) -> tuple[str, str, str, tuple[str, ...]]:
        import importlib
        import sys

        imported, missing = {}, []
        for name in modules:
            try:
                imported[name] = importlib.import_module(name)
            except Exception:  # noqa: BLE001 - a module that is there and broken raises whatever it likes
                missing.append(name)
        version = str(getattr(imported.get("wordveil"), "__version__", ""))
        major, minor = sys.version_info[:2]
        return sys.executable, f"{major}.{minor}", version, tuple(missing)

    return answer


def _describe_failure(executable: str, error: BaseException) -> str:
    text = str(error)
    subject = f"Spark's workers run {executable}"
    if "PYTHON_VERSION_MISMATCH" in text:
        other = re.search(r"different version:? \(?(\d+\.\d+)", text)
        version = f" (Python {other[1]})" if other else ", another version of Python"
        return f"{subject}{version}, and this process runs Python {_version_here()}. {_hint()}"
    if module := re.search(r"No module named '?([\w.]+)", text):
        return f"{subject}, which cannot import {module[1]}. {_hint()}"
    if re.search(r"Cannot run program|error=2, No such file", text):
        return f"{subject}, which does not start. {_hint()}"
    return f"{subject}, which did not answer: {describe_cause(error)} {_hint()}"


def _hint() -> str:
    return (
        f"Set PYSPARK_PYTHON={sys.executable} in the environment before the session starts, or spark.pyspark.python "
        "where spark-submit starts it; for Spark Connect, where its server starts. On a cluster, name a Python on the "
        "executors that has wordveil, or send one with spark.archives. SparkContext.addPyFile adds wordveil alone, "
        "where only wordveil is missing."
    )


def _version_here() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
