"""Delta in a Spark session: its options, its jars, and whether a session has it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.errors import PlatformError
from wordveil.spark.platform.jvm import gateway, java_array, java_class
from wordveil.spark.platform.log_store import JAR, log_store_options
from wordveil.spark.platform.versions import VERSION

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OPTIONS: dict[str, str] = {
    # Delta's own catalogue opens catalogue tables in its format and passes all others through.
    "spark.sql.catalog.spark_catalog": CATALOG,
    # The number of tasks that compute a table's state. Delta's default of 50 takes seconds. On two cores, more than one
    # gain nothing, even over 50,000 files of one commit.
    "spark.databricks.delta.snapshotPartitions": "1",
    # Delta would repeat a small table's files in the summary of each version, which nothing here reads. Where the time
    # zone is not UTC, it would compute the table's state anew at each commit to check them.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
}
INSTALL = "Install it with: pip install 'wordveil[spark]'"
CHANGE_FEED = "delta.enableChangeDataFeed"
"""Property of a Delta table that keeps the changes of its versions."""
_JARS = ("delta-spark", "delta-storage")


def delta_options(given: dict[str, str], jars: str | None, *, submitted: bool) -> dict[str, str]:
    """Return the options that a new session needs for Delta, in addition to the options ``given``.

    ``submitted``: spark-submit started its Java process, which takes no more jars. ``jars``: a directory
    (``spark.delta_jars``); by default the jars that Ivy has fetched, or else fetches.
    Raises :class:`PlatformError` if delta-spark is not installed or the directory lacks a jar.
    """
    options = {name: value for name, value in OPTIONS.items() if name not in given}
    extensions = given.get("spark.sql.extensions", "")
    options["spark.sql.extensions"] = extensions if EXTENSION in extensions else _join(extensions, EXTENSION)
    if submitted:
        return options
    options |= log_store_options(given)
    files = _find_jars(jars) if jars else fetched_jars(given.get("spark.jars.ivy"))
    options["spark.jars"] = _join(given.get("spark.jars"), *map(str, [*files, JAR]))
    packages = [] if files else _packages(given.get("spark.jars.packages"))
    return {**options, "spark.jars.packages": _join(*packages)} if packages else options


def require_delta(session: SparkSession) -> None:
    """Raise :class:`PlatformError` unless the session has Delta's extension, jars and catalogue.

    A catalogue that passes on to Delta's counts, too.
    """
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
    catalogue = session.conf.get("spark.sql.catalog.spark_catalog", "") or "Spark's own"
    if catalogue != CATALOG and not _knows_delta(session):
        raise PlatformError(
            f"the Spark session has Delta's extension, but its catalogue ({catalogue}) is neither Delta's nor one that "
            f"passes on to it. {hint}"
        )


def _knows_delta(session: SparkSession) -> bool:
    """Return whether the session's catalogue extends Delta's, or passes on to it.

    Among Spark's catalogues only Delta's takes a path for a table's name, and returns a table without looking there.
    """
    try:
        catalogue = session._jsparkSession.sessionState().catalogManager().catalog("spark_catalog")  # noqa: SLF001 - PySpark has no way to ask
        if is_instance_of(gateway(session), catalogue, CATALOG):
            return True
        namespace = java_array(session, java_class(session, "java.lang.String"), "delta")
        identifier = java_class(session, "org.apache.spark.sql.connector.catalog.Identifier")
        table = catalogue.loadTable(identifier.of(namespace, "/"))
    except (PySparkException, Py4JError):
        return False
    return bool(table.getClass().getName().startswith("org.apache.spark.sql.delta."))


def open_snapshot(log: Any, version: int, none: Any) -> Any:
    """Open Delta's view of a version. ``log``: Delta's own object of the table; ``none``: Scala's None."""
    try:
        return log.getSnapshotAt(version, none, none, False)
    except Py4JJavaError:
        raise
    except Py4JError:  # before Delta 4.1 it takes one argument less
        return log.getSnapshotAt(version, none, none)


