"""Published tables as the package deltalake reads them: without Spark and Java, on disks and object stores.

deltalake opens stores and lists the files of a version. It shows neither the text of the statistics nor the schema as
it was written, so the log is read here too, and both have to find the same files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, PyFileSystem

from wordveil.errors import ReleaseError
from wordveil.input.locations import SCHEME
from wordveil.release.delta_log import (
    DELTA_LOG,
    DETAILS,
    DeltaLog,
    UnusualTableError,
    newest_version,
    read_file,
    read_log,
)
from wordveil.release.manifest import File, Snapshot
from wordveil.release.verify import lost_version, summarise

INSTALL = "pip install 'wordveil[verify]'"
# deltalake reads more. Of these it takes credentials from the variables that other tools read, too.
_SCHEMES = ("file", "s3", "s3a", "gs", "az", "abfs", "abfss")
_CHUNK = 16 * 2**20
_THREADS = 8
_SHOWN = 300


def is_installed() -> bool:
    """Whether there is a package deltalake."""
    return find_spec("deltalake") is not None


def find_obstacle(path: str) -> str:
    """Why a table at this path is not read here; empty where it is."""
    if (scheme := _find_scheme(path)) not in ("", *_SCHEMES):
        return f"deltalake does not read {scheme}: here."
    # It unescapes the path of a table twice.
    return "deltalake reads no path with a percent sign." if "%" in path else ""


def _find_scheme(path: str) -> str:
    match = SCHEME.match(path)
    return match[1] if match else ""


class LakeTable:
    """See :class:`wordveil.release.verify.PublishedTable`. Each method raises :class:`ReleaseError` where the store
    cannot be read, and :class:`UnusualTableError` for a table that is left to Spark.
    """

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/")

    def version(self) -> int:
        """The newest version; -1 where there is no table."""
        from deltalake.exceptions import TableNotFoundError

        with self._errors():
            try:
                return newest_version(self._store())
            except TableNotFoundError:
                return -1

    def read_log(self, version: int) -> Snapshot:
        """A version as its log has it. Spark takes schema and protocol from the log's own summary of a version: one
        that contradicts the log is refused.
        """
        with self._errors():
            log = self._replay(version)
            found = self._summarise(version, log.metadata, log.protocol, log)
            try:
                text = read_file(self._store(), f"{DELTA_LOG}/{version:020d}.crc")
            except FileNotFoundError:
                return found
        try:
            summary = json.loads(text)
            parts = (summary.get("metadata", log.metadata), summary.get("protocol", log.protocol))
            agrees = self._summarise(version, *parts, log) == found
        except (ValueError, KeyError, TypeError, AttributeError):
            agrees = False
        if not agrees:
            raise ReleaseError(
                f"table {self.path}: {DELTA_LOG}/{version:020d}.crc contradicts the log, so that two readers would see "
                "two tables. The table is not the one that was signed."
            )
        return found

    def _summarise(self, version: int, metadata: Any, protocol: Any, log: DeltaLog) -> Snapshot:
        return summarise(self.path, version, metadata, protocol, log.added.values())

    def describe(self, version: int) -> Snapshot:
        """What readers of a version see."""
        from deltalake import DeltaTable

        log = self.read_log(version)
        with self._errors():
            store = self._store()
            opened = DeltaTable(_make_uri(self.path), version=version)
            # It gives paths as the log has them.
            seen = sorted(map(unquote, opened.get_add_actions()["path"].to_pylist()))
            with ThreadPoolExecutor(_THREADS) as pool:
                found = list(pool.map(lambda file: _read_file(store, file), log.files))
        files = tuple(file for file, _ in found)
        # What the log says about rows is not asked.
        records = sum(rows for _, rows in found) if all(file.sha256 for file in files) else log.records
        if seen != [file.path for file in files]:
            raise ReleaseError(
                f"table {self.path}: readers find other files in version {version} than its log names. The table is "
                "not the one that was signed."
            )
        return replace(log, files=files, records=records)

    def read_text(self, path: str) -> str | None:
        """The text of a file, of the table or another; None where there is none."""
        from deltalake.exceptions import TableNotFoundError

        directory, _, name = path.rpartition("/")
        with self._errors():
            try:
                return read_file(_open_store(directory), name).decode("utf-8", errors="replace")
            except (FileNotFoundError, TableNotFoundError):
                return None

    def _store(self) -> FileSystem:
        return _open_store(self.path)

    def _replay(self, version: int) -> DeltaLog:
        """The log at a version. Raises :class:`ReleaseError` where it is damaged."""
        try:
            return read_log(self._store(), version, columns=DETAILS)
        except UnusualTableError:
            raise
        except (ValueError, KeyError, TypeError, pa.ArrowException):
            raise lost_version(f"table {self.path}", version) from None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of stores and of deltalake into those of this class."""
        from deltalake.exceptions import DeltaError, DeltaProtocolError

        try:
            yield
        except DeltaProtocolError as error:
            raise UnusualTableError(_describe(error)) from None
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise ReleaseError(f"table {self.path}: cannot be read: {_describe(error)}.") from None


def _read_file(store: FileSystem, file: File) -> tuple[File, int]:
    """The file with the size and digest of its content, if it exists, and how many rows it has; -1 for another file
    than of Parquet.
    """
    digest, size, rows = hashlib.sha256(), 0, -1
    try:
        with store.open_input_stream(file.path) as stream:
            # Of an object store each piece is a request.
            while piece := stream.read(_CHUNK):
                digest.update(piece)
                size += len(piece)
        with suppress(pa.ArrowInvalid), store.open_input_file(file.path) as content:
            rows = pq.ParquetFile(content).metadata.num_rows
    except FileNotFoundError:
        return file, rows
    return file._replace(bytes=size, sha256=digest.hexdigest()), rows


def _open_store(directory: str) -> FileSystem:
    """The directory as a file system of its own, which opens nothing outside it."""
    from deltalake.fs import DeltaStorageHandler

    return PyFileSystem(DeltaStorageHandler(_make_uri(directory)))


def _make_uri(path: str) -> str:
    """A path as a URI: deltalake takes percent signs of others for escapes."""
    if _find_scheme(path) in ("", "file"):
        return Path("/" + path.removeprefix("file:").lstrip("/")).as_uri()
    return path


def _describe(error: Exception) -> str:
    """Its message in one line, without the colours of deltalake's."""
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m|\u21b3", "", str(error)).split())
    return (text[:_SHOWN] or type(error).__name__).rstrip(".")
