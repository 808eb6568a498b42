"""Spark's Java process: its start, its output, and classes of it that PySpark lacks."""

from __future__ import annotations

import atexit
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from py4j.java_gateway import is_instance_of
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from wordveil.errors import PlatformError

JAVA_VERSIONS = range(17, 23)
"""Java versions; later ones refuse calls that Hadoop makes: Spark starts and cannot write a file."""
_VERSIONS = f"Java {JAVA_VERSIONS[0]} to {JAVA_VERSIONS[-1]}"
_HINT = f"Install {_VERSIONS} (Debian: apt-get install default-jre-headless), or set JAVA_HOME."
_STANDARD_ERROR = 2
_SHOWN_LINES = 5
# Lines that Java, log4j and Ivy write at each start, even if it succeeds.
_ROUTINE = re.compile(r"WARNING: Using incubator modules|^\s*$|^:: |^\t|SLF4J|Setting default log level|at [\w.$/]+\(")


class JavaLog:
    """Private file for Java's output, unless that goes to a terminal or the user's log; kept if a message names it."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._is_kept = False

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Create the file for a process that is about to start."""
        descriptor, name = tempfile.mkstemp(prefix="wordveil-spark-", suffix=".log")
        self._path = Path(name)
        atexit.register(self._discard)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream

    def name(self) -> str | None:
        """Return the file's path for a message, and keep the file, or None."""
        if self._path is None or not self._path.exists():
            return None
        self._is_kept = True
        return str(self._path)

    def last_lines(self) -> str:
        """Return the last lines that are not routine at Java's start."""
        if self._path is None:
            return ""
        lines = self._path.read_text("utf-8", errors="replace").splitlines()
        return "\n".join([line for line in lines if not _ROUTINE.search(line)][-_SHOWN_LINES:])

    def write(self, text: str) -> None:
        """Append to the file, if there is one."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(text)

    def _discard(self) -> None:
        if self._path is not None and not self._is_kept:
            self._path.unlink(missing_ok=True)


java_log = JavaLog()


def check_java() -> None:
    """Raise :class:`PlatformError` unless Spark would start a Java that it supports."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None:
        raise PlatformError(f"Spark needs Java, and no java was found on the PATH. {_HINT}")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        raise PlatformError(f"Java at {java} cannot be run. {_HINT}") from None
    version = re.search(r'version "(\d+)', answer.stderr)
    if version is None or int(version[1]) not in JAVA_VERSIONS:
        raise _unfit(java, version[1] if version else "of an unknown version")


def check_user() -> None:
    """Raise :class:`PlatformError` for a user without a name, as in containers: Java's login needs one."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        problem = f"the user {os.getuid()} has no entry in /etc/passwd, and Spark's login asks Java for the user's name"
        fix = (
            f"Add one: echo 'spark:x:{os.getuid()}:{os.getgid()}::/tmp:/bin/sh' >> /etc/passwd, or take a user with one"
        )
        raise PlatformError(f"{problem}. {fix}.") from None


@contextmanager
def _use_unicode() -> Iterator[None]:
    """Let Java name any file: in the locale C, a container's usual one, it supports only ASCII."""
    before = os.environ.get("LC_ALL")
    if (before or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "C") in ("C", "POSIX"):
        os.environ["LC_ALL"] = "C.UTF-8"
    try:
        yield
    finally:
        os.environ.pop("LC_ALL", None)
        if before is not None:
            os.environ["LC_ALL"] = before


def _unfit(java: str, version: str) -> PlatformError:
    return PlatformError(f"{java} is Java {version}, and Spark needs {_VERSIONS}. {_HINT}")


def start_java(options: Mapping[str, str], *, is_logged: bool) -> None:
    """Start Spark's Java process with Spark's ``options``, unless there is one.

    Both its streams go to standard error or, with ``is_logged``, to :data:`java_log`: standard output is only for
    results. Raises PySpark's error if the process ends at once, and :class:`PlatformError` for a Java that is too new.
    """
    line = SparkContext._gateway  # noqa: SLF001 - it is there after a session was stopped, too
    if line is None:
        conf = SparkConf(loadDefaults=False)
        for name, value in options.items():
            conf.set(name, value)
        with java_log.open() if is_logged else nullcontext(_STANDARD_ERROR) as stream, _use_unicode():
            line = launch_gateway(conf, {"stdout": stream, "stderr": stream})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=line)  # noqa: SLF001 - the builder of sessions takes no gateway
    read = getattr(line.jvm, "java.lang.System").getProperty
    version = str(read("java.specification.version"))
    if version.isdigit() and int(version) > JAVA_VERSIONS[-1]:  # Spark does not start in one that is too old
        raise _unfit(read("java.home"), version)


@contextmanager
def set_options(spark: SparkSession, options: Mapping[str, str | None]) -> Iterator[None]:
    """Set options of the session for the duration of the block; None unsets one."""
    before = {name: spark.conf.get(name, None) for name in options}
    try:
        _set(spark, options)
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, options: Mapping[str, str | None]) -> None:
    for name, value in options.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def redirect_console(spark: SparkSession) -> None:
    """Send output of Scala code in this thread, such as Delta's VACUUM, to standard error, away from results."""
    console = getattr(java_class(spark, "scala.Console$"), "MODULE$")
    console.setOutDirect(java_class(spark, "java.lang.System").err)


def java_class(spark: SparkSession, name: str) -> Any:
    """Return a class by its full name, such as ``org.apache.hadoop.fs.Path``; ``$`` precedes a nested class.

    For attributes (``jvm.org.apache``) Py4J would look in every jar for a class of each package's name.
    """
    return getattr(gateway(spark).jvm, name)


def java_array(spark: SparkSession, kind: Any, *items: Any) -> Any:
    """Return a Java array of the class ``kind``."""
    array = gateway(spark).new_array(kind, len(items))
    for index, item in enumerate(items):
        array[index] = item
    return array


def find_relation(frame: DataFrame, kind: str) -> Any:
    """Return Spark's object of the table that a frame reads whole, if it has the class ``kind``."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no way to ask
    while plan.nodeName() in ("SubqueryAlias", "Project"):  # the latter pads values of a column or a field CHAR(n)
        plan = plan.child()
    return plan if plan.getClass().getSimpleName() == kind else None


def find_file_relation(frame: DataFrame) -> Any:
    """Find Spark's own object of the table of files that a frame reads, as :func:`find_relation`, or None."""
    files = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
    relation = find_relation(frame, "LogicalRelation")
    is_files = relation is not None and is_instance_of(gateway(frame.sparkSession), relation.relation(), files)
    return relation.relation() if is_files else None


def list_items(sequence: Any) -> list[Any]:
    """Return a Scala sequence as a list."""
    return [sequence.apply(index) for index in range(sequence.size())]


def gateway(spark: SparkSession) -> Any:
    """Return the session's Py4J gateway."""
    line = spark.sparkContext._gateway  # noqa: SLF001 - the only way to Java
    assert line is not None
    return line
