"""Comparison of a published table, as its readers see it, with its signed manifest.

The files alone do not decide what readers see. Delta's log gives a table its columns, the values of its partition
columns, and the rows that readers skip. All of this is compared, at the signed version and at the newest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from wordveil.errors import ReleaseError
from wordveil.release.checkpoints import LogError
from wordveil.release.layout import DELTA_LOG
from wordveil.release.manifest import File, Manifest, Snapshot, compare, open_document
from wordveil.release.published_log import (
    LostVersionError,
    PublishedLog,
    State,
    find_newest,
    load_strictly,
    read_published_log,
    show_name,
)

MANIFEST = "_manifest.json"
"""Name of the manifest inside the public table. Readers of Delta and Parquet skip it."""
_IN_LOG = f"{DELTA_LOG}/"
# Directories that Delta makes in a log. Spark may take another directory for a commit, by its name.
_IN_LOGS = {f"{DELTA_LOG}/{name}" for name in ("_staged_commits", "_sidecars", "_commits")}
_CHECKSUM = re.compile(r"(.*/)?\.[^/]+\.crc")
_FORGED = "The table is not the one that was signed."


class PublishedTable(ABC):
    """Published table at ``path`` as one implementation of Delta reads it."""

    path: str

    @abstractmethod
    def list_store(self) -> Mapping[str, int]:
        """List files as :meth:`list_files` does, for a table that is not on this machine's disk."""

    @abstractmethod
    def read_file(self, path: str) -> bytes:
        """Return the content of a small file of the table."""

    @abstractmethod
    def read_text(self, path: str) -> str | None:
        """Return the text of a file, of the table or another, or None if there is none."""

    @abstractmethod
    def find_directory(self) -> Path | None:
        """Return the table's directory on this machine's disk, or None if it is elsewhere."""

    @abstractmethod
    def is_read_as(self, version: int, state: State) -> bool:
        """Return whether the implementation reads ``state`` from the log at this version."""

    @abstractmethod
    def newest_version(self) -> int:
        """Return the version that the implementation opens by default."""

    @abstractmethod
    def hash_files(self, paths: Collection[str]) -> Mapping[str, tuple[int, str]]:
        """Return the size and SHA-256 of each data file; all exist."""

    @abstractmethod
    def count_rows(self, version: int, paths: Collection[str]) -> int:
        """Count the rows of a version whose files all exist."""

    def list_files(self) -> Mapping[str, int]:
        """Map each file below the table, by its relative path, to its size in bytes.

        Raises :class:`ReleaseError` for symbolic links, whose targets are not the table's, for anything else that
        readers may take for a file, and if a directory cannot be listed.
        """
        root = self.find_directory()
        if root is None:
            return self.list_store()
        try:
            found = {place.relative_to(root).as_posix(): place.lstat() for place in _walk(root)}
        except OSError as error:
            name = show_name(str(error.filename))
            raise ReleaseError(f"table {self.path}: {name} cannot be read ({error.strerror}).") from None
        for path, about in sorted(found.items()):
            if stat.S_ISLNK(about.st_mode):
                raise ReleaseError(f"table {self.path}: {show_name(path)} is a symbolic link. {_FORGED}")
            is_directory = stat.S_ISDIR(about.st_mode) and not (path.startswith(_IN_LOG) and path not in _IN_LOGS)
            if not (is_directory or stat.S_ISREG(about.st_mode)):
                what = "is neither a file nor a directory of a Delta table."
                raise ReleaseError(f"table {self.path}: {show_name(path)} {what} {_FORGED}")
        return {path: about.st_size for path, about in found.items() if stat.S_ISREG(about.st_mode)}

    def version(self) -> int:
        """Return the greatest version of any file of the log, or -1 if there is no table."""
        return find_newest(_names_of_log(self.list_files()))

    def read_log(self, *versions: int) -> PublishedLog:
        """Read the log, with the table at these versions.

        Raises :class:`ReleaseError` if wordveil has not written the log, or if it lacks a version.
        """
        return self._read_log(self.list_files(), versions)

    def describe(self, version: int, signed: Iterable[File] = ()) -> Snapshot:
        """Describe what every reader of a version sees.

        Files that were ``signed`` are not read again while they have the same size: verification finds another content.
        Raises :class:`ReleaseError` if two readers could see two tables, and as :meth:`read_log`.
        """
        present = self.list_files()
        log = self._read_log(present, (version,))
        if unknown := sorted(find_leftovers(present, log)):
            raise ReleaseError(
                f"table {self.path}: {show_name(unknown[0])} is a file that neither table nor log names. Readers "
                f"of the directory may take it for a part of the table. {_FORGED} Delete the file, or publish again."
            )
        if self.newest_version() != log.newest or not self.is_read_as(version, log.states[version]):
            raise ReleaseError(
                f"table {self.path}: readers find something else in version {version} than its log says. {_FORGED}"
            )
        return self._add_contents(summarise(log.states[version]), version, present, signed)

    def _add_contents(
        self, told: Snapshot, version: int, present: Mapping[str, int], signed: Iterable[File]
    ) -> Snapshot:
        """Add the digests of files and the number of rows to what the log has ``told``."""
        digests = {file.path: file.sha256 for file in signed if present.get(file.path) == file.bytes}
        contents = {path: (present[path], digest) for path, digest in digests.items()}
        unread = [file.path for file in told.files if file.path in present.keys() - contents.keys()]
        contents |= self.hash_files(unread)
        files = tuple(
            file._replace(bytes=contents[file.path][0], sha256=contents[file.path][1])
            if file.path in contents
            else file
            for file in told.files
        )
        if not all(file.sha256 for file in files):  # readers fail
            return replace(told, files=files)
        return replace(told, files=files, records=self.count_rows(version, [file.path for file in files]))

    def _read_log(self, present: Iterable[str], versions: Iterable[int]) -> PublishedLog:
        wanted = set(versions)
        try:
            log = read_published_log(_names_of_log(present), lambda name: self.read_file(f"{_IN_LOG}{name}"), wanted)
        except LogError as error:
            raise ReleaseError(f"table {self.path}: {error} {_FORGED}") from None
        except LostVersionError:
            raise lost_version(f"table {self.path}", max(wanted, default=0)) from None
        if lost := wanted - log.states.keys():
            raise lost_version(f"table {self.path}", max(lost))
        return log


