"""Poincare embeddings: how well they reconstruct WordNet's mammals, and how fast they are trained, against gensim.

Nodes are synsets, pairs the transitive closure of hypernymy; nothing is filtered. Both sides get the same pairs, dimension, epochs,
negative words and learning rate, on one core; gensim's regularisation, which the paper does not have, is off. Speed is in pairs a
second of processor time, without reading and compiling. Of the nouns a few pairs are trained: their whole time is extrapolated.

    python benchmarks/poincare.py            # a few minutes
    python benchmarks/poincare.py --nouns    # besides, all nouns: 80,000 synsets, 50 epochs; ten minutes

Writes benchmarks/results/poincare.json and prints a table. Reads ../shared/data, and says so where that is absent.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models.poincare import PoincareModel
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from common import machine, save_results
from laplace_exact import DATA
from wordveil.neighbours.blocks import Workshop
from wordveil.training.hypernyms import Hierarchy, hierarchy, read_pairs
from wordveil.training.poincare import in_ball, train
from wordveil.training.reconstruction import reconstruction
from wordveil.training.settings import TrainingSettings

MAMMALS = DATA / "mammal_closure_nk6540.tsv.xz"
NOUNS = DATA / "wordnet30_noun_closure.tsv.xz"
PLAIN = TrainingSettings(min_links=1, stop_words="keep")
# Learning rate, epochs, burn-in and negative words of the script for mammals that the paper's authors published.
AUTHORS = replace(PLAIN, learning_rate=0.3, epochs=300, burn_in=20, negative=50)
PART = 20_000


def ours(graph: Hierarchy, settings: TrainingSettings) -> tuple[NDArray[np.float64], float]:
    """Points, and seconds of processor time."""
    start = time.process_time()
    points = train(graph, settings, "benchmark", Workshop())
    return points, time.process_time() - start


def gensims(graph: Hierarchy, settings: TrainingSettings, part: int | None = None) -> tuple[NDArray[np.float64], float]:
    """The same by gensim, ``part`` of the pairs in an epoch if it is given."""
    names = [(str(word), str(hypernym)) for word, hypernym in graph.edges]
    model = PoincareModel(
        names,
        size=settings.dimension,
        alpha=settings.learning_rate,
        negative=settings.negative,
        burn_in=settings.burn_in,
        burn_in_alpha=settings.learning_rate / 10,
        regularization_coeff=0.0,
        seed=settings.seed,
    )
    if part:
        model.all_relations = model.all_relations[:: len(names) // part]
    start = time.process_time()
    model.train(settings.epochs)
    taken = time.process_time() - start
    rows = [model.kv.key_to_index[str(row)] for row in range(len(graph.words))]
    return np.asarray(model.kv.vectors[rows], np.float64), taken


def row(who: str, graph: Hierarchy, settings: TrainingSettings, points: NDArray[np.float64], seconds: float) -> dict[str, Any]:
    """Quality and speed of one training."""
    passes = settings.epochs + settings.burn_in
    return {
        "who": who,
        **asdict(settings),
        "words": len(graph.words),
        "pairs": len(graph.edges),
        **asdict(reconstruction(graph, in_ball(points))),
        "seconds": round(seconds, 2),
        "pairs_a_second": round(len(graph.edges) * passes / seconds),
    }


def mammals(dimensions: Sequence[int]) -> list[dict[str, Any]]:
    """Both sides."""
    graph = hierarchy(read_pairs(MAMMALS), PLAIN, str(MAMMALS))
    ours(graph, replace(PLAIN, epochs=1))  # compiles
    found = []
    for dimension in dimensions:
        settings = replace(PLAIN, dimension=dimension)
        found.append(row("wordveil", graph, settings, *ours(graph, settings)))
        found.append(row("gensim", graph, settings, *gensims(graph, settings)))
        more = replace(AUTHORS, dimension=dimension)
        found.append(row("wordveil, longer", graph, more, *ours(graph, more)))
    return found


def nouns(*, whole: bool) -> dict[str, Any]:
    """How long the noun closure takes, 10 dimensions and 50 epochs: one epoch of ours, and a part of one of gensim's, extrapolated."""
    graph = hierarchy(read_pairs(NOUNS), PLAIN, str(NOUNS))
    passes = PLAIN.epochs + PLAIN.burn_in
    _, epoch = ours(graph, replace(PLAIN, epochs=1, burn_in=0))
    _, part = gensims(graph, replace(PLAIN, epochs=1, burn_in=0), PART)
    found = {
        "words": len(graph.words),
        "pairs": len(graph.edges),
        "wordveil_minutes_extrapolated": round(epoch * passes / 60, 2),
        "gensim_minutes_extrapolated": round(part * len(graph.edges) / PART * passes / 60, 1),
    }
    if whole:
        found["whole"] = row("wordveil", graph, PLAIN, *ours(graph, PLAIN))
    return found


def main() -> None:
    """Measure, write, print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--nouns", action="store_true", help="train all nouns too")
    arguments.add_argument("--quick", action="store_true", help="mammals in 5 dimensions only; keeps nothing")
    chosen = arguments.parse_args()
    absent = [file for file in (MAMMALS, NOUNS) if not Path(file).exists()]
    if absent:
        print(f"skipped: {', '.join(map(str, absent))} not found; there is nothing to measure on")
        return
    about = machine()
    rows = mammals((5,) if chosen.quick else (5, 10))
    result: dict[str, Any] = {"machine": about, "mammals": rows, "nouns": {} if chosen.quick else nouns(whole=chosen.nouns)}
    if "whole" in result["nouns"]:
        rows = [*rows, result["nouns"].pop("whole")]
        result["nouns_trained"] = rows[-1]
    save_results("poincare", chosen.quick, result)
    names = {
        "who": "who",
        "words": "words",
        "dimension": "n",
        "epochs": "epochs",
        "negative": "neg",
        "learning_rate": "rate",
        "mean_rank": "rank",
        "mean_average_precision": "MAP",
        "pairs_a_second": "pairs/s",
    }
    table = Table(*names.values())
    for found in rows:
        table.add_row(*(f"{found[name]:.4g}" if isinstance(found[name], float) else str(found[name]) for name in names))
    Console().print(table)
    print(result["nouns"])


if __name__ == "__main__":
    main()
