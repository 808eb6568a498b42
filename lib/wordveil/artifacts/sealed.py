"""Bundles of a private corpus on their way to the executors: an encrypted archive, and a directory for its owner alone.

With the umask, all users of an executor's machine could read the archives and files that Spark writes. Therefore Spark
gets them encrypted with AES-256 in counter mode. The key is random, belongs to the session and reaches the workers in
the task, as the release's keys do. The manifest's checksums show alterations.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from wordveil.crypto.keys import Secret
from wordveil.crypto.private_files import create_file

SEALED = "sealed.bin"
"""Name of the only file of Spark's archive."""
_NONCE = 16


class _Encrypted:
    """Stream that encrypts what is written or decrypts what is read; counter mode does both alike."""

    def __init__(self, stream: BinaryIO, key: Secret, nonce: bytes) -> None:
        self._stream = stream
        self._cipher: CipherContext = Cipher(AES(key.reveal()), CTR(nonce)).encryptor()

    def write(self, data: bytes) -> int:
        return self._stream.write(self._cipher.update(data))

    def read(self, count: int) -> bytes:
        return self._cipher.update(self._stream.read(count))


def seal(directory: Path, file: Path, key: Secret) -> None:
    """Write the files of a directory into an encrypted archive."""
    nonce = os.urandom(_NONCE)
    with create_file(file, private=True) as stream:
        stream.write(nonce)
        encrypted: Any = _Encrypted(stream, key, nonce)
        with tarfile.open(fileobj=encrypted, mode="w|") as archive:
            for path in sorted(directory.iterdir()):
                archive.add(path, arcname=path.name)


def unseal(directory: Path, key: Secret) -> Path:
    """Open the archive in a directory, once for all workers, and return the owner-only directory of its files."""
    target = directory.with_name(f"{directory.name}.open")
    if target.exists():
        return target
    draft = Path(tempfile.mkdtemp(prefix=".opening-", dir=directory.parent))  # mode 0700
    try:
        _extract(directory / SEALED, draft, key)
        draft.rename(target)
    except OSError:
        if not target.exists():  # else another worker was first
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _extract(file: Path, directory: Path, key: Secret) -> None:
    with file.open("rb") as stream:
        decrypted: Any = _Encrypted(stream, key, stream.read(_NONCE))
        with tarfile.open(fileobj=decrypted, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member)
                assert content is not None
                with create_file(directory / Path(member.name).name, private=True) as out:
                    shutil.copyfileobj(content, out)
