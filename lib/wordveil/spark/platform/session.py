"""Spark sessions: which options the job needs, each with its reason, and the jars of S3A, the file system for S3."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from wordveil.errors import PlatformError
from wordveil.spark.platform.connect import SERVED_ALONE, check_server, is_connect
from wordveil.spark.platform.delta import delta_options, find_fetched, join_list, require_delta
from wordveil.spark.platform.jvm import check_java, check_user, java_log, redirect_console, start_java
from wordveil.spark.platform.versions import VERSION

if TYPE_CHECKING:
    from wordveil.config.load import Config
    from wordveil.config.schema import SparkSection

_LOGGER = logging.getLogger(__name__)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_OPTION = f"-Dlog4j2.configurationFile=file:{resources.files('wordveil') / 'data' / 'log4j2.properties'}"

# Set on every session that this package builds.
OPTIONS: dict[str, str] = {
    # A batch ends at 4 MiB or at 1,024 rows, so that a worker's memory does not depend on the corpus.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 * 2**20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    # Off in Spark 3.5, where a failing cast in the condition would drop its record silently.
    "spark.sql.ansi.enabled": "true",
    # Drawing takes far longer for each byte than Spark's own work: smaller tasks end together, and retries lose less.
    "spark.sql.files.maxPartitionBytes": str(16 * 2**20),
    "spark.sql.files.openCostInBytes": str(256 * 2**10),
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(16 * 2**20),
    # Otherwise a cached frame with few rows has 200 tasks too, as it always has on Spark 3.5.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    # Spark keeps 100 compiled classes. A nightly run has more, so the next one would compile most of them again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # A damaged or missing file must fail the job: ignoring it would lose records silently.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Kept timestamps are written as the Parquet type that other readers support, not as Spark's old 96-bit type.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # One BLAS thread a task, also for libraries that are loaded before the worker can set it.
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.MKL_NUM_THREADS": "1",
    # The command line draws its own progress.
    "spark.ui.showConsoleProgress": "false",
    # To note the line of Python behind each expression, Spark would call Java four more times, for thousands of them.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
# Always set by wordveil: otherwise records are lost silently. The configuration refuses other values.
SAFETY = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
# Also set in local mode, where no other machine takes part.
LOCAL_OPTIONS: dict[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
# Also set in local mode for commands over few rows. They finish before C2 and parallel GC pay off. C1 alone reserves so
# little code cache that a large plan fills it.
SHORT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
SHORT_OPTIONS: dict[str, str] = {
    # Compiling a plan, or planning again between two stages, takes longer than a few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
# Set on every session. Outside local mode a session without them is refused, unless the configuration allows it.
ENCRYPTION: dict[str, str] = {
    # Shuffled ids, spilled texts and broadcasts are encrypted in scratch, under a key of this session.
    "spark.io.encryption.enabled": "true",
    # Tasks, with a release's subkeys in them, cross the network encrypted.
    "spark.network.crypto.enabled": "true",
    # Only processes with the session's secret take part; the encryption above depends on it.
    "spark.authenticate": "true",
}


def start_session(config: Config) -> SparkSession:
    """Start the Spark session that the command line would start, or return the running one with its options set.

    In local mode workers run the Python of this process, unless ``PYSPARK_PYTHON`` names another.

    Parameters
    ----------
    config : Config
        From ``wordveil.load_config``. Its section ``spark`` has the master and further options; a release, and an input
        in Delta, bring Delta.

    Returns
    -------
    pyspark.sql.SparkSession
        The session.

    Raises
    ------
    wordveil.errors.PlatformError
        If Java or Delta is missing or does not fit, or the session lacks encryption outside local mode.

    Examples
    --------
    >>> spark = wordveil.start_session(wordveil.load_config("conf/job.yaml"))
    """
    return build_session(config.spark, delta=config.needs_delta)


def build_session(section: SparkSection, *, delta: bool = False, is_short: bool = False) -> SparkSession:
    """Start a session with :data:`OPTIONS`, or set those that the running session can take.

    ``delta``: require Delta. ``is_short``: in local mode, start fast, for few rows. Options given to spark-submit
    override :data:`OPTIONS` except :data:`SAFETY`; ``section.options`` override all.

    Raises :class:`PlatformError` if Java or Delta is missing or does not fit, in a process of Spark Connect, and
    outside local mode for a session without :data:`ENCRYPTION`, unless ``section.allow_unencrypted`` is set.
    """
    if (running := _find_running()) is not None:
        for name, value in {**OPTIONS, **section.options}.items():
            if running.conf.isModifiable(name):
                running.conf.set(name, value)
        return _check(running, section, delta=delta)
    submitted = _submitted_options()
    master = submitted.get("spark.master") or section.master or "local[*]"
    if section.master not in (None, master):
        raise PlatformError(
            f"spark.master = {section.master}: spark-submit was given --master {master}. Remove one of the two."
        )
    options = {**OPTIONS, **_encryption(master, section, submitted)}
    if master.startswith("local"):
        # Java logs only errors and, for a short session, starts fast.
        java = f"{_LOG_OPTION} {SHORT_JAVA}" if is_short else _LOG_OPTION
        options |= {**LOCAL_OPTIONS, **(SHORT_OPTIONS if is_short else {}), _JAVA_OPTIONS: java}
        # Workers run the same Python as this process; PySpark would take the first python3 on the PATH.
        if os.environ.setdefault("PYSPARK_PYTHON", sys.executable) == sys.executable:
            options["spark.python.daemon.module"] = "wordveil.spark.sanitise.daemon"
    chosen = {name: value for name, value in options.items() if name not in submitted or name in SAFETY}
    chosen |= section.options
    if section.s3:
        chosen |= s3_options({**submitted, **chosen}, submitted=bool(submitted))
    if delta:
        chosen |= delta_options({**submitted, **chosen}, section.delta_jars, submitted=bool(submitted))
    session = _start({"spark.app.name": section.app_name, "spark.master": master, **chosen})
    _LOGGER.debug("started Spark %s on %s, with Delta: %s", session.version, master, delta)
    if submitted:
        redirect_console(session)
    return _check(session, section, delta=delta)


def _find_running() -> SparkSession | None:
    """Return the running session, or None. A process of Spark Connect can have no classic session."""
    if is_remote() or "SPARK_REMOTE" in os.environ:
        raise PlatformError(SERVED_ALONE)
    if (running := SparkSession.getActiveSession()) is not None:
        require_classic(running)
    return running


def _start(options: dict[str, str]) -> SparkSession:
    try:
        # The user's own log configuration decides where Java prints.
        start_java(options, is_logged=_LOG_OPTION in options.get(_JAVA_OPTIONS, ""))
        return SparkSession.builder.config(map={**options}).getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise PlatformError(_describe_failure(error, options)) from None


def _describe_failure(error: Exception, options: dict[str, str]) -> str:
    """Describe why Spark did not start. No message can quote a record yet. Raises as :func:`check_java`."""
    check_user()
    java = getattr(error, "java_exception", None)
    if java is None:
        check_java()
    reason = str(java.toString()).splitlines()[0] if java is not None else java_log.last_lines()
    if java is None and "spark.jars.packages" in options:
        reason = (
            "it could not fetch Delta's jars, or others of spark.jars.packages. Set spark.delta_jars to a directory "
            "that has Delta's jars, and those of spark.s3; `wordveil docs operations` lists them."
        )
    log = java_log.name()
    return f"Spark did not start: {str(reason or error).rstrip('.')}.{f' Its log is {log}.' if log else ''}"


def _check(session: SparkSession, section: SparkSection, *, delta: bool) -> SparkSession:
    require_encryption(session, allow_unencrypted=section.allow_unencrypted)
    if delta:
        require_delta(session)
    return session


def _encryption(master: str, section: SparkSection, submitted: dict[str, str]) -> dict[str, str]:
    if is_local(master):
        return ENCRYPTION
    if master.startswith("local-cluster"):
        return {**ENCRYPTION, "spark.authenticate.secret": secrets.token_hex(32)}  # Spark requires one
    if section.allow_unencrypted:
        return {}
    if master.startswith("spark://") and "spark.authenticate.secret" not in submitted:
        raise PlatformError(
            "a standalone cluster needs spark.authenticate.secret, with the same value on master, workers and driver. "
            "Set it in a spark-defaults.conf that only its owner can read, as `wordveil docs deploy` shows, or set "
            "spark.allow_unencrypted: true."
        )
    return ENCRYPTION


def is_local(master: str) -> bool:
    """Return whether Spark runs in one process on this machine, by ``spark.master``."""
    return master == "local" or master.startswith("local[")


def require_encryption(session: SparkSession, *, allow_unencrypted: bool) -> None:
    """Raise :class:`PlatformError` for a session outside local mode without :data:`ENCRYPTION`, unless allowed."""
    options = _read_options(session)
    missing = [name for name in ENCRYPTION if str(options.get(name, "false")).lower() != "true"]
    if missing and not allow_unencrypted and not is_local(str(options.get("spark.master", ""))):
        raise PlatformError(
            f"the Spark session lacks {', '.join(f'{name}=true' for name in missing)}. Without them, ids and a "
            "release's subkeys cross the network or are written to scratch unencrypted. Start the session, or the "
            "server of Spark Connect, with them. To allow it, set spark.allow_unencrypted: true in the configuration, "
            "or pass allow_unencrypted=True in code."
        )


def require_encrypted_scratch(session: SparkSession, why: str, instead: str) -> None:
    """Raise :class:`PlatformError` for unencrypted scratch to which texts would be written.

    The configuration cannot allow it. ``why``, ``instead``: clauses with the reason and the way to prevent that.
    """
    if str(_read_options(session).get("spark.io.encryption.enabled", "false")).lower() != "true":
        raise PlatformError(
            f"{why}, and the Spark session does not encrypt that. Start it with spark.io.encryption.enabled=true, "
            f"which allow_unencrypted does not replace here, or {instead}"
        )


def _read_options(session: SparkSession) -> Any:
    return session.conf if is_connect(session) else session.sparkContext.getConf()


def _submitted_options() -> dict[str, str]:
    """Return the options given to spark-submit if it started this process; only the JVM has them."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # noqa: SLF001 - connects to the JVM; until then SparkConf is empty
    return dict(SparkConf().getAll())


