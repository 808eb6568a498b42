"""File system under a path, through Hadoop, and where on it no table may be created."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from wordveil.assembly import local_paths
from wordveil.config.schema import LedgerSection, OutputSection
from wordveil.errors import PlatformError, usage_error
from wordveil.spark.platform.jvm import java_array, java_class, set_options

LOCALE = (
    "Java cannot name this file, since it was started in the locale C, which has ASCII alone. Start Spark with "
    "LC_ALL=C.UTF-8 in its environment; executors take it from spark.executorEnv.LC_ALL."
)
_HADOOP = "org.apache.hadoop.fs"


def quote_glob(path: str) -> str:
    """Quote a path as a glob of Hadoop's that matches it alone."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", path)


def has_glob(path: str) -> bool:
    """Return whether Hadoop reads a path as a glob."""
    return quote_glob(path) != path


def load_path(spark: SparkSession, reader: DataFrameReader, path: str | list[str]) -> DataFrame:
    """Read ``path``, or several, each as it is written and never as a glob.

    Partition columns for which the reader has no type are strings, as in the names of the directories. Spark would
    guess types from all values: 007 would become 7, and 1d a number.
    """
    with set_options(spark, {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}):
        return reader.option("__globPaths__", "false").load(path)


class Files:
    """File system under one path, through Hadoop: local, HDFS and whatever else the session is configured for."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._conf = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        self._path = java_class(spark, f"{_HADOOP}.Path")
        given = self._path(path)
        self._system: Any = given.getFileSystem(self._conf)
        self.path: Any = self._system.makeQualified(given)
        if not path.isascii() and self.is_local:
            encoding = java_class(spark, "java.lang.System").getProperty("sun.jnu.encoding")
            if not str(encoding).upper().startswith("UTF"):
                raise PlatformError(f"{path}: {LOCALE}")

    @property
    def is_local(self) -> bool:
        """True if this machine has mounted the path's file system."""
        return bool(self.path.toUri().getScheme() == "file")

    def sibling(self, name: str) -> Any:
        """Return the path of ``name`` beside this one."""
        return self._path(self.path.getParent(), name)

    def below(self, name: str) -> Any:
        """Return the path of ``name`` inside this one."""
        return self._path(self.path, name)

    def exists(self, path: Any | None = None) -> bool:
        """Return whether there is anything at the path."""
        return bool(self._system.exists(path or self.path))

    def is_file(self, path: Any) -> bool:
        """Return whether the path is a file, not a directory."""
        return bool(self._system.getFileStatus(path).isFile())

    def move(self, source: Any, target: Any, *, over: bool = False) -> None:
        """Rename. With ``over`` it replaces ``target``; otherwise an existing one is an error, and not moved into."""
        rename = java_class(self._spark, f"{_HADOOP}.Options$Rename")
        options = java_array(self._spark, rename, *([rename.OVERWRITE] if over else []))
        self._context().rename(source, target, options)

    def _context(self) -> Any:
        return java_class(self._spark, f"{_HADOOP}.FileContext").getFileContext(self.path.toUri(), self._conf)

    def try_directory(self, path: Any) -> None:
        """Create a directory and remove it: a job of hours must not fail at its end because it cannot write."""
        try:
            self._context().mkdir(path, None, True)
        except BaseException:
            with suppress(Exception):  # a signal can arrive while the directory is created
                self.delete(path)
            raise
        self.delete(path)

    def delete(self, path: Any) -> None:
        """Delete whatever is there."""
        self._system.delete(path, True)

    def list_beside(self, prefix: str) -> list[Any]:
        """List the paths in this one's directory whose names begin with ``prefix``."""
        parent = self.path.getParent()
        found = self._system.listStatus(parent) if self._system.exists(parent) else ()
        return [path for path in (status.getPath() for status in found) if path.getName().startswith(prefix)]

    def list_matching(self, name: str) -> list[Any]:
        """List the paths in this one's directory whose name matches a glob, in order."""
        pattern = self._path(f"{quote_glob(str(self.path.getParent()))}/{name}")
        return [status.getPath() for status in self._system.globStatus(pattern) or ()]

    def verify_checksums(self, *, on: bool) -> None:
        """Set whether reading a local file compares it with the checksum that Hadoop keeps beside it."""
        self._system.setVerifyChecksum(on)

    def delete_checksums(self, directory: Any) -> None:
        """Delete the hidden files ``.NAME.crc`` that Hadoop writes beside each file of a directory on a local disk.

        Readers that take every file of a directory fail on them. Pages of Parquet files have checksums of their own.
        """
        if self.is_local:
            for file in Path(str(directory.toUri().getPath())).rglob(".*.crc"):
                file.unlink()

    def list_files(self, directory: Any | None = None) -> dict[str, int]:
        """Return the sizes in bytes of all files below this path, or ``directory``, by their relative paths."""
        top = directory or self.path
        if not self._system.exists(top):
            return {}
        root = str(top.toUri().getPath()).rstrip("/") + "/"
        if self.is_local:  # Java is asked six times for each file
            files = (file for file in Path(root).rglob("*") if not fnmatch(file.name, ".*.crc"))
            return {file.relative_to(root).as_posix(): file.stat().st_size for file in files if file.is_file()}
        sizes, listed = dict[str, int](), self._system.listFiles(top, True)
        while listed.hasNext():
            status = listed.next()
            sizes[str(status.getPath().toUri().getPath()).removeprefix(root)] = int(status.getLen())
        return sizes

    def make_parent(self) -> None:
        """Create the directory that this path is in."""
        self._system.mkdirs(self.path.getParent())

    def read(self, path: Any | None = None) -> str:
        """Return the text of a small file: this one, or the one at ``path``."""
        return self.read_bytes(path or self.path).decode("utf-8", errors="replace")

    def read_bytes(self, path: Any) -> bytes:
        """Return the content of the small file at ``path``."""
        stream = self._system.open(path)
        try:
            return bytes(java_class(self._spark, "org.apache.commons.io.IOUtils").toByteArray(stream))
        finally:
            stream.close()

    def open_text(self, encoding: str) -> Any:
        """Open a text file as a Java reader, which the caller closes. Its suffix determines the compression."""
        factory = java_class(self._spark, "org.apache.hadoop.io.compress.CompressionCodecFactory")(self._conf)
        stream = self._system.open(self.path)
        if (codec := factory.getCodec(self.path)) is not None:
            stream = codec.createInputStream(stream)
        return java_class(self._spark, "java.io.InputStreamReader")(stream, encoding)

    def write(self, text: str) -> None:
        """Write a small file, and replace one that exists."""
        self._fill(self._system.create(self.path, True), text)

    def replace(self, text: str) -> None:
        """Write a small file beside its path and rename it in one step; it replaces one that exists."""
        draft = self.sibling(f".{self.path.getName()}.wordveil-{secrets.token_hex(4)}")
        self._fill(self._system.create(draft, True), text)
        self.move(draft, self.path, over=True)

    def write_new(self, text: str, path: Any | None = None) -> None:
        """Write a new small file, this one or the one at ``path``; fails if it exists, by S3's own refusal there."""
        builder = self._system.createFile(path or self.path).recursive().overwrite(False)
        self._fill(builder.opt("fs.option.create.conditional.overwrite", True).build(), text)

    @staticmethod
    def _fill(stream: Any, text: str) -> None:
        try:
            stream.write(text.encode("utf-8"))
        finally:
            stream.close()