def read_delta_files(spark: SparkSession, log: Any, version: int, names: Collection[str]) -> DataFrame:
    """Read the rows of some data files of a Delta table and open no other file.

    Given a condition on file names, Delta would open them all.

    ``log``: Delta's own object of the table. ``names``: as in Spark's metadata column ``file_path``. Raises a Py4J
    error if Delta's classes differ from those of the tested version.
    """
    none = java_class(spark, "scala.Option").apply(None)
    snapshot = open_snapshot(log, version, none)
    files = snapshot.allFiles()
    ends = {f"/{row[0]}" for row in DataFrame(files.toDF(), spark).select("path").collect()}
    chosen = [end[1:] for name in names if (end := _find_end(name, ends)) is not None]
    rows = files.filter(F.col("path").isin(*chosen)._jc).collectAsList()  # noqa: SLF001 - what else keeps the rows' type
    parts = java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq(rows)
    return DataFrame(log.createDataFrame(snapshot, parts, False, none), spark)


def read_delta_version(spark: SparkSession, log: Any, version: int) -> DataFrame:
    """Read a version of a Delta table past its catalogue. ``log``: Delta's own object of the table."""
    option = java_class(spark, "scala.Option")
    none, parts = option.apply(None), java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq([])
    relation = log.createRelation(parts, option.apply(open_snapshot(log, version, none)), none, True)
    return DataFrame(spark._jsparkSession.baseRelationToDataFrame(relation), spark)  # noqa: SLF001 - PySpark has no way


def _find_end(name: str, ends: Collection[str]) -> str | None:
    """Find the longest of ``ends`` that a file's name ends with; None if there is none."""
    return next((name[at:] for at, letter in enumerate(name) if letter == "/" and name[at:] in ends), None)


def fetched_jars(ivy: str | None = None) -> list[Path]:
    """Find Delta's jars of the installed version, as :func:`find_fetched` does."""
    group, name, version = artifact().split(":")
    return find_fetched([f"{group}:{jar}:{version}" for jar in (name, "delta-storage")], ivy)


def find_fetched(coordinates: Iterable[str], ivy: str | None = None) -> list[Path]:
    """Find jars by their Maven coordinates in Ivy's directory, ``ivy`` or Spark's default; empty if one is missing.

    Paths of jars spare Ivy's resolution, which takes seconds, prints line by line, and races between processes.
    """
    files = list_jars(coordinates, Path(ivy) if ivy else ivy_home())
    return files if all(file.is_file() for file in files) else []


def list_jars(coordinates: Iterable[str], ivy: Path) -> list[Path]:
    """List the paths under which Ivy keeps the jars that it has fetched into the directory ``ivy``."""
    names = [one.split(":") for one in coordinates]
    return [ivy / "jars" / f"{group}_{name}-{version}.jar" for group, name, version in names]


def ivy_home() -> Path:
    """Return the directory in which Spark's Ivy keeps fetched jars: in the account's home, because Java ignores
    HOME.
    """
    try:
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        home = Path.home()
    return home / (".ivy2.5.2" if VERSION >= (4, 0) else ".ivy2")


def artifact() -> str:
    """Return the Maven coordinates of Delta for this PySpark. Raises :class:`PlatformError` without delta-spark."""
    return _packages(None)[-1]


def _packages(others: str | None) -> list[str]:
    """List ``others`` and Delta's package, last, whose version delta-spark's own helper chooses."""
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
    files = sorted(Path(directory).glob("*.jar"))
    missing = [name for name in _JARS if not any(name in file.name for file in files)]
    if missing:
        raise PlatformError(
            f"spark.delta_jars = {directory}: the directory has no jar of {' and of '.join(missing)}. Add it; "
            "`wordveil docs operations` lists the jars that are needed."
        )
    return files


def _join(*parts: str | None) -> str:
    return ",".join(part for part in parts if part)
