"""Strict reader of the logs of published tables: it accepts only what wordveil and Delta write.

Readers of Delta choose among the files of a log: one begins at the first commit, another at a checkpoint, a third takes
the schema from a summary. So all files of a log are read, and all must describe the same table. Other files, actions,
properties and features, which no manifest covers, are refused by name.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from wordveil.release.checkpoints import LogError, read_checkpoint
from wordveil.release.layout import DELTA_LOG, VERSION_PROPERTY
from wordveil.release.manifest import is_inside

Actions = Sequence[tuple[str, Mapping[str, Any]]]

_VERSION = re.compile(r"(\d{20})\.(json|crc|checkpoint\.parquet)", re.ASCII)
_POINTER = "_last_checkpoint"
# Hadoop's checksums, drafts of a commit that was killed, and notes of VACUUM: Delta's readers ignore them.
_HIDDEN = re.compile(r"_last_vacuum_info|\.[._]?[\w.-]+\.(crc|tmp)", re.ASCII)
# Required and optional fields of each action, with their types. All others are null or empty.
_ACTIONS: dict[str, tuple[dict[str, type], dict[str, type]]] = {
    "add": (
        {"path": str, "partitionValues": dict, "size": int, "modificationTime": int, "dataChange": bool},
        {"stats": str},
    ),
    "remove": (
        {"path": str, "dataChange": bool},
        {"deletionTimestamp": int, "extendedFileMetadata": bool, "partitionValues": dict, "size": int, "stats": str},
    ),
    "metaData": (
        {"id": str, "format": dict, "schemaString": str, "partitionColumns": list, "configuration": dict},
        {"createdTime": int},
    ),
    "protocol": ({"minReaderVersion": int, "minWriterVersion": int}, {"readerFeatures": list, "writerFeatures": list}),
}
# A commit's remarks on itself, beside its actions. No reader uses them.
_REMARKS = "commitInfo"
_FORMAT = {"provider": "parquet", "options": {}}
# Features that some types of columns need, and those that only bind writers: none changes which rows a reader finds.
_FEATURES = {"appendOnly", "invariants", "timestampNtz", "variantType", "variantType-preview"}
_READER_VERSIONS = (1, 3)
PROPERTIES = {
    VERSION_PROPERTY,
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.checkpointInterval",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.enableExpiredLogCleanup",
    "delta.logRetentionDuration",
    "delta.targetFileSize",
}
"""Properties that wordveil sets, and those that only decide when files are merged, summed up or deleted."""
_VALUES = {"delta.enableDeletionVectors": "false"}
# Properties of a column by which Spark computes its values, or finds it under another name.
_COLUMN_PROPERTY = re.compile(r"delta\..*|(current|exists)_default", re.IGNORECASE)
# Fields of a version's summary: ignored figures, facts of the log (absent is not the same as empty), fields that must
# be empty, and figures that must have these values.
_UNREAD = {"txnId", "histogramOpt", "fileSizeHistogram", "deletedRecordCountsHistogramOpt"}
_TOLD, _UNTOLD = ("metadata", "protocol", "allFiles"), ("setTransactions", "domainMetadata", "inCommitTimestampOpt")
_EXPECTED = {"numMetadata": 1, "numProtocol": 1, "numDeletedRecordsOpt": 0, "numDeletionVectorsOpt": 0}
# Characters that a URI must escape: readers interpret them differently.
_UNESCAPED = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}?#:]|%2[Ff]|%(?![0-9A-Fa-f]{2})")
_SHOWN = 200


class LostVersionError(ValueError):
    """Error of a log that lacks what a version needs."""


@dataclass(frozen=True)
class State:
    """Version of a table: ``metaData``, ``protocol``, and ``add`` of each file by unescaped path, all without nulls."""

    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    added: Mapping[str, Mapping[str, Any]]

    def __str__(self) -> str:
        """Serialise to JSON, in which equal tables have equal texts; in Python, True equals 1."""
        # dataChange does not affect the table's content.
        added = {path: {**add, "dataChange": True} for path, add in self.added.items()}
        return json.dumps([self.metadata, self.protocol, added], sort_keys=True)


@dataclass(frozen=True)
class PublishedLog:
    """Content of a log: ``states`` at the newest and the requested versions, and ``named``: the paths of all files."""

    newest: int
    states: Mapping[int, State]
    named: frozenset[str]


def find_newest(names: Iterable[str]) -> int:
    """Return the greatest version of a log's files, given their names, or -1."""
    return max((int(match[1]) for match in map(_VERSION.fullmatch, names) if match), default=-1)