def require_classic(session: SparkSession) -> None:
    """Raise :class:`PlatformError` for a Spark Connect session."""
    if is_connect(session):
        raise PlatformError(SERVED_ALONE)


def check_session(session: SparkSession, *, allow_unencrypted: bool = False, may_connect: bool = False) -> None:
    """Raise :class:`PlatformError` unless the caller's own session is usable. ``may_connect``: allow Spark Connect."""
    if may_connect and is_connect(session):
        check_server(session, allow_unencrypted=allow_unencrypted)
    else:
        require_classic(session)
    require_encryption(session, allow_unencrypted=allow_unencrypted)
    for name in SAFETY:
        if session.conf.get(name, "false") != "false":
            raise PlatformError(
                f"{name} = true: Spark would skip damaged or missing files silently, and lose their records. Set it "
                "to false."
            )
    for name in ("spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"):
        value = session.conf.get(name, OPTIONS[name]) or ""
        if not value.isdigit() or int(value) == 0 or int(value) > 2**28:
            raise PlatformError(
                f"{name} = {value}: this does not bound a worker's memory. Set it to {OPTIONS[name]}, as the job does, "
                "or to another value from 1 to 2^28."
            )


# Hadoop names the SDK as one bundle of 641 MB. These modules are 13 MB, and Spark itself has their other dependencies.
_SDK = "software.amazon.awssdk"
_SDK_VERSION = "2.29.52"
# Ivy resolves these, ...
_ASKED = (
    "org.apache.hadoop:hadoop-aws:3.4.2",
    *(f"{_SDK}:{name}:{_SDK_VERSION}" for name in ("s3", "s3-transfer-manager", "sts")),
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1",
    "org.wildfly.openssl:wildfly-openssl:2.1.4.Final",
)
# ... which need these modules of the SDK, ...
_MODULES = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol"),
    *("checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws"),
    *("http-auth-aws-eventstream", "http-auth-spi", "http-client-spi", "identity-spi", "json-utils"),
    *("metrics-spi", "netty-nio-client", "profiles", "protocol-core", "regions", "retries", "retries-spi"),
    *("sdk-core", "third-party-jackson-core", "utils"),
)
JARS = (
    *_ASKED,
    *(f"{_SDK}:{name}:{_SDK_VERSION}" for name in _MODULES),
    "software.amazon.eventstream:eventstream:1.0.1",
    "org.reactivestreams:reactive-streams:1.0.4",
)
# ... and neither the bundle nor modules that Spark has in other versions.
_EXCLUDED = (
    f"{_SDK}:bundle",
    *("org.slf4j:slf4j-api", "commons-logging:commons-logging", "commons-codec:commons-codec"),
    *("org.apache.httpcomponents:httpclient", "org.apache.httpcomponents:httpcore", "io.netty:*"),
)


