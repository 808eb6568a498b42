"""Spark sessions: which options the job needs, each with its reason."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from typing import TYPE_CHECKING

from wordveil.errors import PlatformError
from wordveil.sections import SparkSection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSION = 17

# Set on every session that this package builds.
OPTIONS: dict[str, str] = {
    # A batch is cut off at 4 MiB and at 1,024 rows, so that a worker's memory does not depend on the corpus.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 * 2**20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    # A task takes far longer for a byte than Spark's own work does: smaller tasks end together and lose less when one is tried again.
    "spark.sql.files.maxPartitionBytes": str(16 * 2**20),
    "spark.sql.files.openCostInBytes": str(256 * 2**10),
    # A damaged or vanished file must fail the job: ignoring it would lose records without a word.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Kept timestamps come out as the Parquet type that other readers know, not as Spark's old 96-bit one.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # One BLAS thread a task, also for libraries that are loaded before the worker can ask for it.
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.MKL_NUM_THREADS": "1",
    # The command line draws its own progress.
    "spark.ui.showConsoleProgress": "false",
}
# Never left to anybody: without them records are lost in silence. The configuration refuses to set them otherwise.
SAFETY = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
# Set besides in local mode, where nothing outside the machine takes part.
LOCAL_OPTIONS: dict[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def build_session(section: SparkSection) -> SparkSession:
    """A session with :data:`OPTIONS`, or the running one with those that a running one can take.

    What spark-submit was given wins over :data:`OPTIONS` but for :data:`SAFETY`; ``section.options`` win over all. Raises :class:`PlatformError` where PySpark or Java is missing or too old.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PlatformError("PySpark is not installed. Install it with: pip install 'wordveil[spark]'") from None
    if (running := SparkSession.getActiveSession()) is not None:
        for name, value in {**OPTIONS, **section.options}.items():
            if running.conf.isModifiable(name):
                running.conf.set(name, value)
        return running
    submitted = _submitted()
    master = submitted.get("spark.master") or section.master or "local[*]"
    if section.master not in (None, master):
        raise PlatformError(f"spark.master = {section.master}, but spark-submit was given --master {master}. Remove one of them.")
    if not submitted:
        check_java()
    builder = SparkSession.builder.appName(section.app_name).master(master)
    options = {**OPTIONS, **(local_options() if master.startswith("local") else {})}
    if master.startswith("local"):
        # Workers run the Python that runs this; PySpark would take whatever python3 comes first on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {name: value for name, value in options.items() if name not in submitted or name in SAFETY}
    for name, value in {**chosen, **section.options}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _submitted() -> dict[str, str]:
    """What spark-submit was given, where it started this process; only the JVM knows."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - connects to the JVM; SparkConf is empty before
    return dict(SparkConf().getAll())


def local_options() -> dict[str, str]:
    """:data:`LOCAL_OPTIONS` and a log configuration that shows errors only."""
    log4j = resources.files("wordveil") / "data" / "log4j2.properties"
    return {**LOCAL_OPTIONS, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j}"}


def check_java() -> None:
    """Raise :class:`PlatformError` unless Java 17 or newer is at hand."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    mend = f"Install Java {JAVA_VERSION} or newer (Debian: apt-get install default-jre-headless), or set JAVA_HOME."
    if java is None:
        raise PlatformError(f"Spark needs Java and there is none. {mend}")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        raise PlatformError(f"{java} does not run. {mend}") from None
    version = re.search(r'version "(\d+)', answer.stderr)
    if version is None or int(version[1]) < JAVA_VERSION:
        found = version[1] if version else "of an unknown version"
        raise PlatformError(f"{java} is Java {found}. {mend}")


def require_classic(session: SparkSession) -> None:
    """Raise :class:`PlatformError` for a Spark Connect session."""
    if not hasattr(session, "_jsparkSession"):
        raise PlatformError(
            "Spark Connect sessions are not supported: the bundle needs the executors' files. Use a classic session."
        )


def check_session(session: SparkSession) -> None:
    """Raise :class:`PlatformError` unless a session of somebody's own can be used as it is."""
    require_classic(session)
    for name in SAFETY:
        if session.conf.get(name, "false") != "false":
            raise PlatformError(
                f"{name} = true would drop damaged or missing files without a word, and their records with them. Set it to false."
            )
    for name in ("spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"):
        value = session.conf.get(name, OPTIONS[name]) or ""
        if not value.isdigit() or int(value) == 0 or int(value) > 2**28:
            raise PlatformError(
                f"{name} = {value} does not bound a worker's memory. Set it to {OPTIONS[name]}, as the job does, or to 2^28 at most."
            )
