"""The public sentences in the package: what they are, that their licence comes with them, how they are made."""

from __future__ import annotations

import sys
from importlib import resources
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from support.repository import ROOT, load_script
from wordveil.embeddings.embedding import DEMO, load
from wordveil.embeddings.vocabulary import WordIndex

FOLDER = resources.files("wordveil") / "data" / "sentences"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    folder = str(ROOT / "scripts")  # it imports another one
    sys.path.insert(0, folder)
    try:
        return load_script("scripts/sentences.py")
    finally:
        sys.path.remove(folder)


def test_sentences_are_short_distinct_and_of_demo_words(script: ModuleType):
    with resources.as_file(FOLDER / "wordnet.parquet") as path:
        table = pq.read_table(path)
        size = path.stat().st_size
    assert table.column_names == ["text"]
    assert size < 1_000_000
    texts = table.column("text").combine_chunks()
    length, strange, joined = script.count_words(texts, WordIndex(load(DEMO).words))
    assert (length.min(), length.max()) == (4, 20)
    assert strange.max() == 1
    assert 0.96 < 1 - strange.sum() / length.sum() < 1
    assert len(set(joined)) == len(texts)
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert f"{len(texts):,} English sentences" in readme
    assert f"{length.sum():,} words" in readme
    assert f"{1 - strange.sum() / length.sum():.1%} of" in readme


def test_their_licence_lies_beside_them():
    licence = (FOLDER / "LICENSE.wordnet-3.0").read_text("utf-8")
    assert "Permission to use, copy, modify and distribute" in " ".join(licence.split())
    assert licence == (FOLDER.parent / "hypernyms" / "LICENSE.wordnet-3.0").read_text("utf-8")
