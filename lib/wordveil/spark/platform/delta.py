"""Delta in a Spark session: its options, its jars, and whether a session has it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.errors import PlatformError
from wordveil.spark.platform.jvm import java_class

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OPTIONS: dict[str, str] = {
    # Delta's own catalogue opens catalogue tables in its format and passes all others through.
    "spark.sql.catalog.spark_catalog": CATALOG,
    # The number of tasks that compute a table's state. Delta's default of 50 takes seconds, and the log of one corpus
    # has only thousands of files.
    "spark.databricks.delta.snapshotPartitions": "4",
}
INSTALL = "Install it with: pip install 'wordveil[spark]'"
DELTA_LOG = "_delta_log"
"""The directory inside a Delta table that has its log."""
_JARS = ("delta-spark", "delta-storage")


def delta_options(given: dict[str, str], jars: str | None, *, submitted: bool) -> dict[str, str]:
    """Return the options that a new session needs for Delta, in addition to the options ``given``.

    ``submitted``: spark-submit started its Java process, which has the jars that it was given and takes no more.
    ``jars``: a directory (``spark.delta_jars``); left out, the jars that Ivy has, which it fetches where it has none.
    Raises :class:`PlatformError` if delta-spark is not installed or the directory lacks a jar.
    """
    options = {name: value for name, value in OPTIONS.items() if name not in given} | _extensions(given)
    if submitted:
        return options
    found = _find_jars(jars) if jars else fetched_jars(given.get("spark.jars.ivy"))
    if found:
        return {**options, "spark.jars": _join(given.get("spark.jars"), *map(str, found))}
    return {**options, "spark.jars.packages": _join(*_packages(given.get("spark.jars.packages")))}


def _extensions(given: dict[str, str]) -> dict[str, str]:
    others = given.get("spark.sql.extensions")
    return {"spark.sql.extensions": others if others and EXTENSION in others else _join(others, EXTENSION)}


def require_delta(session: SparkSession) -> None:
    """Raise :class:`PlatformError` unless the session has Delta's extension, catalog and jars."""
    hint = (
        f"Start it with spark.sql.extensions={EXTENSION}, spark.sql.catalog.spark_catalog={CATALOG} and Delta's jars "
        f"({' and '.join(_JARS)}): name them in spark.jars or --jars, or fetch them with --packages."
    )
    if EXTENSION not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise PlatformError(
            f"the configuration names a Delta or catalogue table, but the Spark session has no Delta extension. {hint}"
        )
    if not java_class(session, "org.apache.spark.util.Utils").classIsLoadable(EXTENSION):
        raise PlatformError(
            f"the Spark session is configured for Delta, but its Java process started without Delta's jars. {hint}"
        )
    if session.conf.get("spark.sql.catalog.spark_catalog", "") != CATALOG:
        raise PlatformError(f"the Spark session has Delta's extension but not Delta's catalog. {hint}")


def read_delta_files(spark: SparkSession, log: Any, version: int, names: Collection[str]) -> DataFrame:
    """Read the rows of some data files of a Delta table, and open no other file: for a condition on the names of files
    Delta opens them all. It has no Python for this.

    ``log``: Delta's own object of the table. ``names``: as Spark's metadata column ``file_path`` has them. Raises
    py4j's error where Delta's classes are not those of the version that was tested.
    """
    none = java_class(spark, "scala.Option").apply(None)
    snapshot = log.getSnapshotAt(version, none, none, False)
    files = snapshot.allFiles()
    paths = [row[0] for row in DataFrame(files.toDF(), spark).select("path").collect()]
    ends = {f"/{path}" for path in paths}
    chosen = [found[1:] for name in names if (found := _find_end(name, ends)) is not None]
    rows = files.filter(F.col("path").isin(*chosen)._jc).collectAsList()  # noqa: SLF001 - what else keeps the rows' type
    parts = java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq(rows)
    return DataFrame(log.createDataFrame(snapshot, parts, False, none), spark)


def _find_end(name: str, ends: Collection[str]) -> str | None:
    """The longest of ``ends`` that a file's name has; None where it has none."""
    places = [place for place, letter in enumerate(name) if letter == "/"]
    return next((name[place:] for place in places if name[place:] in ends), None)


def fetched_jars(ivy: str | None = None) -> list[Path]:
    """Find Delta's jars of the installed version as Ivy keeps them, in ``ivy`` or in Spark's default directory; empty
    if one is missing.

    A path needs no resolving by Ivy, which takes seconds, prints line by line, and races where two processes do it at
    once.
    """
    home = Path(ivy) if ivy else ivy_home()
    group, name, version = artifact().split(":")
    names = (f"{group}_{name}-{version}.jar", f"{group}_delta-storage-{version}.jar")
    found = [home / "jars" / name for name in names]
    return found if all(path.is_file() for path in found) else []


def ivy_home() -> Path:
    """Return the directory in which Spark's Ivy keeps what it fetches. Java takes the home of the user's account and
    ignores HOME.
    """
    try:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        home = Path.home()
    return home / ".ivy2.5.2"


def artifact() -> str:
    """Return the Maven coordinates of Delta for this PySpark, from delta-spark's own helper. Raises
    :class:`PlatformError` if delta-spark is not installed.
    """
    return _packages(None)[-1]


def _packages(others: str | None) -> list[str]:
    """Delta's package by delta-spark's own helper, which knows the versions that fit, and ``others``."""
    try:
        from delta import configure_spark_with_delta_pip  # jobs that write Parquet run without delta-spark
    except ImportError:
        raise PlatformError(
            f"the configuration names a Delta or catalogue table, but delta-spark is not installed. {INSTALL}"
        ) from None
    builder = configure_spark_with_delta_pip(
        SparkSession.Builder(), extra_packages=others.split(",") if others else None
    )
    package, *rest = str(builder._options["spark.jars.packages"]).split(",")  # noqa: SLF001 - no public way to read it
    return [*rest, package]


def _find_jars(directory: str) -> list[Path]:
    found = sorted(Path(directory).glob("*.jar"))
    missing = [name for name in _JARS if not any(name in path.name for path in found)]
    if missing:
        raise PlatformError(
            f"spark.delta_jars = {directory}: the directory has no jar of {' and of '.join(missing)}. Add it; "
            "`wordveil docs operations` lists the jars that are needed."
        )
    return found


def _join(*parts: str | None) -> str:
    return ",".join(part for part in parts if part)
