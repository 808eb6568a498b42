"""A generator's inference in whole numbers over the bare float32 matrix products of the same shapes, on one core.

The shape is ER-AE's: 20,000 words of 100 dimensions, 512 cells, a latent vector of 256, sequences of 50 symbols, 128 at
once. Weights and sequences are random, and no text ends early. In turns run:

* bare: the products of the encoder and of 50 steps of the generator, each into the same array, and nothing else;
* whole numbers: the same through the library, up to the softmax's weights of all 20,002 symbols at each step;
* XLA: the model in float32 under ``jax.jit``, up to the softmax's probabilities, where JAX is installed.

Times are of the processor, and medians. Where JAX is installed, the softmax in whole numbers is also compared with that
in float32, by the number of levels of activations, under flat and under peaked outputs.

    python research/benchmarks/generator_inference.py [--smallest]

Writes research/results/generator_inference.json.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])  # XLA takes as many threads as there are cores

import numpy as np

from common import machine, make_parser, save_results
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.initial import draw_initial_arrays
from wordveil.generators.quantise import UnitLevels, check_exactness, choose_levels, list_products, quantise_weights
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.weights import GeneratorWeights

PAPER = GeneratorShape(size=20_000, dimension=100, cells=512, latent=256, length=50), 128
SMALLEST = GeneratorShape(size=60, dimension=4, cells=8, latent=4, length=5), 4
# Here, since a process that is started for its memory imports this file, too.
SHAPE, BATCH = SMALLEST if "--smallest" in sys.argv else PAPER
LEVELS = (64, 128, 256, 512, 1024, 4096)
HAS_JAX = importlib.util.find_spec("jax") is not None


def draw_weights(sharpness: float) -> GeneratorWeights:
    """Random weights with the spread of trained ones. ``sharpness`` is about the standard deviation of logits, halved
    by states that are about 0.5.
    """
    random = np.random.default_rng(1)
    arrays = draw_initial_arrays(SHAPE, 1)
    for name, array in arrays.items():
        if array.ndim == 1:
            arrays[name] = (random.normal(size=array.shape) * 0.1).astype(np.float32)
        elif name == "output":
            arrays[name] = (random.normal(size=array.shape) * sharpness / np.sqrt(SHAPE.cells)).astype(np.float32)
        elif name != "embedding":
            arrays[name] = array * np.float32(2)
    return GeneratorWeights(SHAPE, "", "public", arrays)


def draw_symbols(count: int) -> np.ndarray:
    """Draw words alone: int32 ``(count, length)``."""
    return np.random.default_rng(2).integers(0, SHAPE.size, (count, SHAPE.length)).astype(np.int32)


def bare_products(batch: int) -> Callable[[], None]:
    """Return all products of a batch. How often a matrix is used is what its name says."""
    random = np.random.default_rng(3)
    parts = []
    for name, product in list_products(SHAPE).items():
        once = name == "latent" or name.endswith((".start", ".latent"))
        left = random.integers(-300, 301, (batch, product.rows)).astype(np.float32)
        right = random.integers(-50, 51, (product.rows, product.columns)).astype(np.float32)
        parts.append((left, right, np.empty((batch, product.columns), np.float32), 1 if once else SHAPE.length))

    def multiply() -> None:
        for place in range(SHAPE.length):
            for left, right, out, times in parts:
                if place < times:
                    np.matmul(left, right, out=out)

    return multiply


def whole_numbers(generator: WholeNumberGenerator, sequences: np.ndarray) -> tuple[Callable[[], Any], ...]:
    """Return the encoder, and the steps of the generator after it. What is written is what was read."""

    def advance() -> None:
        state, symbols = generator.begin(sequences), generator.start_symbols(len(sequences))
        for place in range(SHAPE.length):
            generator.advance(state, symbols)
            symbols = np.ascontiguousarray(sequences[:, place])

    return (lambda: generator.begin(sequences)), advance


def xla(weights: GeneratorWeights, sequences: np.ndarray) -> Callable[[], None]:
    """Return the same under XLA. Probabilities come back as NumPy's arrays, since mechanisms draw from them."""
    from generator_inference_xla import compile_generator

    begin, advance = compile_generator(SHAPE, weights.arrays)

    def run() -> None:
        state, symbols = begin(sequences), np.full(len(sequences), SHAPE.start, np.int32)
        for place in range(SHAPE.length):
            state, probabilities = advance(state, symbols)
            np.asarray(probabilities)
            symbols = np.ascontiguousarray(sequences[:, place])

    return run


