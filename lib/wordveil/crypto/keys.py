"""Key files, epochs, subkeys and fingerprints.

A release needs one master key of 32 bytes. Each purpose uses its own subkey, derived by HKDF-SHA256 (RFC 5869) with the
release and the purpose in ``info``, so that no two purposes and no two releases share key bytes. The master key stays
on the driver; Spark's workers receive the subkeys of one release.

A file may hold several master keys, one an **epoch**. The first is the root: tags, the fingerprint and signatures come
from it for the whole life of the release. Noise comes from the last, so that draws of earlier epochs do not depend on a
key in use.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from string import hexdigits

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from wordveil.crypto.private_files import find_exposure, sync_directory
from wordveil.errors import KeyMaterialError

KEY_BYTES = 32
# A new key in place of a lost one draws and charges every record again.
_MAKE_ONE = "Put back the copy of a key that was used before; make a first one with: wordveil key new FILE"
_TOMBSTONE = re.compile(r"wordveil key ([0-9a-f]{16}) was destroyed on (\d{4}-\d{2}-\d{2})\s*", re.ASCII)


class Secret:
    """Bytes that do not show themselves: ``repr``, ``str`` and format specs print ``<secret>``."""

    __slots__ = ("_material",)

    def __init__(self, material: bytes) -> None:
        self._material = bytes(material)

    def reveal(self) -> bytes:
        """Return the bytes. Only for a cipher or a MAC."""
        return self._material

    def __repr__(self) -> str:
        return "<secret>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._material == self._material

    def __hash__(self) -> int:
        return hash(("wordveil.Secret", self._material))


@dataclass(frozen=True)
class ReleaseKeys:
    """Subkeys of one release: 32 bytes each, independent of each other.

    ``context`` keys the contexts' MAC, ``noise`` the blocks that become noise, ``sampling`` and ``shuffle`` the blocks
    that choose positions and destroy order, ``types`` the values of typed tokens, ``tag`` the content tags, ``layout``
    the order of an output's rows, ``pseudonym`` and ``rotating_pseudonym`` pseudonyms of columns. All but ``tag``,
    ``layout`` and ``pseudonym`` belong to the current epoch.
    """

    context: Secret
    noise: Secret
    sampling: Secret
    shuffle: Secret
    types: Secret
    rotating_pseudonym: Secret
    tag: Secret
    layout: Secret
    pseudonym: Secret

    @property
    def layout_seed(self) -> int:
        """Key of the order of an output's rows: 64 bits, signed. Spark's plans show it, which does no harm."""
        return int.from_bytes(self.layout.reveal()[:8], "little", signed=True)


@dataclass(frozen=True)
class Tombstone:
    """Remainder of a destroyed key: the root's fingerprint and the UTC date (``2026-11-20``)."""

    fingerprint: str
    date: str

    def __str__(self) -> str:
        return f"wordveil key {self.fingerprint} was destroyed on {self.date}"


class MasterKey:
    """Master key of 32 bytes, and those of later epochs. :func:`load_key` reads the one that the configuration names.

    ``material`` is the root, epoch 1; ``later`` are the epochs 2, 3 and so on. Raises :class:`KeyMaterialError`.
    """

    def __init__(self, material: bytes, source: str = "this key", *, later: Sequence[bytes] = ()) -> None:
        epochs = (material, *later)
        for number, epoch in enumerate(epochs, 1):
            where = source if len(epochs) == 1 else f"{source}, epoch {number},"
            if len(epoch) != KEY_BYTES:
                raise KeyMaterialError(f"{where} has {len(epoch)} bytes; a key has {KEY_BYTES} bytes. {_MAKE_ONE}")
            if len(set(epoch)) < 8:
                raise KeyMaterialError(f"{where} repeats a few byte values, so it is not a random key. {_MAKE_ONE}")
            if epoch in epochs[: number - 1]:
                first = epochs.index(epoch) + 1
                raise KeyMaterialError(
                    f"{where} repeats epoch {first}: each epoch needs its own key. Remove the line, then run: "
                    "wordveil key rotate FILE"
                )
        self._epochs = tuple(Secret(epoch) for epoch in epochs)

    @property
    def epoch(self) -> int:
        """Current epoch, counted from 1."""
        return len(self._epochs)

    def subkey(self, purpose: str, release: str = "") -> Secret:
        """Derive 32 bytes from the root for ``purpose`` (ASCII) and ``release`` by HKDF-SHA256."""
        return _derive(self._epochs[0], purpose, release)

    def for_release(self, release: str, epoch: int | None = None) -> ReleaseKeys:
        """Derive all subkeys of ``release`` in an epoch, by default the current one; three of them are the root's.

        Raises :class:`IndexError` for an epoch that the key does not have.
        """
        chosen = self._epochs[(self.epoch if epoch is None else epoch) - 1]
        purposes = ("context", "noise", "sampling", "shuffle", "types", "rotating_pseudonym")
        current = {name: _derive(chosen, name, release) for name in purposes}
        lasting = {name: self.subkey(name, release) for name in ("tag", "layout", "pseudonym")}
        return ReleaseKeys(**current, **lasting)

    def signing_key(self, release: str) -> Ed25519PrivateKey:
        """Derive the Ed25519 key that signs manifests of ``release``, the same in every epoch."""
        return Ed25519PrivateKey.from_private_bytes(self.subkey("signing", release).reveal())

    @property
    def fingerprint(self) -> str:
        """Identifier of the root, and with it of the release's key: 16 hexadecimal digits that do not reveal it."""
        return self.epoch_fingerprints[0]

    @property
    def epoch_fingerprints(self) -> tuple[str, ...]:
        """One fingerprint an epoch; the first is :attr:`fingerprint`."""
        return tuple(_derive(epoch, "fingerprint", "").reveal()[:8].hex() for epoch in self._epochs)

    def __repr__(self) -> str:
        return f"<MasterKey {self.fingerprint}>"


