"""Data sets in a directory next to the repository. They are no part of it, and tests that need them are long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.tasks.datasets import load_documents

DATA = Path(__file__).parents[3] / "shared" / "data"
_Test = TypeVar("_Test", bound=Callable[..., None])


def needs_data(*names: str) -> Callable[[_Test], _Test]:
    """Mark a test that needs data sets: it is long, and skipped where one of them is missing."""
    missing = [str(DATA / name) for name in names if not (DATA / name).exists()]

    def mark(test: _Test) -> _Test:
        skip = pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)}: missing")
        return pytest.mark.long(skip(test))

    return mark


def load_parts(name: str, label: str, train: str, test: str) -> tuple[Documents, Documents]:
    """Load the training part of a corpus, and the test part with labels that occur in training."""
    path = DATA / f"{name}.jsonl.xz"
    known = load_documents(path, label, where={"split": train})
    tested = load_documents(path, label, where={"split": test}, names=known.names)
    return known, tested.take(np.flatnonzero(tested.labels != UNKNOWN))
