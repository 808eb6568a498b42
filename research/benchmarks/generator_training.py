"""Words a second of a training step beside its matrix products alone, at the sizes of the paper and of the demo.

A step is the gradient of both losses and Adam's change of the weights, on whole sequences. Its products are those that
no step can do without: each one forward, and two of the same size backward. They run in turns. Usage:
``python research/benchmarks/generator_training.py [--turns N]``. Needs the extra ``er-ae``.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from common import machine, make_parser, save_results
from wordveil.generators.initial import draw_initial_arrays
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.training.model import Generator, prepare_batch
from wordveil.generators.training.settings import TrainingSettings
from wordveil.generators.training.train import TrainingLosses, find_units

SECONDS = 2.0
"""How long the calls of a turn take together, at least."""


class Case(NamedTuple):
    """Sizes, sequences of a step, and places whose probabilities are held at once."""

    shape: GeneratorShape
    batch: int
    chunk: int


CASES = {
    "paper": Case(GeneratorShape(size=20_000, dimension=100, cells=512, latent=256, length=50), 128, 1024),
    "demo": Case(GeneratorShape(8_000, 100, 160, 128, 10, encoder_layers=1, generator_layers=1), 64, 128),
}
SMALL = Case(GeneratorShape(50, 4, 8, 4, 5, encoder_layers=1, generator_layers=1), 4, 8)


def main() -> None:
    """Measure, print and keep the figures."""
    parser = make_parser(__doc__)
    parser.add_argument("--turns", type=int, default=5)
    chosen = parser.parse_args()
    cases, turns, least = ({"small": SMALL}, 1, 0.0) if chosen.smallest else (CASES, chosen.turns, SECONDS)
    found = {"machine": {**machine(), "jax": jax.__version__, "device": str(jax.devices()[0])}}
    for name, case in cases.items():
        found[name] = compare(case, turns, least)
        print(name, json.dumps(found[name]))
    save_results("generator_training", found, smallest=chosen.smallest)


def compare(case: Case, turns: int, least: float) -> dict[str, Any]:
    """Compare a step and its products, in turns: what else the machine does slows both."""
    step, products = make_step(case), make_products(case)
    times = [(measure(step, least), measure(products, least)) for _ in range(turns)]
    symbols = case.batch * case.shape.length
    seconds, bare = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "batch": case.batch,
        "step_seconds": round(seconds, 4),
        "tokens_per_second": round(symbols / seconds, 1),
        "bound_tokens_per_second": round(symbols / bare, 1),
        "share_of_bound": round(statistics.median(low / high for high, low in times), 3),
        "gigaflops_of_bound": round(count_operations(case) / bare / 1e9, 1),
    }


def measure(work: Callable[[], object], least: float) -> float:
    """Measure seconds of a call, after one that is not counted: the threads of the other library wait actively for a
    while.
    """
    work()
    begun, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - begun < least:
        work()
        calls += 1
    return (time.perf_counter() - begun) / calls


def make_step(case: Case) -> Callable[[], object]:
    """Make a step from the weights with which training begins."""
    shape, settings = case.shape, TrainingSettings(batch=case.batch, chunk=case.chunk)
    random = np.random.default_rng(0)
    vectors = random.normal(size=(shape.size, shape.dimension)).astype(np.float32)
    arrays = {name: jnp.asarray(array) for name, array in draw_initial_arrays(shape, 0, vectors).items()}
    graph, state = nnx.split(Generator(shape, arrays))
    units = jnp.asarray(find_units(vectors))
    sequences = random.integers(0, shape.size, (case.batch, shape.length), np.int32)
    prepared = prepare_batch(shape, sequences, settings, random)
    optimiser = optax.chain(optax.clip_by_global_norm(settings.clip_norm), optax.adam(settings.learning_rate))

    def step(state: Any, memory: Any, batch: Any, units: Any) -> tuple[Any, Any]:
        gradient, _ = TrainingLosses(shape, settings, units).derive(nnx.merge(graph, state), batch)
        changes, memory = optimiser.update(gradient, memory, state)
        return optax.apply_updates(state, changes), memory

    compiled, memory = jax.jit(step), optimiser.init(state)
    return lambda: jax.block_until_ready(compiled(state, memory, prepared, units))


def list_products(case: Case) -> list[tuple[int, int, int, int]]:
    """List the products forward: how often, and rows, inner size and columns. Backward takes each twice."""
    shape, batch = case.shape, case.batch
    half, cells, rows = shape.cells // 2, shape.cells, batch * shape.length
    found = []
    for layer in range(shape.encoder_layers):
        width = cells if layer else shape.dimension
        found += [(2, rows, width, 3 * half), (2 * shape.length, batch, half, 3 * half)]
    for layer in range(shape.generator_layers):
        width = cells if layer else shape.dimension + shape.latent
        found += [(1, rows, width, 3 * cells), (shape.length, batch, cells, 3 * cells)]
    return [*found, (1, rows, cells, shape.outputs)]


def count_operations(case: Case) -> int:
    """Multiplications and additions of a step's products."""
    return sum(3 * 2 * times * rows * inner * columns for times, rows, inner, columns in list_products(case))


def make_products(case: Case) -> Callable[[], object]:
    """Make the products alone, as NumPy's BLAS does them, each into the same array."""
    sizes: list[tuple[int, Any, Any, Any]] = []
    for times, rows, inner, columns in list_products(case):
        part = min(rows, 1024)
        left, right = np.ones((part, inner), np.float32), np.ones((inner, columns), np.float32)
        sizes.append((3 * times * rows // part, left, right, left @ right))

    def work() -> None:
        for times, left, right, out in sizes:
            for _ in range(times):
                np.matmul(left, right, out=out)

    return work


if __name__ == "__main__":
    main()
