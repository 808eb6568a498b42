"""Logs of published tables, read strictly: what wordveil and Delta write into one, and nothing else.

Readers of Delta choose among the files of a log: one begins at the first commit, another at a checkpoint, a third takes
the schema from a summary. So all files of a log are read, and each has to tell of the same table. What a reader could
take for something that no manifest covers is refused by name: other files, actions, properties and features.
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
from wordveil.release.delta_log import DELTA_LOG
from wordveil.release.layout import VERSION_PROPERTY
from wordveil.release.manifest import is_inside

Actions = Sequence[tuple[str, Mapping[str, Any]]]

_VERSION = re.compile(r"(\d{20})\.(json|crc|checkpoint\.parquet)", re.ASCII)
_POINTER = "_last_checkpoint"
# Hadoop's checksums, drafts of a commit that was killed, and notes of VACUUM: no reader of Delta looks there.
_HIDDEN = re.compile(r"_last_vacuum_info|\.[._]?[\w.-]+\.(crc|tmp)", re.ASCII)
# What an action has to say, what it may say, and the types. All else is null or empty.
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
# What stands beside actions: remarks of a commit on itself, by which nobody reads a table.
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
"""Properties that wordveil sets, and those that only say when files are merged, summed up or deleted."""
_VALUES = {"delta.enableDeletionVectors": "false"}
# What Spark writes beside a column to compute its values, or to find it under another name.
_COLUMN_PROPERTY = re.compile(r"delta\..*|(current|exists)_default", re.IGNORECASE)
# What a summary of a version may say: figures that say nothing, what the log tells (nothing is not the same as none),
# what has to be empty, and figures that must be these.
_UNREAD = {"txnId", "histogramOpt", "fileSizeHistogram", "deletedRecordCountsHistogramOpt"}
_TOLD, _UNTOLD = ("metadata", "protocol", "allFiles"), ("setTransactions", "domainMetadata", "inCommitTimestampOpt")
_EXPECTED = {"numMetadata": 1, "numProtocol": 1, "numDeletedRecordsOpt": 0, "numDeletionVectorsOpt": 0}
# What stands in a URI only as an escape: readers differ in what they make of it.
_UNESCAPED = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}?#:]|%2[Ff]|%(?![0-9A-Fa-f]{2})")
_SHOWN = 200


class LostVersionError(ValueError):
    """A log that lacks what a version needs."""


@dataclass(frozen=True)
class State:
    """A version of a table: its actions ``metaData`` and ``protocol``, and ``add`` of each file by its path, which is
    relative and without escapes. What is null is left out.
    """

    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    added: Mapping[str, Mapping[str, Any]]

    def __str__(self) -> str:
        """The same text for the same table, as JSON: in Python, True is 1."""
        # Whether a file was new says nothing about the table.
        added = {path: {**add, "dataChange": True} for path, add in self.added.items()}
        return json.dumps([self.metadata, self.protocol, added], sort_keys=True)


@dataclass(frozen=True)
class PublishedLog:
    """What a log says. ``states``: the table at the newest version, and at those asked for that the log has.
    ``named``: the paths of all files that it names, also of other versions.
    """

    newest: int
    states: Mapping[int, State]
    named: frozenset[str]


def find_newest(names: Iterable[str]) -> int:
    """The greatest version of any file of a log, given their names; -1 where there is none."""
    return max((int(match[1]) for match in map(_VERSION.fullmatch, names) if match), default=-1)


def read_published_log(names: Iterable[str], read: Callable[[str], bytes], versions: Iterable[int]) -> PublishedLog:
    """Read a log whole. ``names``: those of its files. ``read``: gives the content of one.

    Raises :class:`LogError`, and :class:`LostVersionError` where a commit is missing.
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
    """JSON in which all readers see the same: no name twice, no NaN, no half of a character."""
    value = json.loads(text, object_pairs_hook=_require_unique, parse_constant=_refuse_constant)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def make_state(actions: Actions) -> State:
    """The table that actions add up to, as another reader of Delta has them. Raises :class:`LogError`."""
    replay = _Replay()
    replay.commit(actions, counts=True)
    return replay.state()


class _Files:
    """The files of a log by their kinds, and the version that it can be read from: ``begin``."""

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
        """The content of a file, whose name errors of the block begin with."""
        content = self._read(name)
        try:
            yield content
        except LogError as error:
            raise LogError(f"{DELTA_LOG}/{name}: {error}.") from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError, pa.ArrowException):
            raise LogError(f"{DELTA_LOG}/{name}: is damaged.") from None


class _Replay:
    """A table as the actions that came so far left it. ``spelled``: how the log writes each path that it names."""

    def __init__(self) -> None:
        self._state: dict[str, Mapping[str, Any]] = {}
        self._added: dict[str, Mapping[str, Any]] = {}
        self.spelled: dict[str, str] = {}

    def commit(self, actions: Actions, *, counts: bool) -> None:
        """Take the actions of one commit; look at them alone where it is not one that ``counts``."""
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
        """Go on from a checkpoint; where it is not the ``first`` thing that is known, it has to say what is known."""
        summed = _Replay()
        summed.spelled = self.spelled
        summed.commit(actions, counts=True)
        if not is_first and str(summed.state()) != str(self.state()):
            raise LogError("contradicts the commits before it")
        self._state, self._added = summed._state, summed._added

    def state(self) -> State:
        """The table as it is. Raises :class:`KeyError` for one that nothing describes."""
        metadata, protocol = self._state["metaData"], self._state["protocol"]
        columns = set(metadata["partitionColumns"])
        if any(add["partitionValues"].keys() != columns for add in self._added.values()):
            raise LogError("gives a file other partition columns than the table")
        return State(metadata, protocol, dict(self._added))

    def _locate(self, path: str) -> str:
        """The path without escapes. Raises :class:`LogError` for one that not all readers take for the same file."""
        place = unquote(path, errors="strict")
        if _UNESCAPED.search(path) or not is_inside(place):
            raise LogError(f"names the file {show_name(path)}, which is not inside the table or not by a plain path")
        if self.spelled.setdefault(place, path) != path:
            raise LogError(f"names the file {show_name(path)} by another path than before")
        return place


def parse_commit(content: bytes) -> Actions:
    """The actions of a commit, by their kinds; without its remarks on itself, by which nobody reads a table."""
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
    """An action without what is null or empty, if it says nothing that no manifest covers."""
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
    """Raise :class:`LogError` for another spelling of a known name, also where it says nothing: not all readers tell
    them apart.
    """
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
    """The names of what stands beside the columns of a schema, inner ones too."""
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
    """Raise :class:`LogError` unless the summary of a version agrees with it."""
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
    """A name that somebody else chose, as it may be printed."""
    return name if name.isascii() and name.isprintable() and len(name) <= _SHOWN else ascii(name[:_SHOWN])
