"""Exclusive commits of Delta on object stores.

The package has a log store for S3, and a probe of what the object store itself promises.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from wordveil.errors import ConfigError, Fault
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import java_class

CLASS = "io.github.wordveil.ConditionalLogStore"
_HOME = Path(str(resources.files("wordveil") / "data" / "log_store"))
SOURCE = _HOME / "ConditionalLogStore.java"
JAR = _HOME / "wordveil-log-store.jar"
_FOR_ALL = "spark.delta.logStore.class"
_S3 = ("s3a", "s3")
# Local ones are locked; the others create or rename a commit's file only where it does not exist.
_EXCLUSIVE = {"file", "hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "adl", "gs"}
# Delta's own for S3, under its names: it excludes writers within one driver.
_ONE_DRIVER = {
    "io.delta.storage.S3SingleDriverLogStore",
    "org.apache.spark.sql.delta.storage.S3SingleDriverLogStore",
}
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
    not known. A log store of the user's is trusted; for that of this package, each bucket must pass a probe.
    """
    if is_only_writer:
        return
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
        chosen = _find_log_store(spark, scheme)
        if chosen is None:
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


def _find_log_store(spark: SparkSession, scheme: str) -> str | None:
    """Find the class of the log store that Delta uses for a scheme, if it may be exclusive.

    Delta reads the options with which Spark started, and no later ones.
    """
    conf = spark.sparkContext.getConf()
    chosen = conf.get(_option(scheme)) or conf.get(_FOR_ALL)
    return None if chosen in _ONE_DRIVER else chosen


def _probe(spark: SparkSession, files: Files) -> tuple[str, str] | None:
    """Probe the object store under a path for a fault and its remedy: it must refuse to create an object twice."""
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
    """Commit once; return the class of the error, None if there was none."""
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
