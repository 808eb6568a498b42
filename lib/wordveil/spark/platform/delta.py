"""Delta in a Spark session: its options, its jars, and exclusive commits on object stores.

The package has a log store for S3, and a probe of what the object store itself promises.
"""

from __future__ import annotations

import os
import pwd
import secrets
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.errors import ConfigError, Fault, PlatformError
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import gateway, java_array, java_class
from wordveil.spark.platform.versions import VERSION

CLASS = "io.github.wordveil.ConditionalLogStore"
_HOME = Path(str(resources.files("wordveil") / "data" / "log_store"))
SOURCE = _HOME / "ConditionalLogStore.java"
JAR = _HOME / "wordveil-log-store.jar"
_FOR_ALL = "spark.delta.logStore.class"
_S3 = ("s3a", "s3")
# Local ones are locked; the others create or rename a commit's file only where it does not exist.
_EXCLUSIVE = {"file", "hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "adl", "gs"}
# Delta's own for S3, under its names: it excludes writers within one driver.
_ONE_DRIVER = {"io.delta.storage.S3SingleDriverLogStore", "org.apache.spark.sql.delta.storage.S3SingleDriverLogStore"}
_TAKEN = "java.nio.file.FileAlreadyExistsException"
_UNKNOWN = "an option that is not known"
_ONE_WRITER = (
    "If one process at a time writes to this release and to all that share its ledger, say so with output.writers: one."
)


def log_store_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options by which a new session commits to S3 through :data:`CLASS`, in addition to those ``given``.

    Delta accepts no second log store if the user names one for all file systems.
    """
    names = [] if _FOR_ALL in given else [_option(scheme) for scheme in _S3]
    return {name: CLASS for name in names if name not in given}


def require_exclusive_commits(spark: SparkSession, paths: Mapping[str, str], *, is_only_writer: bool) -> None:
    """Raise :class:`ConfigError` for ``paths``, by setting, if two writers may overwrite each other's commits.

    Delta's own log stores are exclusive on HDFS, Azure and Google; that for S3 is for a single driver, and others are
    unknown. A user's own log store is trusted; for this package's, each bucket must pass a probe.
    """
    if is_only_writer:
        return
    conf = spark.sparkContext.getConf()  # Delta reads the options with which Spark started, and no later ones
    faults: list[Fault] = []
    probed: dict[tuple[str, str], tuple[str, str] | None] = {}
    for setting, path in paths.items():
        try:
            files = Files(spark, path)
        except Py4JJavaError as error:
            faults.append(Fault(setting, path, *_describe_unopened(error)))
            continue
        place = files.path.toUri()
        scheme, bucket = str(place.getScheme()), str(place.getAuthority())
        if scheme in _EXCLUSIVE:
            continue
        chosen = conf.get(_option(scheme)) or conf.get(_FOR_ALL)
        if chosen is None or chosen in _ONE_DRIVER:
            faults.append(Fault(setting, path, *_describe_unsafe(scheme)))
        elif chosen == CLASS:
            if (scheme, bucket) not in probed:
                probed[scheme, bucket] = _probe(spark, files)
            if (found := probed[scheme, bucket]) is not None:
                faults.append(Fault(setting, path, *found))
    if faults:
        raise ConfigError("configuration", faults)


def _option(scheme: str) -> str:
    return f"spark.delta.logStore.{scheme}.impl"


def _probe(spark: SparkSession, files: Files) -> tuple[str, str] | None:
    """Probe the object store under a path, which must not create an object twice, for a fault and its remedy."""
    if not java_class(spark, "org.apache.spark.util.Utils").classIsLoadable(CLASS):
        return (
            f"the Spark session has no class {CLASS}.",
            f"Start it with --jars {JAR}, or name that file in spark.jars.",
        )
    conf = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    store = java_class(spark, CLASS)(conf)
    probe = files.below(f".wordveil-probe-{secrets.token_hex(8)}")
    try:
        for content in ("first", "second"):
            actions = java_class(spark, "java.util.ArrayList")()
            actions.add(content)
            problem = _create(store, probe, actions.iterator(), conf)
            if problem == _TAKEN and content == "second":
                return None
            if problem == _UNKNOWN:
                return (
                    "is on a file system that does not know conditional writes.",
                    "S3A of Hadoop 3.4.2 or newer does: spark.s3: true brings it.",
                )
            if problem is not None:
                return f"cannot be written ({problem}).", "Check the bucket, the endpoint, and what Hadoop logs in as."
    finally:
        with suppress(Py4JError):
            files.delete(probe)
    problem = (
        "is on a store that ignores conditional writes (If-None-Match): it created one object twice, so that two "
        "writers overwrite each other's entries without an error, and charges are lost."
    )
    return problem, _ONE_WRITER


def _create(store: Any, path: Any, actions: Any, conf: Any) -> str | None:
    """Commit once, and return the class of the error, or None."""
    try:
        store.write(path, actions, False, conf)
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())
    except IllegalArgumentException:  # PySpark's own, in place of Py4J's
        return _UNKNOWN
    return None


def _describe_unsafe(scheme: str) -> tuple[str, str]:
    problem = (
        f"is on {scheme}, where Delta's commits are not exclusive: two writers overwrite each other's entries without "
        "an error, so that charges are lost."
    )
    ours = f"{CLASS} from {JAR} (spark.jars or --jars)" if scheme in _S3 else "a log store with exclusive commits"
    mend = (
        f"{_ONE_WRITER} Else start the session with {_option(scheme)} = {ours}, or use HDFS, Azure or Google storage."
    )
    return problem, mend


def _describe_unopened(error: Py4JJavaError) -> tuple[str, str]:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    problem = f"cannot be opened: the Spark session has no file system for it ({cause.getClass().getSimpleName()})."
    return problem, "For s3a set spark.s3: true, or give the session the jars of hadoop-aws."


EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OPTIONS: dict[str, str] = {
    # Delta's own catalogue opens catalogue tables in its format and passes all others through.
    "spark.sql.catalog.spark_catalog": CATALOG,
    # The number of tasks that compute a table's state. Delta's default of 50 takes seconds. On two cores, more than one
    # gain nothing, even over 50,000 files of one commit.
    "spark.databricks.delta.snapshotPartitions": "1",
    # Delta would repeat a small table's files in the summary of each version, which nothing here reads. In another time
    # zone than UTC, it would compute the table's state again at each commit to check them.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
}
INSTALL = "Install it with: pip install 'wordveil[spark]'"
CHANGE_FEED = "delta.enableChangeDataFeed"
"""Property of a Delta table that keeps the changes of its versions."""
_JARS = ("delta-spark", "delta-storage")


def delta_options(given: dict[str, str], jars: str | None, *, submitted: bool) -> dict[str, str]:
    """Return the options that a new session needs for Delta, in addition to the options ``given``.

    ``submitted``: spark-submit started its Java process, which takes no more jars. ``jars``: a directory
    (``spark.delta_jars``); by default the jars that Ivy has fetched, or else fetches. Raises :class:`PlatformError` if
    delta-spark is not installed or the directory lacks a jar.
    """
    options = {name: value for name, value in OPTIONS.items() if name not in given}
    extensions = given.get("spark.sql.extensions", "")
    options["spark.sql.extensions"] = extensions if EXTENSION in extensions else join_list(extensions, EXTENSION)
    if submitted:
        return options
    options |= log_store_options(given)
    files = _find_jars(jars) if jars else fetched_jars(given.get("spark.jars.ivy"))
    options["spark.jars"] = join_list(given.get("spark.jars"), *map(str, [*files, JAR]))
    packages = [] if files else _packages(given.get("spark.jars.packages"))
    return {**options, "spark.jars.packages": join_list(*packages)} if packages else options


def require_delta(session: SparkSession) -> None:
    """Raise :class:`PlatformError` unless the session has Delta's extension, jars and catalogue, or one around it."""
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


def find_property(snapshot: Any, name: str) -> str | None:
    """Find a property of a Delta table in Delta's view of a version."""
    found = snapshot.metadata().configuration().get(name)
    return str(found.get()) if found.isDefined() else None


def read_delta_files(spark: SparkSession, log: Any, version: int, names: Collection[str]) -> DataFrame:
    """Read the rows of some data files of a Delta table and open no other file.

    Given a condition on file names, Delta would open them all. ``log``: Delta's own object of the table. ``names``: as
    in Spark's metadata column ``file_path``. Raises a Py4J error if Delta's classes differ from those of the tested
    version.
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
    """Find the longest of ``ends`` that a file's name ends with, or None."""
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
    """Return the directory of jars that Spark's Ivy fetched: in the account's home, because Java ignores HOME."""
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


def join_list(*parts: str | None) -> str:
    """Join lists of Spark's options, leaving out empty ones."""
    return ",".join(part for part in parts if part)
