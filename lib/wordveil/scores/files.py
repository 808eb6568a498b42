"""Text files that are complete whenever they are visible, and figures as JSON."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

_PRIVATE = 0o600


def replace_file(path: Path, content: str, mode: int = _PRIVATE) -> None:
    """Write a text file that is complete whenever it is visible; replace an existing one. Raises :class:`OSError`."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as stream:
        try:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise


def to_json(values: Any) -> str:
    """Encode plain values and NumPy's numbers as JSON. Raises :class:`ValueError` for NaN, :class:`TypeError` for
    objects.
    """
    return json.dumps(values, indent=1, allow_nan=False, default=_to_plain) + "\n"


def _to_plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"Expected plain values, got {type(value).__name__}.")
