"""Whether a published table is the one that was signed: what its readers see is compared with the manifest.

The files alone do not decide that. Delta's log gives a table its columns, the values of its partition columns, and the
rows that readers skip. All of this is compared, at exactly the version that was signed, and at the newest version.
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
from wordveil.release.delta_log import DELTA_LOG
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
"""The manifest's name inside the public table. Readers of Delta and Parquet skip it."""
_IN_LOG = f"{DELTA_LOG}/"
# Directories that Delta makes in a log. Spark takes another one for a commit, by its name.
_IN_LOGS = {f"{DELTA_LOG}/{name}" for name in ("_staged_commits", "_sidecars", "_commits")}
_CHECKSUM = re.compile(r"(.*/)?\.[^/]+\.crc")
_FORGED = "The table is not the one that was signed."


class PublishedTable(ABC):
    """A published table as one implementation of Delta reads it. ``path``: where it is."""

    path: str

    @abstractmethod
    def list_store(self) -> Mapping[str, int]:
        """As :meth:`list_files`, of a table that is not on this machine's disk."""

    @abstractmethod
    def read_file(self, path: str) -> bytes:
        """The content of a small file of the table."""

    @abstractmethod
    def read_text(self, path: str) -> str | None:
        """The text of a file, of the table or another; None where there is none."""

    @abstractmethod
    def find_directory(self) -> Path | None:
        """Where the table is on this machine's disk; None where it is elsewhere."""

    @abstractmethod
    def is_read_as(self, version: int, state: State) -> bool:
        """Return whether the implementation reads a version as its log says."""

    @abstractmethod
    def newest_version(self) -> int:
        """The version that the implementation opens where none is named."""

    @abstractmethod
    def hash_files(self, paths: Collection[str]) -> Mapping[str, tuple[int, str]]:
        """The sizes and SHA-256 of data files that are there."""

    @abstractmethod
    def count_rows(self, version: int, paths: Collection[str]) -> int:
        """How many rows a version has, whose files are all there."""

    def list_files(self) -> Mapping[str, int]:
        """All files below the table, by their paths relative to it, with their sizes in bytes. Raises
        :class:`ReleaseError` for symbolic links: what they lead to is not the table's; and for what readers may take
        for a file, or cannot be listed.
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
        """The greatest version of any file of the log; -1 where there is no table."""
        return find_newest(_names_of_log(self.list_files()))

    def read_log(self, *versions: int) -> PublishedLog:
        """The log, with the table at these versions. Raises :class:`ReleaseError` for one that wordveil has not
        written, or that lacks a version.
        """
        return self._read_log(self.list_files(), versions)

    def describe(self, version: int, signed: Iterable[File] = ()) -> Snapshot:
        """What readers of a version see, whichever they are. Files that were ``signed`` are not read again while they
        have the same size: another content is found by whoever verifies them.

        Raises :class:`ReleaseError` where two readers could see two tables, and as :meth:`read_log`.
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
        """What the log has ``told``, with the digests of files and the number of rows."""
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
    """A manifest that its table agrees with, and the digest of the manifest's file."""

    manifest: Manifest
    manifest_sha256: str


def verify_table(
    table: PublishedTable, manifest: str | None = None, public_key: str | None = None, at_least: int = 0
) -> Verified:
    """Check a published table against its manifest. This needs neither key nor configuration.

    ``table``: the published table. ``manifest``: the path of the manifest; None: the one inside the table.
    ``public_key``: the release's public key, 64 hexadecimal digits, from another source than the table; None: any key
    will do. ``at_least``: the smallest number of the publication. Nothing else reveals an older publication that
    somebody has put back.

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
        document = load_strictly(text)
    except (ValueError, RecursionError):
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
    """A version as its log has it: no rows are counted, and no file is hashed."""
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
    """The files below a table that no version of it names, beside the log and the manifest."""
    ours = {path for path in present if path.startswith(_IN_LOG) or path == MANIFEST or _CHECKSUM.fullmatch(path)}
    return set(present) - ours - log.named


def _walk(root: Path) -> Iterator[Path]:
    """All that is below a directory. Raises :class:`OSError` for what cannot be listed."""

    def fail(error: OSError) -> None:
        if Path(error.filename) != root:  # there is no table
            raise error

    for directory, *names in os.walk(root, onerror=fail):
        yield from (Path(directory, name) for name in (*names[0], *names[1]))


def lost_version(subject: str, version: int) -> ReleaseError:
    """The error of a version that cannot be read. ``subject``: which table."""
    return ReleaseError(f"{subject}: its log no longer has version {version}, or is damaged. Publish again.")


def hash_text(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _names_of_log(present: Iterable[str]) -> list[str]:
    return [path.removeprefix(_IN_LOG) for path in present if path.startswith(_IN_LOG)]
