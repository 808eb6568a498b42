"""Manifests: signed descriptions of what readers of published tables see.

A manifest contains only what may be published with the table. Its signature is Ed25519 over canonical JSON: keys sorted
by code point, no white space, UTF-8 without escapes, and only whole numbers. Other numbers are strings in their
shortest decimal form (``"8.0"``), since readers of JSON differ in how they write them back.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from wordveil.crypto.keys import encode_public_key
from wordveil.errors import ReleaseError
from wordveil.privacy.recovery import Recovery
from wordveil.privacy.relations import Exposure, Relation
from wordveil.privacy.table import TablePrivacy
from wordveil.release.budgets import BUDGET_REASONS
from wordveil.release.rules import GateResult, Kind

FORMAT_VERSION = 3
_SHOWN_NAMES, _SHOWN = 5, 300
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_CREATED = "%Y-%m-%dT%H:%M:%SZ"


class File(NamedTuple):
    """Data file of a table.

    ``path``: relative to the table, with ``/``. ``bytes``: its size. ``sha256``: of its content, in hexadecimal; empty
    if the file is missing. ``partition``: the values of the partition columns in its rows, which readers take from the
    table's log. ``statistics``: the SHA-256 of the log's statistics of its columns, by which readers skip files; may be
    empty.
    """

    path: str
    bytes: int
    sha256: str
    partition: Mapping[str, str | None]
    statistics: str


@dataclass(frozen=True)
class Snapshot:
    """Content of one version of a Delta table, as far as readers see it.

    ``schema``: as in Delta's log. ``partition_by``: the columns whose values are in the log and not in the files.
    ``metadata``: the rest of the log's description: the table's identifier, and its properties as ``configuration``.
    ``protocol``: what Delta requires of readers and writers. ``records``: the number of rows that a reader counts.
    """

    schema: Mapping[str, Any]
    partition_by: tuple[str, ...]
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    records: int
    files: tuple[File, ...]


@dataclass(frozen=True)
class Manifest:
    """Description of a published table.

    ``publication``: rises with each publication, so that readers recognise an older table. ``draws_version``,
    ``public_version``: versions of the draws table and of the public table. ``run_ids``: runs whose draws the table
    holds. ``mechanism``, ``policy``, ``key``: the fingerprints; for the key, its root's. ``epoch``: the last noise
    epoch that drew. ``relation``, ``exposes``: as in the ``privacy`` column. ``input``, ``input_version``: Delta's or
    Iceberg's identifier of the corpus, whose path would reveal private storage, and its version or snapshot. ``n_max``:
    the public number of tokens if the length is hidden, else None. ``rules``: the digest of the gate's rules. ``gate``:
    one entry for each rule, as :func:`gate_entries` makes them, without values of private rules. ``software``: versions
    by name. ``created``: UTC, as ``2026-11-20T02:00:00Z``. ``snapshot``: what readers of the public version see.
    ``recovery``: what an attacker recovers of single words, a function of public data alone, or None. ``writers``:
    ``one`` if the owner states that one process at a time wrote to the release and its ledger; otherwise the document
    lacks it. ``symbols``: the law and the meaning of the numbers in the column
    ``symbols`` (:func:`wordveil.assembly.bundles.describe_symbols`); None, and absent from the document, without one.
    ``refused``: under budgets, the number of records that each keeps out of the table, by reason; None, and absent from
    the document, without budgets. ``tables``: of a shuffled release, what each addition of rows is for each of its
    records; otherwise empty, and absent from the document. ``kept_changed``: the number of ``records`` with another
    kept column than in the publication before, whose text was not drawn since; None, and absent from the document,
    unless ``exposes`` names it. ``renamed``: the table's columns that have other names in the corpus, by these, as the
    last run read them; None, and absent from the document, without any.

    Raises :class:`ValueError` if something must not be published, cannot be signed, or names a file outside the table.
    """

    release: str
    publication: int
    draws_version: int
    public_version: int
    run_ids: tuple[str, ...]
    mechanism: str
    policy: str
    key: str
    epoch: int
    relation: Relation
    exposes: tuple[str, ...]
    input: str
    input_version: int
    n_max: int | None
    rules: str
    gate: tuple[Mapping[str, Any], ...]
    software: Mapping[str, str]
    created: str
    snapshot: Snapshot
    recovery: Recovery | None = None
    writers: str | None = None
    symbols: Mapping[str, Any] | None = None
    refused: Mapping[str, int] | None = None
    tables: tuple[TablePrivacy, ...] = ()
    kept_changed: int | None = None
    renamed: Mapping[str, str] | None = None
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        datetime.strptime(self.created, _CREATED)  # noqa: DTZ007 - the form is checked, and ends in Z
        private = [entry for entry in self.gate if entry["kind"] == Kind.PRIVATE]
        if any("value" in entry for entry in private):
            raise ValueError("Expected no value of a private rule: it is a function of original texts.")
        if private and Exposure.GATE not in self.exposes:
            raise ValueError("Expected exposes to name gate: the gate has private rules.")
        self._check_counts()
        paths = [file.path for file in self.snapshot.files]
        if len(set(paths)) < len(paths):
            raise ValueError("Expected each file once.")
        for file in self.snapshot.files:
            if not is_inside(file.path):
                raise ValueError(f"Expected the relative path of a file inside the table, got {file.path!r}.")
            if file.bytes < 0 or not _DIGEST.fullmatch(file.sha256):
                raise ValueError(
                    f"Expected bytes of at least 0 and a SHA-256 of 64 hexadecimal digits for {file.path}."
                )

    def _check_counts(self) -> None:
        if (self.kept_changed is not None) != (Exposure.KEPT_CHANGED in self.exposes):
            raise ValueError("Expected kept_changed exactly if exposes names it.")
        if self.kept_changed is not None:
            most = self.snapshot.records if self.publication > 1 else 0
            if type(self.kept_changed) is not int or not 0 <= self.kept_changed <= most:
                raise ValueError(f"Expected kept_changed={self.kept_changed!r} in [0, {most}].")
        if any(name not in BUDGET_REASONS or count < 1 for name, count in (self.refused or {}).items()):
            raise ValueError("Expected numbers of at least 1 by the reasons of budgets in refused.")

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON: text, whole numbers, None, lists and mappings of these."""
        files = [file._asdict() for file in sorted(self.snapshot.files, key=lambda file: file.path)]
        recovery = self.recovery.to_dict() if self.recovery else None
        tables = [asdict(added) for added in self.tables] or None
        values = {**vars(self), **vars(self.snapshot), "files": files, "recovery": recovery, "tables": tables}
        del values["snapshot"]
        optional = ("writers", "symbols", "refused", "kept_changed", "renamed", "tables")
        said = {name: value for name, value in values.items() if value is not None or name not in optional}
        plain: dict[str, Any] = _plain(said)
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Manifest:
        """Invert :meth:`to_dict`. Raises :class:`ReleaseError` for anything but a manifest of this version."""
        _check_version(values)
        table = [field.name for field in fields(Snapshot)]
        try:
            return cls(
                **{
                    **{name: value for name, value in values.items() if name not in table},
                    "relation": Relation(values["relation"]),
                    "run_ids": tuple(values["run_ids"]),
                    "exposes": tuple(values["exposes"]),
                    "gate": tuple(values["gate"]),
                    "tables": tuple(TablePrivacy.from_dict(added) for added in values.get("tables", ())),
                    "recovery": None if values["recovery"] is None else Recovery.from_dict(values["recovery"]),
                    "snapshot": Snapshot(
                        **{
                            **{name: values[name] for name in table},
                            "partition_by": tuple(values["partition_by"]),
                            "files": tuple(File(**entry) for entry in values["files"]),
                        }
                    ),
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReleaseError(
                f"the manifest is incomplete or malformed ({type(error).__name__}). Use the one that was published."
            ) from None


def gate_entries(result: GateResult) -> tuple[dict[str, Any], ...]:
    """List a gate's rules for a manifest: name, kind, bound, and the value unless the rule is private."""
    return tuple(
        {"name": rule.name, "kind": str(rule.kind), "bound": _plain(rule.bound)}
        | ({} if rule.kind is Kind.PRIVATE else {"value": _plain(rule.value)})
        for rule in result.results
    )


def sign(manifest: Manifest, private_key: Ed25519PrivateKey) -> dict[str, Any]:
    """Return the signed document: ``manifest``, ``signature`` and ``public_key``, the last two in hexadecimal.

    Raises :class:`ValueError` if a text cannot be UTF-8.
    """
    values = manifest.to_dict()
    return {
        "manifest": values,
        "signature": private_key.sign(_canonical(values)).hex(),
        "public_key": encode_public_key(private_key),
    }


def open_document(document: Any, pinned_public_key: str | None) -> Manifest:
    """Return the manifest of a signed ``document``, as JSON gives it, if its signature is valid.

    ``pinned_public_key``: the release's, 64 hexadecimal digits, from a source other than the document. If it is None,
    the document's own key checks it, which finds accidental changes but not forgery. Raises :class:`ReleaseError`.
    """
    given = document if isinstance(document, Mapping) else {}
    values, public_key, signature = (given.get(name) for name in ("manifest", "public_key", "signature"))
    if not isinstance(values, Mapping) or not isinstance(public_key, str) or not isinstance(signature, str):
        raise ReleaseError(
            "the document is not a signed manifest: it needs manifest, public_key and signature. Use the one that was "
            "published."
        )
    _check_version(values)
    if pinned_public_key is not None and not re.fullmatch("[0-9a-f]{64}", pinned_public_key.strip().lower()):
        raise ReleaseError(
            f"public_key = {pinned_public_key.strip()[:64]}: is no public key, which has 64 hexadecimal digits. Copy "
            "that of the release again."
        )
    if pinned_public_key is not None and public_key != pinned_public_key.strip().lower():
        raise ReleaseError(
            f"public_key = {public_key[:64]}: is not {pinned_public_key.strip()[:64]}, which you named. "
            "Another key signed this manifest: do not trust the table."
        )
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(
            bytes.fromhex(signature), _canonical(values)
        )
    except (InvalidSignature, ValueError, TypeError):
        raise ReleaseError(
            "signature: does not match the manifest, which was changed after it was signed. Use the one that was "
            "published."
        ) from None
    return Manifest.from_dict(values)


def _check_version(values: Mapping[str, Any]) -> None:
    version = values.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        hint = "Use the version of wordveil that wrote it."
        if type(version) is int and version < FORMAT_VERSION:
            hint = "An earlier one covers less than what readers see. Publish the table again."
        raise ReleaseError(
            f"format_version = {str(version)[:20]}: this wordveil reads manifests of format_version {FORMAT_VERSION}. "
            f"{hint}"
        )


def compare(signed: Snapshot, seen: Snapshot) -> None:
    """Raise :class:`ReleaseError` for another table than the signed one. It names files and columns, no content."""
    listed = {file.path: file for file in signed.files}
    present = {file.path: file for file in seen.files if file.sha256 or file.path not in listed}
    both = listed.keys() & present.keys()
    differences = {
        "missing": listed.keys() - present.keys(),
        "not in the manifest": present.keys() - listed.keys(),
        "changed": [path for path in both if listed[path][:3] != present[path][:3]],
        "given twice": [path for path, count in Counter(file.path for file in seen.files).items() if count > 1],
        "with other partition values": [path for path in both if listed[path].partition != present[path].partition],
        "with other statistics": [path for path in both if listed[path].statistics != present[path].statistics],
    }
    problems = [f"Files {what}: {_names(paths)}." for what, paths in differences.items() if paths]
    if columns := _differing_columns(signed, seen):
        problems.append(f"Columns with another name, type or property: {_names(columns)}.")
    before, after = _list_properties(signed), _list_properties(seen)
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name, "none"), after.get(name, "none")
        if was != now:
            problems.append(f"{name}: {was[:_SHOWN]} was signed, and the table has {now[:_SHOWN]}.")
    if problems:
        raise ReleaseError(f"the table is not the one that was signed. {' '.join(problems)}")


def _differing_columns(signed: Snapshot, seen: Snapshot) -> set[str]:
    """Return the names of columns that differ between two tables; "their order" if only that differs."""
    was, now = _plain(signed.schema), _plain(seen.schema)
    # As texts: in Python, True equals 1.
    before, after = (
        {field["name"]: json.dumps(field, sort_keys=True) for field in schema["fields"]} for schema in (was, now)
    )
    named = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return named or (set() if json.dumps(was, sort_keys=True) == json.dumps(now, sort_keys=True) else {"their order"})


def _list_properties(table: Snapshot) -> dict[str, str]:
    about = {**table.metadata, **table.protocol}
    properties = about.pop("configuration", {})
    about |= {"partition_by": ", ".join(table.partition_by) or "none", "records": table.records, **properties}
    return {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True) for name, value in about.items()
    }


def _names(paths: Iterable[str]) -> str:
    names = sorted(paths)
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def is_inside(path: str) -> bool:
    """Return whether a path leads below the table in its only spelling, without a line feed, as checksums need."""
    parts = PurePosixPath(path).parts
    is_plain = path == "/".join(parts) and not path.startswith("/") and not set(path) & set("\n\r\0")
    return bool(parts) and is_plain and ".." not in parts


def _plain(value: Any) -> Any:
    """Convert to JSON values whose only numbers are whole."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return str(value)
    return value


def _canonical(values: Mapping[str, Any]) -> bytes:
    """Return the bytes to sign. Raises :class:`ValueError` for a number that is not whole, or text that is no UTF-8."""
    _refuse_floats(values)
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        # The value is wrong, not its type, so this is not a TypeError.
        raise ValueError("Expected only whole numbers in a manifest; others are strings.")  # noqa: TRY004
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _refuse_floats(item)
