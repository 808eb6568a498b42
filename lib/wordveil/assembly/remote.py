"""Bundles and public files on object stores, and their copies on this machine's disk, from which workers map them.

pyarrow reads the stores, without Spark or Java. It takes credentials and the endpoint from the places that the store's
own tools use: environment variables, a profile, or the machine's role.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyarrow import fs

from wordveil.artifacts import bundle as bundles
from wordveil.artifacts import content_store
from wordveil.artifacts.content_store import MANIFEST
from wordveil.credentials import hide_credentials
from wordveil.crypto.private_files import claim_directory
from wordveil.errors import BundleError, PublicFileError
from wordveil.input.locations import SCHEME, cache_directory

_AUDITS = r"\.audits/.*"


def is_remote(location: str) -> bool:
    """Return whether a location has a scheme, such as ``s3a://``."""
    return SCHEME.match(location) is not None


def fetch(setting: str, location: str) -> str:
    """Copy a public file or directory to this machine, unless its copy is as new, and return the copy's path.

    A ``location`` without a scheme is returned as it is. ``setting`` names it in messages. Raises
    :class:`PublicFileError` if it cannot be read.
    """
    if not is_remote(location):
        return location
    copy = _Copy(setting, location.rstrip("/"))
    names = copy.update()
    if not names:
        raise PublicFileError(f"{setting} = {location}: no such file or directory. Name an existing one.")
    copy.forget(names)
    return str(copy.path)


@dataclass(frozen=True)
class BundleStore:
    """Store of bundles on this machine, or the copy of a remote one.

    ``location``: as configured. ``path``: the store, or the one named bundle. ``copy``: of the whole remote store.
    """

    location: str
    path: Path
    copy: _Copy | None = None

    @property
    def root(self) -> Path:
        """Path of the store, even if one of its bundles is named."""
        return self.path.parent if content_store.is_finished(self.path) else self.path

    def find(self, recipe: bundles.Recipe) -> Path | None:
        """Find the directory of the bundle that matches ``recipe``, as :func:`wordveil.artifacts.bundle.find` does."""
        path = bundles.find(self.path, recipe, self.location)
        return path and self._fetch(path)

    def find_one(self) -> Path:
        """Find the directory of the only bundle. Raises :class:`wordveil.errors.BundleError`."""
        return self._fetch(bundles.find_one(self.path))

    def _fetch(self, bundle: Path) -> Path:
        if self.copy:
            if bundles.is_private(bundle):
                raise BundleError(
                    f"{self.copy.locate(bundle)}: a private corpus trained this bundle's weights, and who reads an "
                    "object store is not known. Move it to a disk, for its owner alone (chmod -R go=), and name that."
                )
            self.copy.update(directory=bundle.name)
        return bundle

    def save(self, path: Path) -> None:
        """Copy a new directory or file of this store to the store's location."""
        if self.copy:
            self.copy.upload(path)

    def locate(self, path: Path) -> str:
        """Return the location of a directory or file of this store."""
        return self.copy.locate(path) if self.copy else str(path)


def open_store(location: str, setting: str = "bundle_store") -> BundleStore:
    """Open the store of bundles at ``location``, or the one bundle there; update a remote one's manifests and audits.

    ``setting`` names it in messages. Raises :class:`PublicFileError` if it cannot be read.
    """
    if not is_remote(location):
        return BundleStore(location, Path(location))
    copy = _Copy(setting, location.rstrip("/"))
    names = copy.update(rf"[^./][^/]*/{MANIFEST}|{_AUDITS}")
    if MANIFEST in names:  # one bundle: the store is above it
        above, _, name = copy.location.rpartition("/")
        store = open_store(above, setting)
        return BundleStore(location, store.path / name, store.copy)
    copy.forget(names, _AUDITS)  # not a bundle: a build may be about to upload it
    return BundleStore(location, copy.path, copy)


