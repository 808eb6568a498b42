"""Words a second of a training step at the paper's size, beside its matrix products alone.

20,000 words, dimension 100, 512 cells, latent 256, length 50, batch 128, whole sequences. Usage:
``python benchmarks/generator_training.py [--steps N] [--batch N]``. Needs the extra ``er-ae``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from wordveil.generators.initial import draw_initial_arrays
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.batch import prepare_batch
from wordveil.generators.training.loss import Losses, find_units
from wordveil.generators.training.model import Generator
from wordveil.generators.training.settings import TrainingSettings

RESULT = Path(__file__).parent / "results" / "generator_training.json"
SHAPE = GeneratorShape(size=20_000, dimension=100, cells=512, latent=256, length=50)


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    given = parser.parse_args()
    step, products = make_step(given.batch), make_products(given.batch)
    step()
    products()
    # Side by side: what else the machine does slows both.
    times = [(measure(step), measure(products)) for _ in range(given.steps)]
    symbols = given.batch * SHAPE.length
    seconds, least = (statistics.median(column) for column in zip(*times, strict=True))
    found = {
        "device": str(jax.devices()[0]),
        "batch": given.batch,
        "tokens_per_second": round(symbols / seconds, 1),
        "bound_tokens_per_second": round(symbols / least, 1),
        "share_of_bound": round(least / seconds, 3),
        "gigaflops_of_bound": round(count_operations(given.batch) / least / 1e9, 1),
    }
    print(json.dumps(found, indent=1))
    RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def measure(work: Callable[[], object]) -> float:
    """Seconds of a call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def make_step(batch: int) -> Callable[[], object]:
    """The gradient of both losses on whole sequences, without the optimiser."""
    random, settings = np.random.default_rng(0), TrainingSettings(batch=batch)
    vectors = random.normal(size=(SHAPE.size, SHAPE.dimension)).astype(np.float32)
    arrays = {name: jnp.asarray(array) for name, array in draw_initial_arrays(SHAPE, 0, vectors).items()}
    graph, state = nnx.split(Generator(SHAPE, arrays))
    losses = Losses(SHAPE, settings, jnp.asarray(find_units(vectors)))
    sequences = random.integers(0, SHAPE.size, (batch, SHAPE.length), np.int32)
    prepared = prepare_batch(SHAPE, sequences, settings, random)
    derive = jax.jit(lambda state, prepared: losses.derive(nnx.merge(graph, state), prepared))
    return lambda: jax.block_until_ready(derive(state, prepared))


def list_products(batch: int) -> list[tuple[int, int, int, int]]:
    """The products forward: how often, and rows, inner size and columns. Backward takes each twice."""
    half, cells, latent, rows = SHAPE.cells // 2, SHAPE.cells, SHAPE.latent, batch * SHAPE.length
    found = []
    for width in (SHAPE.dimension, cells):
        found += [(2, rows, width, 3 * half), (2 * SHAPE.length, batch, half, 3 * half)]
    for width in (SHAPE.dimension + latent, cells):
        found += [(1, rows, width, 3 * cells), (SHAPE.length, batch, cells, 3 * cells)]
    return [*found, (1, rows, cells, SHAPE.outputs)]


def count_operations(batch: int) -> int:
    """Multiplications and additions of a step's products."""
    return sum(3 * 2 * times * rows * inner * columns for times, rows, inner, columns in list_products(batch))


def make_products(batch: int) -> Callable[[], object]:
    """The products alone, as NumPy's BLAS does them, with two products of the same size for each one backward."""
    sizes: list[tuple[int, Any, Any]] = []
    for times, rows, inner, columns in list_products(batch):
        part = min(rows, 1024)
        left, right = np.ones((part, inner), np.float32), np.ones((inner, columns), np.float32)
        sizes.append((3 * times * rows // part, left, right))

    def work() -> None:
        for times, left, right in sizes:
            for _ in range(times):
                np.matmul(left, right)

    return work


if __name__ == "__main__":
    main()