def read_published_log(names: Iterable[str], read: Callable[[str], bytes], versions: Iterable[int]) -> PublishedLog:
    """Read a whole log, given the ``names`` of its files; ``read`` returns the content of one.

    Raises :class:`LogError`, and :class:`LostVersionError` if a commit is missing.
    """
    files = _Files(names, read)
    replay, states = _Replay(), {}
    for version in sorted(files.commits):
        name = f"{version:020d}"
        with files.opened(f"{name}.json") as content:
            replay.commit(parse_commit(content), counts=version > files.begin or version == 0)
        if version in files.checkpoints:
            with files.opened(f"{name}.checkpoint.parquet") as content:
                summed = _read_checkpoint(content, files.pointer if files.pointer.get("version") == version else {})
                replay.resume(summed, is_first=version == files.begin > 0)
        if version < files.begin:
            continue
        with files.opened(f"{name}.json"):
            state = replay.state()
        if version in files.summaries:
            with files.opened(f"{name}.crc") as content:
                _check_summary(load_strictly(content.decode("utf-8")), state)
        if version in versions or version == files.newest:
            states[version] = state
    return PublishedLog(files.newest, states, frozenset(replay.spelled))


def load_strictly(text: str) -> Any:
    """Parse JSON that all readers read alike: without duplicate names, NaN or lone surrogates."""
    value = json.loads(text, object_pairs_hook=_require_unique, parse_constant=_refuse_constant)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def make_state(actions: Actions) -> State:
    """Return the table that actions from another source add up to. Raises :class:`LogError`."""
    replay = _Replay()
    replay.commit(actions, counts=True)
    return replay.state()


