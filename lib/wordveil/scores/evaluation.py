"""Report of an evaluation as data, for pages, CSV files and comparisons, and the files that hold reports."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from wordveil.scores.score import Score

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Confusion:
    """Confusion of authors by an attacker; :class:`wordveil.scores.score.Score` explains the first three fields.

    ``counts``: for each true label, the number of texts given each label; the last column counts refusals to guess.
    """

    subject: str
    method: str
    variant: str
    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TextExample:
    """Public or demo text and its sanitised form; a private one only on request."""

    subject: str
    original: str
    sanitised: str


@dataclass(frozen=True)
class Evaluation:
    """Report of all measurements.

    ``facts``: release, bundle, epsilon, seeds and versions, in the order to show. ``notes``: remarks on the figures, in
    sentences. ``is_private``: figures were measured on private text, so that the report stays internal. ``scope``:
    number of texts read, in sentences.
    """

    title: str
    facts: Mapping[str, str]
    scores: tuple[Score, ...]
    confusions: tuple[Confusion, ...] = ()
    examples: tuple[TextExample, ...] = ()
    notes: tuple[str, ...] = ()
    is_private: bool = True
    scope: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "format_version": FORMAT_VERSION,
            **asdict(self),
            "facts": dict(self.facts),
            "scores": [score.to_dict() for score in self.scores],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` returned. Raises :class:`ValueError`; :class:`AttributeError` for no mapping."""
        if values.get("format_version") != FORMAT_VERSION:
            raise ValueError(f"format_version = {values.get('format_version')}: expected {FORMAT_VERSION}.")
        return TypeAdapter(cls).validate_python(values)


_PRIVATE = 0o600


def replace_file(path: Path, content: str, mode: int = _PRIVATE) -> None:
    """Write a text file that is complete whenever it is visible, replacing an old one. Raises :class:`OSError`."""
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
    """Encode plain values and NumPy's numbers as JSON. Raises :class:`ValueError` for NaN, else :class:`TypeError`."""
    return json.dumps(values, indent=1, allow_nan=False, default=_to_plain) + "\n"


def _to_plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"Expected plain values, got {type(value).__name__}.")