def seconds(work: Callable[[], Any]) -> float:
    """Measure the processor's time that a call takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure_speed(weights: GeneratorWeights, repeats: int) -> dict[str, Any]:
    """Measure tokens a second of all, taken in turns; ratios are of neighbours."""
    begin = time.process_time()
    arrays = quantise_weights(weights)
    built = time.process_time() - begin
    checked = seconds(lambda: check_exactness(SHAPE, arrays))
    sequences = draw_symbols(BATCH)
    generator = WholeNumberGenerator(SHAPE, arrays)
    encode, whole = whole_numbers(generator, sequences)
    works = {"bare": bare_products(BATCH), "whole_numbers": whole, "encoder": encode}
    if HAS_JAX:
        works["xla"] = xla(weights, sequences)
    for work in works.values():  # compiles
        work()
    turns = [{name: seconds(work) for name, work in works.items()} for _ in range(repeats)]
    tokens = BATCH * SHAPE.length
    found = {name: round(tokens / statistics.median(turn[name] for turn in turns)) for name in works}
    ratios = {
        f"{name}_over_bare": round(statistics.median(turn["bare"] / turn[name] for turn in turns), 3)
        for name in works
        if name in ("whole_numbers", "xla")
    }
    sizes = {"bundle_megabytes": round(sum(array.nbytes for array in arrays.values()) / 1e6, 1)}
    times = {"quantise_seconds": round(built, 2), "check_seconds": round(checked, 3)}
    return {"tokens_per_second": found, **ratios, **sizes, **times, "memory": measure_memory(arrays)}


def measure_memory(arrays: dict[str, np.ndarray]) -> dict[str, float]:
    """Megabytes that a worker process adds, once it has mapped the arrays and run: its own, and of pages that all
    workers share.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, array in arrays.items():
            np.save(Path(folder) / f"{name}.npy", array)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(run_mapped, folder).result()


def run_mapped(folder: str) -> dict[str, float]:
    """Compile and load by a small generator, which is not counted."""
    small = GeneratorShape(size=20, dimension=4, cells=4, latent=4, length=SHAPE.length)
    weights = GeneratorWeights(small, "", "public", draw_initial_arrays(small, 1))
    whole_numbers(WholeNumberGenerator(small, quantise_weights(weights)), draw_symbols(4) % 20)[1]()
    before = read_memory()
    mapped = {path.stem: np.asarray(np.load(path, mmap_mode="r")) for path in Path(folder).iterdir()}
    generator = WholeNumberGenerator(SHAPE, mapped)
    state = generator.begin(draw_symbols(BATCH))
    generator.advance(state, generator.start_symbols(BATCH))
    after = read_memory()
    return {name: round(after[name] - before[name], 1) for name in after}


def read_memory() -> dict[str, float]:
    """Resident megabytes of this process: its own, and mapped from files."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        name: int(fields[field].split()[0]) / 1024
        for name, field in (("own_megabytes", "RssAnon"), ("mapped_megabytes", "RssFile"))
    }


def measure_accuracy(sharpness: float, rows: int, steps: int) -> dict[str, Any]:
    """Measure the distance of the softmax in whole numbers from that in float32, by levels; the first are those
    chosen.
    """
    from generator_inference_xla import compile_generator

    weights, sequences = draw_weights(sharpness), draw_symbols(rows)
    begin, advance = compile_generator(SHAPE, weights.arrays)
    written = [np.full(rows, SHAPE.start, np.int32), *sequences.T[: steps - 1].copy()]
    wanted, state = [], begin(sequences)
    for symbols in written:
        state, probabilities = advance(state, symbols)
        wanted.append(np.asarray(probabilities, np.float64))
    found: dict[str, Any] = {"largest_probability": round(float(np.mean([one.max(axis=1) for one in wanted])), 4)}
    chosen = choose_levels(SHAPE)
    for levels in (chosen, *(UnitLevels(count, count, count) for count in LEVELS)):
        generator = WholeNumberGenerator(SHAPE, quantise_weights(weights, levels))
        whole = generator.begin(sequences)
        distances, same = [], []
        for symbols, softmax in zip(written, wanted, strict=True):
            weighed = generator.advance(whole, symbols).astype(np.float64)
            shares = weighed / weighed.sum(axis=1, keepdims=True)
            distances.append(np.abs(shares - softmax).sum(axis=1) / 2)
            same.append(shares.argmax(axis=1) == softmax.argmax(axis=1))
        found["chosen" if levels == chosen else str(levels.states)] = {
            "total_variation": round(float(np.mean(distances)), 5),
            "largest_total_variation": round(float(np.max(distances)), 5),
            "same_likeliest": round(float(np.mean(same)), 4),
        }
    return found


def main() -> None:
    """Measure, print and write."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    about = machine()
    found = {
        "machine": {**about, "jax": HAS_JAX},
        "shape": asdict(SHAPE),
        "batch": BATCH,
        "levels": choose_levels(SHAPE)._asdict(),
        **measure_speed(draw_weights(1.0), 2 if smallest else 5),
    }
    if HAS_JAX:
        rows, steps = (4, 5) if smallest else (32, 20)
        found["accuracy"] = {f"sharpness {one:g}": measure_accuracy(one, rows, steps) for one in (1.0, 8.0, 40.0)}
    save_results("generator_inference", found, smallest=smallest)
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
