"""Whether a published table is the one that was signed: what its readers see is compared with the manifest.

The files alone do not decide that. Delta's log gives a table its columns, the values of its partition columns, and the
rows that readers skip. All of this is compared, at exactly the version that was signed, and at the newest version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote

from wordveil.errors import ReleaseError
from wordveil.release.manifest import File, Manifest, Snapshot, compare, open_document

MANIFEST = "_manifest.json"
"""The manifest's name inside the public table. Readers of Delta and Parquet skip it."""
_MAPPING = "delta.columnMapping.mode"


class PublishedTable(Protocol):
    """A published table as one implementation of Delta reads it."""

    path: str

    def version(self) -> int:
        """The newest version; -1 where there is no table."""

    def read_log(self, version: int) -> Snapshot:
        """A version as its log has it, by :func:`summarise`: no rows are counted, and no file is hashed."""

    def describe(self, version: int) -> Snapshot:
        """What readers of a version see. Reads all its files.

        Raises :class:`ReleaseError` for a version that is gone, and as :func:`summarise`.
        """

    def read_text(self, path: str) -> str | None:
        """The text of a file, of the table or another; None where there is none."""


@dataclass(frozen=True)
class Verified:
    """A manifest that its table agrees with, and the digest of the manifest's file."""

    manifest: Manifest
    manifest_sha256: str


def verify_table(
    table: PublishedTable, manifest: str | None = None, public_key: str | None = None, at_least: int = 0
) -> Verified:
    """Check a published table against its manifest. This needs neither key nor configuration.

    Parameters
    ----------
    table
        the published table.
    manifest
        the path of the manifest; None: the one inside the table.
    public_key
        the release's public key, 64 hexadecimal digits, from another source than the table; None: any key will do.
    at_least
        the smallest number of the publication. Nothing else reveals an older publication that somebody has put back.

    Raises
    ------
    ReleaseError
        If the table is not the one that was signed; the message says what differs.
    """
    file = manifest or f"{table.path}/{MANIFEST}"
    text = table.read_text(file)
    if text is None:
        raise ReleaseError(f"manifest {file}: no such file. Name it with --manifest.")
    if table.version() < 0:
        raise ReleaseError(f"table {table.path}: is not a Delta table. Name the directory of a published table.")
    try:
        document = json.loads(text)
    except ValueError:
        raise ReleaseError(f"manifest {file}: is not JSON. Use the one that was published.") from None
    signed = open_document(document, public_key)
    if signed.publication < at_least:
        raise ReleaseError(
            f"publication = {signed.publication}: is older than {at_least}, which you have seen. Somebody has put an "
            "older table back: what was withdrawn since may be in it. Do not use it; ask its owner to publish again."
        )
    compare_with(table, signed)
    return Verified(signed, hash_text(text))


def compare_with(table: PublishedTable, signed: Manifest) -> None:
    """Raise :class:`ReleaseError` unless readers of a table see what was signed, whether they name its version or
    none.
    """
    newest = table.version()
    if newest < signed.public_version:
        raise ReleaseError(
            f"table {table.path}: is at version {newest}, and version {signed.public_version} was signed. It was "
            "restored from an older state. Publish again."
        )
    compare(signed.snapshot, table.describe(signed.public_version))
    if newest > signed.public_version and table.read_log(newest) != table.read_log(signed.public_version):
        raise ReleaseError(
            f"table {table.path}: version {signed.public_version} is the one that was signed, but version {newest} is "
            "another: somebody has written to the table, or it is being published at this moment. Verify again, and "
            "then find out who has written."
        )


def summarise(
    path: str,
    version: int,
    metadata: Mapping[str, Any],
    protocol: Mapping[str, Any],
    files: Iterable[Mapping[str, Any]],
) -> Snapshot:
    """A version of the table at ``path`` as the actions of its log have it: ``metaData``, ``protocol``, and ``add`` of
    each file.

    Raises :class:`ReleaseError` for deletion vectors and mapped columns: not all readers know them, so that two readers
    would see two tables.
    """
    rows = list(files)
    if any(row.get("deletionVector") is not None for row in rows):
        raise ReleaseError(
            f"table {path}: version {version} deletes rows by deletion vectors, which wordveil does not write. The "
            "table is not the one that was signed."
        )
    if (metadata.get("configuration") or {}).get(_MAPPING, "none") != "none":
        raise ReleaseError(
            f"table {path}: version {version} gives columns other names than its files ({_MAPPING}), which wordveil "
            "does not write. The table is not the one that was signed."
        )
    found = (
        File(
            unquote(row["path"]),
            row["size"],
            "",
            dict(row["partitionValues"] or {}),
            hash_text(row["stats"]) if row.get("stats") else "",
        )
        for row in rows
    )
    return Snapshot(
        schema=json.loads(metadata["schemaString"]),
        partition_by=tuple(metadata["partitionColumns"]),
        reader_version=protocol["minReaderVersion"],
        reader_features=tuple(sorted(protocol.get("readerFeatures") or ())),
        records=-1,
        files=tuple(sorted(found, key=lambda file: file.path)),
    )


def lost_version(subject: str, version: int) -> ReleaseError:
    """The error of a version that cannot be read. ``subject``: which table."""
    return ReleaseError(f"{subject}: its log no longer has version {version}, or is damaged. Publish again.")


def hash_text(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
