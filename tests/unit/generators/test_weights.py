"""Weights on disk: what is written is read back, another file is named, and public sentences have their licence."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from wordveil.errors import GeneratorError
from wordveil.generators.initial import draw_initial_arrays
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.weights import GeneratorWeights, digest_words, load_weights, save_weights

SHAPE = GeneratorShape(size=5, dimension=3, cells=4, latent=2, length=6)


def some_weights() -> GeneratorWeights:
    random = np.random.default_rng(1)
    arrays = {name: random.normal(size=shape).astype(np.float32) for name, shape in SHAPE.arrays().items()}
    return GeneratorWeights(SHAPE, digest_words(pa.array(list("abcde"))), "public", arrays, {"steps": 3})


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    weights = some_weights()
    save_weights(tmp_path / "a.npz", weights)
    save_weights(tmp_path / "b.npz", weights)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    read = load_weights(tmp_path / "a.npz")
    assert (read.shape, read.words_digest, read.corpus, read.about) == (
        SHAPE,
        weights.words_digest,
        "public",
        {"steps": 3},
    )
    assert all(np.array_equal(read.arrays[name], array) for name, array in weights.arrays.items())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"PK", "is not a generator's file"), (b"text", "is not a generator's file"), (None, "cannot be read")],
)
def test_another_file_is_refused_by_name(content: bytes | None, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(GeneratorError, match=problem) as raised:
        load_weights(path)
    assert str(path) in str(raised.value)


def test_what_identifies_private_weights_tells_nothing_of_them(tmp_path: Path) -> None:
    public = some_weights()
    assert (public.salt, public.identity) == ("", some_weights().identity)
    first, second = (replace(public, corpus="private") for _ in range(2))
    # Who guesses the corpus and trains the same weights finds no digest to compare them with.
    assert len({public.identity, first.identity, second.identity}) == 3
    assert first.salt not in repr(first)
    save_weights(tmp_path / "a.npz", first)
    assert load_weights(tmp_path / "a.npz").identity == first.identity
    changed = {**public.arrays, "output_bias": public.arrays["output_bias"] + 1}
    assert replace(public, arrays=changed).identity != public.identity


def test_arrays_are_those_of_the_shape() -> None:
    weights = some_weights()
    few = {name: array for name, array in weights.arrays.items() if name != "latent"}
    with pytest.raises(GeneratorError, match="latent"):
        GeneratorWeights(SHAPE, "", "public", few)
    broken = {**weights.arrays, "output_bias": np.full(7, np.nan, np.float32)}
    with pytest.raises(GeneratorError, match="output_bias"):
        GeneratorWeights(SHAPE, "", "public", broken)


@pytest.mark.parametrize(("changes", "problem"), [({"cells": 5}, "even"), ({"length": 0}, "length")])
def test_shapes_that_cannot_be_are_refused(changes: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        replace(SHAPE, **changes)


def test_training_begins_with_public_vectors_and_a_seed() -> None:
    vectors = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    first, again = (draw_initial_arrays(SHAPE, 7, vectors) for _ in range(2))
    assert {name: array.shape for name, array in first.items()} == SHAPE.arrays()
    assert all(np.array_equal(first[name], array) and array.dtype == np.float32 for name, array in again.items())
    assert np.allclose((first["embedding"][:5] ** 2).sum(axis=1).mean(), 1, rtol=1e-5)
    assert np.linalg.matrix_rank(first["output"][:, :5], tol=1e-4) == 3, "alike words begin with alike columns"
    state = first["generator.0.hidden"][:, :4]
    assert np.allclose(state @ state.T, np.eye(4), atol=1e-6)
    assert not np.array_equal(draw_initial_arrays(SHAPE, 8)["output"], first["output"])
    with pytest.raises(ValueError, match="shape"):
        draw_initial_arrays(SHAPE, 7, vectors[:4])


FOLDER = resources.files("wordveil") / "data" / "sentences"


def test_their_licence_lies_beside_them():
    licence = (FOLDER / "LICENSE.wordnet-3.0").read_text("utf-8")
    assert "Permission to use, copy, modify and distribute" in " ".join(licence.split())
    assert licence == (FOLDER.parent / "hypernyms" / "LICENSE.wordnet-3.0").read_text("utf-8")
