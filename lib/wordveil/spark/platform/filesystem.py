"""The file system under a path, through Hadoop, and outputs written atomically."""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from wordveil.errors import ConfigError, Fault, OutputExistsError, usage_error
from wordveil.spark.platform.jvm import java_array, java_class

_DRAFT = ".wordveil-"
_HADOOP = "org.apache.hadoop.fs"


def quote_glob(path: str) -> str:
    """A path as a glob of Hadoop's that matches it alone."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", path)


class Files:
    """The file system under one path, through Hadoop: local, HDFS and whatever else the session is configured for."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._conf = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        self._path = java_class(spark, f"{_HADOOP}.Path")
        given = self._path(path)
        self._system: Any = given.getFileSystem(self._conf)
        self.path: Any = self._system.makeQualified(given)

    @property
    def is_local(self) -> bool:
        """Whether the path is on a file system that this machine has mounted."""
        return bool(self.path.toUri().getScheme() == "file")

    def sibling(self, name: str) -> Any:
        """The path of ``name`` beside this one."""
        return self._path(self.path.getParent(), name)

    def below(self, name: str) -> Any:
        """The path of ``name`` inside this one."""
        return self._path(self.path, name)

    def exists(self, path: Any | None = None) -> bool:
        """Whether there is anything at the path."""
        return bool(self._system.exists(path or self.path))

    def is_file(self, path: Any) -> bool:
        """Whether there is a file at the path, and no directory."""
        return bool(self._system.getFileStatus(path).isFile())

    def move(self, source: Any, target: Any, *, over: bool = False) -> None:
        """Rename. If ``target`` exists this fails (a plain rename would move the source into it); with ``over`` it
        replaces the target.
        """
        rename = java_class(self._spark, f"{_HADOOP}.Options$Rename")
        options = java_array(self._spark, rename, *([rename.OVERWRITE] if over else []))
        self._context().rename(source, target, options)

    def _context(self) -> Any:
        return java_class(self._spark, f"{_HADOOP}.FileContext").getFileContext(self.path.toUri(), self._conf)

    def try_directory(self, path: Any) -> None:
        """Create a directory and remove it, so that a job of hours does not fail at its end because it cannot write."""
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

    def list_files(self) -> dict[str, int]:
        """Return all files below this directory by their paths relative to it, with their sizes in bytes."""
        sizes: dict[str, int] = {}
        if not self._system.exists(self.path):
            return sizes
        root = str(self.path.toUri().getPath()).rstrip("/") + "/"
        files = self._system.listFiles(self.path, True)
        while files.hasNext():
            status = files.next()
            sizes[str(status.getPath().toUri().getPath()).removeprefix(root)] = int(status.getLen())
        return sizes

    def make_parent(self) -> None:
        """Create the directory that this path is in."""
        self._system.mkdirs(self.path.getParent())

    def read(self, path: Any | None = None) -> str:
        """Return the text of a small file: this one, or the one at ``path``."""
        stream = self._system.open(path or self.path)
        try:
            return str(java_class(self._spark, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()

    def open_text(self, encoding: str) -> Any:
        """Open a text file as a Java reader, which the caller closes. Its suffix says how it is compressed."""
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
        draft = self.sibling(f".{self.path.getName()}{_DRAFT}{secrets.token_hex(4)}")
        self._fill(self._system.create(draft, True), text)
        self.move(draft, self.path, over=True)

    def write_new(self, text: str) -> None:
        """Write a small file; fails if it exists."""
        self._fill(self._system.create(self.path, False), text)

    @staticmethod
    def _fill(stream: Any, text: str) -> None:
        try:
            stream.write(text.encode("utf-8"))
        finally:
            stream.close()

    def list_drafts(self) -> list[str]:
        """List the drafts of this path beside it: other runs are writing them, or interrupted runs left them."""
        parent = self.path.getParent()
        if not self._system.exists(parent):
            return []
        prefix = f".{self.path.getName()}{_DRAFT}"
        paths = [status.getPath() for status in self._system.listStatus(parent)]
        return [str(path) for path in paths if path.getName().startswith(prefix)]


@dataclass(frozen=True)
class Draft:
    """An output that is being written: beside its final path, and moved there in one step."""

    files: Files
    directory: Any
    run_id: str

    @property
    def path(self) -> str:
        """Where to write."""
        return str(self.directory)

    def publish(self, *, overwrite: bool) -> None:
        """Move the table to its final path, without checksum files. With ``overwrite``, an existing table is moved
        aside first and deleted last.
        """
        self.files.delete_checksums(self.directory)
        aside = None
        if overwrite and self.files.exists():
            aside = self.files.sibling(f".{self.files.path.getName()}{_DRAFT}{self.run_id}.replaced")
            self.files.move(self.files.path, aside)
        try:
            self.files.move(self.directory, self.files.path)
        except Exception:
            if aside is not None:
                self.files.move(aside, self.files.path)
                raise
            if self.files.exists():
                raise OutputExistsError(
                    f"output.path = {self.files.path}: another process created it while the job ran. The job changed "
                    "nothing there. Choose another path."
                ) from None
            raise
        if aside is not None:
            self.files.delete(aside)

    def discard(self) -> None:
        """Delete what was written, if anything."""
        with suppress(Exception):
            self.files.delete(self.directory)


def draft_output(spark: SparkSession, path: str, run_id: str, *, overwrite: bool) -> Draft:
    """Return the draft of an output, at a path that no other attempt uses.

    Raises :class:`OutputExistsError` if the output exists and ``overwrite`` is not set, and :class:`ConfigError` if
    nothing can be written.
    """
    files = Files(spark, path)
    if files.exists() and not overwrite:
        raise OutputExistsError(
            f"output.path = {path}: already exists. Choose another path, or pass --overwrite to replace it."
        )
    directory = files.sibling(f".{files.path.getName()}{_DRAFT}{run_id}-{secrets.token_hex(4)}")
    try:
        files.try_directory(directory)
    except Py4JError:
        problem = (
            "no directory can be created beside it: a file is in the way, or the parent directory is read-only or "
            "belongs to another user. Choose a path that you may write to."
        )
        raise ConfigError("configuration", [Fault("output.path", path, problem)]) from None
    return Draft(files, directory, run_id)


def replace_file(path: str, text: str) -> None:
    """Write the small file ``path`` through the running session.

    Raises :class:`ConfigError` if there is no session, because the command ended before it started one, or if the file
    cannot be written.
    """
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
