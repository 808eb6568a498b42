"""Weights in whole numbers: the certificate that nothing is rounded, and what breaks it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.generators import SMALL, make_weights
from wordveil.errors import GeneratorError
from wordveil.generators.quantise import (
    EXACT,
    check_exactness,
    choose_levels,
    list_products,
    list_quantised,
    quantise_weights,
)
from wordveil.generators.weights import GeneratorWeights

WEIGHTS = make_weights()


def test_arrays_are_whole_numbers_that_use_up_the_certificate() -> None:
    arrays = quantise_weights(WEIGHTS)
    assert {name: (array.shape, str(array.dtype)) for name, array in arrays.items()} == list_quantised(SMALL)
    levels = choose_levels(SMALL)
    for name, product in list_products(SMALL).items():
        matrix = arrays[name].astype(np.int64)
        assert np.array_equal(matrix, arrays[name])
        sums = np.abs(matrix).sum(axis=0) * getattr(levels, product.source)
        assert sums.max() <= EXACT
        assert sums.min() > 0.97 * EXACT
    assert np.abs(arrays["embedding"]).max(axis=0).tolist() == [levels.embedding] * SMALL.dimension


def test_whole_numbers_stand_for_the_weights() -> None:
    arrays = quantise_weights(WEIGHTS)
    levels = choose_levels(SMALL)
    largest = np.abs(WEIGHTS.arrays["embedding"]).max(axis=0)
    embedding = arrays["embedding"] / levels.embedding * largest
    assert np.abs(embedding - WEIGHTS.arrays["embedding"]).max() <= 0.5001 * largest.max() / levels.embedding
    parts = {
        "output": WEIGHTS.arrays["output"],
        "generator.0.input": WEIGHTS.arrays["generator.0.input"][: SMALL.dimension] * largest[:, None],
        "generator.0.latent": WEIGHTS.arrays["generator.0.input"][SMALL.dimension :],
        "encoder.1.backward.hidden": WEIGHTS.arrays["encoder.1.backward.hidden"],
    }
    for name, wanted in parts.items():
        scale = arrays[f"{name}.scale"].astype(np.float64) * getattr(levels, list_products(SMALL)[name].source)
        assert (np.abs(arrays[name] * scale - wanted) <= 0.501 * scale).all()


def test_columns_of_zeros_have_a_scale() -> None:
    arrays = dict(WEIGHTS.arrays)
    for name in ("output", "embedding", "encoder.0.forward.hidden"):
        arrays[name] = np.array(arrays[name])
        arrays[name][:, 1] = 0
    quantised = quantise_weights(GeneratorWeights(SMALL, "", "public", arrays))
    assert not quantised["output"][:, 1].any()
    assert not quantised["embedding"][:, 1].any()
    check_exactness(SMALL, quantised)


def test_the_table_of_the_softmax_falls_as_exp_does() -> None:
    table = quantise_weights(WEIGHTS)["softmax"]
    wanted = [2**31 * math.exp(-entry / 256) for entry in range(len(table))]
    assert np.allclose(table, np.maximum(wanted, 1), rtol=0, atol=0.5001)
    assert (table[0], table[-1]) == (2**31, 1)


def change(name: str, index: Any, value: Any) -> Callable[[dict[str, np.ndarray]], None]:
    def act(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][index] = value(arrays[name][index]) if callable(value) else value

    return act


TAMPERED = {
    "a weight too many": (change("output", (0, 5), lambda weight: weight + 2000), "output has a column"),
    "a level too many": (change("levels", 2, lambda level: 2 * level), "has a column whose products may reach"),
    "no levels": (change("levels", 0, 0), "levels are"),
    "half a weight": (change("generator.1.hidden", (3, 4), 0.5), "generator.1.hidden has entries that are no whole"),
    "no number": (change("latent", (0, 0), np.nan), "latent has entries that are no whole"),
    "infinite": (change("latent", (0, 0), np.inf), "latent has a column"),
    "a large word": (change("embedding", (149, 0), 10_000), "embedding has entries above"),
    "no scale": (change("output.scale", 7, 0), "output.scale has"),
    "scale without number": (change("output.scale", 7, np.nan), "output.scale has"),
    "a large scale": (change("encoder.0.forward.input.scale", 7, 1e25), "input.scale has"),
    "a bias without number": (change("output_bias", 7, np.nan), "output_bias has"),
    "a table that rises": (change("softmax", 9, 2**31 + 1), "softmax is not a falling"),
    "a table with 0": (change("softmax", -1, 0), "softmax is not a falling"),
    "missing": (lambda arrays: arrays.pop("output_bias"), "output_bias is missing"),
    "of another type": (
        lambda arrays: arrays.update(output=arrays["output"].astype(np.float64)),
        r"output is float64 \(24, 152\), and float32",
    ),
    "of another shape": (
        lambda arrays: arrays.update(latent_bias=arrays["latent_bias"][:-1]),
        r"latent_bias is float32 \(13,\), and float32 \(14,\)",
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_arrays_are_refused(case: str) -> None:
    tamper, problem = TAMPERED[case]
    arrays = quantise_weights(WEIGHTS)
    check_exactness(SMALL, arrays)
    tamper(arrays)
    with pytest.raises(GeneratorError, match=problem):
        check_exactness(SMALL, arrays)
