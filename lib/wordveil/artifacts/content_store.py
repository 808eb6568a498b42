"""Content-addressed directories: a manifest with a checksum of every file and of itself, and memory-mapped arrays.

A directory gets its name only once all its files are on disk, and everything is verified when it is opened. Arrays are
raw bytes, little-endian, in C order; the manifest has dtype and shape. So no library's file format can change them.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.crypto.private_files import create_directory, sync_directory
from wordveil.errors import WordveilError

MANIFEST = "manifest.json"
_LISTED = 8


@dataclass(frozen=True)
class Kind:
    """Kind of stored content.

    ``noun``: its name in messages. ``error``: the class of its errors. ``digest_key``: the key of its digest in the
    manifest. ``origin``: a sentence on how it is made. ``describe``: makes a short description from a manifest.
    """

    noun: str
    error: type[WordveilError]
    digest_key: str
    format_version: int
    origin: str
    describe: Callable[[Mapping[str, Any]], str]

    @property
    def hint(self) -> str:
        """Advice on a damaged directory. It is not to delete it: the directory may be sound and the disk at fault."""
        return f"Move its directory out of the store and build the {self.noun} again."

    @property
    def renewal(self) -> str:
        """Advice on a directory of another version."""
        return f"Build the {self.noun} again in another store, or use the wordveil that wrote it."


def is_finished(path: Path) -> bool:
    """Return whether ``path`` is a finished directory of a store."""
    return (path / MANIFEST).is_file()


def list_directories(store: Path) -> list[Path]:
    """List the finished directories of a store, sorted; none if there is no store."""
    return sorted(manifest.parent for manifest in store.glob(f"[!.]*/{MANIFEST}")) if store.is_dir() else []


def find_one(path: Path, kind: Kind, setting: str) -> Path:
    """Return ``path`` itself, or the only directory of the store ``path``.

    ``setting`` names it in messages. Raises ``kind.error`` unless there is exactly one.
    """
    if is_finished(path):
        return path
    directories = list_directories(path)
    if len(directories) == 1:
        return directories[0]
    if not directories:
        raise kind.error(f"{path}: holds no {kind.noun}. {kind.origin}")
    shown = ", ".join(f"{path.name} ({_describe(path, kind)})" for path in directories[:_LISTED])
    more = f" and {len(directories) - _LISTED} more" if len(directories) > _LISTED else ""
    raise kind.error(
        f"{path}: holds {len(directories)} {kind.noun}s: {shown}{more}. Set {setting} to the directory of one of them."
    )


def _describe(path: Path, kind: Kind) -> str:
    try:
        return kind.describe(read_manifest(path, kind))
    except kind.error:
        return "cannot be opened"


def write_directory(
    store: Path,
    kind: Kind,
    fill: Callable[[Path], dict[str, Any]],
    verify: Callable[[Path], object],
    variant: Callable[[dict[str, Any]], str] = lambda _: "",
    *,
    private: bool = False,
) -> Path:
    """Write a directory into ``store`` and return its path.

    ``fill`` writes its files and returns the manifest, whose digest becomes the directory's name. An existing directory
    with the same content stays unchanged, once ``verify`` has opened it. ``variant`` gets its manifest and may return a
    suffix, under which the new directory is then kept beside it. ``private``: only its owner can read it; otherwise the
    umask decides.
    """
    store.mkdir(parents=True, exist_ok=True)
    draft = store / f".building-{secrets.token_hex(8)}"
    create_directory(draft, private=private)
    try:
        manifest = fill(draft)
        target = store / str(manifest[kind.digest_key])
        if private:
            for file in draft.iterdir():
                file.chmod(0o600)  # a library may have written it; until here the directory hides it
        if not _rename(draft, target) and (suffix := variant(read_manifest(target, kind))):
            target = target.with_name(f"{target.name}-{suffix}")
            _rename(draft, target)
        if draft.exists():
            verify(target)  # the same content, written earlier or at the same time
        sync_directory(store)
        return target
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _rename(draft: Path, target: Path) -> bool:
    """Rename a directory, or return False if there is a finished one already."""
    try:
        draft.rename(target)
    except OSError:
        if not is_finished(target):
            raise
        return False
    return True


def write_manifest(draft: Path, kind: Kind, content: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write the manifest. The digest covers ``content`` and not ``facts``; the seal covers both."""
    digest = hashlib.sha256(encode_canonical(content)).hexdigest()
    manifest = {"content": dict(content), kind.digest_key: digest, **facts}
    manifest["seal"] = _seal(manifest)
    write_file(draft / MANIFEST, memoryview(json.dumps(manifest, indent=1, ensure_ascii=False).encode("utf-8")))
    sync_directory(draft)
    return manifest


