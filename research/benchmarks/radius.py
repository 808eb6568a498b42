"""What radii without a largest value cost: noise whose uniforms may take further digits, beside the same noise from 52
bits alone.

One core, one process. Both take turns over the same tokens of the embeddings that come with the package, with the look
at which uniforms come near 0 or 1 and without it. A round is the radius alone, then whole draws, search included. The
ratio is the median over the rounds of the time of the present form over that of the old one. The cost of a token that
does take further digits, one in 2^31 for each uniform, is measured by sending all that way.

    python research/benchmarks/radius.py [--quick]

Writes research/results/radius.json and prints a table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any
from unittest import mock

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS

import numpy as np
from rich.console import Console
from rich.table import Table

from common import machine, save_results
from wordveil.crypto.keys import MasterKey
from wordveil.crypto.streams import KeyedStream
from wordveil.embeddings import embedding
from wordveil.mechanisms.additive import hyperbolic, laplace, tails
from wordveil.mechanisms.base import TokenBatch
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext

CHUNK = 768
CASES: list[tuple[str, str, bool, ModuleType]] = [
    ("laplace", "demo", True, laplace),
    ("hyperbolic-laplace", "demo-poincare", False, hyperbolic),
    ("hyperbolic-fdd", "demo-poincare", False, hyperbolic),
]
EPSILON = 20.0


def none_near(*_: object) -> tuple[()]:
    return ()


@contextmanager
def fifty_two_bits(module: ModuleType) -> Iterator[None]:
    """The old form: no uniform is looked at."""
    with mock.patch.object(module, "find_ends", none_near):
        yield


def seconds(work: Callable[[], Any]) -> float:
    """Of the processor, so that others on the machine count less."""
    started = time.process_time()
    work()
    return time.process_time() - started


def radius_of(mechanism: Any, stream: KeyedStream, tokens: int) -> Callable[[], None]:
    """The radii of this many tokens; for Laplace without its uniforms, of which the direction takes nearly all."""
    context, position = np.zeros((CHUNK, 12), np.uint8), np.arange(CHUNK)
    uniform = stream.uniforms(context, position)[-1]

    def run() -> None:
        for _ in range(tokens // CHUNK):
            if isinstance(mechanism, laplace.Laplace):
                mechanism._radii(stream, uniform, context, position)  # noqa: SLF001 - the step itself
            else:
                mechanism.contractions(stream, context, position)

    return run


def turns(module: ModuleType, work: Callable[[], Any], tokens: int, rounds: int) -> dict[str, Any]:
    """Tokens a second of both forms, and the median ratio of their times."""
    runs = []
    for number in range(rounds):
        taken = {}
        for form in ("present", "old") if number % 2 else ("old", "present"):
            with fifty_two_bits(module) if form == "old" else nullcontext():
                taken[form] = seconds(work)
        runs.append(taken)
    speeds = {form: tokens / statistics.median(run[form] for run in runs) for form in ("present", "old")}
    low, ratio, high = statistics.quantiles((run["present"] / run["old"] for run in runs), n=4)
    return {"tokens_per_second": speeds, "ratio": ratio, "quartiles": [low, high], "rounds": rounds}


def further_microseconds(work: Callable[[], None]) -> float:
    """Of a token all of whose uniforms take one digit more."""
    with mock.patch.object(tails, "_NEAR", 0.5), mock.patch.object(tails, "_KNOWN", 2**60):
        return seconds(work) / CHUNK * 1e6


def measure(case: tuple[str, str, bool, ModuleType], tokens: int, rounds: int) -> dict[str, Any]:
    name, source, padding, module = case
    words = embedding.load(source)
    built = MECHANISMS[name].build(
        words, MECHANISMS[name].settings_type(epsilon=EPSILON), padding=padding, work=BuildContext()
    )
    mechanism: Any = MECHANISMS[name].load(words.size, built.parameters, built.arrays)
    keys = MasterKey(bytes(range(32))).for_release("benchmark")
    stream = KeyedStream(keys.noise, mechanism._blocks)  # noqa: SLF001 - the stream that it draws from
    ids = np.random.default_rng(2).integers(0, words.size, tokens).astype(np.int32)
    batch = TokenBatch(ids, np.array([0, tokens]), np.zeros((1, 12), np.uint8))
    mechanism.draw(batch, keys)  # what is compiled is compiled before
    return {
        "mechanism": name,
        "embedding": source,
        "epsilon": EPSILON,
        "digits": built.parameters["digits"],
        "delta": built.guarantee.delta,
        "tokens": tokens,
        "radius": turns(module, radius_of(mechanism, stream, tokens), tokens, rounds),
        "draw": turns(module, lambda: mechanism.draw(batch, keys), tokens, rounds),
        "microseconds_of_a_token_with_further_digits": further_microseconds(radius_of(mechanism, stream, CHUNK)),
    }


def show(found: list[dict[str, Any]]) -> None:
    heads = (
        "mechanism",
        "digits",
        "delta",
        "radius alone: present, old",
        "ratio",
        "whole draw: present, old",
        "ratio",
        "µs, further digits",
    )
    table = Table(*heads, title="Tokens a second on one core, with and without further digits")
    for row in found:
        cells = []
        for step in ("radius", "draw"):
            speeds = row[step]["tokens_per_second"]
            cells += [f"{speeds['present']:,.0f}, {speeds['old']:,.0f}", f"{row[step]['ratio']:.3f}"]
        rare = f"{row['microseconds_of_a_token_with_further_digits']:.0f}"
        table.add_row(row["mechanism"], str(row["digits"]), f"{row['delta']:.1e}", *cells, rare)
    Console(width=160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer tokens and rounds")
    quick = parser.parse_args().quick
    about = machine()
    tokens, rounds = (2 * CHUNK, 5) if quick else (6 * CHUNK, 31)
    found = [measure(case, tokens, rounds) for case in CASES]
    show(found)
    save_results("radius", quick, {"machine": about, "cases": found})


if __name__ == "__main__":
    main()