def replace_file(path: str, text: str) -> None:
    """Write the small file ``path`` through the running session; raise :class:`ConfigError` if that fails."""
    session = SparkSession.getActiveSession()
    if session is None:
        problem = "was not written: the command ended before Spark started, and only Spark reaches that file system."
        raise usage_error("--report", path, problem)
    try:
        Files(session, path).replace(text)
    except Py4JError as error:
        name = re.search(r"[A-Za-z]+(?:Exception|Error)\b", str(getattr(error, "java_exception", "")))
        kind = name[0] if name else type(error).__name__
        problem = f"cannot be written ({kind}). Name a file that the session may write."
        raise usage_error("--report", path, problem) from None


def require_free_paths(spark: SparkSession | None, output: OutputSection, ledger: LedgerSection | None) -> None:
    """Check as :func:`wordveil.assembly.local_paths.require_free_paths`; without a session only local paths."""
    if spark is None:
        local_paths.require_free_paths(output, ledger)
    else:
        local_paths.require_free_paths(output, ledger, partial(_exists, spark), partial(_list_ancestors, spark))


def _list_ancestors(spark: SparkSession, path: str) -> Iterator[str]:
    with suppress(Py4JError):  # a file system that cannot be reached; opening the table says how
        directory: Any = Files(spark, path).path
        while directory is not None:
            yield str(directory).rstrip("/")
            directory = directory.getParent()


def _exists(spark: SparkSession, path: str) -> bool:
    """Return whether the path exists; False if this cannot be determined."""
    try:
        return Files(spark, path).exists()
    except Py4JError:
        return False
