"""Hyperbolic mechanisms against Euclidean ones: at equal plausible deniability, by hypernyms, and their speed.

Deniability, after Feyisetan, Diethe, Drake 2019, Table IV: of a word drawn 1,000 times, ``N_w`` is how often it stays
itself and ``S_w`` how many different words come out. For each mechanism epsilon is set so that the worst word of a
fixed sample, that with the largest ``N_w``, has a given one; then the means over words compare. Since epsilons count
different distances, the true constant is shown beside the configured one, with the loss that it allows between a word
and its nearest neighbour (the median over words) and across the whole embedding. All embeddings are cut down to the
words they share.

``N_w`` is computed from the cell of a word, within which it is the nearest: along a direction a noisy point leaves it
once, since cells are convex, at a distance that one product gives; the radial law does the rest. So epsilon is found
without draws, and draws of the mechanism itself check it.

    python research/benchmarks/hyperbolic.py [--quick] [--embedding NAME_OR_PATH ...]

Also hyperbolic_hypernyms.py and hyperbolic_speed.py. Writes research/results/hyperbolic.json and prints tables.
"""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq
from scipy.special import betainc, gammainc

import hyperbolic_hypernyms
import hyperbolic_speed
from common import machine, save_results
from hyperbolic_hypernyms import apart, law_of
from hyperbolic_speed import lorentz_rows
from laplace_exact import DATA
from tradeoff import glove
from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.embeddings import embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.euclidean import diameter as flat_diameter
from wordveil.geometry.hyperbolic import boost
from wordveil.geometry.hyperbolic import diameter as ball_diameter
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.mechanisms.additive.tails import MAX_DIGITS
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.neighbours.blocks import BuildContext

FloatArray = NDArray[np.float64]
WORDS, DRAWS = 100, 1_000
TARGETS = (50, 100, 200, 400, 700)
LEAST, MOST = 1e-3, 1e4
NODES = 20_001


@dataclass(frozen=True)
class Contender:
    """A mechanism over one embedding.

    Attributes
    ----------
    stays: the probability that each chosen word stays itself, by epsilon: float64 ``(words,)``.
    outputs: observed or exact ``N_w`` and ``S_w`` of the chosen words, by epsilon, for a number of draws.
    true: the true constant, by epsilon.
    nearest, diameter: distance of a word's nearest neighbour (median), and the largest of all.
    least: the least epsilon that there is.
    """

    name: str
    stays: Callable[[float], FloatArray]
    outputs: Callable[[float], tuple[FloatArray, FloatArray]]
    true: Callable[[float], float]
    nearest: float
    diameter: float
    least: float = LEAST


def restricted(words: Embedding, kept: list[str]) -> Embedding:
    """The embedding of ``kept`` words alone, in that order."""
    place = {word: row for row, word in enumerate(words.words.to_pylist())}
    return embedding.check_embedding(kept, words.vectors[[place[word] for word in kept]], words.source)


def flat_embeddings() -> dict[str, Embedding]:
    """Euclidean embeddings of the data directory; without it, the demo embedding alone."""
    found = {"demo 100": embedding.load("demo")}
    for name, file in (
        ("fiction 50", "fiction_w2v_50d"),
        ("fiction 100", "fiction_w2v_100d"),
        ("mixed 300", "mixed_w2v_300d"),
    ):
        if (place := DATA / f"{file}.f16.npz").exists():
            with np.load(place) as arrays:
                found[name] = embedding.check_embedding(
                    arrays["words"].tolist(), arrays["vectors"].astype(np.float32), file
                )
    if (DATA / "glove840B_300d_9910.words.gz").exists():
        found["GloVe 300"] = glove()
    return found


