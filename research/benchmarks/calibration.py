"""What an epsilon means for 20,000 words: how long it takes to draw 10,000 words 1,000 times each, and to compute the
same figures from the laws of tables, beside a plain loop over words.

The demo embedding, 20,000 x 100. Laplace draws on all cores, block by block; the plain loop draws one word at a time on
one core and keeps each word's outputs, over few words. For tables the plain loop computes each statistic from one
word's law at a time. Distances that words move are part of both kinds of figures of this package and not of the loops.

    python research/benchmarks/calibration.py [--smallest] [--words N]

Writes research/results/calibration.json and prints a table.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS

import numpy as np
from rich.console import Console
from rich.table import Table

from common import load_embedding, machine, make_parser, save_results
from wordveil.embeddings.embedding import Embedding
from wordveil.measures.calibration.meaning import BuiltSubject, Subject, WordPlan, measure_words
from wordveil.measures.recovery import make_public_keys
from wordveil.measures.token_draws import draw_tokens, spread_words
from wordveil.mechanisms.registry import MECHANISMS
from wordveil_research.tasks.statistics import DistinctOutputs, KeepProbability, LargestEntropy, LeastEntropy
from wordveil_research.tasks.statistics import measure_words as measure_each

WORDS, RUNS = 10_000, 1_000
CASES: list[tuple[str, dict[str, Any]]] = [
    ("laplace", {"epsilon": 20.0}),
    ("exponential", {"epsilon": 6.0, "neighbours": 256}),
    ("staircase", {"epsilon": 12.0}),
    ("tree", {"epsilon": 6.0}),
]
STATISTICS = (KeepProbability(), DistinctOutputs(RUNS), LargestEntropy(), LeastEntropy())


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return seconds of the clock and of the processor, all threads together, and what came out."""
    started, used = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - started, time.process_time() - used, found


def loop_over_draws(built: BuiltSubject, words: Any) -> float:
    """Return the mean ``N_w`` by a loop over words."""
    keys = make_public_keys("benchmark")
    stays, outputs = [], []
    for word in words.tolist():
        drawn = draw_tokens(built.mechanism, np.full(RUNS, word, np.int32), b"%d" % word, keys)
        stays.append((drawn == word).mean())
        outputs.append(np.unique(drawn, return_counts=True))
    return float(np.mean(stays))


def loop_over_laws(built: BuiltSubject, words: Any) -> float:
    """Return the mean ``N_w`` by a loop over words and statistics."""
    found = {statistic.name: measure_each(statistic, built.mechanism, words) for statistic in STATISTICS}
    return float(found[KeepProbability.name].mean())


def measure(name: str, settings: dict[str, Any], words: int, demo: Embedding) -> dict[str, Any]:
    """Measure one mechanism; ``words``: how many are drawn."""
    subject = Subject(name, MECHANISMS[name].settings_type(**settings), demo)
    building, _, built = timed(lambda: subject.build(settings["epsilon"]))
    measure_words(built, WordPlan(20, 10))  # compiles
    plan = WordPlan(words if built.mechanism.probabilities(0) is None else min(WORDS, demo.size), RUNS)
    seconds, used, (values, _) = timed(lambda: measure_words(built, plan))
    few = spread_words(demo.size, min(100, words))
    plain, plain_used, mean = timed(lambda: (loop_over_laws if values.is_exact else loop_over_draws)(built, few))
    return {
        "mechanism": name,
        **settings,
        "exact": values.is_exact,
        "words": len(values.words),
        "build_seconds": round(building, 2),
        "seconds": round(seconds, 2),
        "processor_seconds": round(used, 2),
        "plain_words": len(few),
        "plain_seconds": round(plain, 2),
        "plain_processor_seconds": round(plain_used, 2),
        "mean_n_w": round(float(values.stays.mean()), 4),
        "plain_mean_n_w": round(mean, 4),
    }


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--words", type=int, default=WORDS, help="how many words are drawn")
    chosen = parser.parse_args()
    words, demo = (20, load_embedding("small")) if chosen.smallest else (chosen.words, load_embedding("demo"))
    content = {**machine(), "runs": RUNS}
    content["rows"] = [measure(name, settings, words, demo) for name, settings in CASES]
    save_results("calibration", content, smallest=chosen.smallest)
    table = Table(title=f"Statistics of words of the demo embedding, {RUNS:,} draws of each, seconds of the processor")
    for name in ("mechanism", "by", "words", "seconds", "plain loop: words", "seconds "):
        table.add_column(name, justify="right")
    for row in content["rows"]:
        by = "laws" if row["exact"] else "draws"
        plain = f"{row['plain_words']:,}", f"{row['plain_processor_seconds']:,}"
        table.add_row(row["mechanism"], by, f"{row['words']:,}", f"{row['processor_seconds']:,}", *plain)
    Console().print(table)


if __name__ == "__main__":
    main()
