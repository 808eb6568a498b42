"""Paths and URIs."""

from __future__ import annotations

import os
import re
from pathlib import Path

from wordveil.errors import PlatformError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
"""Pattern of the beginning of a URI."""


def make_absolute(path: str, directory: Path | None = None) -> str:
    """Resolve a relative path from ``directory``, by default the working directory, without following links.

    An absolute path and one with a scheme (``s3a://``, ``file:/``) stay as they are.
    """
    if path.startswith("/") or SCHEME.match(path):
        return path
    return os.path.normpath(Path(directory or "").absolute() / path)


def resolve(place: str) -> str:
    """Return the place that a path or URI names, without ``file:``, links and ``..`` on this machine's disk."""
    local = re.sub(r"^file:/+", "/", place)
    return os.path.realpath(local) if local.startswith("/") else local.rstrip("/")


def lies_in(inner: str, outer: str) -> bool:
    """Return whether a place is another one, or inside it, however both are written."""
    return f"{resolve(inner)}/".startswith(f"{resolve(outer).rstrip('/')}/")


def relative_to_file(path: str, file: Path) -> str:
    """Write ``path``, which begins at the working directory, as a configuration at ``file`` names it."""
    whole = make_absolute(path)
    relative = os.path.relpath(whole, file.absolute().parent)
    return whole if whole == path or relative.endswith(".") else relative


def cache_directory() -> Path:
    """Return this user's directory for files that can be made again. Raises :class:`PlatformError` without a home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wordveil"
    except RuntimeError:
        raise PlatformError(f"the user {os.getuid()} has no home directory. Set HOME or XDG_CACHE_HOME.") from None
