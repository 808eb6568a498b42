"""Initial weights of a training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordveil.generators.shape import GeneratorShape


def draw_initial_arrays(
    shape: GeneratorShape, seed: int, vectors: NDArray[np.float32] | None = None
) -> dict[str, NDArray[np.float32]]:
    """Draw the arrays with which training begins, float32, as :meth:`GeneratorShape.arrays` lists them.

    Products with states begin orthogonal, others as in Glorot and Bengio 2010, biases at 0. ``seed``, 0 or more,
    decides all that is random.

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


def _draw(random: np.random.Generator, name: str, sizes: tuple[int, ...]) -> NDArray[np.float32]:
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
