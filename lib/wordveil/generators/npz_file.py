"""Files of arrays with a JSON description, each replaced as a whole."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.crypto.private_files import create_file

_ABOUT = "about"
NOT_READABLE = (KeyError, TypeError, ValueError, zipfile.BadZipFile)
"""Errors that :func:`read_npz` raises for a file of another kind, and that reading unexpected JSON raises."""


def write_npz(path: Path, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, private: bool) -> None:
    """Write a file whose bytes depend on nothing else. It gets its name once it is on disk.

    ``about``: plain values. ``arrays``: by any name but ``about``. ``private``: whether only its owner can read it.
    """
    text = np.frombuffer(json.dumps(dict(about), sort_keys=True).encode(), np.uint8)
    stored: dict[str, Any] = {_ABOUT: text, **arrays}
    draft = path.with_name(f".{path.name}.part")
    with create_file(draft, private=private) as stream:
        np.savez(stream, **stored)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


def read_npz(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`write_npz` wrote: its JSON, and its arrays. Raises :data:`NOT_READABLE` and :class:`OSError`."""
    with np.load(path, allow_pickle=False) as stored:
        about: dict[str, Any] = json.loads(stored[_ABOUT].tobytes())
        return about, {name: stored[name] for name in stored.files if name != _ABOUT}