def directions(n: int, count: int) -> FloatArray:
    """Uniform directions, ``(count, n)``; the same for all words."""
    found = np.random.default_rng(n).standard_normal((count, n))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def exits(along: FloatArray, cost: FloatArray) -> FloatArray:
    """The least ``cost / along`` over other words where ``along`` is positive; infinite where it never is. ``along``:
    ``(directions, others)``.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(along > 0, cost / along, np.inf).min(axis=1))


def flat_exits(points: FloatArray, word: int, ways: FloatArray) -> FloatArray:
    """How far a word may be moved in each direction before another is nearer."""
    others = np.delete(points, word, axis=0) - points[word]
    return exits(ways @ others.T, (others**2).sum(axis=1) / 2)


def ball_exits(ball: FloatArray, points: FloatArray, word: int, ways: FloatArray) -> FloatArray:
    """The same in hyperbolic space, as ``tanh`` of the distance, 1 where no other word is ever nearer.

    Seen from the word, another one is ``(cosh d, x)``; the point at ``r`` in direction ``u`` is nearer to it once
    ``cosh r (cosh d - 1) < sinh r u.x``.
    """
    away = points[word] * np.array([1.0, *[-1.0] * (points.shape[1] - 1)])
    seen = boost(away[:, None].repeat(len(points) - 2, axis=1), np.delete(points[:-1], word, axis=0).T)
    d = np.delete(SPACES["hyperbolic"].distances(ball[word], ball), word)
    return np.minimum(1.0, exits(ways @ seen[1:], 2 * np.sinh(d / 2) ** 2))


def fdd_within(n: int, epsilon: float, tanh: FloatArray) -> FloatArray:
    """The probability that ``hyperbolic-fdd`` moves a point no further than to ``tanh`` of a distance."""
    rho = np.linspace(0, 1, NODES)
    with np.errstate(divide="ignore"):
        logs = (n - 1) * np.log(rho) + epsilon * (np.log1p(-rho) - np.log1p(rho))
    density = np.exp(logs - logs.max())
    total = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return np.interp(tanh / (1 + np.sqrt((1 - tanh) * (1 + tanh))), rho, total / total[-1])


def laplace_within(n: int, epsilon: float, tanh: FloatArray) -> FloatArray:
    """The same of ``hyperbolic-laplace``, whose ``1 - exp(-2r)`` is Beta(n, (epsilon - n + 1) / 2)."""
    return np.asarray(betainc(n, (epsilon - n + 1) / 2, 2 * tanh / (1 + tanh)))


def observed(mechanism: Mechanism, chosen: NDArray[np.int64], keys: ReleaseKeys) -> tuple[FloatArray, FloatArray]:
    """``N_w`` and ``S_w`` of the chosen words, from the mechanism's own draws."""
    ids = np.repeat(chosen, DRAWS).astype(np.int32)
    outputs = mechanism.draw(TokenBatch(ids, np.array([0, len(ids)]), np.zeros((1, 12), np.uint8)), keys).ids
    outputs = outputs.reshape(len(chosen), DRAWS)
    different = np.array([float(len(np.unique(row))) for row in outputs])
    return np.sum(outputs == chosen[:, None], axis=1).astype(np.float64), different


def hyperbolic_contenders(
    name: str, words: Embedding, chosen: NDArray[np.int64], keys: ReleaseKeys, ways: int
) -> list[Contender]:
    """The two additive mechanisms, and the exponential one, over points of the ball."""
    n, size = words.dimension, words.size
    ball = words.vectors.astype(np.float64)
    points = lorentz_rows(ball)
    reach = np.stack([ball_exits(ball, points, word, directions(n, ways)) for word in chosen])
    space = apart(SPACES["hyperbolic"], ball, chosen)
    near, widest = float(np.median(np.partition(space, 1, axis=1)[:, 1])), ball_diameter(ball)

    def exact(epsilon: float) -> tuple[FloatArray, FloatArray]:
        law = law_of(space, epsilon)
        return DRAWS * law[np.arange(len(chosen)), chosen], (1 - (1 - law) ** DRAWS).sum(axis=1)

    additive = [
        Contender(
            f"{law.name}, {name}",
            lambda epsilon, within=within: within(n, epsilon, reach).mean(axis=1),
            lambda epsilon, law=law: observed(law(size, epsilon, points, digits=MAX_DIGITS), chosen, keys),
            lambda epsilon, law=law: law.true_epsilon(epsilon, n),
            near,
            widest,
            max(LEAST, law.min_epsilon(n)),
        )
        for law, within in ((HyperbolicLaplace, laplace_within), (HyperbolicFDD, fdd_within))
    ]
    return [
        *additive,
        Contender(f"exponential, {name}", lambda eps: exact(eps)[0] / DRAWS, exact, lambda eps: eps, near, widest),
    ]


def flat_contender(name: str, words: Embedding, chosen: NDArray[np.int64], keys: ReleaseKeys, ways: int) -> Contender:
    """Laplace over a Euclidean embedding."""
    points = words.vectors.astype(np.float64)
    reach = np.stack([flat_exits(points, word, directions(words.dimension, ways)) for word in chosen])
    near = np.partition(apart(SPACES["euclidean"], points, chosen), 1, axis=1)[:, 1]
    built = Laplace.build(words, LaplaceSettings(epsilon=1.0), padding=False, work=BuildContext())
    base = Laplace.load(words.size, built.parameters, built.arrays)
    return Contender(
        f"laplace, {name}",
        lambda epsilon: gammainc(words.dimension, epsilon * reach).mean(axis=1),
        lambda epsilon: observed(base.at_epsilon(epsilon), chosen, keys),
        lambda epsilon: epsilon,
        float(np.median(near)),
        float(flat_diameter(words.vectors)),
    )


def matched(one: Contender, target: int) -> dict[str, Any]:
    """The contender at the epsilon where its worst ``N_w`` is the target, or at its least where that is not low
    enough.
    """

    def over(log_epsilon: float) -> float:
        return float(one.stays(np.exp(log_epsilon)).max()) * DRAWS - target

    low, high = np.log(one.least), np.log(MOST)
    reached = over(low) <= 0
    epsilon = float(np.exp(brentq(over, low, high, xtol=1e-4))) if reached else one.least
    n_w, s_w = one.outputs(epsilon)
    true = one.true(epsilon)
    return {
        "mechanism": one.name,
        "worst_n": target,
        "reached": reached,
        "epsilon": epsilon,
        "true": true,
        "mean_n": float(n_w.mean()),
        "observed_worst_n": float(n_w.max()),
        "mean_s": float(s_w.mean()),
        "least_s": float(s_w.min()),
        "loss_nearest": true * one.nearest,
        "loss_diameter": true * one.diameter,
    }


