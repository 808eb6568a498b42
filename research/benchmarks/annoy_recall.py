"""Annoy against the exact search: how fast at which recall, and what is lost in meaning.

For each embedding and epsilon, with padding a candidate as in the strict policy, noisy points are drawn about words
evenly spread over the vocabulary, by the mechanism itself. A coarse run over numbers of trees and search_k finds the
fastest setting that reaches a recall of about 20, 50, 90 and 99%; each of these, and Annoy's own default (search_k =
n_trees), then searches the same points as the exact search does, in the same process on one core.

* recall: the share of points for which the exact search gives the same word, which is what `wordveil build` records;
* kept: the share of words that stay themselves; alike: the mean cosine similarity of a word and the word put in its
place;
  moved: the mean distance between them, in which short vectors near the mean weigh little, whatever they mean. All
  three also for the exact search, on the same points;
* tokens a second: the search alone, by the processor time of one thread, the best of up to three runs; the exact
search runs
  again beside each setting.

    python research/benchmarks/annoy_recall.py

Takes two to four minutes on a core; writes research/results/annoy_recall.json and prints tables.
"""

from __future__ import annotations

import os
import sys
import time
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

from common import DATA, load_embedding, machine, make_parser, save_results
from wordveil.crypto.keys import Secret
from wordveil.crypto.streams import KeyedStream
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.mechanisms.additive.tails import MAX_DIGITS
from wordveil.mechanisms.keep_rate import measure_keep_rate
from wordveil.neighbours.annoy import AnnoyNearest
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.exact import ExactNearest

RESULTS = Path(__file__).parents[1] / "results"
PLANS = {"demo": (20.0,), "mixed": (20.0, 60.0)}
TREES = (1, 10, 100)
RECALLS = (0.2, 0.5, 0.9, 0.99)
DEFAULT_TREES = 100
QUERIES = 1536  # two blocks of the mechanism
COARSE = 192
STEP = 1.7
ROUNDS, ROUND_SECONDS = 3, 4.0
COARSE_SECONDS = 0.3
# A setting this many times slower than the exact float32 search is useless.
SLOWEST = 60

Search = Callable[[NDArray[np.float64]], NDArray[np.int32]]


@dataclass(frozen=True)
class Setting:
    """How Annoy is asked, and the recall that it was chosen for."""

    n_trees: int
    search_k: int
    aim: str


@dataclass(frozen=True)
class Points:
    """Noisy points, float64 ``(m, count)``, the words they were drawn about, and the rows that are searched."""

    words: NDArray[np.int64]
    noisy: NDArray[np.float64]
    rows: NDArray[np.float32]


def noisy_points(size: int, index: NDArray[np.float32], epsilon: float) -> Points:
    """Return the mechanism's own noise about :data:`QUERIES` words."""
    mechanism = Laplace(size, epsilon, index, padding=True, digits=MAX_DIGITS)
    words = np.arange(QUERIES) * size // QUERIES
    contexts = np.ones((QUERIES, 12), np.uint8)
    noise = mechanism._noise(KeyedStream(Secret(bytes(range(32))), mechanism._blocks), contexts, np.arange(QUERIES))  # noqa: SLF001
    return Points(words, noise + index[words, :-1].T, index[: size + 1])


def timed(
    search: Search, queries: NDArray[np.float64], seconds: float = ROUND_SECONDS
) -> tuple[NDArray[np.int32], float]:
    """Return the answers and the queries a second, the best of up to three runs that fit into the time."""
    best, spent, rounds = 0.0, 0.0, 0
    while rounds == 0 or (rounds < ROUNDS and spent * (rounds + 1) / rounds < seconds):
        started = time.process_time()
        found = search(queries)
        taken = time.process_time() - started
        best, spent, rounds = max(best, queries.shape[1] / taken), spent + taken, rounds + 1
    return found, best


def asked(trees: AnnoyNearest, search_k: int) -> AnnoyNearest:
    """Return the same trees, asked to look at more or fewer points."""
    return AnnoyNearest(trees._trees, trees._rows, search_k)  # noqa: SLF001


def coarse_run(
    trees: AnnoyNearest, points: Points, truth: NDArray[np.int32], slowest: float
) -> list[tuple[int, float, float]]:
    """(search_k, recall, queries a second), with rising search_k."""
    part = slice(None, None, QUERIES // COARSE)
    queries, rows, search_k, recall, speed = points.noisy[:, part], [], 4.0, 0.0, np.inf
    while recall < RECALLS[-1] + 0.003 and speed > slowest:
        found, speed = timed(asked(trees, int(search_k)).search, queries, COARSE_SECONDS)
        recall = float(np.mean(found == truth[part]))
        rows.append((int(search_k), recall, speed))
        search_k *= STEP
    return rows


def settings(coarse: dict[int, list[tuple[int, float, float]]]) -> list[Setting]:
    """For each recall the fastest setting that reaches it, search_k interpolated between two that were tried."""
    found = [Setting(DEFAULT_TREES, DEFAULT_TREES, "default")]
    for aim in RECALLS:
        reaching = []
        for n_trees, rows in coarse.items():
            after = next((place for place, row in enumerate(rows) if row[1] >= aim), None)
            if after is not None:
                (low, below, _), (high, above, speed) = rows[max(after - 1, 0)], rows[after]
                share = (aim - below) / (above - below) if above > below else 1.0
                reaching.append((speed, Setting(n_trees, round(low * (high / low) ** max(share, 0.0)), f"{aim:.0%}")))
        if reaching:
            found.append(max(reaching, key=lambda pair: pair[0])[1])
    return found


def meaning(points: Points, found: NDArray[np.int32]) -> dict[str, float]:
    """Return what is left of the words' meaning in what took their place."""
    before, after = (
        points.rows[ids, :-2].astype(np.float64) for ids in (points.words, found)
    )  # without height and score
    keep_rate = measure_keep_rate(points.words, found, len(points.rows) - 1)  # the last row is padding
    cosines = (before * after).sum(axis=1) / (np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1))
    return {
        "kept": keep_rate.kept / keep_rate.words,
        "alike": float(cosines.mean()),
        "moved": float(np.linalg.norm(before - after, axis=1).mean()),
    }