def _derive(key: Secret, purpose: str, release: str) -> Secret:
    label = f"wordveil 1|{purpose}|".encode("ascii") + release.encode("utf-8")
    kdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=label)
    return Secret(kdf.derive(key.reveal()))


def encode_public_key(key: Ed25519PrivateKey) -> str:
    """Encode the public half of a signing key, which readers of a release pin: 64 hexadecimal digits."""
    return key.public_key().public_bytes_raw().hex()


def find_key_fault(recorded_root: str, recorded_epochs: Sequence[str], key: MasterKey) -> str | None:
    """Explain why ``key`` cannot serve a release that recorded these fingerprints, or return None if it can.

    ``recorded_epochs``: one for each epoch, the root's first. A key that was rotated since, with more epochs, is right.
    """
    epochs = key.epoch_fingerprints
    if key.fingerprint != recorded_root:
        return (
            f"the key is {key.fingerprint}, but the release was drawn with {recorded_root}. Name the release's own "
            "key. Another key would draw and charge every record again, which needs a new release."
        )
    for number, (recorded, given) in enumerate(zip(recorded_epochs, epochs, strict=False), 1):
        if recorded != given:
            return (
                f"epoch {number} of key {recorded_root} is {given}, but the release was drawn with {recorded}: the key "
                "was rotated in two places. Restore the file that the release was drawn with."
            )
    if len(epochs) < len(recorded_epochs):
        return (
            f"key {recorded_root} has {len(epochs)} {'epoch' if len(epochs) == 1 else 'epochs'}, but the release was "
            f"drawn with {len(recorded_epochs)}: the key is older than the release. Restore the rotated key."
        )
    return None


