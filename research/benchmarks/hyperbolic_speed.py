"""Draws of the hyperbolic mechanisms on one core, over the bare float32 product that their search cannot do without.

The bound multiplies the same number of queries with all words, in the same tiles as
:class:`wordveil.neighbours.first_pass.LorentzPass`, and does nothing else: no noise, no maximum. Draws and bound take
turns in one process. Part of research/benchmarks/hyperbolic.py.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplace_exact import timed, timed_calls
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import KeyedStream
from wordveil.geometry.hyperbolic import to_lorentz
from wordveil.mechanisms.additive import hyperbolic
from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.additive.tails import MAX_DIGITS
from wordveil.mechanisms.base import TokenBatch
from wordveil.neighbours.exact import LorentzNearest
from wordveil.neighbours.first_pass import LorentzPass

FloatArray = NDArray[np.float64]
LAWS = (HyperbolicLaplace, HyperbolicFDD)
QUERIES, TILE = 768, 512
# Multiplications and additions of a round, about: a second or two of the bound.
WORK = 3e10
STEPS: dict[tuple[Any, str], str] = {
    (KeyedStream, "uniforms"): "uniforms (AES)",
    (HyperbolicLaplace, "contractions"): "radius",
    (HyperbolicFDD, "contractions"): "radius",
    (HyperbolicLaplace, "noise"): "noise",
    (HyperbolicFDD, "noise"): "noise",
    (hyperbolic, "boost"): "boost",
    (LorentzPass, "load"): "queries to float32",
    (LorentzPass, "multiply"): "product",
    (LorentzPass, "scan"): "scan",
    (LorentzNearest, "_decide"): "decision in float64",
    (LorentzNearest, "search"): "search",
}


def synthetic(words: int, dimension: int) -> FloatArray:
    """Ball points ``(words, dimension)`` at distances 1 to 8 from the origin."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((words, dimension))
    return directions * (np.tanh(rng.uniform(0.5, 4.0, (words, 1))) / np.linalg.norm(directions, axis=1, keepdims=True))


def lorentz_rows(ball: FloatArray) -> FloatArray:
    """Points of the words and of the unknown word, as the mechanisms hold them: ``(words + 1, n + 1)``."""
    return np.ascontiguousarray(to_lorentz(np.concatenate([ball, np.zeros((1, ball.shape[1]))]).T).T)


def product(points: FloatArray, tokens: int) -> Callable[[], None]:
    """The bound."""
    rows = points[:-1].astype(np.float32)
    queries = np.random.default_rng(1).standard_normal((QUERIES, rows.shape[1])).astype(np.float32)
    tiles = [rows[start : start + TILE] for start in range(0, len(rows), TILE)]
    scores = [
        np.empty(QUERIES * TILE, np.float32)[: QUERIES * len(tile)].reshape(QUERIES, -1)
        for tile in (tiles[0], tiles[-1])
    ]

    def run() -> None:
        for _ in range(tokens // QUERIES):
            for tile in tiles:
                np.matmul(queries, tile.T, out=scores[len(tile) < TILE])

    return run


def profile(draw: Callable[[], Any], tokens: int) -> dict[str, float]:
    """Microseconds a token of each step. A step's time is its own, without that of the steps it calls."""
    totals: dict[str, float] = {}
    with timed_calls(totals, STEPS), timed(totals, "all"):
        draw()
    found = {step: seconds / tokens * 1e6 for step, seconds in totals.items()}
    found["the search's rest"] = found.pop("search") - sum(
        found[step] for step in ("queries to float32", "product", "scan", "decision in float64")
    )
    direction_and_all = found.pop("noise")
    radius, uniforms = found.pop("radius"), found["uniforms (AES)"]
    found["radius and direction"] = direction_and_all - uniforms
    steps = sum(seconds for step, seconds in found.items() if step != "all")
    return {**found, "the rest": found["all"] - steps, "of which the radius, with its uniforms": radius}


def measure(name: str, ball: FloatArray, keys: ReleaseKeys, rounds: int) -> list[dict[str, Any]]:
    """Tokens a second of each mechanism over its bound, over one set of ball points ``(words, n)``."""
    points, (size, n) = lorentz_rows(ball), ball.shape
    tokens = max(4, int(WORK / (2 * size * (n + 1) * QUERIES))) * QUERIES
    ids = np.random.default_rng(2).integers(0, size, tokens).astype(np.int32)
    batch = TokenBatch(ids, np.array([0, tokens]), np.zeros((1, 12), np.uint8))
    bound = product(points, tokens)
    found = []
    for law in LAWS:
        mechanism = law(size, 1.0 if law is HyperbolicFDD else n + 1.0, points, digits=MAX_DIGITS)
        mechanism.draw(batch, keys)
        bound()
        runs = []
        for _ in range(rounds):
            taken: dict[str, float] = {}
            with timed(taken, "draw"):
                mechanism.draw(batch, keys)
            with timed(taken, "bound"):
                bound()
            runs.append(taken)
        found.append(
            {
                "embedding": name,
                "mechanism": law.name,
                "words": size,
                "dimension": n,
                "epsilon": mechanism._epsilon,  # noqa: SLF001 - what was measured
                "tokens": tokens,
                "runs": runs,
                "tokens_per_second": tokens / statistics.median(run["draw"] for run in runs),
                "ratio": statistics.median(run["bound"] / run["draw"] for run in runs),
                "microseconds_per_token": profile(lambda mechanism=mechanism: mechanism.draw(batch, keys), tokens),
            }
        )
    return found
