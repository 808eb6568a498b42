"""A signed manifest comes back as it was, any change is found and named, and nothing private can stand in it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from operator import getitem

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from support.toys import MASTER_KEY
from wordveil.crypto.keys import encode_public_key
from wordveil.errors import ReleaseError
from wordveil.privacy.recovery import PriorRecovery, Recovered, Recovery
from wordveil.privacy.relations import Relation
from wordveil.release.manifest import File, Manifest, Snapshot, compare, gate_entries, open_document, sign
from wordveil.release.rules import GateRules, Measured, evaluate

KEY = MASTER_KEY.signing_key("support-mail")
PUBLIC = encode_public_key(KEY)
FIRST = File("ds=2026-11-20/part-00000.parquet", 1234, "ab" * 32, {"ds": "2026-11-20"}, "12" * 32)
SECOND = File("ds=2026-11-21/été part.parquet", 0, "cd" * 32, {"ds": None}, "")
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("ticket_id", "long"), ("text", "string"), ("ds", "string"))
    ],
}
METADATA = {"id": "a1", "configuration": {"delta.checkpointInterval": "10"}}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
SNAPSHOT = Snapshot(SCHEMA, ("ds",), METADATA, PROTOCOL, 8, (FIRST, SECOND))
RULES = GateRules(epsilon_bound=700, max_empty_rate=0.25, exposes=("gate", "presence"), unknown_rate=0.125)
FIGURES = Measured(exposes=("gate", "presence"), epsilon_bound=665.6, empty=1, released=8, unknown=77, words=1000)
RECOVERY = Recovery(
    PriorRecovery(5e-05, (Recovered(1, 0.123, 0.123), Recovered(20, 0.61, 0.64))),
    PriorRecovery(0.0954132, (Recovered(1, 0.2, None), Recovered(20, 0.3, None))),
)
MANIFEST = Manifest(
    release="support-mail",
    publication=5,
    draws_version=7,
    public_version=3,
    run_ids=("a", "b"),
    mechanism="11" * 32,
    policy="22" * 32,
    key=MASTER_KEY.fingerprint,
    epoch=1,
    relation=Relation.ANY_TEXT,
    exposes=("gate", "presence"),
    input="4b0c6a7e-1f5e-4d0a-9d0c-0a3f2f6f1d11",
    input_version=12,
    n_max=64,
    rules=RULES.digest,
    gate=gate_entries(evaluate(RULES, FIGURES)),
    software={"wordveil": "0.1.0", "python": "3.11"},
    created="2026-11-20T02:00:00Z",
    snapshot=SNAPSHOT,
    recovery=RECOVERY,
)


def document():
    return json.loads(json.dumps(sign(MANIFEST, KEY)))


def problem(signed, pinned=PUBLIC):
    with pytest.raises(ReleaseError) as caught:
        open_document(signed, pinned)
    return str(caught.value)


def difference(**changes):
    with pytest.raises(ReleaseError, match="the table is not the one that was signed") as caught:
        compare(SNAPSHOT, replace(SNAPSHOT, **changes))
    return str(caught.value)


def change_column(**change):
    fields = [{**one, **change} if one["name"] == "text" else one for one in SCHEMA["fields"]]
    return {"schema": {**SCHEMA, "fields": fields}}


def test_a_signed_manifest_survives_another_reader_of_json():
    """Other key order, other white space, escapes: the signature is over the values."""
    told = json.dumps(dict(reversed(document().items())), indent=3, ensure_ascii=True)
    for pinned in (PUBLIC, f" {PUBLIC.upper()}\n", None):
        assert open_document(json.loads(told), pinned) == MANIFEST


def test_what_is_signed_is_canonical_json_without_fractions():
    signed = document()
    content = json.dumps(signed["manifest"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(PUBLIC)).verify(bytes.fromhex(signed["signature"]), content)
    entries = {entry["name"]: entry for entry in signed["manifest"]["gate"]}
    empty = {"name": "max_empty_rate", "kind": "output_only", "bound": "0.25", "value": "0.125"}
    assert entries["max_empty_rate"] == empty
    assert entries["epsilon_bound"]["value"] == "665.6"


def test_values_of_private_rules_are_nowhere():
    entries = {entry["name"]: entry for entry in MANIFEST.gate}
    assert entries["unknown_rate"] == {"name": "unknown_rate", "kind": "private", "bound": "0.125"}
    assert "0.077" not in json.dumps(document())
    leaky = ({**entries["unknown_rate"], "value": "0.077"},)
    with pytest.raises(ValueError, match="no value of a private rule"):
        replace(MANIFEST, gate=leaky)
    with pytest.raises(ValueError, match="exposes to name gate"):
        replace(MANIFEST, exposes=("presence",))


def test_optional_parts_are_in_the_manifest_if_there():
    signed = document()["manifest"]
    assert signed["recovery"]["uniform"]["before"] == "5e-05"
    assert signed["recovery"]["frequency"]["after"][1] == {"draws": 20, "at_least": "0.3", "at_most": None}
    assert "writers" not in signed
    assert "refused" not in signed
    other = replace(MANIFEST, recovery=None, writers="one", refused={"over_author_budget": 790})
    assert open_document(json.loads(json.dumps(sign(other, KEY))), PUBLIC) == other
    for recovery in ({}, {"uniform": 1}, "much", {"uniform": {"before": "x", "after": []}}):
        with pytest.raises(ReleaseError, match="malformed"):
            Manifest.from_dict({**MANIFEST.to_dict(), "recovery": recovery})
    for refused in ({"over_author_budget": 0}, {"oversize": 3}, {"null_author": "3"}, "many"):
        with pytest.raises(ReleaseError, match="malformed"):
            Manifest.from_dict({**MANIFEST.to_dict(), "refused": refused})


def test_number_of_changed_kept_columns_follows_what_is_exposed():
    other = replace(MANIFEST, exposes=(*MANIFEST.exposes, "kept_changed"), kept_changed=8)
    assert open_document(json.loads(json.dumps(sign(other, KEY))), PUBLIC) == other
    assert "kept_changed" not in document()["manifest"]
    assert replace(other, publication=1, kept_changed=0).kept_changed == 0
    wrong = (
        {"kept_changed": 9},
        {"kept_changed": -1},
        {"kept_changed": "8"},
        {"publication": 1},
        {"kept_changed": None},
    )
    for changes in (*wrong, {"exposes": MANIFEST.exposes}):
        with pytest.raises(ReleaseError, match="malformed"):
            Manifest.from_dict({**other.to_dict(), **changes})


def leaves(value, path=()):
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, name))
    else:
        yield path


def problem_with_changed(path):
    signed = document()
    *names, last = path
    parent = reduce(getitem, names, signed["manifest"])
    parent[last] = parent[last] + 1 if isinstance(parent[last], int) else f"{parent[last]} "
    return problem(signed)


def test_any_changed_added_or_removed_value_is_found():
    problems = {path: problem_with_changed(path) for path in leaves(document()["manifest"])}
    assert len(problems) > 70
    assert "format_version" in problems.pop(("format_version",))
    added, removed, flipped = (document() for _ in range(3))
    added["manifest"]["quarantined"] = 3
    del removed["manifest"]["epoch"]
    flipped["signature"] = f"{int(flipped['signature'], 16) ^ 1:0128x}"
    problems |= {"added": problem(added), "removed": problem(removed), "flipped": problem(flipped)}
    for key in ("", "00", "zz" * 32, PUBLIC[:-2], "00" * 33):
        problems[key] = problem({**document(), "public_key": key}, pinned=None)
    assert {path: said for path, said in problems.items() if "signature" not in said} == {}


def test_another_key_is_found_only_by_who_pinned_one():
    forged = sign(replace(MANIFEST, publication=9), MASTER_KEY.signing_key("another-release"))
    assert f"is not {PUBLIC}, which you named" in problem(forged)
    assert open_document(forged, None).publication == 9
    assert "is no public key, which has 64 hexadecimal digits" in problem(document(), pinned=PUBLIC[:-1])
    assert "signature" in problem({**forged, "public_key": PUBLIC})


@pytest.mark.parametrize("lacking", ["manifest", "signature", "public_key"])
def test_a_document_that_is_no_signed_manifest_is_refused(lacking):
    signed = document()
    del signed[lacking]
    for other in (signed, [], None):
        assert "is not a signed manifest" in problem(other)


@pytest.mark.parametrize("version", [1, 2, 4, "3", None, True, 3.0])
def test_other_versions_are_refused_by_name(version):
    signed = document()
    signed["manifest"]["format_version"] = version
    said = problem(signed)
    assert f"format_version = {version}: this wordveil reads manifests of format_version 3" in said
    assert ("Publish the table again." in said) == (version in (1, 2) and version is not True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"files": (FIRST,)}, f"missing: {SECOND.path}."),
        ({"files": (FIRST, SECOND, FIRST._replace(path="new.parquet"))}, "not in the manifest: new.parquet."),
        ({"files": (FIRST, SECOND._replace(bytes=1))}, f"changed: {SECOND.path}."),
        ({"files": (FIRST, SECOND._replace(sha256="cd" * 31 + "cc"))}, f"changed: {SECOND.path}."),
        ({"files": (FIRST, SECOND, FIRST)}, f"given twice: {FIRST.path}."),
        ({"files": (FIRST, SECOND._replace(partition={"ds": "x"}))}, f"with other partition values: {SECOND.path}."),
        ({"files": (FIRST, SECOND._replace(statistics="12" * 32))}, f"with other statistics: {SECOND.path}."),
        ({"records": 7}, "records: 8 was signed, and the table has 7."),
        ({"partition_by": ()}, "partition_by: ds was signed, and the table has none."),
        ({"protocol": {**PROTOCOL, "minReaderVersion": 3}}, "minReaderVersion: 1 was signed, and the table has 3."),
        ({"metadata": {**METADATA, "id": "a2"}}, "id: a1 was signed, and the table has a2."),
        ({"metadata": {"id": "a1"}}, "delta.checkpointInterval: 10 was signed, and the table has none."),
        ({"metadata": {**METADATA, "name": "x"}}, "name: none was signed, and the table has x."),
        (change_column(name="body"), "another name, type or property: body, text."),
        (change_column(type="binary"), "another name, type or property: text."),
        (change_column(nullable=False), "another name, type or property: text."),
        (change_column(metadata={"EXISTS_DEFAULT": "'x'"}), "another name, type or property: text."),
        ({"schema": {**SCHEMA, "fields": SCHEMA["fields"][::-1]}}, "another name, type or property: their order."),
    ],
)
def test_what_readers_see_and_was_not_signed_is_named(change, words):
    assert words in difference(**change)


def test_order_of_files_does_not_matter_and_many_are_counted():
    compare(SNAPSHOT, replace(SNAPSHOT, files=(SECOND, FIRST)))
    files = (FIRST, SECOND, *(FIRST._replace(path=f"new-{number}") for number in range(9)))
    assert "new-4 and 4 more" in difference(files=files)


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../a", "a/../b", "a//b", "./a", "a/", "a\nb"])
def test_a_file_outside_the_table_or_of_two_names_is_refused(path):
    with pytest.raises(ValueError, match="relative path"):
        replace(MANIFEST, snapshot=replace(SNAPSHOT, files=(FIRST._replace(path=path),)))


def test_no_list_of_files_and_no_time_is_refused():
    wrong = ((FIRST._replace(bytes=-1),), (FIRST._replace(sha256="AB" * 32),), (FIRST._replace(sha256="ab" * 31),))
    for files in (*wrong, (FIRST, FIRST)):
        with pytest.raises(ValueError):
            replace(MANIFEST, snapshot=replace(SNAPSHOT, files=files))
    with pytest.raises(ValueError):
        replace(MANIFEST, created="yesterday")