@dataclass(frozen=True)
class Verified:
    """Manifest that its table matches, and the digest of the manifest's file."""

    manifest: Manifest
    manifest_sha256: str


def verify_table(
    table: PublishedTable,
    manifest: str | None = None,
    public_key: str | None = None,
    at_least: int = 0,
    table_epsilon: float | None = None,
) -> Verified:
    """Check a published table against its manifest, without key or configuration.

    ``manifest``: the path of the manifest; None: the one inside the table. ``public_key``: the release's public key, 64
    hexadecimal digits, from another source than the table; None: any key will do. ``at_least``: the smallest number of
    the publication; nothing else reveals an older table that was put back. ``table_epsilon``: the largest epsilon for a
    record of a shuffled table; such a table's figures are computed again in any case. Raises :class:`ReleaseError` with
    the differences if the table is not the one that was signed.
    """
    file = manifest or f"{table.path}/{MANIFEST}"
    text = table.read_text(file)
    if text is None:
        raise ReleaseError(
            f"manifest {file}: no such file. Name the directory of a published table, or its manifest with --manifest."
        )
    if table.version() < 0:
        raise ReleaseError(f"table {table.path}: is not a Delta table. Name the directory of a published table.")
    try:
        document = load_strictly(text)
    except (ValueError, RecursionError):
        raise ReleaseError(f"manifest {file}: is not JSON. Use the one that was published.") from None
    signed = open_document(document, public_key)
    if signed.publication < at_least:
        raise ReleaseError(
            f"publication = {signed.publication}: is older than {at_least}, which you have seen. Somebody has put an "
            "older table back: what was withdrawn since may be in it. Do not use it; ask its owner to publish again."
        )
    _check_tables(table, signed, table_epsilon)
    compare_with(table, signed)
    return Verified(signed, hash_text(text))


