"""Published tables as the package deltalake reads them: without Spark and Java, on disks and object stores.

deltalake opens stores and lists the files of a version, which must match the log.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType, PyFileSystem

from wordveil.errors import ReleaseError
from wordveil.input.locations import SCHEME
from wordveil.release.published_log import State
from wordveil.release.verify import PublishedTable

if TYPE_CHECKING:
    from deltalake import DeltaTable

Answer = TypeVar("Answer")
INSTALL = "pip install 'wordveil[verify]'"
# deltalake reads more. For these it takes credentials from the variables that other tools read, too.
_SCHEMES = ("file", "s3", "s3a", "gs", "az", "abfs", "abfss")
# Empty objects by which Hadoop remembers directories.
_MARKER = re.compile(r"(.*/)?([^/]*=[^/]*|_delta_log|_staged_commits)?")
_UNREAD = {"%": "percent sign", "\\": "backslash", "\n": "line feed"}
# Features under which the files of a table have its rows under their own names, or fewer rows.
_READER_VERSIONS, _DELETED_ROWS = (1, 3), "deletionVectors"
_CHUNK = 16 * 2**20
_THREADS = 8
_SHOWN = 300


class UnusualTableError(ValueError):
    """Error of a table that is left to Spark, which may read it differently from deltalake."""


def is_installed() -> bool:
    """Return whether the package deltalake is installed."""
    return find_spec("deltalake") is not None


def open_plain(root: Path, version: int | None = None) -> DeltaTable:
    """Open the Delta table in a directory of this machine's disk, at ``version`` or the newest one.

    Raises :class:`UnusualTableError` without deltalake, and for tables that it may read differently.
    """
    if not is_installed():
        raise UnusualTableError("deltalake is not installed")
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(root.absolute().as_uri(), version=version)
    except DeltaError as error:
        raise UnusualTableError(_describe(error)) from None
    protocol = table.protocol()
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version not in _READER_VERSIONS or not features <= {_DELETED_ROWS, "vacuumProtocolCheck"}:
        raise UnusualTableError("features")
    return table


def list_plain_files(table: DeltaTable) -> list[str]:
    """List the data files of a table of :func:`open_plain`, relative to it, sorted.

    Raises :class:`UnusualTableError` for files elsewhere, and for files that may hold deleted rows.
    """
    if _DELETED_ROWS in (table.protocol().reader_features or ()):
        raise UnusualTableError("deletion vectors")
    paths = table.get_add_actions()["path"].to_pylist()
    if any(path.startswith("/") or SCHEME.match(path) for path in paths):
        raise UnusualTableError("files elsewhere")
    return sorted(map(unquote, paths))


def find_obstacle(path: str) -> str:
    """Describe why deltalake cannot read a table at this path; empty if it can."""
    if (scheme := _find_scheme(path)) not in ("", *_SCHEMES):
        return f"deltalake does not read {scheme}: here."
    # deltalake unescapes a table's path twice, and takes a backslash for a slash: it would read another table.
    return next((f"deltalake reads no path with a {what}." for sign, what in _UNREAD.items() if sign in path), "")


def _find_scheme(path: str) -> str:
    match = SCHEME.match(path)
    return match[1] if match else ""


class LakeTable(PublishedTable):
    """Table as deltalake reads it.

    Methods raise :class:`ReleaseError` for unreadable stores, :class:`UnusualTableError` for tables left to Spark.
    """

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/")

    def list_store(self) -> Mapping[str, int]:
        from deltalake.exceptions import TableNotFoundError

        with self._errors():
            try:
                found = self._store().get_file_info(FileSelector("", recursive=True))
            except (FileNotFoundError, TableNotFoundError):
                return {}
        files = {info.path: info.size for info in found if info.type == FileType.File}
        return {path: size for path, size in files.items() if size or not _MARKER.fullmatch(path)}

    def read_file(self, path: str) -> bytes:
        with self._errors():
            return _read_file(self._store(), path)

    def read_text(self, path: str) -> str | None:
        from deltalake.exceptions import TableNotFoundError

        directory, _, name = path.rpartition("/")
        with self._errors():
            try:
                return _read_file(_open_store(directory), name).decode("utf-8", errors="replace")
            except (FileNotFoundError, TableNotFoundError):
                return None

    def find_directory(self) -> Path | None:
        return _find_directory(self.path) if _find_scheme(self.path) in ("", "file") else None

    def newest_version(self) -> int:
        return int(self._open(None).version())

    def is_read_as(self, version: int, state: State) -> bool:
        """Return whether deltalake finds the files, properties and features of the log."""
        opened = self._open(version)
        with self._errors():
            adds = opened.get_add_actions()
            # These paths are escaped, as in the log.
            seen = dict(zip(map(unquote, adds["path"].to_pylist()), adds["size_bytes"].to_pylist(), strict=True))
            about, asked = opened.metadata(), opened.protocol()
        told = {
            "minReaderVersion": asked.min_reader_version,
            "minWriterVersion": asked.min_writer_version,
            "readerFeatures": sorted(asked.reader_features or ()),
            "writerFeatures": sorted(asked.writer_features or ()),
        }
        features = {name: sorted(state.protocol.get(name, ())) for name in ("readerFeatures", "writerFeatures")}
        return (
            (len(adds["path"]), seen) == (len(seen), {path: add["size"] for path, add in state.added.items()})
            and (str(about.id), about.configuration) == (state.metadata["id"], state.metadata["configuration"])
            and list(about.partition_columns) == state.metadata["partitionColumns"]
            and told == {**state.protocol, **features}
        )

    def hash_files(self, paths: Collection[str]) -> Mapping[str, tuple[int, str]]:
        return self._map(_hash_file, paths)

    def count_rows(self, version: int, paths: Collection[str]) -> int:  # noqa: ARG002 - the log is not asked
        """Count the rows of the files; -1 if one is not a Parquet file."""
        counts = self._map(_count_rows, paths).values()
        return sum(counts) if all(count >= 0 for count in counts) else -1

    def _map(self, ask: Callable[[FileSystem, str], Answer], paths: Collection[str]) -> dict[str, Answer]:
        with self._errors(), ThreadPoolExecutor(_THREADS) as pool:
            store = self._store()
            return dict(zip(paths, pool.map(lambda path: ask(store, path), paths), strict=True))

    def _open(self, version: int | None) -> DeltaTable:
        from deltalake import DeltaTable

        with self._errors():
            return DeltaTable(_make_uri(self.path), version=version)

    def _store(self) -> FileSystem:
        return _open_store(self.path)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError, DeltaProtocolError

        try:
            yield
        except DeltaProtocolError as error:
            raise UnusualTableError(_describe(error)) from None
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise ReleaseError(f"table {self.path}: cannot be read: {_describe(error)}.") from None


def _read_file(store: FileSystem, path: str) -> bytes:
    with store.open_input_stream(path) as stream:
        content: bytes = stream.read()
    return content


def _hash_file(store: FileSystem, path: str) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with store.open_input_stream(path) as stream:
        # Each chunk is one request to an object store.
        while piece := stream.read(_CHUNK):
            digest.update(piece)
            size += len(piece)
    return size, digest.hexdigest()


def _count_rows(store: FileSystem, path: str) -> int:
    """Count the rows of a file; -1 if it is not a Parquet file."""
    with suppress(pa.ArrowInvalid), store.open_input_file(path) as content:
        return int(pq.ParquetFile(content).metadata.num_rows)
    return -1


def _open_store(directory: str) -> FileSystem:
    """Open the directory as a separate file system, which opens nothing outside it."""
    from deltalake.fs import DeltaStorageHandler

    return PyFileSystem(DeltaStorageHandler(_make_uri(directory)))


def _make_uri(path: str) -> str:
    """Turn a path into a URI: deltalake takes percent signs of other paths for escapes."""
    if _find_scheme(path) in ("", "file"):
        return _find_directory(path).as_uri()
    return path


def _find_directory(path: str) -> Path:
    return Path("/" + path.removeprefix("file:").lstrip("/"))


def _describe(error: Exception) -> str:
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m|\u21b3", "", str(error)).split())
    return (text[:_SHOWN] or type(error).__name__).rstrip(".")
