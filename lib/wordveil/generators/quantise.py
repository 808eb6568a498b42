"""Whole numbers for weights and activations, for which products in float32 are exact.

A product of float32 matrices differs in its last bits between processors, libraries and batches, because sums are
rounded in another order. If all entries are whole numbers, and no sum of magnitudes passes 2^24, nothing is rounded, in
whatever order. So each matrix ``w`` and its activations ``a`` are kept as whole numbers, in float32, with a certificate
for each column j: ``sum_i |w_ij| * max |a| <= 2^24``.

Activations lie in [-1, 1]: states, the latent vector, and the embedding once each of its columns is divided by its
largest entry, for which the rows of the matrices behind it make up. ``levels`` is 1 there in whole numbers. Each column
of a matrix has its own scale, the smallest that the certificate allows. More levels of activations leave fewer to
weights. The mean square error of a product of K activations of root mean square about 0.4 with normal weights is least
at about ``sqrt(2^24 / (0.32 K))`` levels: 320 for K = 512.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from functools import cache
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float32
from wordveil.errors import GeneratorError
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.weights import GeneratorWeights

EXACT = 2**24
"""Largest number up to which all whole numbers are float32 numbers."""
LARGEST_WEIGHT = 2**31
"""Weight of the likeliest symbol."""

SOFTMAX_STEPS = 256
"""Entries of the table of ``exp`` for 1 nat: a weight is at most 0.2% off."""
_SOFTMAX_ENTRIES = 22 * SOFTMAX_STEPS
_MIXED = "generator.0.input"
_LATENT = "generator.0.latent"
_ROWS = 64
# No sum of logits comes near the largest float32.
_LARGEST_LOGIT = 1e30


class UnitLevels(NamedTuple):
    """Whole numbers for 1: in entries of the embedding, in the latent vector, in states."""

    embedding: int
    latent: int
    states: int


class Product(NamedTuple):
    """Matrix of the model: its left factor, its rows and its columns."""

    source: Literal["embedding", "latent", "states"]
    rows: int
    columns: int


def choose_levels(shape: GeneratorShape) -> UnitLevels:
    """Choose the levels with the least error, by the number of activations in a sum."""
    widths = (shape.dimension, shape.latent, shape.cells)
    return UnitLevels(*(max(1, round(math.sqrt(EXACT / (0.32 * width)))) for width in widths))


def list_products(shape: GeneratorShape) -> dict[str, Product]:
    """List the matrices by name. The first generator layer's input is two: one reads symbols, one the latent vector."""
    products = {}
    for name, sizes in shape.arrays().items():
        if len(sizes) == 2 and name != "embedding":
            products[name] = Product(_source(name), *sizes)
    columns = products[_MIXED].columns
    return {
        **products,
        _MIXED: Product("embedding", shape.dimension, columns),
        _LATENT: Product("latent", shape.latent, columns),
    }


def _source(name: str) -> Literal["embedding", "latent", "states"]:
    if name.endswith(".start"):
        return "latent"
    first = name.startswith("encoder.0.") and name.endswith(".input")
    return "embedding" if first else "states"


def list_quantised(shape: GeneratorShape) -> dict[str, tuple[tuple[int, ...], str]]:
    """List the arrays that :func:`quantise_weights` returns, by name: shape and dtype."""
    needed: dict[str, tuple[tuple[int, ...], str]]
    needed = {"levels": ((3,), "int32"), "softmax": ((_SOFTMAX_ENTRIES,), "uint32")}
    needed |= {name: (sizes, "float32") for name, sizes in shape.arrays().items()}
    for name, product in list_products(shape).items():
        needed[name] = ((product.rows, product.columns), "float32")
        needed[f"{name}.scale"] = ((product.columns,), "float32")
    return needed


def quantise_weights(weights: GeneratorWeights, levels: UnitLevels | None = None) -> dict[str, NDArray[Any]]:
    """Turn the weights of a trained generator into whole numbers: the arrays that :func:`list_quantised` lists.

    ``levels``: 1 in whole numbers, in activations; by default :func:`choose_levels`. ``embedding`` and the matrices are
    whole numbers in float32; ``x.scale`` is the value of 1 in the products of the matrix ``x``. Biases are unchanged.
    ``softmax`` is the table of :func:`wordveil.generators.inference.weigh`. Raises :class:`GeneratorError` if a layer
    is so wide, or a weight so large, that no useful whole numbers are left.
    """
    chosen = levels or choose_levels(weights.shape)
    arrays = dict(weights.arrays)
    embedding = arrays["embedding"].astype(np.float64)
    largest = np.abs(embedding).max(axis=0)
    largest[largest == 0] = 1
    quantised: dict[str, NDArray[Any]] = {
        **{name: np.array(array) for name, array in arrays.items() if array.ndim == 1},
        "levels": np.array(chosen, np.int32),
        "softmax": np.array(_softmax_table(), np.uint32),
        "embedding": np.rint(embedding / largest * chosen.embedding).astype(np.float32),
    }
    mixed = arrays[_MIXED]
    arrays[_MIXED], arrays[_LATENT] = np.split(mixed, [weights.shape.dimension])
    for name, product in list_products(weights.shape).items():
        factors = largest[:, None] if product.source == "embedding" else 1.0
        matrix, scale = _quantise_matrix(name, arrays[name] * factors, getattr(chosen, product.source))
        quantised[name], quantised[f"{name}.scale"] = matrix, scale
    check_exactness(weights.shape, quantised)
    return quantised


