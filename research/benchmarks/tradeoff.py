"""How much of a text stays, and how far words move, at the same true epsilon: laplace against the exponential family.

Of 500 words evenly spread over the vocabulary: the probability that a word stays itself, and the mean distance between
a word and its replacement. Epsilon is the true constant of each, per unit of the same Euclidean distance. The
exponential mechanisms' figures are exact, from all distances; laplace's are the means of 2,000 draws. Gamma is the
median distance of the 256th neighbour.

    python research/benchmarks/tradeoff.py

Writes research/results/tradeoff.json and docs/pictures/tradeoff.svg, and prints tables.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from common import DATA, glove, load_embedding, machine, make_parser, save_results
from wordveil.crypto.keys import MasterKey
from wordveil.embeddings import embedding
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.mechanisms.keep_rate import measure_keep_rate
from wordveil.mechanisms.tables.exponential import tight_beta
from wordveil.neighbours.blocks import BuildContext

mpl.use("svg")
from matplotlib import pyplot as plt

FloatArray = NDArray[np.float64]
WORDS, DRAWS, NEIGHBOURS = 500, 4, 256
EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0)
TICKS = (0.5, 1, 2, 5, 10, 20, 40)
PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "tradeoff.svg"
NAMES = {
    "laplace": "laplace",
    "exponential": "exponential",
    "gamma": "exponential, gamma (TEM)",
    "neighbours": "exponential, 256 neighbours",
    "tight": "both, tight",
}


def embeddings() -> dict[str, Embedding]:
    """Return what is measured: the demo embedding, and GloVe where the data directory is there."""
    found = {"demo, 20,000 x 100": embedding.load("demo")}
    if (DATA / "glove840B_300d_9910.words.gz").exists():
        found["GloVe, 9,910 x 300"] = glove()
    return found


def distances(chosen: NDArray[np.int64], vectors: FloatArray) -> FloatArray:
    """Return distances of the chosen words from all."""
    squares = (vectors**2).sum(axis=1)
    found = squares[chosen, None] + squares - 2 * vectors[chosen] @ vectors.T
    found[np.arange(len(chosen)), chosen] = 0
    return np.asarray(np.sqrt(np.maximum(found, 0)))


def weighed(scores: FloatArray, apart: FloatArray, chosen: NDArray[np.int64], beta: float) -> tuple[float, float]:
    """Share of words that stay, and mean distance moved, of weights ``exp(-beta scores)``."""
    law = np.exp(-beta * scores)
    law /= law.sum(axis=1, keepdims=True)
    return float(law[np.arange(len(chosen)), chosen].mean()), float((law * apart).sum(axis=1).mean())


def laplace(mechanism: Laplace, apart: FloatArray, chosen: NDArray[np.int64]) -> tuple[float, float]:
    """Return the same of draws."""
    ids = np.repeat(chosen, DRAWS).astype(np.int32)
    keys = MasterKey(secrets.token_bytes(32)).for_release("tradeoff")  # thrown away
    drawn = draw_tokens(mechanism, ids, b"text", keys)
    keep_rate = measure_keep_rate(ids, drawn, apart.shape[1])
    return keep_rate.kept / keep_rate.words, float(apart[np.repeat(np.arange(len(chosen)), DRAWS), drawn].mean())


def measure(words: Embedding) -> dict[str, Any]:
    """Measure all figures of one embedding."""
    chosen = np.arange(WORDS) * words.size // WORDS
    apart = distances(chosen, words.vectors.astype(np.float64))
    near = np.partition(apart, NEIGHBOURS, axis=1)[:, NEIGHBOURS]
    gamma = round(float(np.median(near)), 2)
    scores = {
        "exponential": apart,
        "gamma": np.minimum(apart, gamma),
        "neighbours": np.minimum(apart, near[:, None]),
    }
    built = Laplace.build(words, LaplaceSettings(epsilon=1.0), padding=False, work=BuildContext())
    base = Laplace.load(words.size, built.parameters, built.arrays)
    space = SPACES["euclidean"]
    points = space.points(words.vectors)
    lists = BuildContext().lists(space, points, NEIGHBOURS, gamma, 2**31)
    both = np.minimum(scores["neighbours"], gamma)
    rows = []
    for epsilon in EPSILONS:
        found = {name: weighed(score, apart, chosen, epsilon / 2) for name, score in scores.items()}
        found["tight"] = weighed(both, apart, chosen, tight_beta(space, points, lists, epsilon, gamma, padding=False))
        found["laplace"] = laplace(base.at_epsilon(epsilon), apart, chosen)
        rows.append(
            {"epsilon": epsilon, **{name: {"stays": stays, "moved": moved} for name, (stays, moved) in found.items()}}
        )
    random = float(apart.mean())
    return {"gamma": gamma, "diameter": built.guarantee.diameter, "moved_at_random": random, "rows": rows}


def draw(results: dict[str, dict[str, Any]]) -> None:
    """Draw the picture: a row an embedding, words that stay on the left, distance moved on the right."""
    figure, axes = plt.subplots(len(results), 2, figsize=(11, 3.8 * len(results)), squeeze=False)
    for line, (name, result) in zip(axes, results.items(), strict=True):
        for axis, what, label in zip(
            line, ("stays", "moved"), ("share of words that stay", "mean distance moved"), strict=True
        ):
            for mechanism, shown in NAMES.items():
                axis.plot(EPSILONS, [row[mechanism][what] for row in result["rows"]], marker=".", label=shown)
            axis.set(xscale="log", xlabel="true epsilon per unit of distance", ylabel=label, title=name)
            axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        line[1].axhline(result["moved_at_random"], color="grey", linestyle=":", label="drawn at random")
    lines, labels = axes[0][1].get_legend_handles_labels()
    figure.legend(lines, labels, loc="upper center", ncol=len(labels), fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Measure, write, draw, show."""
    smallest = make_parser(__doc__).parse_args().smallest
    before = machine()
    chosen = {"small": load_embedding("small")} if smallest else embeddings()
    results = {name: measure(words) for name, words in chosen.items()}
    save_results("tradeoff", {"machine": before, "words": WORDS, "results": results}, smallest=smallest)
    if not smallest:
        draw(results)
    for name, result in results.items():
        table = Table(title=f"{name}: words that stay (distance moved); gamma {result['gamma']:g}")
        table.add_column("epsilon", justify="right")
        for shown in NAMES.values():
            table.add_column(shown, justify="right")
        for row in result["rows"]:
            cells = [f"{row[mechanism]['stays']:.1%} ({row[mechanism]['moved']:.2f})" for mechanism in NAMES]
            table.add_row(f"{row['epsilon']:g}", *cells)
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
