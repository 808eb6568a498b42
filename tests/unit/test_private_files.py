"""What a private corpus trained is for its owner alone, whatever the umask; what is public follows the umask."""

from __future__ import annotations

import json
import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from support.toys import spiral_embedding, write_toy_bundle
from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Recipe, open_bundle
from wordveil.artifacts.sealed import SEALED, seal, unseal
from wordveil.assembly.generator_texts import prepare_corpus
from wordveil.config.generators import load_generator_config
from wordveil.crypto.keys import Secret
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import BundleError, GeneratorError
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.weights import Corpus, load_weights, save_weights
from wordveil.mechanisms.er_ae.mechanism import ErAe, ErAeSettings
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.neighbours.blocks import BuildContext

XLA = {"XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"}
"""What is trained is small, and compiling it takes longer than its steps."""


@pytest.fixture(params=[0o022, 0o077, 0o000], ids=["umask 022", "umask 077", "umask 000"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    old = os.umask(request.param)
    yield request.param
    os.umask(old)


def modes(place: Path) -> dict[str, int]:
    """The modes of a file, or of a directory and all in it."""
    found = [place, *place.rglob("*")] if place.is_dir() else [place]
    return {str(path): stat.S_IMODE(path.stat().st_mode) for path in found}


def assert_private(*places: Path) -> None:
    for place in places:
        for path, mode in modes(place).items():
            assert mode == (0o700 if Path(path).is_dir() else 0o600), path


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The mode of each file and directory at the moment at which it is created."""
    seen: list[tuple[str, int]] = []
    make, opened = os.mkdir, os.open

    def mkdir(path: Any, mode: int = 0o777, **more: Any) -> None:
        make(path, mode, **more)
        seen.append((str(path), stat.S_IMODE(os.stat(path).st_mode)))  # noqa: PTH116

    def open_file(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        descriptor = opened(path, flags, mode, **more)
        if flags & os.O_CREAT:
            seen.append((str(path), stat.S_IMODE(os.fstat(descriptor).st_mode)))
        return descriptor

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "open", open_file)
    return seen


def write_generator(store: Path, corpus: Corpus = "private") -> Path:
    embedding = spiral_embedding()
    weights = replace(make_repeating_weights(embedding, 4), corpus=corpus)
    limit = 10 if corpus == "private" else None
    settings = ErAeSettings(epsilon=8.0, model="generator.npz", corpus=corpus, max_records=limit)
    inputs = PublicInputs(generator=weights)
    built = ErAe.build(embedding, settings, padding=True, work=BuildContext(), inputs=inputs)
    recipe = Recipe("er-ae", settings.recipe(), True, "toy.vec", embedding.digest)
    return bundles.write(store, embedding, built, recipe, {})


def test_weights_are_private_from_the_first_byte(tmp_path: Path, umask: int, watched: list[tuple[str, int]]) -> None:
    path, weights = tmp_path / "generator.npz", make_repeating_weights(spiral_embedding(), 4)
    (tmp_path / ".generator.npz.part").touch(0o666)  # of a training that was killed
    watched.clear()
    save_weights(path, replace(weights, corpus="private"))
    assert_private(path)
    assert [mode for _, mode in watched] == [0o600]
    assert load_weights(path).corpus == "private"
    save_weights(path, weights)
    assert modes(path) == {str(path): 0o666 & ~umask}


def test_bundle_of_private_weights_is_private_at_once(
    tmp_path: Path, umask: int, watched: list[tuple[str, int]]
) -> None:
    path = write_generator(tmp_path / "store")
    assert_private(path)
    assert [mode for name, mode in watched if Path(name).name.startswith(".building-")] == [0o700]
    assert open_bundle(path).mechanism.private_weights
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o777 & ~umask


def test_a_public_bundle_follows_the_umask(tmp_path: Path, umask: int) -> None:
    for path in (write_toy_bundle(tmp_path / "words"), write_generator(tmp_path / "texts", "public")):
        found = modes(path)
        assert found.pop(str(path)) == 0o777 & ~umask
        assert set(found.values()) == {0o666 & ~umask}
        path.chmod(0o777)
        open_bundle(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o660])
def test_weights_that_others_can_read_are_refused(tmp_path: Path, mode: int) -> None:
    path, weights = tmp_path / "generator.npz", make_repeating_weights(spiral_embedding(), 4)
    save_weights(path, replace(weights, corpus="private"))
    path.chmod(mode)
    with pytest.raises(GeneratorError) as caught:
        load_weights(path)
    assert str(caught.value) == (
        f"{path}: a private corpus trained these weights, and the file can be read by other users. Fix it with: chmod "
        f"600 {path}"
    )
    save_weights(path, weights)
    path.chmod(mode)
    load_weights(path)


@pytest.mark.parametrize("name", ["", "words.txt", "manifest.json", "coins.bin"])
def test_a_private_bundle_that_others_can_read_is_refused(tmp_path: Path, name: str) -> None:
    path = write_generator(tmp_path)
    (path / name).chmod(0o755)
    with pytest.raises(BundleError) as caught:
        open_bundle(path)
    mend = f"chmod -R go= {path}"
    assert str(caught.value).endswith(f"it can be read by other users. Fix it with: {mend}")
    subprocess.run(mend.split(), check=True)
    open_bundle(path)


def configure(directory: Path, corpus: str) -> Path:
    texts = ["the cat sat on the mat", "a dog ran to the house", "the dog sat"] * 6
    pq.write_table(pa.table({"text": texts}), directory / "texts.parquet")
    spiral_embedding().save(directory / "words")
    generator = {
        "output": "out/generator.npz",
        "embedding": "words",
        "public": True,
        "corpus": corpus,
        "texts": {"path": "texts.parquet", "validation": 0.3},
        "shape": {"length": 4, "cells": 4, "latent": 2, "encoder_layers": 1, "generator_layers": 1},
        "training": {"batch": 4, "steps": 2, "checkpoint_every": 1, "report_every": 1, "validate_every": 1},
    }
    (directory / "generator.yaml").write_text(yaml.safe_dump({"format_version": 1, "generator": generator}))
    return directory / "generator.yaml"


def test_private_sequences_are_not_written_where_others_can_read(tmp_path: Path, umask: int) -> None:
    section = load_generator_config(configure(tmp_path, "private"))
    section.directory.mkdir(parents=True)
    section.directory.chmod(0o750)
    words = Vocabulary(pa.array(["the", "cat"]))
    with pytest.raises(GeneratorError, match=r"generator\.checkpoints = .* Fix it with: chmod -R go= "):
        prepare_corpus(section, words, "words")
    assert not list(section.directory.iterdir())
    section.directory.chmod(0o700)
    prepare_corpus(section, words, "words")
    assert_private(section.directory)


@pytest.mark.skipif(find_spec("jax") is None, reason="pip install 'wordveil[er-ae]'")
def test_what_a_training_writes_is_private_without_a_umask(tmp_path: Path) -> None:
    configure(tmp_path, "private")
    (tmp_path / "out").mkdir()
    made = [tmp_path / "out" / f"generator.{ending}" for ending in ("npz", "jsonl", "svg")]
    for path in made[1:]:
        path.touch(0o644)  # of an earlier training
    command = [sys.executable, "-m", "wordveil", "train", "--config", "generator.yaml", "--json"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **XLA}, umask=0, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    trained = json.loads(done.stdout)
    assert (trained["path"], trained["corpus"], trained["steps"]) == (str(made[0]), "private", 2)
    assert_private(tmp_path / "out" / "generator.npz.training", *made)


def test_sealed_archive_shows_nothing_and_opens_for_its_owner(tmp_path: Path, umask: int) -> None:
    source, place, key = (
        write_generator(tmp_path / "store"),
        tmp_path / "wordveil-x.tar",
        Secret(secrets.token_bytes(32)),
    )
    place.mkdir()
    seal(source, place / SEALED, key)
    sealed = (place / SEALED).read_bytes()
    assert b"words.txt" not in sealed
    assert (source / "coins.bin").read_bytes() not in sealed
    (place / SEALED).chmod(0o644)  # as Spark leaves it
    opened = unseal(place, key)
    assert opened.parent == place.parent
    assert_private(opened)
    assert open_bundle(opened, open_bundle(source).identity).fingerprint == source.name
    (place / SEALED).unlink()
    assert unseal(place, key) == opened
    assert not list(tmp_path.glob(".opening-*"))
