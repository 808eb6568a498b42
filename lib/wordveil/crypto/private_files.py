"""Files and directories that only their owner can read, such as keys, and names that outlast a crash."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def create_file(path: Path, *, private: bool) -> BinaryIO:
    """Create or replace a file for writing. No other user can read a ``private`` one; otherwise the umask decides."""
    path.unlink(missing_ok=True)  # an existing file would keep its mode, and its open descriptors
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    return os.fdopen(descriptor, "wb")


def create_directory(path: Path, *, private: bool, exist_ok: bool = False) -> None:
    """Create a directory and those above it. No other user can enter a ``private`` one; otherwise the umask decides."""
    path.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=exist_ok)


def claim_directory(path: Path) -> None:
    """Create a directory as :func:`create_directory` does, or withdraw others' permissions on an existing one.

    Raises :class:`OSError`, and :class:`PermissionError` if it belongs to another user, who decides what is in it.
    """
    create_directory(path, private=True, exist_ok=True)
    owners = {path.lstat().st_uid, path.stat().st_uid}  # a link may be another user's
    if owners != {os.geteuid()} and os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
    path.chmod(0o700)


def sync_directory(path: Path) -> None:
    """Write the names of a directory's files to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_exposure(path: Path) -> str | None:
    """Describe how other users may read or write a path, and the remedy, or return None. Raises :class:`OSError`."""
    mode = path.stat().st_mode
    if not stat.S_IMODE(mode) & 0o077:
        return None
    mend = f"chmod -R go= {path}" if stat.S_ISDIR(mode) else f"chmod 600 {path}"
    return f"can be read by other users. Fix it with: {mend}"
