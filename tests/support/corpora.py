"""Corpora that come with installed packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from pyarrow import parquet

from wordveil.scores.documents import Documents

_SENTENCES = Path(__file__).parents[2] / "lib" / "wordveil" / "data" / "sentences" / "wordnet.parquet"


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
