"""A built mechanism as a content-addressed directory that workers map into memory.

A *store* is a directory of bundles, each named by its mechanism fingerprint:

    <store>/<fingerprint>/manifest.json   what it is, with a checksum of every file and of itself
    <store>/<fingerprint>/words.txt       the vocabulary, UTF-8, one word a line
    <store>/<fingerprint>/<array>.bin     arrays, little-endian, C order; dtype and shape stand in the manifest
    <store>/<fingerprint>/<file>          files in a library's own format (Annoy's trees), mapped by that library

The fingerprint covers vocabulary, arrays, files, parameters and the sampler's version; never software versions or time.
Arrays are raw bytes, so that no library's file format can change them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.base import Built, Mechanism
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.privacy.guarantees import WordGuarantee
from wordveil.text.policy import TextPolicy
from wordveil.vocabulary import Vocabulary

FORMAT_VERSION = 1
_MANIFEST = "manifest.json"
_WORDS = "words.txt"
_READ = 2**20


@dataclass(frozen=True)
class Recipe:
    """What a bundle was asked to be: a configuration names a bundle by this.

    ``settings`` are the mechanism's own, ``embedding_digest`` the SHA-256 of the embedding's files.
    """

    mechanism: str
    settings: dict[str, Any]
    padding: bool
    embedding: str
    embedding_digest: str

    def differences(self, manifest: Mapping[str, Any]) -> list[str]:
        """How a bundle differs from this recipe, in the words of the configuration; empty if it matches.

        Where the embedding is not at hand (``embedding_digest`` empty) its name is compared.
        """
        other = manifest["recipe"]
        pairs = [("mechanism.name", self.mechanism, other["mechanism"]), ("padding", self.padding, other["padding"])]
        settings = sorted({*self.settings, *other["settings"]})
        pairs += [(f"mechanism.{key}", self.settings.get(key), other["settings"].get(key)) for key in settings]
        if self.embedding_digest:
            pairs.append(("content of mechanism.embedding", self.embedding_digest[:16], other["embedding_digest"][:16]))
        else:
            pairs.append(("mechanism.embedding", self.embedding, other["embedding"]))
        return [f"{name} is {theirs} in the bundle, {mine} in the configuration" for name, mine, theirs in pairs if mine != theirs]


@dataclass(frozen=True)
class Bundle:
    """A verified, memory-mapped bundle.

    Attributes
    ----------
    path: its directory.
    fingerprint: the mechanism fingerprint, 64 hexadecimal digits.
    manifest: the manifest as written.
    vocabulary: the words.
    guarantee: the certified constants of one token.
    mechanism: ready to draw.
    """

    path: Path
    fingerprint: str
    manifest: dict[str, Any]
    vocabulary: Vocabulary
    guarantee: WordGuarantee
    mechanism: Mechanism

    @property
    def identity(self) -> bytes:
        """The manifest as bytes: what a worker needs to check the payload it finds."""
        return _canonical(self.manifest)

    def check_policy(self, policy: TextPolicy) -> None:
        """Raise :class:`BundleError` unless the mechanism can draw what the policy makes of texts."""
        if policy.pads != self.manifest["recipe"]["padding"]:
            built = "with" if not policy.pads else "without"
            raise BundleError(
                f"bundle {self.path}: was built {built} padding, text.length is {policy.length}. Build one for this policy."
            )
        if (policy.n_max or 0) > self.mechanism.max_tokens:
            raise BundleError(
                f"text.n_max = {policy.n_max}: this mechanism's noise reaches {self.mechanism.max_tokens} tokens a record."
            )

    @property
    def payload_bytes(self) -> int:
        """Size of all files that the manifest lists."""
        return sum(int(entry["bytes"]) for entry in self.manifest["content"]["files"].values())


def write(store: Path, embedding: Embedding, built: Built, recipe: Recipe, provenance: Mapping[str, Any]) -> Path:
    """Write a bundle into ``store`` and return its directory.

    All files are complete on disk before the directory gets its name; the same bundle already there is left as it is.
    """
    store.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".building-", dir=store))
    try:
        manifest = _fill(draft, embedding, built, recipe, provenance)
        target = store / str(manifest["fingerprint"])
        draft.chmod(0o755)
        try:
            draft.rename(target)
        except OSError:
            if not (target / _MANIFEST).is_file():
                raise
            open_bundle(target)  # the same content, written before or at the same time
        _sync(store)
        return target
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(draft: Path, embedding: Embedding, built: Built, recipe: Recipe, provenance: Mapping[str, Any]) -> dict[str, Any]:
    words = "".join(f"{word}\n" for word in embedding.words.to_pylist()).encode("utf-8")
    files = {_WORDS: _write_file(draft / _WORDS, memoryview(words))}
    for name, array in built.arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        entry = _write_file(draft / f"{name}.bin", memoryview(little.tobytes()))
        files[f"{name}.bin"] = {**entry, "array": name, "dtype": little.dtype.str, "shape": list(little.shape)}
    for name, write_to in built.files.items():
        write_to(draft / name)
        files[name] = {**_settle_file(draft / name), "raw": True}
    content = {
        "format_version": FORMAT_VERSION,
        "mechanism": recipe.mechanism,
        "sampler_version": MECHANISMS[recipe.mechanism].sampler_version,
        "parameters": built.parameters,
        "size": embedding.size,
        "files": files,
    }
    manifest = {
        "content": content,
        "fingerprint": hashlib.sha256(_canonical(content)).hexdigest(),
        "guarantee": built.guarantee.to_dict(),
        "recipe": {**recipe.__dict__},
        "notes": [*embedding.warnings, *built.notes],
        "provenance": dict(provenance),
    }
    manifest["seal"] = _seal(manifest)
    _write_file(draft / _MANIFEST, memoryview(json.dumps(manifest, indent=1, ensure_ascii=False).encode("utf-8")))
    _sync(draft)
    return manifest


def open_bundle(path: Path, identity: bytes | None = None) -> Bundle:
    """Open and verify a bundle: every file's size and SHA-256, the manifest's own checksum and the fingerprint.

    ``identity``: the manifest that the bundle must have (:attr:`Bundle.identity`), where the caller knows it. Raises
    :class:`BundleError`, which names the file.
    """
    manifest = _read_manifest(path)
    if identity is not None and _canonical(manifest) != identity:
        raise BundleError(f"{path / _MANIFEST}: this is not the bundle that the run was started with.")
    content = manifest["content"]
    for name, entry in content["files"].items():
        _verify_file(path / name, entry)
    words = (path / _WORDS).read_text("utf-8").split("\n")[:-1]
    arrays = {entry["array"]: _map(path / name, entry) for name, entry in content["files"].items() if "array" in entry}
    raw = {name: path / name for name, entry in content["files"].items() if entry.get("raw")}
    mechanism = MECHANISMS[content["mechanism"]]
    return Bundle(
        path=path,
        fingerprint=manifest["fingerprint"],
        manifest=manifest,
        vocabulary=Vocabulary(pa.array(words, pa.string())),
        guarantee=WordGuarantee.from_dict(manifest["guarantee"]),
        mechanism=mechanism.load(content["size"], content["parameters"], arrays, raw),
    )


def find(store: Path, recipe: Recipe) -> Path | None:
    """The bundle in ``store`` that matches ``recipe``, or None where the store holds no bundle at all.

    Raises :class:`BundleError` where there are bundles and none matches; it says how the nearest differs.
    """
    found: list[tuple[list[str], Path]] = []
    for path in sorted(store.glob("*")) if store.is_dir() else []:
        if (path / _MANIFEST).exists() and not path.name.startswith("."):
            differences = recipe.differences(_read_manifest(path))
            if not differences:
                return path
            found.append((differences, path))
    if not found:
        return None
    differences, nearest = min(found, key=lambda pair: len(pair[0]))
    raise BundleError(
        f"bundle {store}: none of {len(found)} bundle(s) matches the configuration. Nearest is {nearest.name[:16]}: "
        + "; ".join(differences)
        + ". Run `wordveil build` with this configuration, or set it to what the bundle is."
    )


def _read_manifest(path: Path) -> dict[str, Any]:
    file = path / _MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(file.read_text("utf-8"))
        version = manifest["content"]["format_version"]
        seal = manifest["seal"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{file}: missing or damaged ({type(error).__name__}). Build the bundle again.") from None
    if version != FORMAT_VERSION:
        raise BundleError(f"{file}: format_version {version} is not {FORMAT_VERSION}. Build the bundle again with this wordveil.")
    if seal != _seal(manifest) or manifest["fingerprint"] != hashlib.sha256(_canonical(manifest["content"])).hexdigest():
        raise BundleError(f"{file}: altered since it was written. Build the bundle again.")
    known = MECHANISMS.get(manifest["content"]["mechanism"])
    if known is None or known.sampler_version != manifest["content"]["sampler_version"]:
        raise BundleError(f"{file}: its mechanism or sampler version is unknown to this wordveil. Build the bundle again.")
    return manifest


def _verify_file(file: Path, entry: Mapping[str, Any]) -> None:
    try:
        size = file.stat().st_size
        if size != entry["bytes"]:
            raise BundleError(
                f"{file}: {size} bytes, the manifest says {entry['bytes']}. It is truncated or altered; build the bundle again."
            )
        with file.open("rb") as stream:
            digest = _digest(stream)
    except OSError as error:
        raise BundleError(f"{file}: cannot be read ({error.strerror}). Build the bundle again.") from None
    if digest != entry["sha256"]:
        raise BundleError(f"{file}: its checksum is not the manifest's. It was altered; build the bundle again.")


def _map(file: Path, entry: Mapping[str, Any]) -> NDArray[Any]:
    """A read-only view of the file's pages; all processes on a machine share them."""
    return np.asarray(np.memmap(file, np.dtype(entry["dtype"]), mode="r", shape=tuple(entry["shape"])))


def _write_file(file: Path, data: memoryview) -> dict[str, Any]:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    return {"bytes": data.nbytes, "sha256": hashlib.sha256(data).hexdigest()}


def _settle_file(file: Path) -> dict[str, Any]:
    """The entry of a file that a library wrote, once it is on disk."""
    with file.open("rb+") as stream:
        os.fsync(stream.fileno())
        return {"bytes": file.stat().st_size, "sha256": _digest(stream)}


def _digest(stream: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := stream.read(_READ):
        digest.update(block)
    return digest.hexdigest()


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _seal(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical({key: value for key, value in manifest.items() if key != "seal"})).hexdigest()
