"""Weights without a training: initial ones, and those of a generator for checks.

The generator for checks begins with the first word of a text, and continues from what it wrote. So its output depends
on the text and on the symbols before, and it ends. Its weights are rounded to multiples of :data:`_UNIT`, so that every
machine makes the same ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float32, Float64
from wordveil.embeddings.embedding import Embedding
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.weights import GeneratorWeights, digest_words


def draw_initial_arrays(shape: GeneratorShape, seed: int, vectors: Float32 | None = None) -> dict[str, Float32]:
    """Draw the arrays with which training begins, float32, as :meth:`GeneratorShape.arrays` lists them.

    Products with states begin orthogonal, others as in Glorot and Bengio 2010, biases at 0. ``seed`` is 0 or more.
    ``vectors``, float32 ``(size, dimension)``, are public vectors of the words. The embedding begins as these, divided
    by the root mean square of their lengths, and the last product as a random one times these: then similar words are
    learned together from the first step, in fewer steps. Raises :class:`ValueError` if they have another shape.
    """
    if vectors is not None and vectors.shape != (shape.size, shape.dimension):
        raise ValueError(f"Expected vectors of shape {(shape.size, shape.dimension)}, got {vectors.shape}.")
    random = np.random.default_rng(seed)
    arrays = {name: _draw(random, name, sizes) for name, sizes in shape.arrays().items()}
    if vectors is not None:
        length = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1).mean())
        scaled = vectors / max(float(length), 1e-12)
        arrays["embedding"][: shape.size] = scaled
        product = random.normal(size=(shape.cells, shape.dimension)) / np.sqrt(shape.cells)
        arrays["output"][:, : shape.size] = product.astype(np.float32) @ scaled.T
    return arrays


def _draw(random: np.random.Generator, name: str, sizes: tuple[int, ...]) -> Float32:
    if len(sizes) == 1:
        return np.zeros(sizes, np.float32)
    if name == "embedding":
        return np.asarray(random.normal(size=sizes) / np.sqrt(sizes[1]), np.float32)
    if name.endswith(".hidden"):
        cells = sizes[0]
        squares = [np.linalg.qr(random.normal(size=(cells, cells)))[0] for _ in range(3)]
        return np.asarray(np.concatenate(squares, axis=1), np.float32)
    limit = np.sqrt(6 / sum(sizes))
    return random.uniform(-limit, limit, sizes).astype(np.float32)


_CELLS, _LENGTH = 32, 4
# Gates that are nearly shut and nearly open, and how sure the generator is of a word.
_SHUT, _SURE = -8.0, 12.0
_UNIT = 2.0**-10


def make_repeating_weights(embedding: Embedding, length: int = _LENGTH) -> GeneratorWeights:
    """Make the weights of a small generator over the words of an embedding, for sequences of ``length`` symbols.

    Encoder and generator have one layer each, with 32 cells. The encoder keeps the first symbol alone, and the first
    state of the generator encodes it: a word leads to itself, an unknown word to the end, and padding alone to padding.
    Each symbol that is written moves the state.
    """
    shape = GeneratorShape(embedding.size, embedding.dimension, _CELLS, _CELLS, length, 1, 1)
    arrays = draw_initial_arrays(shape, 1, embedding.vectors)
    half = _CELLS // 2
    for name in ("encoder.0.forward", "encoder.0.backward"):
        arrays[f"{name}.hidden"][:] = 0
        arrays[f"{name}.bias"][half : 2 * half] = _SHUT
    arrays["encoder.0.backward.input"][:, 2 * half :] *= 3
    arrays["encoder.0.forward.input"][:] = 0
    arrays["latent"] *= 2
    arrays["generator.0.bias"][_CELLS : 2 * _CELLS] = -_SHUT / 4
    arrays = {name: _round(array) for name, array in arrays.items()}
    states = _first_states(arrays, shape)
    arrays["output"] = _round(_SURE * states.T)
    arrays["output_bias"] = _round(-_SURE / 2 * (states**2).sum(axis=1))
    return GeneratorWeights(shape, digest_words(embedding.words), "public", arrays)


def _round(values: NDArray[Any]) -> Float32:
    return (np.rint(values / _UNIT) * _UNIT).astype(np.float32)


def _first_states(arrays: dict[str, Float32], shape: GeneratorShape) -> Float64:
    """Compute the generator's first state after a text that begins with the word of each column, approximately."""
    half = _CELLS // 2
    words, unknown = arrays["embedding"][: shape.size], arrays["embedding"][[shape.unknown]]
    read = np.concatenate([words, np.zeros((1, shape.dimension)), unknown]).astype(np.float64)
    last = np.tanh(read @ arrays["encoder.0.backward.input"][:, 2 * half :])
    latent = np.tanh(last @ arrays["latent"][half:])
    return np.asarray(np.tanh(latent @ arrays["generator.0.start"]))
