"""Files and directories that their owner alone can read: keys, and what a private corpus trained."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def create_file(path: Path, *, private: bool) -> BinaryIO:
    """Create a file to write to, replacing any that exists. Where it is ``private``, no other user can ever read it;
    else the umask decides.

    Raises :class:`OSError`.
    """
    path.unlink(missing_ok=True)  # an existing file would keep its mode, and its open descriptors
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    return os.fdopen(descriptor, "wb")


def create_directory(path: Path, *, private: bool, exist_ok: bool = False) -> None:
    """Create a directory, with those above it. Where it is ``private``, no other user can ever enter it; else the
    umask decides. An existing one stays as it is.

    Raises :class:`OSError`.
    """
    path.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=exist_ok)


def find_exposure(path: Path) -> str | None:
    """Say that other users may read or write a file or directory, and how to fix that. None where they may not.

    Raises :class:`OSError`.
    """
    mode = path.stat().st_mode
    if not stat.S_IMODE(mode) & 0o077:
        return None
    mend = f"chmod -R go= {path}" if stat.S_ISDIR(mode) else f"chmod 600 {path}"
    return f"can be read by other users. Fix it with: {mend}"
