"""Poincare embeddings: how well they reconstruct WordNet's mammals, and how fast they are trained, by each of the two
trainers.

Nodes are synsets, pairs the transitive closure of hypernymy; nothing is filtered. Both trainers get the same pairs,
dimension, epochs, negative words and learning rate, on one core; gensim's regularisation, which the paper does not
have, is off. Speed is in pairs a second of processor time, without reading and compiling. Of the nouns a few pairs are
trained: their whole time is extrapolated.

    python research/benchmarks/poincare.py            # a few minutes
    python research/benchmarks/poincare.py --nouns    # also all nouns: 80,000 synsets, 50 epochs; ten minutes

Writes research/results/poincare.json and prints a table. Reads ../shared/data, and says so where that is absent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from common import DATA, machine, make_parser, save_results
from wordveil.embeddings.training import poincare
from wordveil.embeddings.training.hypernyms import HypernymGraph, PoincareSettings, build_hierarchy, read_pairs
from wordveil.embeddings.training.poincare import project_to_ball, train
from wordveil.neighbours.blocks import BuildContext
from wordveil_research.tasks.reconstruction import measure_reconstruction

MAMMALS = DATA / "mammal_closure_nk6540.tsv.xz"
NOUNS = DATA / "wordnet30_noun_closure.tsv.xz"
PLAIN = PoincareSettings(trainer="compiled", min_links=1, stop_words="keep")
# Learning rate, epochs, burn-in and negative words of the script for mammals that the paper's authors published.
AUTHORS = replace(PLAIN, learning_rate=0.3, epochs=300, burn_in=20, negative=50)
PART = 20_000


def compiled(graph: HypernymGraph, settings: PoincareSettings) -> tuple[NDArray[np.float64], float]:
    """Return points, and seconds of processor time."""
    start = time.process_time()
    points = train(graph, settings, "benchmark", BuildContext())
    return points, time.process_time() - start


def by_gensim(
    graph: HypernymGraph, settings: PoincareSettings, part: int | None = None
) -> tuple[NDArray[np.float64], float]:
    """Measure the same by gensim, without the time that its model takes to be made; ``part`` of the pairs in an epoch
    if
    it is given.
    """
    model = poincare.make_model(graph, settings, "benchmark")
    if part:
        model.all_relations = model.all_relations[:: len(graph.edges) // part]
    start = time.process_time()
    poincare.train_model(model, settings, BuildContext().steps)
    taken = time.process_time() - start
    return poincare.read_points(model, len(graph.words)), taken


def row(
    who: str, graph: HypernymGraph, settings: PoincareSettings, points: NDArray[np.float64], seconds: float
) -> dict[str, Any]:
    """Quality and speed of one training."""
    passes = settings.epochs + settings.burn_in
    return {
        "who": who,
        **asdict(settings),
        "words": len(graph.words),
        "pairs": len(graph.edges),
        **asdict(measure_reconstruction(graph, project_to_ball(points))),
        "seconds": round(seconds, 2),
        "pairs_a_second": round(len(graph.edges) * passes / seconds),
    }


def mammals(dimensions: Sequence[int], *, smallest: bool) -> list[dict[str, Any]]:
    """Measure both trainers; once over the pairs in a smallest run."""
    short = {"epochs": 1, "burn_in": 0} if smallest else {}
    graph = build_hierarchy(read_pairs(MAMMALS), PLAIN, str(MAMMALS))
    compiled(graph, replace(PLAIN, epochs=1))  # compiles
    found = []
    for dimension in dimensions:
        settings = replace(PLAIN, dimension=dimension, **short)
        others = replace(settings, trainer="gensim")
        found.append(row("compiled", graph, settings, *compiled(graph, settings)))
        found.append(row("gensim", graph, others, *by_gensim(graph, others)))
        more = replace(AUTHORS, dimension=dimension, **short)
        found.append(row("compiled, longer", graph, more, *compiled(graph, more)))
    return found


def nouns(*, whole: bool) -> dict[str, Any]:
    """Measure how long the noun closure takes, 10 dimensions and 50 epochs: one compiled epoch, and a part of one of
    gensim's, extrapolated.
    """
    graph = build_hierarchy(read_pairs(NOUNS), PLAIN, str(NOUNS))
    passes = PLAIN.epochs + PLAIN.burn_in
    _, epoch = compiled(graph, replace(PLAIN, epochs=1, burn_in=0))
    _, part = by_gensim(graph, replace(PLAIN, trainer="gensim", epochs=1, burn_in=0), PART)
    found = {
        "words": len(graph.words),
        "pairs": len(graph.edges),
        "compiled_minutes_extrapolated": round(epoch * passes / 60, 2),
        "gensim_minutes_extrapolated": round(part * len(graph.edges) / PART * passes / 60, 1),
    }
    if whole:
        found["whole"] = row("compiled", graph, PLAIN, *compiled(graph, PLAIN))
    return found


def main() -> None:
    """Measure, write, print."""
    arguments = make_parser(__doc__)
    arguments.add_argument("--nouns", action="store_true", help="train all nouns too")
    chosen = arguments.parse_args()
    absent = [file for file in (MAMMALS, NOUNS) if not Path(file).exists()]
    if absent:
        print(f"skipped: {', '.join(map(str, absent))} not found; there is nothing to measure on")
        return
    about = machine()
    rows = mammals((5,) if chosen.smallest else (5, 10), smallest=chosen.smallest)
    result: dict[str, Any] = {
        "machine": about,
        "mammals": rows,
        "nouns": {} if chosen.smallest else nouns(whole=chosen.nouns),
    }
    if "whole" in result["nouns"]:
        rows = [*rows, result["nouns"].pop("whole")]
        result["nouns_trained"] = rows[-1]
    save_results("poincare", result, smallest=chosen.smallest)
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
