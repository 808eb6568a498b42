"""Reader of Delta tables' logs without Java, which refuses tables that Delta may read differently.

Java and Spark take much longer to start than a log takes to read. Tables with another kind of checkpoint, with features
that change names or rows, or with deletion vectors are left to Delta. The log's format and meaning are those of Delta's
protocol (PROTOCOL.md in its repository).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem

DELTA_LOG = "_delta_log"
"""The directory inside a Delta table that has its log."""
PATHS = ("path", "deletionVector.storageType")
"""What an action ``add`` says about a file: where it is, and whether some of its rows are deleted."""
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
# Checkpoints in several files or with other names, and logs that Delta has compacted.
_UNREAD = re.compile(r"\d{20}\.(?!json$|crc$|checkpoint\.parquet$)")
# Features of a Delta table that change how rows are read, but neither names nor types.
_READER_FEATURES = {"deletionVectors", "vacuumProtocolCheck"}


class UnusualTableError(ValueError):
    """A table that Delta may read differently from this module."""


@dataclass(frozen=True)
class DeltaLog:
    """One version of a Delta table.

    ``metadata``: the action ``metaData`` with ``id``, ``schemaString``, ``partitionColumns`` and ``configuration``.
    ``protocol``: the features that a reader must support. ``added``: the actions ``add`` of its data files by path;
    empty if only the metadata was read.
    """

    version: int
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    added: Mapping[str, Mapping[str, Any]]

    def list_files(self) -> list[str]:
        """List the data files relative to the table, sorted. Raises :class:`UnusualTableError` if files hold deleted
        rows or are elsewhere.
        """
        for path, action in self.added.items():
            if action.get("deletionVector"):
                raise UnusualTableError("deletion vectors")
            if path.startswith("/") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
                raise UnusualTableError("files elsewhere")
        return sorted(map(unquote, self.added))

    def require_plain(self) -> None:
        """Raise :class:`UnusualTableError` for features that are left to Delta."""
        features = set(self.protocol.get("readerFeatures") or ())
        if self.protocol["minReaderVersion"] not in (1, 3) or not features <= _READER_FEATURES:
            raise UnusualTableError("features")


def read_log(store: FileSystem, version: int | None = None, *, columns: Sequence[str] = PATHS) -> DeltaLog:
    """Read the log of the Delta table at the root of ``store``, at ``version`` or the newest one.

    ``columns``: the fields of ``add`` to read from a checkpoint; none for the metadata alone. Raises
    :class:`UnusualTableError` for a log of another kind. Raises :class:`OSError`, :class:`ValueError`,
    :class:`KeyError`, :class:`TypeError` or ``pyarrow.ArrowException`` if there is no table or its log is damaged;
    Delta's own error then has the details.
    """
    names = [info.base_name for info in store.get_file_info(FileSelector(DELTA_LOG))]
    if unread := [name for name in names if _UNREAD.match(name)]:
        raise UnusualTableError(f"{DELTA_LOG}/{min(unread)}")
    commits, checkpoints = (
        {int(match[1]) for name in names if (match := kind.fullmatch(name))} for kind in (_COMMIT, _CHECKPOINT)
    )
    last = max(commits | checkpoints) if version is None else version
    first = max((number for number in checkpoints if number <= last), default=-1)
    if missing := {last, *range(first + 1, last)} - commits:
        raise KeyError(min(missing))
    state: dict[str, Any] = {}
    added: dict[str, Mapping[str, Any]] = {}
    if first >= 0:
        state, added = _read_checkpoint(store, first, columns)
    for number in range(first + 1, last + 1):
        actions = [json.loads(line) for line in read_file(store, f"{DELTA_LOG}/{number:020d}.json").splitlines()]
        state |= {name: value for action in actions for name, value in action.items()}
        # A file whose rows change in place is removed and added by one commit, in any order.
        for action in actions:
            if "remove" in action:
                added.pop(action["remove"]["path"], None)
        added |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    return DeltaLog(last, state["metaData"], state["protocol"], added if columns else {})


def read_file(store: FileSystem, path: str) -> bytes:
    """Read a small file whole. Raises :class:`OSError`."""
    with store.open_input_stream(path) as stream:
        content: bytes = stream.read()
    return content


def _read_checkpoint(
    store: FileSystem, version: int, columns: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """Read the table's metadata and protocol, each in one row of a checkpoint, and its files."""
    # Statistics of the files make up most of a checkpoint and are read only if asked for. Absent columns are left out.
    with store.open_input_file(f"{DELTA_LOG}/{version:020d}.checkpoint.parquet") as file:
        table = pq.ParquetFile(file).read(columns=["metaData", "protocol", *(f"add.{name}" for name in columns)])
    state = {name: table[name].drop_null()[0].as_py() for name in ("metaData", "protocol")}
    # Arrow returns maps as pairs.
    state["metaData"]["configuration"] = dict(state["metaData"].get("configuration") or ())
    adds = [action for action in table["add"].to_pylist() if action and action["path"] is not None] if columns else []
    for action in adds:
        action["partitionValues"] = dict(action.get("partitionValues") or ())
        if (action.get("deletionVector") or {}).get("storageType") is None:
            action["deletionVector"] = None
    return state, {action["path"]: action for action in adds}
