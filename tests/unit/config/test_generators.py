"""The configuration of ``wordveil train``: its faults at once, and from texts to sequences."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from support.repository import ROOT
from wordveil.assembly.generator_texts import encode_texts, prepare_corpus, read_texts, train_generator
from wordveil.config.generators import GeneratorSection, TextsSection, WordsSection, load_generator_config
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import ConfigError, InputError, PlatformError
from wordveil.generators.training import settings as training_settings
from wordveil.text.codec import Codec

WORDS = pa.array(["the", "cat", "sat", "dog", "ran"])
TEXTS = ["The cat sat. The dog ran!", "\u201cThe cat ran.\u201d The zebra  (sat)", "Zebra zebra?", None]


def write(directory: Path, **changes: Any) -> Path:
    pq.write_table(pa.table({"body": TEXTS, "id": range(4)}), directory / "texts.parquet")
    generator = {
        "output": "out/weights.npz",
        "embedding": "demo",
        "public": True,
        "corpus": "public",
        "texts": {"path": "texts.parquet", "column": "body", "validation": 0.5},
        "text": {"types": "none"},
        "shape": {"length": 4, "cells": 8, "latent": 4},
        **changes,
    }
    kept = {name: value for name, value in generator.items() if value is not None}
    (directory / "generator.yaml").write_text(yaml.safe_dump({"format_version": 1, "generator": kept}))
    return directory / "generator.yaml"


def load(directory: Path, **changes: Any) -> GeneratorSection:
    return load_generator_config(write(directory, **changes))


def faults(directory: Path, **changes: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        load(directory, **changes)
    return {fault.where.removeprefix("generator."): str(fault) for fault in caught.value.faults}


def test_paths_are_taken_from_the_file(tmp_path: Path) -> None:
    section = load(tmp_path)
    assert section.output == str(tmp_path / "out" / "weights.npz")
    assert section.directory == tmp_path / "out" / "weights.npz.training"
    assert section.settings.reward.reward == 0.5
    assert section.schedule.epochs == 10
    assert section.find_shape(5, 3).cells == 8


def test_statements_about_privacy_have_no_default(tmp_path: Path) -> None:
    found = faults(tmp_path, public=None, corpus=None)
    assert "is required: set `public: true`" in found["public"]
    assert "is required and has no default" in found["corpus"]
    assert "breaks the guarantee" in faults(tmp_path, public=False)["public"]
    assert "allowed: 'public' or 'private'" in faults(tmp_path, corpus="secret")["corpus"]


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    found = faults(tmp_path, embeding="demo", shape={"cells": 7, "length": 1}, reward={"baseline": "median"})
    assert set(found) == {"embeding", "shape.cells", "shape.length", "reward.baseline"}
    assert "Did you mean embedding?" in found["embeding"]


def test_contradictions_are_told(tmp_path: Path) -> None:
    for changes, where, problem in (
        ({"reward": {"floor": 0.9}}, "reward.floor", "below reward.ceiling"),
        ({"training": {"word_dropout": 0.6, "corruption": 0.6}}, "training.word_dropout", "more than 1 together"),
        ({"training": {"epochs": 5}}, "training.reconstruction_epochs", "no epoch with the reward"),
        ({"texts": {"path": "none.parquet"}}, "texts.path", "no such file or directory"),
    ):
        assert problem in faults(tmp_path, **changes)[where]


def test_examples_are_sound() -> None:
    for name in ("demo.yaml", "full.yaml"):
        assert Path(load_generator_config(ROOT / "conf" / "generators" / name).texts.path).is_file()


def sequences(texts: list[str], cut: str) -> list[list[int]]:
    piece = encode_texts(pa.array(texts), Codec(WordsSection(types="none").policy, Vocabulary(WORDS)), cut, 6)
    bounds = piece.offsets.tolist()
    assert len(piece.hashes) == len(bounds) - 1
    return [piece.ids[start:stop].tolist() for start, stop in pairwise(bounds)]


def test_texts_are_cut_into_sentences() -> None:
    texts = [text for text in TEXTS if text]
    assert sequences(texts, "sentences") == [[0, 1, 2], [0, 3, 4], [0, 1, 4], [0, 6, 2]]
    assert sequences(texts, "windows") == [[0, 1, 2, 0, 3, 4], [0, 1, 4, 0, 6, 2]]
    assert sequences(["The cat\nsat\n\n the dog"], "sentences") == [[0, 1, 2], [0, 3]]
    codec = Codec(WordsSection(types="none").policy, Vocabulary(WORDS))
    hashes = encode_texts(pa.array(texts), codec, "sentences", 6).hashes
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3]


def test_a_corpus_is_prepared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = load(tmp_path)
    corpus = prepare_corpus(section, Vocabulary(WORDS), "words")
    assert len(corpus.validates) == 5  # four sentences, and an empty one
    assert section.directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr("wordveil.assembly.generator_texts.read_texts", None)
    assert prepare_corpus(section, Vocabulary(WORDS), "words").digest == corpus.digest
    with pytest.raises(TypeError):
        prepare_corpus(section, Vocabulary(WORDS), "others")


def test_json_lines_are_read_too(tmp_path: Path) -> None:
    file = tmp_path / "texts.json"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    found = [text for batch in read_texts(TextsSection(path=str(file), format="json")) for text in batch.to_pylist()]
    assert found == TEXTS[:3]


def test_a_table_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"column": "none"}, "generator.texts.column = none: no such column"),
        ({"column": "id"}, "is int64, and texts are needed"),
        ({"format": "json"}, "cannot be read as json"),
    ]
    for settings, problem in wrong:
        with pytest.raises(InputError, match=problem) as caught:
            list(read_texts(TextsSection(path=str(tmp_path / "texts.parquet"), **settings)))
        assert "cat" not in str(caught.value)


def test_a_missing_package_gives_the_line_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_settings, "find_spec", lambda name: None if name == "optax" else object())
    with pytest.raises(PlatformError, match=r"Optax: not installed.*pip install 'wordveil\[er-ae\]'"):
        train_generator(load(tmp_path))
