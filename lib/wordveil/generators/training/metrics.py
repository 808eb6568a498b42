"""Figures of a training as JSON lines, which an interruption does not duplicate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordveil.crypto.private_files import create_file

METRICS = "metrics.jsonl"
"""Name of the file, in the directory of a training."""


@dataclass(frozen=True)
class MetricsFile:
    """File of rows, each with its ``step``. ``private``: whether only its owner can read it."""

    path: Path
    private: bool = False

    def cut(self, step: int) -> None:
        """Remove the rows of later steps, which will be repeated, and an incomplete last row."""
        rows = [row for row in self.read() if row["step"] <= step]
        draft = self.path.with_name(f".{self.path.name}.part")
        with create_file(draft, private=self.private) as stream:
            stream.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())
        draft.replace(self.path)

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(dict(row))}\n")

    def read(self) -> list[dict[str, Any]]:
        """Read all complete rows, in order."""
        lines = self.path.read_text("utf-8").split("\n")[:-1] if self.path.exists() else []
        return [json.loads(line) for line in lines]