def s3_options(given: Mapping[str, str], *, submitted: bool) -> dict[str, str]:
    """Return the options that bring S3A to a new session, in addition to those ``given``.

    They name jars that Ivy has fetched, or will fetch. Java takes no more jars if spark-submit started it
    (``submitted``). Raises :class:`PlatformError` before Spark 4.1, which has an older Hadoop.
    """
    if submitted:
        return {}
    if VERSION < (4, 1):
        raise PlatformError(
            "spark.s3 = true: it brings hadoop-aws 3.4.2, which needs Spark 4.1 or newer. Name the jars of hadoop-aws "
            "that fit this Spark in spark.jars, or give them to spark-submit by --packages."
        )
    if files := fetched_s3_jars(given.get("spark.jars.ivy")):
        return {"spark.jars": join_list(given.get("spark.jars"), *map(str, files))}
    return {
        "spark.jars.packages": join_list(given.get("spark.jars.packages"), *_ASKED),
        "spark.jars.excludes": join_list(given.get("spark.jars.excludes"), *_EXCLUDED),
    }


def fetched_s3_jars(ivy: str | None = None) -> list[Path]:
    """Find the jars, as :func:`find_fetched` does; none before Spark 4.1."""
    return find_fetched(JARS, ivy) if VERSION >= (4, 1) else []