@dataclass(frozen=True)
class _Copy:
    """Copy of a remote file or directory in the user's cache."""

    setting: str
    location: str

    @property
    def path(self) -> Path:
        """Path of the file or directory, with the name of the original."""
        above = f"remote-{sha256(self.location.encode()).hexdigest()[:16]}"
        return cache_directory() / above / PurePosixPath(self.location).name

    def update(self, pattern: str = ".*", directory: str = "") -> set[str]:
        """Copy the files whose name fits the pattern, unless the copy has their size and time.

        Returns the names of all files at the location, or in its ``directory``, relative to it; ``"."`` for a file.
        """
        with self._open() as (store, root):
            place = f"{root}/{directory}".rstrip("/")
            single, inside = store.get_file_info(place), fs.FileSelector(place, allow_not_found=True, recursive=True)
            entries = [single] if single.is_file else [entry for entry in store.get_file_info(inside) if entry.is_file]
            # Keys of an object store may have parts that lead out of the copy.
            paths = {PurePosixPath(entry.path): entry for entry in entries if ".." not in entry.path.split("/")}
            files = {str(path.relative_to(root)): entry for path, entry in paths.items()}
            self._claim()
            for name, entry in files.items():
                if re.fullmatch(pattern, name) and not _is_same(self.path / name, entry):
                    _download(store, entry, self.path / name)
        return set(files)

    def _claim(self) -> None:
        """Make the copy the owner's alone: a manifest may be private, and the cache decides what is drawn."""
        for directory in (cache_directory(), self.path.parent):
            try:
                claim_directory(directory)
            except OSError as error:
                raise PublicFileError(
                    f"{self.setting} = {self.location}: its copy cannot be kept in {directory} ({error.strerror}). Set "
                    "XDG_CACHE_HOME to a directory of your own."
                ) from None

    def forget(self, names: Collection[str], pattern: str = ".*") -> None:
        """Delete the files of the copy whose name fits the pattern and is not among ``names``."""
        for file in self.path.rglob("*"):
            name = file.relative_to(self.path).as_posix()
            if file.is_file() and name not in names and re.fullmatch(pattern, name):
                file.unlink(missing_ok=True)

    def upload(self, path: Path) -> None:
        """Copy a file or directory of the copy to the location, its manifest last."""
        with self._open() as (store, root):
            files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
            for made in {self.path, path, *files, *(file.parent for file in files)}:
                made.chmod(0o700 if made.is_dir() else 0o600)  # until here the directory above hides it
            for file in sorted(files, key=lambda file: file.name == MANIFEST):
                target = f"{root}/{file.relative_to(self.path).as_posix()}"
                store.create_dir(str(PurePosixPath(target).parent))
                fs.copy_files(str(file), target, destination_filesystem=store)
                _take_time(file, store.get_file_info(target))

    def locate(self, path: Path) -> str:
        """Return the location of the original of a file or directory."""
        return f"{self.location}/{path.relative_to(self.path).as_posix()}"

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, str]]:
        try:
            yield fs.FileSystem.from_uri(re.sub("^s3[an]:", "s3:", self.location))
        except (OSError, pa.ArrowException) as error:
            cause = hide_credentials(str(error).partition("\n")[0])
            raise PublicFileError(
                f"{self.setting} = {self.location}: cannot be read or written ({cause}). The driver takes credentials "
                "and the endpoint from the environment, such as AWS_REGION and AWS_ENDPOINT_URL, a profile or the "
                "machine's role: see `wordveil docs operations`. A path on the driver's own disk needs none."
            ) from None


def _is_same(file: Path, entry: Any) -> bool:
    found = file.stat() if file.exists() else None
    return found is not None and (found.st_size, found.st_mtime_ns) == (entry.size, entry.mtime_ns)


def _download(store: Any, entry: Any, target: Path) -> None:
    """Copy a file with its time. It gets its name once it is whole: other commands may read the copy."""
    for directory in reversed([target.parent, *target.parent.relative_to(cache_directory()).parents]):
        (cache_directory() / directory).mkdir(mode=0o700, exist_ok=True)
    with TemporaryDirectory(dir=cache_directory(), prefix="fetching-") as draft:
        fs.copy_files(entry.path, f"{draft}/file", source_filesystem=store)
        Path(draft, "file").chmod(0o600)
        _take_time(Path(draft, "file"), entry)
        Path(draft, "file").replace(target)


def _take_time(file: Path, entry: Any) -> None:
    """Give a copy the time of its original, by which a later command sees that it is as new."""
    os.utime(file, ns=(entry.mtime_ns, entry.mtime_ns))