class _Files:
    """Files of a log by their kinds; ``begin`` is the first readable version."""

    def __init__(self, names: Iterable[str], read: Callable[[str], bytes]) -> None:
        self._read = read
        rest, found = set[str](), {kind: set[int]() for kind in ("json", "crc", "checkpoint.parquet")}
        for name in names:
            if match := _VERSION.fullmatch(name):
                found[match[2]].add(int(match[1]))
            elif not _HIDDEN.fullmatch(name):
                rest.add(name)
        if unknown := sorted(rest - {_POINTER}):
            raise LogError(f"{DELTA_LOG}/{show_name(unknown[0])}: is no file that wordveil leaves in a log.")
        self.commits, self.summaries, self.checkpoints = found.values()
        first, self.newest = min(self.commits, default=0), max(self.commits, default=-1)
        # Delta deletes the commits before a checkpoint, and may leave their summaries.
        later = {"checkpoint.parquet": self.checkpoints, "crc": {one for one in self.summaries if one >= first}}
        for kind, versions in later.items():
            if alone := sorted(versions - self.commits):
                raise LogError(f"{DELTA_LOG}/{alone[0]:020d}.{kind}: stands without the commit of its version.")
        self.begin = 0 if first == 0 else min(self.checkpoints, default=-1)
        if self.begin < 0 or len(self.commits) != self.newest - first + 1:
            raise LostVersionError
        self.pointer: Mapping[str, Any] = {}
        if _POINTER in rest:
            with self.opened(_POINTER) as content:
                self.pointer = load_strictly(content.decode("utf-8"))
                if self.pointer["version"] not in self.checkpoints:
                    raise LogError("points at no checkpoint of this log")

    @contextmanager
    def opened(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file, and begin errors of the block with its name."""
        content = self._read(name)
        try:
            yield content
        except LogError as error:
            raise LogError(f"{DELTA_LOG}/{name}: {error}.") from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError, pa.ArrowException):
            raise LogError(f"{DELTA_LOG}/{name}: is damaged.") from None


class _Replay:
    """Table after the actions so far. ``spelled``: each path as in the log."""

    def __init__(self) -> None:
        self._state: dict[str, Mapping[str, Any]] = {}
        self._added: dict[str, Mapping[str, Any]] = {}
        self.spelled: dict[str, str] = {}

    def commit(self, actions: Actions, *, counts: bool) -> None:
        """Check the actions of one commit, and apply them if it ``counts``."""
        found: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in _ACTIONS}
        for kind, action in actions:
            found[kind].append(_check_action(kind, action))
        added, removed = ([self._locate(action["path"]) for action in found[kind]] for kind in ("add", "remove"))
        if any(count > 1 for count in Counter(added + removed).values()):
            raise LogError("names a file twice")
        if max(len(found["metaData"]), len(found["protocol"])) > 1:
            raise LogError("describes the table twice")
        if counts:
            self._state |= {kind: found[kind][0] for kind in ("metaData", "protocol") if found[kind]}
            for path in removed:
                self._added.pop(path, None)
            self._added |= dict(zip(added, found["add"], strict=True))

    def resume(self, actions: Actions, *, is_first: bool) -> None:
        """Continue from a checkpoint; unless it ``is_first``, it must match the table so far."""
        summed = _Replay()
        summed.spelled = self.spelled
        summed.commit(actions, counts=True)
        if not is_first and str(summed.state()) != str(self.state()):
            raise LogError("contradicts the commits before it")
        self._state, self._added = summed._state, summed._added

    def state(self) -> State:
        """Return the table so far. Raises :class:`KeyError` if no action describes it."""
        metadata, protocol = self._state["metaData"], self._state["protocol"]
        columns = set(metadata["partitionColumns"])
        if any(add["partitionValues"].keys() != columns for add in self._added.values()):
            raise LogError("gives a file other partition columns than the table")
        return State(metadata, protocol, dict(self._added))

    def _locate(self, path: str) -> str:
        """Unescape a path. Raises :class:`LogError` unless all readers take it for the same file."""
        place = unquote(path, errors="strict")
        if _UNESCAPED.search(path) or not is_inside(place):
            raise LogError(f"names the file {show_name(path)}, which is not inside the table or not by a plain path")
        if self.spelled.setdefault(place, path) != path:
            raise LogError(f"names the file {show_name(path)} by another path than before")
        return place


def parse_commit(content: bytes) -> Actions:
    """Return the actions of a commit, each with its kind, without the commit's remarks."""
    text = content.decode("utf-8")
    if "\r" in text:
        raise LogError("breaks its lines in two ways")
    actions: list[tuple[str, Mapping[str, Any]]] = []
    for line in text.removesuffix("\n").split("\n"):
        told = load_strictly(line)
        if len(told) != 1:
            raise LogError("has a line of several actions, or of none")
        if type(told.get(_REMARKS, {})) is not dict:
            raise LogError("has remarks that are of another type")
        actions += [(kind, action) for kind, action in told.items() if kind != _REMARKS]
    return [(_require_known(kind), action) for kind, action in actions]


def _read_checkpoint(content: bytes, pointer: Mapping[str, Any]) -> Actions:
    actions = read_checkpoint(content, pointer.get("checkpointSchema"))
    adds = sum(kind == "add" for kind, _ in actions)
    counted = {"size": len(actions), "sizeInBytes": len(content), "numOfAddFiles": adds}
    free = {"version", "checkpointSchema", "checksum"}
    for name, value in pointer.items():
        if name not in free and value is not None and value != counted.get(name):
            raise LogError(f"is not what {_POINTER} says of it ({show_name(name)})")
    return [(_require_known(kind), action) for kind, action in actions]


def _require_known(kind: str) -> str:
    if kind not in _ACTIONS:
        raise LogError(f"has an action {show_name(kind)}, which wordveil does not write")
    return kind


def _check_action(kind: str, action: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an action without null and empty values, if manifests cover all of it."""
    required, optional = _ACTIONS[kind]
    _refuse_variants(action, [*required, *optional], f"has an action {kind} with")
    said = {name: value for name, value in action.items() if name in required or not _is_empty(value)}
    for name, value in said.items():
        wanted = required.get(name, optional.get(name))
        if wanted is None:
            raise LogError(f"has an action {kind} with {show_name(name)}, which wordveil does not write")
        if type(value) is not wanted:
            raise LogError(f"has an action {kind} whose {name} is of another type")
    if missing := sorted(required.keys() - said.keys()):
        raise LogError(f"has an action {kind} without {missing[0]}")
    if kind == "metaData":
        _check_metadata(said)
    if kind == "protocol":
        _check_protocol(said)
    if kind == "add" and any(type(value) not in (str, type(None)) for value in said["partitionValues"].values()):
        raise LogError("has partition values that are no texts")
    return said


def _refuse_variants(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise :class:`LogError` for another spelling of a known name, which some readers do not distinguish."""
    variants = {name.lower(): name for name in known}
    for name in names:
        if variants.get(name.strip().lower(), name) != name:
            raise LogError(f"{what} {show_name(name)}, which wordveil does not write")


def _is_empty(value: Any) -> bool:
    return value is None or value in ({}, []) or (isinstance(value, dict) and all(map(_is_empty, value.values())))


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    if metadata["format"] != _FORMAT:
        raise LogError("says that data files are of another format than Parquet")
    for name, value in metadata["configuration"].items():
        if type(value) is not str or (name not in PROPERTIES and _VALUES.get(name) != value):
            raise LogError(f"gives the table the property {show_name(name)}, which wordveil does not set")
    for name in _list_column_properties(load_strictly(metadata["schemaString"])):
        if _COLUMN_PROPERTY.fullmatch(name):
            raise LogError(f"gives a column the property {show_name(name)}, which wordveil does not set")


def _list_column_properties(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _list_column_properties(item)
    if isinstance(schema, dict):
        yield from schema.get("metadata") or ()
        for name in ("fields", "type", "elementType", "keyType", "valueType"):
            yield from _list_column_properties(schema.get(name))


def _check_protocol(protocol: Mapping[str, Any]) -> None:
    asked = {*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}
    if unknown := sorted(asked - _FEATURES):
        raise LogError(f"asks for the feature {show_name(unknown[0])}, which wordveil does not use")
    if protocol["minReaderVersion"] not in _READER_VERSIONS:
        raise LogError(f"asks for readers of version {protocol['minReaderVersion']}, which wordveil does not use")


def _check_summary(summary: Mapping[str, Any], state: State) -> None:
    """Raise :class:`LogError` unless the summary of a version matches its state."""
    said = {
        name: value
        for name, value in summary.items()
        if name not in _UNREAD and value is not None and (name in _TOLD or not _is_empty(value))
    }
    expected = {**_EXPECTED, "tableSizeBytes": sum(add["size"] for add in state.added.values())}
    expected["numFiles"] = len(state.added)
    parts = [
        (kind, said.pop(name)) for kind, name in (("metaData", "metadata"), ("protocol", "protocol")) if name in said
    ]
    files = said.pop("allFiles", None)
    _refuse_variants(summary, [*_TOLD, *_UNTOLD, *_UNREAD, *expected], "sums up")
    if unknown := sorted(said.keys() - expected.keys()):
        raise LogError(f"sums up {show_name(unknown[0])}, which wordveil does not write")
    known = [("metaData", state.metadata), ("protocol", state.protocol)]
    rest = [one for one in known if one[0] not in dict(parts)]
    adds = [("add", add) for add in (state.added.values() if files is None else files)]
    if any(value != expected[name] for name, value in said.items()) or str(make_state([*rest, *parts, *adds])) != str(
        state
    ):
        raise LogError("contradicts the log, so that two readers would see two tables")


def _require_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise LogError("says something twice")
    return values


def _refuse_constant(name: str) -> None:
    raise LogError(f"has the number {name}")


def show_name(name: str) -> str:
    """Return an untrusted name in a form that is safe to print."""
    return name if name.isascii() and name.isprintable() and len(name) <= _SHOWN else ascii(name[:_SHOWN])