def deniability(words: dict[str, Embedding], keys: ReleaseKeys, *, quick: bool) -> dict[str, Any]:
    """All rows, over the words that all embeddings share."""
    flat = flat_embeddings()
    first, *others = [*words.values(), *flat.values()]
    shared = set(first.words.to_pylist()).intersection(*(one.words.to_pylist() for one in others))
    kept = [word for word in first.words.to_pylist() if word in shared]
    count, ways = (20, 200) if quick else (WORDS, DRAWS)
    chosen = np.arange(count) * len(kept) // count
    contenders = [
        one
        for name, found in words.items()
        for one in hyperbolic_contenders(name, restricted(found, kept), chosen, keys, ways)
    ]
    contenders += [flat_contender(name, restricted(one, kept), chosen, keys, ways) for name, one in flat.items()]
    rows = [matched(one, target) for target in (TARGETS[1::2] if quick else TARGETS) for one in contenders]
    return {"shared_words": len(kept), "measured": count, "draws": DRAWS, "rows": rows}


def show(content: dict[str, Any]) -> None:
    """The tables of the results."""
    console = Console(width=140)
    result = content["deniability"]
    headings = ("mechanism", "worst N_w", "epsilon", "true", "mean N_w", "mean S_w", "loss, nearest", "loss, diameter")
    table = Table(
        *headings, title=f"Equal worst N_w of {result['draws']} draws, {result['shared_words']:,} shared words"
    )
    first = result["rows"][0]["worst_n"]
    for row in result["rows"]:
        if not row["reached"] and row["worst_n"] > first:  # its row is above
            continue
        worst = str(row["worst_n"]) if row["reached"] else f"{row['observed_worst_n']:.0f}, the least"
        numbers = [
            f"{row[key]:.4g}" for key in ("epsilon", "true", "mean_n", "mean_s", "loss_nearest", "loss_diameter")
        ]
        table.add_row(row["mechanism"], worst, *numbers)
    console.print(table)
    for name, result in content["hypernyms"].items():
        title = f"{name}: hypernyms among what changes, {result['words']:,} words"
        table = Table("mechanism", "epsilon", "true", "stays", "hypernyms", title=title)
        for row in result["rows"]:
            share = "" if row["hypernyms"] is None else f"{row['hypernyms']:.2%}"
            table.add_row(row["mechanism"], f"{row['epsilon']:g}", f"{row['true']:g}", f"{row['stays']:.1%}", share)
        console.print(table)
    table = Table("embedding", "mechanism", "tokens a second", "of the bound", title="One core")
    for row in content["speed"]:
        shape = f"{row['embedding']}, {row['words']:,} x {row['dimension']}"
        table.add_row(shape, row["mechanism"], f"{row['tokens_per_second']:,.0f}", f"{row['ratio']:.2f}")
    console.print(table)
    for row in content["speed"]:
        steps = ", ".join(f"{step} {taken:.2f}" for step, taken in row["microseconds_per_token"].items())
        print(f"{row['mechanism']}, {row['words']:,} x {row['dimension']}, us a token: {steps}")


def main() -> None:
    """Measure, write, show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="few words, two targets, one round, no synthetic embedding"
    )
    parser.add_argument("--embedding", nargs="+", default=["demo-poincare"], help="Poincare embeddings: names or paths")
    arguments = parser.parse_args()
    before = machine()
    loaded = {place: embedding.load(place) for place in arguments.embedding}
    words = {f"{Path(place).name} {one.dimension}": one for place, one in loaded.items()}
    keys = MasterKey(secrets.token_bytes(32)).for_release("hyperbolic")  # thrown away
    rounds, measured = (1, 200) if arguments.quick else (5, hyperbolic_hypernyms.WORDS)
    speed = [
        row
        for name, one in words.items()
        for row in hyperbolic_speed.measure(name, one.vectors.astype(np.float64), keys, rounds)
    ]
    if not arguments.quick:
        speed += hyperbolic_speed.measure("synthetic", hyperbolic_speed.synthetic(50_000, 100), keys, rounds)
    demo = embedding.load("demo")
    known = set(demo.words.to_pylist())
    hypernyms = {}
    for name, one in words.items():
        kept = [word for word in one.words.to_pylist() if word in known]
        hypernyms[name] = hyperbolic_hypernyms.measure(restricted(one, kept), restricted(demo, kept), keys, measured)
    content = {
        "machine": before,
        "embeddings": list(words),
        "deniability": deniability(words, keys, quick=arguments.quick),
        "hypernyms": hypernyms,
        "speed": speed,
    }
    save_results("hyperbolic", arguments.quick, content)
    show(content)


if __name__ == "__main__":
    main()