def create_key(file: Path) -> MasterKey:
    """Write a random key to a new file that only its owner can read.

    Raises :class:`KeyMaterialError`. An existing key is never overwritten, since its draws could not be repeated.
    """
    material = secrets.token_bytes(KEY_BYTES)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise KeyMaterialError(f"{file} exists already, and a key is never overwritten. Name another file.") from None
    except OSError as error:
        raise KeyMaterialError(
            f"{file} cannot be written ({error.strerror}). Name a file in a directory that you may write to."
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(material.hex() + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    return MasterKey(material, str(file))


def rotate_key(file: Path) -> MasterKey:
    """Append a random key, a new epoch, to a key file, atomically. Mode and owner stay.

    Raises :class:`KeyMaterialError` if the file is not a valid key or cannot be replaced.
    """
    load_key(str(file), None)
    with _lock_key_file(file) as (path, draft, stream):
        # Read again: until here another rotation may have added an epoch, and replacing the file would lose it.
        epochs = [*_parse_digits(_read_private(path), f"key.file {file}"), secrets.token_hex(KEY_BYTES)]
        master = _make_master(epochs, f"key.file {file}")
        before = path.stat()
        os.fchown(stream, before.st_uid, before.st_gid)
        os.fchmod(stream, stat.S_IMODE(before.st_mode))
        os.write(stream, "".join(f"{epoch}\n" for epoch in epochs).encode("ascii"))
        os.fsync(stream)
        draft.replace(path)
        sync_directory(path.parent)
    return master


def destroy_key(file: Path) -> Tombstone:
    """Overwrite a key file in place with a :class:`Tombstone`, which makes :func:`load_key` refuse it.

    This overwrites the blocks that the file has now. It does not reach backups, snapshots, copies elsewhere, or earlier
    blocks on storage that never overwrites (copy-on-write, flash). Raises :class:`KeyMaterialError`.
    """
    master = load_key(str(file), None)
    tombstone = Tombstone(master.fingerprint, f"{datetime.now(UTC):%Y-%m-%d}")
    with _lock_key_file(file) as (path, _, _):
        before = path.stat()
        path.chmod(stat.S_IMODE(before.st_mode) | stat.S_IWUSR)
        try:
            # Without truncation, which would free the blocks that are to be overwritten.
            with path.open("r+b") as stream:
                stream.write(str(tombstone).encode("ascii").ljust(before.st_size) + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            path.chmod(stat.S_IMODE(before.st_mode))
    return tombstone


@contextmanager
def _lock_key_file(file: Path) -> Iterator[tuple[Path, Path, int]]:
    """Lock a key file: its path with links resolved, a draft beside it, and the draft's descriptor.

    The draft's name is always the same, so that of two commands that change a key one is refused.
    """
    path = file.resolve()
    draft = path.with_name(f".{path.name}.wordveil-draft")
    try:
        stream = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            yield path, draft, stream
        finally:
            os.close(stream)
            draft.unlink(missing_ok=True)
    except FileExistsError:
        raise KeyMaterialError(
            f"{draft} exists: another command is changing the key, or one was killed. If none is running, delete the "
            "file; it may hold the key."
        ) from None
    except OSError as error:
        raise KeyMaterialError(
            f"{file} cannot be changed ({error.strerror}). Run this as its owner, in a directory that you may write to."
        ) from None


def load_key(file: str | None, env: str | None) -> MasterKey:
    """Load the master key from a file or an environment variable, exactly one of which is named.

    The content is 64 hexadecimal digits for each epoch, the root's first, separated by white space. Only its owner may
    be able to read the file. Raises :class:`KeyMaterialError`, which never shows the content.
    """
    if (file is None) == (env is None):
        raise KeyMaterialError("Name exactly one of key.file and key.env. Nothing is drawn without a key.")
    if file is not None:
        # A relative path was made absolute: a key that was given for it is its last part.
        name = Path(file).name.strip()
        if len(name) >= 2 * KEY_BYTES and set(name) <= set(hexdigits):
            raise KeyMaterialError(
                "key.file is a path, and its value looks like a key. Create a new key with: wordveil key new FILE, "
                "and set key.file to that file."
            )
        return _parse(_read_private(Path(file)), f"key.file {file}")
    assert env is not None
    content = os.environ.get(env)
    if not content:
        raise KeyMaterialError(
            f"key.env = {env}: this environment variable is not set. Set it to the key's 64 hexadecimal digits, or use "
            f"key.file. {_MAKE_ONE}"
        )
    return _parse(content, f"key.env {env}")


def _read_private(path: Path) -> str:
    try:
        if exposure := find_exposure(path):
            raise KeyMaterialError(f"key.file {path} {exposure}")
        return path.read_text("utf-8")
    except OSError as error:
        raise KeyMaterialError(f"key.file {path} cannot be read ({error.strerror}). {_MAKE_ONE}") from None
    except UnicodeDecodeError:
        raise KeyMaterialError(
            f"key.file {path} does not hold 64 hexadecimal digits in UTF-8 or ASCII. {_MAKE_ONE}"
        ) from None


def _parse(content: str, source: str) -> MasterKey:
    return _make_master(_parse_digits(content, source), source)


def _parse_digits(content: str, source: str) -> list[str]:
    content = content.removeprefix("\ufeff")  # Windows' editors write it first
    if dead := _TOMBSTONE.fullmatch(content):
        raise KeyMaterialError(
            f"{source}: key {dead[1]} was destroyed on {dead[2]}, so everything drawn with it is frozen. To "
            "draw again, use a new key and a new release name; every record is then charged again."
        )
    epochs = content.split()
    if not epochs or not all(len(digits) == 2 * KEY_BYTES and set(digits) <= set(hexdigits) for digits in epochs):
        raise KeyMaterialError(f"{source} does not hold 64 hexadecimal digits for each epoch. {_MAKE_ONE}")
    return epochs


def _make_master(epochs: Sequence[str], source: str) -> MasterKey:
    root, *later = (bytes.fromhex(digits) for digits in epochs)
    return MasterKey(root, source, later=later)


def make_throwaway_keys() -> ReleaseKeys:
    """Make random keys that belong to no release, different at each call."""
    return MasterKey(secrets.token_bytes(32)).for_release(f"throwaway-{secrets.token_hex(8)}")