def read_manifest(path: Path, kind: Kind) -> dict[str, Any]:
    """Read the manifest of the directory at ``path``, verified without the other files. Raises ``kind.error``."""
    file = path / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(file.read_text("utf-8"))
        version = manifest["content"]["format_version"]
        seal = manifest["seal"]
        digest = manifest[kind.digest_key]
    except (FileNotFoundError, NotADirectoryError):
        raise kind.error(f"{file}: no such file, so this is not the directory of a finished {kind.noun}.") from None
    except PermissionError:
        raise kind.error(f"{file}: cannot be read (Permission denied). Run this as the owner of {path}.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise kind.error(f"{file}: is damaged ({type(error).__name__}). {kind.hint}") from None
    if version != kind.format_version:
        raise kind.error(f"{file}: format_version {version} is not {kind.format_version}. {kind.renewal}")
    if seal != _seal(manifest) or digest != hashlib.sha256(encode_canonical(manifest["content"])).hexdigest():
        raise kind.error(f"{file}: has been altered since it was written. {kind.hint}")
    return manifest


def write_file(file: Path, data: memoryview) -> dict[str, Any]:
    """Write a file to the disk, and return its entry in the manifest: ``bytes`` and ``sha256``."""
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    return {"bytes": data.nbytes, "sha256": hashlib.sha256(data).hexdigest()}


def write_array(draft: Path, name: str, array: NDArray[Any]) -> dict[str, dict[str, Any]]:
    """Write ``array`` as the file ``<name>.bin``, and return the file's name with its entry in the manifest."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    entry = write_file(draft / f"{name}.bin", memoryview(little.tobytes()))
    return {f"{name}.bin": {**entry, "array": name, "dtype": little.dtype.str, "shape": list(little.shape)}}


def sync_file(file: Path) -> dict[str, Any]:
    """Flush a file that a library wrote to the disk, and return its entry in the manifest."""
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())
        return {"bytes": file.stat().st_size, "sha256": hashlib.file_digest(stream, "sha256").hexdigest()}


def verify_files(path: Path, kind: Kind, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Check size and SHA-256 of all ``files`` of the directory. Raises ``kind.error``, which names the file."""
    for name, entry in files.items():
        file = path / name
        try:
            with file.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                digest = hashlib.file_digest(stream, "sha256").hexdigest() if size == entry["bytes"] else ""
        except OSError as error:
            raise kind.error(f"{file}: cannot be read ({error.strerror}). {kind.hint}") from None
        if size != entry["bytes"]:
            problem = f"has {size} bytes, and the manifest says {entry['bytes']}. It is truncated or altered."
            raise kind.error(f"{file}: {problem} {kind.hint}")
        if digest != entry["sha256"]:
            raise kind.error(f"{file}: its checksum differs from the manifest's. It was altered. {kind.hint}")


def map_arrays(path: Path, files: Mapping[str, Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Map the arrays among ``files`` into memory: read-only views by name. Processes of a machine share their pages."""
    return {
        entry["array"]: np.asarray(np.memmap(path / name, entry["dtype"], mode="r", shape=tuple(entry["shape"])))
        for name, entry in files.items()
        if "array" in entry
    }


def payload_bytes(manifest: Mapping[str, Any]) -> int:
    """Sum the sizes of all files that a manifest lists."""
    return sum(int(entry["bytes"]) for entry in manifest["content"]["files"].values())


def encode_canonical(value: Mapping[str, Any]) -> bytes:
    """Encode as JSON that is the same for equal values: keys sorted, ASCII, no spaces."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _seal(manifest: Mapping[str, Any]) -> str:
    sealed = {key: value for key, value in manifest.items() if key != "seal"}
    return hashlib.sha256(encode_canonical(sealed)).hexdigest()