def _quantise_matrix(name: str, matrix: NDArray[np.floating[Any]], levels: int) -> tuple[Float32, Float32]:
    """Compute whole numbers and scales. Rounding adds at most half of the rows to a column's sum of magnitudes."""
    room = EXACT // levels - len(matrix) / 2
    if not room >= len(matrix):
        raise GeneratorError(
            f"{name}: {len(matrix)} rows are too many for whole numbers in float32. Train a smaller generator."
        )
    steps = np.abs(matrix, dtype=np.float64).sum(axis=0) / room
    steps[steps == 0] = 1
    return np.rint(matrix / steps).astype(np.float32), (steps / levels).astype(np.float32)


@cache
def _softmax_table() -> tuple[int, ...]:
    """Compute the table of weights. No weight is below 1, so that each symbol can be written, as under a softmax.

    ``exp`` of decimal numbers is rounded correctly, so that the table is equal on every machine.
    """
    with localcontext(prec=30):
        weights = (LARGEST_WEIGHT * (Decimal(-entry) / SOFTMAX_STEPS).exp() for entry in range(_SOFTMAX_ENTRIES))
        return tuple(max(round(weight), 1) for weight in weights)


def check_exactness(shape: GeneratorShape, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check that no product of stored arrays, as :func:`quantise_weights` returns them, is ever rounded.

    Every array is read once: about 0.1 seconds at 60 MB. Raises :class:`GeneratorError` if arrays are missing, have
    another shape or type, do not hold whole numbers, or may add up to more than 2^24; if the softmax's table does not
    fall from 2^31 to 1 or more; or if a logit could overflow.
    """
    for name, (sizes, dtype) in list_quantised(shape).items():
        array = arrays.get(name)
        if array is None or array.shape != sizes or array.dtype != dtype:
            given = "missing" if array is None else f"{array.dtype} {array.shape}"
            raise _refuse(name, f"is {given}, and {dtype} {sizes} is needed")
    levels = UnitLevels(*arrays["levels"].tolist())
    if not min(levels) >= 1:
        raise _refuse("levels", f"are {tuple(levels)}, and have to be 1 or more")
    softmax = arrays["softmax"]
    if not (softmax[0] == LARGEST_WEIGHT and softmax[-1] >= 1 and (softmax[1:] <= softmax[:-1]).all()):
        raise _refuse("softmax", "is not a falling table from 2^31 to 1 or more")
    if not _largest_sum(arrays["embedding"].T, "embedding", axis=None) <= levels.embedding:
        raise _refuse("embedding", f"has entries above {levels.embedding}")
    for name, product in list_products(shape).items():
        _check_product(name, arrays, getattr(levels, product.source))
    for name, sizes in shape.arrays().items():
        if len(sizes) == 1 and not np.abs(arrays[name]).max() <= _LARGEST_LOGIT:
            raise _refuse(name, "has entries that are too large, or no numbers")


def _check_product(name: str, arrays: Mapping[str, NDArray[Any]], levels: int) -> None:
    largest = _largest_sum(arrays[name], name, axis=0)
    if not largest * levels <= EXACT:
        raise _refuse(name, f"has a column whose products may reach {largest * levels:.0f}, and 2^24 is the most")
    scale = arrays[f"{name}.scale"]
    if not (scale.min() > 0 and float(scale.max()) * EXACT <= _LARGEST_LOGIT):
        raise _refuse(f"{name}.scale", "has entries that are not above 0, or too large")


def _largest_sum(matrix: Float32, name: str, axis: int | None) -> float:
    """Compute the largest sum of magnitudes of a column, or the largest magnitude; sums are exact in float64."""
    total: Any = 0.0
    for start in range(0, len(matrix), _ROWS):
        block = matrix[start : start + _ROWS]
        if not (block == np.rint(block)).all():
            raise _refuse(name, "has entries that are no whole numbers")
        sizes = np.abs(block)
        total = np.maximum(total, sizes.max()) if axis is None else total + sizes.sum(axis=0, dtype=np.float64)
    return cast(float, np.max(total))


def _refuse(name: str, problem: str) -> GeneratorError:
    return GeneratorError(f"The generator's array {name} {problem}. Build the bundle again from its weights.")
