"""Key files, subkeys and fingerprints.

One master key of 32 bytes is all that a release needs. Everything that is keyed uses a subkey of its own, derived by
HKDF-SHA256 (RFC 5869) with the release and the purpose in ``info``, so that no two purposes and no two releases share
key bytes. The master key stays on the driver; Spark's workers receive the subkeys of one release.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from string import hexdigits

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from wordveil.errors import KeyMaterialError

KEY_BYTES = 32
_MAKE_ONE = "Make one with: wordveil key new FILE"


class Secret:
    """Bytes that do not show themselves: ``repr``, ``str`` and format specs print ``<secret>``."""

    __slots__ = ("_material",)

    def __init__(self, material: bytes) -> None:
        self._material = bytes(material)

    def reveal(self) -> bytes:
        """The bytes, for a cipher or a MAC and nothing else."""
        return self._material

    def __repr__(self) -> str:
        return "<secret>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._material == self._material

    def __hash__(self) -> int:
        return hash(("wordveil.Secret", self._material))


@dataclass(frozen=True)
class ReleaseKeys:
    """The subkeys of one release: 32 bytes each, independent of each other.

    ``context`` keys the contexts' MAC, ``noise`` the blocks that become noise, ``sampling`` and ``shuffle`` likewise
    for positions drawn and order destroyed, ``tag`` the content tags.
    """

    context: Secret
    noise: Secret
    sampling: Secret
    shuffle: Secret
    tag: Secret


class MasterKey:
    """A 32-byte master key. Use :func:`load_key` to get one from where the configuration says it lies."""

    def __init__(self, material: bytes, place: str = "this key") -> None:
        if len(material) != KEY_BYTES:
            raise KeyMaterialError(f"{place} has {len(material)} bytes; a key has {KEY_BYTES} bytes. {_MAKE_ONE}")
        if len(set(material)) < 8:
            raise KeyMaterialError(f"{place} repeats a few byte values and is no random key. {_MAKE_ONE}")
        self._material = Secret(material)

    def subkey(self, purpose: str, release: str = "") -> Secret:
        """32 bytes derived for ``purpose`` (ASCII) and ``release`` by HKDF-SHA256."""
        label = f"wordveil 1|{purpose}|".encode("ascii") + release.encode("utf-8")
        kdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=label)
        return Secret(kdf.derive(self._material.reveal()))

    def for_release(self, release: str) -> ReleaseKeys:
        """All subkeys of ``release``."""
        return ReleaseKeys(**{name: self.subkey(name, release) for name in ("context", "noise", "sampling", "shuffle", "tag")})

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that identify the key without telling it."""
        return self.subkey("fingerprint").reveal()[:8].hex()

    def __repr__(self) -> str:
        return f"<MasterKey {self.fingerprint}>"


def new_key(file: Path) -> MasterKey:
    """Write a random key to a file that is not there yet, readable by its owner alone.

    Raises :class:`KeyMaterialError`; a key that exists is never overwritten, since what was drawn with it could not be drawn again.
    """
    material = secrets.token_bytes(KEY_BYTES)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise KeyMaterialError(f"{file} is there already, and a key is never overwritten. Name another file.") from None
    except OSError as error:
        raise KeyMaterialError(f"{file} cannot be written ({error.strerror}). Name a place where you may write.") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(material.hex() + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    return MasterKey(material, str(file))


def load_key(file: str | None, env: str | None) -> MasterKey:
    """The master key from a file or an environment variable, exactly one of which is named.

    The content is 64 hexadecimal digits; white space around them is ignored. A file must be readable by its owner
    alone. Raises :class:`KeyMaterialError`, which names the place and never shows what stands there.
    """
    if (file is None) == (env is None):
        raise KeyMaterialError("Name exactly one of key.file and key.env. No key, no run.")
    if file is not None:
        if len(file.strip()) >= 2 * KEY_BYTES and set(file.strip()) <= set(hexdigits):
            raise KeyMaterialError(
                "key.file holds what looks like a key. Put the key into a file of its own and name that file; take a new key."
            )
        return _parse(_read_private(Path(file)), f"key.file {file}")
    assert env is not None
    content = os.environ.get(env)
    if not content:
        raise KeyMaterialError(
            f"key.env names {env}, which is not set. Put the key's 64 hexadecimal digits there, or use key.file. {_MAKE_ONE}"
        )
    return _parse(content, f"key.env {env}")


def _read_private(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        if stat.S_IMODE(mode) & 0o077:
            raise KeyMaterialError(f"key.file {path} can be read by others than its owner. Mend it with: chmod 600 {path}")
        return path.read_text("ascii")
    except OSError as error:
        raise KeyMaterialError(f"key.file {path} cannot be read ({error.strerror}). {_MAKE_ONE}") from None
    except UnicodeDecodeError:
        raise KeyMaterialError(f"key.file {path} does not hold 64 hexadecimal digits. {_MAKE_ONE}") from None


def _parse(content: str, place: str) -> MasterKey:
    digits = content.strip()
    if len(digits) != 2 * KEY_BYTES or not set(digits) <= set(hexdigits):
        raise KeyMaterialError(f"{place} does not hold 64 hexadecimal digits. {_MAKE_ONE}")
    return MasterKey(bytes.fromhex(digits), place)
