"""Corpora: some stand beside the repository and for tests marked long alone, others come with installed packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from pyarrow import parquet

from wordveil.evaluation.datasets import load_documents
from wordveil.evaluation.documents import UNKNOWN, Documents

DATA = Path(__file__).parents[2] / "shared" / "data"
"""Data sets that are not part of the project."""
_SENTENCES = Path(__file__).parents[1] / "lib" / "wordveil" / "data" / "sentences" / "wordnet.parquet"
_Test = TypeVar("_Test", bound=Callable[..., None])


def needs_data(*names: str) -> Callable[[_Test], _Test]:
    """Mark a test that needs data sets: it is long, and skipped where one of them is not there."""
    missing = [str(DATA / name) for name in names if not (DATA / name).exists()]

    def mark(test: _Test) -> _Test:
        skip = pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)}: not there")
        return pytest.mark.long(skip(test))

    return mark


def load_parts(name: str, label: str, train: str, test: str) -> tuple[Documents, Documents]:
    """The training part of a corpus, and the test part with labels that occur in training."""
    path = DATA / f"{name}.jsonl.xz"
    known = load_documents(path, label, where={"split": train})
    tested = load_documents(path, label, where={"split": test}, names=known.names)
    return known, tested.take(np.flatnonzero(tested.labels != UNKNOWN))


def load_news() -> list[str]:
    """300 English news articles, which come with gensim."""
    found = importlib.util.find_spec("gensim")
    assert found is not None
    assert found.origin is not None
    return (Path(found.origin).parent / "test" / "test_data" / "lee_background.cor").read_text("utf-8").splitlines()


def load_examples(count: int) -> list[str]:
    """Examples of WordNet, which come with the package: ``count`` from the whole alphabet."""
    examples = parquet.read_table(_SENTENCES).column("text").to_pylist()
    return examples[:: len(examples) // count][:count]


def load_sentences(count: int) -> Documents:
    """First sentences of news and examples of WordNet, ``count`` of each, cut to ten words."""
    chosen = [*load_news()[:count], *load_examples(count)]
    return Documents.of([" ".join(text.split()[:10]) for text in chosen], ["news"] * count + ["examples"] * count)
