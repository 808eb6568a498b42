"""Nested clusters of words, and the file that keeps them."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from wordveil.arrays import Int32, Int64


@dataclass(frozen=True)
class Hierarchy:
    """Order of words in which every cluster of every level is a range.

    ``order``: int32 ``(size,)``, the words. Those of a lowest cluster are in rising order. ``bounds``: one int64
    ``(clusters + 1,)`` for each level, the lowest first: cluster ``c`` has the slots ``bounds[c]`` up to ``bounds[c +
    1]``. The last level is one cluster of all words.
    """

    order: Int32
    bounds: tuple[Int64, ...]

    def save(self, path: Path) -> None:
        """Write it into a file that appears only when it is whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{os.getpid()}-{path.name}")
        with draft.open("wb") as file:
            np.savez(file, self.order, *self.bounds)
        draft.rename(path)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read what :meth:`save` wrote; None if the file is missing or damaged."""
        try:
            with np.load(path) as file:
                order, *bounds = (file[f"arr_{number}"] for number in range(len(file.files)))
                return cls(order, tuple(bounds))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None
