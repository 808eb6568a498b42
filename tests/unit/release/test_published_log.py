"""The log of a published table: what wordveil and Delta write passes, and each forgery is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.published import SIGNED, commit, copy_signed, forget_summaries, log, read_actions, refuse, verify
from wordveil.release.published_log import load_strictly

Forgery = Callable[[Path], object]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return copy_signed(tmp_path)


def lose_a_commit(table: Path) -> None:
    forget_summaries(table)
    log(table, 1).unlink()


def change(kind: str, **changes: Any) -> Forgery:
    """A forgery that changes an action of the signed version, or adds it as it was first."""

    def forge(table: Path) -> None:
        actions = read_actions(table, SIGNED)
        if not any(kind in action for action in actions):
            actions += [action for action in read_actions(table, 0) if kind in action]
        for action in actions:
            if kind in action:
                action[kind] |= changes
        commit(table, SIGNED, *actions)

    return forge


def append(*actions: dict[str, Any]) -> Forgery:
    return lambda table: commit(table, SIGNED, *read_actions(table, SIGNED), *actions)


def describe(edit_table: Callable[[dict[str, Any]], object]) -> Forgery:
    """A forgery that describes the table again, changed by ``edit_table``."""

    def forge(table: Path) -> None:
        (described,) = (action["metaData"] for action in read_actions(table, 0) if "metaData" in action)
        edit_table(described)
        append({"metaData": described})(table)

    return forge


def set_property(name: str, value: str | None) -> Forgery:
    return describe(lambda described: described["configuration"].update({name: value}))


def set_column_property(name: str) -> Forgery:
    old, new = '"metadata":{}', f'"metadata":{{"{name}":"1"}}'
    return describe(lambda described: described.update(schemaString=described["schemaString"].replace(old, new, 1)))


def find_name(table: Path) -> str:
    """The name of the signed file."""
    (name,) = (action["add"]["path"] for action in read_actions(table, SIGNED) if "add" in action)
    return str(name)


def respell(path: str) -> Forgery:
    """The signed file by another path, and its own name where the path has a ``*``."""
    return lambda table: change("add", path=path.replace("*", find_name(table)))(table)


def remove_as(old: str, new: str) -> Forgery:
    """Remove the signed file, ``old`` in its name replaced by ``new``."""
    gone = {"dataChange": True}
    return lambda table: append({"remove": {"path": find_name(table).replace(old, new), **gone}})(table)


def put(name: str, text: str = "{}") -> Forgery:
    def forge(table: Path) -> None:
        place = table / name
        place.parent.mkdir(exist_ok=True, parents=True)
        place.write_text(text, "utf-8")

    return forge


def edit(old: str, new: str, version: int = SIGNED) -> Forgery:
    """Change the bytes of a commit, given as Latin-1."""

    def forge(table: Path) -> None:
        content = log(table, version).read_bytes()
        assert old.encode("latin-1") in content
        forget_summaries(table)
        log(table, version).write_bytes(content.replace(old.encode("latin-1"), new.encode("latin-1"), 1))

    return forge


def sum_up(**changes: Any) -> Forgery:
    def forge(table: Path) -> None:
        place = log(table, SIGNED, "crc")
        said = json.loads(place.read_text("utf-8"))
        for name, value in changes.items():
            said[name] = {**said[name], **value} if isinstance(value, dict) and value else value
        place.write_text(json.dumps(said), "utf-8")

    return forge


def link(name: str) -> Forgery:
    def forge(table: Path) -> None:
        place = next(table.glob(name))
        moved = place.rename(table.parent / "elsewhere")
        place.symlink_to(moved)

    return forge


VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 4, "cardinality": 1}
COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
POISON = {"path": "part-poison.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
OLDEST = {"minReaderVersion": 1, "minWriterVersion": 2}
NOT_OURS = "which wordveil does not"

FORGERIES: dict[str, tuple[Forgery, str]] = {
    # Files of the log.
    "a checkpoint after the commits": (put(f"_delta_log/{3:020d}.checkpoint.parquet"), "checkpoint.parquet: stands"),
    "a summary after the commits": (put(f"_delta_log/{3:020d}.crc"), "0003.crc: stands without the commit"),
    "a gap": (lose_a_commit, "its log no longer has version 2"),
    "compacted commits": (put(f"_delta_log/{0:020d}.{1:020d}.compacted.json"), "compacted.json: is no file"),
    "a part of a checkpoint": (put(f"_delta_log/{2:020d}.checkpoint.0000000001.0000000001.parquet"), "is no file that"),
    "a sidecar": (put("_delta_log/_sidecars/3a0d65cd.parquet"), "_delta_log/_sidecars/3a0d65cd.parquet: is no file"),
    "a staged commit": (put(f"_delta_log/_staged_commits/{3:020d}.3a0d65cd.json"), "is no file that wordveil leaves"),
    "a commit by a short number": (put("_delta_log/3.json"), "_delta_log/3.json: is no file that wordveil leaves"),
    "another file": (put("_delta_log/é.json"), r"_delta_log/'\xe9.json': is no file"),
    # Actions.
    **{
        f"an action {kind}": (append({kind: action}), f"0002.json: has an action {kind}, {NOT_OURS} write")
        for kind, action in {
            "txn": {"appId": "stream", "version": 1},
            "cdc": {"path": "_change_data/cdc.parquet", "partitionValues": {}, "size": 1, "dataChange": False},
            "domainMetadata": {"domain": "delta.clustering", "configuration": "{}", "removed": False},
            "sidecar": {"path": "a.parquet", "sizeInBytes": 1, "modificationTime": 0},
            "Add": POISON,
        }.items()
    },
    **{
        f"a file with {name}": (change("add", **{name: value}), f"has an action add with {name}, {NOT_OURS} write")
        for name, value in {"deletionVector": VECTOR, "tags": {"ZCUBE_ID": "1"}, "baseRowId": 0, "Stats": "{}"}.items()
    },
    "a removal with a vector": (change("remove", deletionVector=VECTOR), "has an action remove with deletionVector"),
    "a size that is no number": (change("add", size=True), "has an action add whose size is of another type"),
    "no partition values": (change("add", partitionValues=None), "add whose partitionValues is of another type"),
    "other partition columns": (change("add", partitionValues={"day": "d1"}), "other partition columns than the table"),
    "other statistics": (edit(r"numRecords\":4", r"numRecords\":3"), "Files with other statistics: part-"),
    "an action that is null": (append({"add": None}), "0002.json: is damaged"),
    "a name in capitals": (change("add", PARTITIONVALUES={}), "an action add with PARTITIONVALUES, which"),
    # Paths.
    "another place": (respell("/elsewhere/*"), "which is not inside the table"),
    "another store": (respell("s3://lake/*"), "which is not inside the table or not by a plain path"),
    "the directory above": (respell("../public/*"), "which is not inside the table"),
    "the directory above, escaped": (respell("%2e%2e/public/*"), "which is not inside the table"),
    "a question": (respell("*?a"), "which is not inside the table or not by a plain path"),
    "an escaped slash": (respell("day%2F*"), "which is not inside the table or not by a plain path"),
    "a file removed by another name": (remove_as("part-", "part%2D"), "part%2D00000-"),
    "a file that is added and removed": (remove_as("", ""), "0002.json: names a file twice"),
    "two files of one name": (append({"add": POISON}, {"add": POISON}), "names a file twice"),
    "a file that is added": (append({"add": POISON}), "Files not in the manifest: part-poison.parquet."),
    # What describes the table.
    "another coordinator": (set_property(COORDINATOR, "x"), f"gives the table the property {COORDINATOR}, {NOT_OURS}"),
    "mapped columns": (set_property("delta.columnMapping.mode", "name"), "the property delta.columnMapping.mode"),
    "a change feed": (set_property("delta.enableChangeDataFeed", "true"), "the property delta.enableChangeDataFeed"),
    "a property that is null": (set_property("delta.other", None), "the property delta.other"),
    "an interval": (
        set_property("delta.checkpointInterval", "5"),
        "delta.checkpointInterval: none was signed, and the table has 5.",
    ),
    "another column": (edit(r"{\"name\":\"day\"", r"{\"name\":\"age\"", 0), "type or property: age, day."),
    "a default for old files": (set_column_property("EXISTS_DEFAULT"), "a column the property EXISTS_DEFAULT"),
    "a computed column": (set_column_property("delta.generationExpression"), "the property delta.generationExpression"),
    "a comment": (set_column_property("comment"), "Columns with another name, type or property: id."),
    "another format": (change("metaData", format={"provider": "orc", "options": {}}), "another format than Parquet"),
    "a description": (change("metaData", description="other"), "has an action metaData with description"),
    "another identifier": (change("metaData", id="other"), "was signed, and the table has other"),
    "two descriptions": (append(*[{"protocol": OLDEST}] * 2), "describes the table twice"),
    "a feature": (
        change("protocol", minReaderVersion=3, minWriterVersion=7, readerFeatures=["columnMapping"]),
        f"asks for the feature columnMapping, {NOT_OURS} use",
    ),
    "a feature for writers": (
        change("protocol", minWriterVersion=7, writerFeatures=["clustering"]),
        f"asks for the feature clustering, {NOT_OURS} use",
    ),
    "mapping by version": (change("protocol", minReaderVersion=2), "asks for readers of version 2"),
    "newer writers": (change("protocol", minWriterVersion=4), "minWriterVersion: 2 was signed, and the table has 4."),
    # What two readers of JSON read differently.
    "a name twice": (edit('"size":', '"size":1,"size":'), "0002.json: says something twice"),
    "two actions in a line": (edit('}}\n{"remove"', '},"remove"'), "0002.json: "),
    "an old end of a line": (edit('{"add":', '{"add":\r'), "breaks its lines in two ways"),
    "no number": (edit('"modificationTime":', '"modificationTime":NaN,"x":'), "has the number NaN"),
    "half a character": (edit('{"add":{', '{"add":{"tags":{"a":"\\ud800"},'), "0002.json: is damaged"),
    "bytes that are no text": (edit('{"add":{', '{"add":{"tags":{"a":"\xff"},'), "0002.json: is damaged"),
    "a line without an action": (edit('\n{"remove"', '\n\n{"remove"'), "0002.json: is damaged"),
    # Summaries of the version.
    "a summary that is damaged": (put(f"_delta_log/{2:020d}.crc", "{"), "0002.crc: is damaged"),
    "a summary with another schema": (sum_up(metadata={"createdTime": 7}), "0002.crc: contradicts the log, so that"),
    "a summary with a property": (sum_up(metadata={"configuration": {COORDINATOR: "x"}}), "the property delta.coordi"),
    "a summary with another protocol": (sum_up(protocol={"minWriterVersion": 3}), "0002.crc: contradicts the log"),
    "a summary with transactions": (sum_up(setTransactions=[{"appId": "a", "version": 1}]), "sums up setTransactions"),
    "a summary with another number": (sum_up(numFiles=0), "0002.crc: contradicts the log"),
    "a summary with other files": (sum_up(allFiles=[POISON]), "0002.crc: contradicts the log"),
    "a summary of no table": (sum_up(metadata={}), "0002.crc: has an action metaData without"),
    "a summary without files": (sum_up(allFiles=[]), "0002.crc: contradicts the log"),
    "a summary with a name in capitals": (sum_up(ALLFILES=[]), "0002.crc: sums up ALLFILES"),
    # The directory.
    "a file of another name": (put("\x1b[1m.parquet"), r"public: '\x1b[1m.parquet' is a file that neither table"),
    "a file that stores leave out": (put("part.parquet#1"), "part.parquet#1 is a file that neither table nor"),
    "a file beside": (put("part-00000-poison.parquet"), "part-00000-poison.parquet is a file that neither table nor"),
    "changed rows": (put("_change_data/cdc-00000.parquet"), "_change_data/cdc-00000.parquet is a file that neither"),
    "a file elsewhere": (link("*.parquet"), "is a symbolic link"),
    "a log elsewhere": (link("_delta_log"), "is a symbolic link"),
    "a commit elsewhere": (link(f"_delta_log/{SIGNED:020d}.json"), f"{SIGNED:020d}.json is a symbolic link"),
    "a directory named like a commit": (
        lambda table: log(table, 3).mkdir(),
        f"_delta_log/{3:020d}.json is neither a file nor a directory",
    ),
    "a pipe beside the files": (lambda table: os.mkfifo(table / "a"), "a is neither a file nor a directory"),
    "a manifest that says something twice": (
        lambda table: put(
            "_manifest.json", (table / "_manifest.json").read_text().replace("{", '{"manifest": {}, ', 1)
        )(table),
        "_manifest.json: is not JSON",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_table_is_refused_by_name(table: Path, name: str):
    forge, words = FORGERIES[name]
    assert verify(table)
    forge(table)
    assert words in refuse(table)


GONE = {"remove": {"path": POISON["path"], "dataChange": True}}
VACUUM = [[{"commitInfo": {"operation": f"VACUUM {step}"}}] for step in ("START", "END")]
ANOTHER = "version 2 is the one that was signed, but version 3 is another"


@pytest.mark.parametrize(
    ("commits", "words"),
    [
        ([[{"txn": {"appId": "a", "version": 1}}]], "0003.json: has an action txn"),
        ([[{"add": POISON}]], ANOTHER),
        ([[{"add": POISON}], [GONE]], ""),
        (VACUUM, ""),
    ],
)
def test_a_later_version_has_to_be_the_signed_one(table: Path, commits: list[list[dict[str, Any]]], words: str):
    """VACUUM and RESTORE write versions without a change."""
    for number, actions in enumerate(commits, SIGNED + 1):
        commit(table, number, *actions)
    if words:
        assert words in refuse(table)
        return
    assert verify(table).manifest.public_version == SIGNED
    (described,) = (action["metaData"] for action in read_actions(table, 0) if "metaData" in action)
    described["configuration"]["delta.logRetentionDuration"] = "interval 1 days"
    commit(table, SIGNED + len(commits), {"metaData": described})
    assert "version 2 is the one that was signed, but version" in refuse(table)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', "NaN", '"\\udc00"', "[" * 100_000, ""])
def test_json_that_two_readers_see_differently_is_refused(text: str):
    with pytest.raises((ValueError, RecursionError)):
        load_strictly(text)