def measure(name: str, epsilon: float, forest: dict[int, AnnoyNearest], index: NDArray[np.float32]) -> dict[str, Any]:
    """Measure all settings of one embedding at one epsilon."""
    points = noisy_points(len(index) - 2, index, epsilon)
    exact = ExactNearest(points.rows, len(points.rows))
    exact.search(points.noisy[:, :COARSE])
    truth, exact_speed = timed(exact.search, points.noisy)
    coarse = {n_trees: coarse_run(trees, points, truth, exact_speed / SLOWEST) for n_trees, trees in forest.items()}
    rows = []
    for setting in settings(coarse):
        found, speed = timed(asked(forest[setting.n_trees], setting.search_k).search, points.noisy)
        # again, beside it: other jobs of the machine slow both
        exact_speed = max(exact_speed, timed(exact.search, points.noisy)[1])
        rows.append(
            {
                **setting.__dict__,
                "recall": float(np.mean(found == truth)),
                "tokens_per_second": speed,
                **meaning(points, found),
            }
        )
    return {
        "embedding": name,
        "words": len(index) - 2,
        "dimension": index.shape[1] - 2,
        "epsilon": epsilon,
        "exact": {"tokens_per_second": exact_speed, **meaning(points, truth)},
        "annoy": rows,
    }


def grow(rows: NDArray[np.float32], home: Path) -> tuple[dict[int, AnnoyNearest], dict[int, dict[str, float]]]:
    """Return the trees, used from files as workers do, with the seconds and megabytes that they took."""
    forest, costs = {}, {}
    for n_trees in TREES:
        started = time.perf_counter()
        forest[n_trees] = AnnoyNearest.grow(rows, n_trees, 1)
        seconds = time.perf_counter() - started
        file = home / f"trees-{n_trees}"
        forest[n_trees].save(file)
        costs[n_trees] = {"seconds": seconds, "megabytes": file.stat().st_size / 1e6}
        file.unlink()
    return forest, costs


def show(result: dict[str, Any]) -> None:
    """Show the table of one embedding at one epsilon."""
    exact = result["exact"]
    table = Table(title=f"{result['words']:,} x {result['dimension']}, epsilon {result['epsilon']:g}")
    for heading in (
        "search",
        "n_trees",
        "search_k",
        "recall",
        "tokens/s",
        "x exact",
        "kept",
        "alike",
        "moved",
    ):
        table.add_column(heading, justify="right")
    rows: list[tuple[str, str, str, float, float, dict[str, float]]] = [
        ("exact", "", "", 1.0, exact["tokens_per_second"], exact)
    ]
    rows.extend(
        (f"annoy {row['aim']}", str(row["n_trees"]), str(row["search_k"]), row["recall"], row["tokens_per_second"], row)
        for row in result["annoy"]
    )
    for search, n_trees, search_k, recall, speed, left in rows:
        ratio = f"{speed / exact['tokens_per_second']:.2f}"
        loss = [f"{left['kept']:.1%}", f"{left['alike']:.2f}", f"{left['moved']:.2f}"]
        table.add_row(search, n_trees, search_k, f"{recall:.1%}", f"{speed:,.0f}", ratio, *loss)
    Console(width=132).print(table)


def main() -> None:
    """Measure, write, show."""
    from tempfile import TemporaryDirectory

    smallest = make_parser(__doc__).parse_args().smallest
    about, results = machine(), []
    for name, epsilons in ({"small": (20.0,)} if smallest else PLANS).items():
        if name == "mixed" and not (DATA / "mixed_w2v_300d.f16.npz").exists():
            print(f"skipped 54,000 x 300: {DATA / 'mixed_w2v_300d.f16.npz'} is missing", file=sys.stderr)
            continue
        embedding = load_embedding(name)
        index = Laplace.build(
            embedding, LaplaceSettings(epsilon=epsilons[0]), padding=True, work=BuildContext()
        ).arrays["index"]
        with TemporaryDirectory() as directory:
            forest, costs = grow(index[:-1], Path(directory))
        for epsilon in epsilons:
            results.append({**measure(name, epsilon, forest, index), "trees": costs})
            show(results[-1])
    save_results("annoy_recall", {"machine": about, "results": results}, smallest=smallest)


if __name__ == "__main__":
    main()