def _check_tables(table: PublishedTable, signed: Manifest, table_epsilon: float | None) -> None:
    """Raise :class:`ReleaseError` if the figures of a shuffled table do not follow, or are above ``table_epsilon``."""
    where = f"table {table.path}:"
    if table_epsilon is not None and not signed.tables:
        raise ReleaseError(f"{where} is not shuffled, so it has no epsilon of the table (output.shuffle).")
    if signed.tables and sum(added.records for added in signed.tables) != signed.snapshot.records:
        raise ReleaseError(f"{where} has {signed.snapshot.records:,} rows, and its manifest accounts for others.")
    for added in signed.tables:
        if not added.is_true():
            raise ReleaseError(
                f"{where} epsilon {added.epsilon:g} at delta {added.delta:g} does not follow from a smallest group of "
                f"{added.rows:,} rows that lose {added.local_epsilon:g} each. Ask its owner."
            )
        if table_epsilon is not None and added.epsilon > table_epsilon:
            raise ReleaseError(
                f"{where} epsilon {added.epsilon:g} of one addition of rows is above {table_epsilon:g}, the most that "
                "you accept."
            )


def compare_with(table: PublishedTable, signed: Manifest) -> None:
    """Raise :class:`ReleaseError` unless readers see the signed table, at its version and by default."""
    newest = table.version()
    if newest < signed.public_version:
        raise ReleaseError(
            f"table {table.path}: is at version {newest}, and version {signed.public_version} was signed. It was "
            "restored from an older state. Publish again."
        )
    compare(signed.snapshot, table.describe(signed.public_version))
    if newest == signed.public_version:
        return
    states = table.read_log(newest, signed.public_version).states
    if str(states[newest]) != str(states[signed.public_version]) or not table.is_read_as(newest, states[newest]):
        raise ReleaseError(
            f"table {table.path}: version {signed.public_version} is the one that was signed, but version {newest} is "
            "another: somebody has written to the table, or it is being published at this moment. Verify again, and "
            "then find out who has written."
        )


def summarise(state: State) -> Snapshot:
    """Describe a version by its log alone: no rows are counted, and no file is hashed."""
    metadata = dict(state.metadata)
    files = (
        File(path, add["size"], "", dict(add["partitionValues"]), hash_text(add["stats"]) if add.get("stats") else "")
        for path, add in state.added.items()
    )
    return Snapshot(
        schema=json.loads(metadata.pop("schemaString")),
        partition_by=tuple(metadata.pop("partitionColumns")),
        metadata=metadata,
        protocol=state.protocol,
        records=-1,
        files=tuple(sorted(files, key=lambda file: file.path)),
    )


def find_leftovers(present: Iterable[str], log: PublishedLog) -> set[str]:
    """Return the files below a table that no version of it names, except log and manifest."""
    ours = {path for path in present if path.startswith(_IN_LOG) or path == MANIFEST or _CHECKSUM.fullmatch(path)}
    return set(present) - ours - log.named


def _walk(root: Path) -> Iterator[Path]:
    """List everything below a directory. Raises :class:`OSError` if a directory cannot be listed."""

    def fail(error: OSError) -> None:
        if Path(error.filename) != root:  # there is no table
            raise error

    for directory, *names in os.walk(root, onerror=fail):
        yield from (Path(directory, name) for name in (*names[0], *names[1]))


def lost_version(subject: str, version: int) -> ReleaseError:
    """Make the error of a version that cannot be read; ``subject`` names the table."""
    return ReleaseError(f"{subject}: its log no longer has version {version}, or is damaged. Publish again.")


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _names_of_log(present: Iterable[str]) -> list[str]:
    return [path.removeprefix(_IN_LOG) for path in present if path.startswith(_IN_LOG)]
