"""Koppel's method as matrix products, against a loop over pairs of a snippet and an author, in one process.

The corpus is the newswire stories of 50 authors: 2,500 known texts and 2,500 snippets. The loop is what a direct
reading of the paper gives: for each round, snippet and author a cosine over the round's features, from dictionaries of
counts, with the lengths of the authors' vectors computed once a round. It runs over a sample of the snippets and
rounds, and its time is scaled to all of them, since it is proportional to both. Both find the same winners, which is
checked. Times are of the processor.

    python research/benchmarks/koppel.py [--smallest]

Writes research/results/koppel.json. Without the data directory there is nothing to measure on.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from common import DATA, machine, make_parser, save_results
from wordveil_research.methods.koppel import FittedKoppel, Koppel, Weights
from wordveil_research.methods.space_free import count_features
from wordveil_research.tasks.datasets import load_documents

CORPUS = DATA / "c50_reuters.jsonl.xz"
SNIPPETS, ROUNDS = 60, 4
"""What the loop runs over."""


def read_bags(fitted: FittedKoppel, texts: list[str]) -> list[dict[int, float]]:
    """Read the counts of each text by feature, as a loop would keep them."""
    space = fitted.profiles.space
    table = count_features(texts, space.codes, lower=space.lower)
    parts = zip(table.indptr[:-1], table.indptr[1:], strict=True)
    return [
        dict(zip(table.indices[start:end].tolist(), table.data[start:end].tolist(), strict=True))
        for start, end in parts
    ]


def attribute_by_loop(
    fitted: FittedKoppel, authors: list[dict[int, float]], snippets: list[dict[int, float]], rounds: int
) -> np.ndarray:
    """Return the winners of the first ``rounds`` rounds, pair by pair."""
    masks = fitted.profiles.space.masks
    winners = np.full((len(snippets), rounds), -1)
    for turn in range(rounds):
        chosen = set(np.flatnonzero(masks[:, turn]).tolist())
        norms = [math.sqrt(sum(count * count for one, count in author.items() if one in chosen)) for author in authors]
        for row, snippet in enumerate(snippets):
            looked_at = [(one, count) for one, count in snippet.items() if one in chosen]
            best = 0.0
            for label, (author, norm) in enumerate(zip(authors, norms, strict=True)):
                cosine = sum(count * author.get(one, 0.0) for one, count in looked_at) / norm
                if cosine > best:
                    best, winners[row, turn] = cosine, label
    return winners


def measure(snippets: int, rounds: int) -> dict[str, Any]:
    """Measure seconds of processor time of both, and how many authors are named."""
    known = load_documents(CORPUS, "author", where={"split": "train"})
    tested = load_documents(CORPUS, "author", where={"split": "test"}, names=known.names)
    settings = Koppel(weights=Weights.FREQUENCY, threshold=0.0)
    begin = time.process_time()
    fitted = settings.fit(known, seed=1)
    fit_seconds = time.process_time() - begin
    begin = time.process_time()
    counts = fitted.profiles.space.count(tested.texts)
    count_seconds = time.process_time() - begin
    begin = time.process_time()
    winners = fitted.profiles.find_winners(counts)
    product_seconds = time.process_time() - begin

    texts = [" ".join(known.texts[row] for row in np.flatnonzero(known.labels == label)) for label in range(50)]
    authors = read_bags(fitted, texts)
    sample = np.random.Generator(np.random.PCG64(1)).choice(len(tested), snippets, replace=False)
    bags = read_bags(fitted, [tested.texts[row] for row in sample])
    begin = time.process_time()
    looped = attribute_by_loop(fitted, authors, bags, rounds)
    loop_seconds = time.process_time() - begin
    scale = len(tested) / snippets * settings.iterations / rounds
    return {
        "authors": len(known.names),
        "snippets": len(tested),
        "iterations": settings.iterations,
        "features": len(fitted.profiles.space.codes),
        "accuracy": round(float((winners.score(len(known.names)).labels == tested.labels).mean()), 4),
        "fit_seconds": round(fit_seconds, 2),
        "count_seconds": round(count_seconds, 2),
        "product_seconds": round(product_seconds, 2),
        "loop_snippets": snippets,
        "loop_iterations": rounds,
        "loop_seconds": round(loop_seconds, 2),
        "loop_seconds_scaled": round(loop_seconds * scale, 1),
        "times_faster": round(loop_seconds * scale / product_seconds, 1),
        "times_faster_with_counting": round(loop_seconds * scale / (product_seconds + count_seconds), 1),
        "same_winners": bool(np.array_equal(looped, winners.labels[sample, :rounds])),
    }


def main() -> None:
    """Measure, print and write."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    if not CORPUS.exists():
        raise SystemExit(f"{CORPUS} is missing.")
    found = {"machine": machine(), **measure(*((5, 1) if smallest else (SNIPPETS, ROUNDS)))}
    save_results("koppel", found, smallest=smallest)
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
