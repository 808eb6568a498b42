"""Counts that are estimated from drawn symbols, against counts of what was drawn: error, coverage, trends and speed.

Subjects of real texts as the encoder finds them and clusters of their words (20 newsgroups, gensim's articles), and
made corpora of a million records whose symbols fall as in Zipf's law. Each is drawn a hundred times by the exact law;
the mean absolute error is over the 50 most frequent symbols, in shares of the draws. Trends are between a corpus and a
second one, whose symbols fall faster.

    python research/benchmarks/estimates.py [--smallest] [--spark | --conditions]

Two minutes. Writes research/results/estimates.json and prints a table. With --spark it counts the symbols of a million
records in fifty groups on one core, beside Spark's count of the rows, and writes research/results/estimates_spark.json.
With --conditions it inverts the laws of single words under `staircase` and `exponential`, whose draws are not offered
as symbols, and writes the error that estimates would have to research/results/estimates_conditions.json (five minutes).
"""

from __future__ import annotations

import json
import lzma
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gensim.test.utils import datapath
from rich.console import Console
from rich.table import Table

from common import DATA, machine, make_parser, save_results
from tables import Tables
from wordveil.assembly.bundles import build_bundle
from wordveil.embeddings.embedding import load
from wordveil.measures.estimates import Estimator, compare_shares, make_matrix
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.codec import ColumnsCodec
from wordveil.records.columns import TextColumns

SUBJECTS = {4.0: 16, 6.0: 100, 8.0: 750}
WORDS = {8.0: 500}
DRAWS, TOP = 100, 50
RECORDS, SYMBOLS_OF_A_RECORD, GROUPS = 1_000_000, 32, (5, 10)


def read_texts(*, smallest: bool) -> dict[str, list[str]]:
    """Read the training part of 20 newsgroups, and the articles that gensim comes with."""
    with lzma.open(DATA / "news20_bydate.jsonl.xz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 500 if smallest else None)]
    news = [row["text"] for row in rows if row.get("split", "train") == "train"]
    articles = Path(datapath("lee_background.cor")).read_text("utf-8").splitlines()
    return {"20 newsgroups": news, "gensim's articles": articles}


def count_symbols(
    texts: list[str], epsilon: float, clusters: int, *, words: bool, smallest: bool
) -> tuple[np.ndarray, SymbolLaw]:
    """Count the subjects of ``texts``, or the clusters of their words, int64 ``(symbols,)``, with the law of a draw."""
    with tempfile.TemporaryDirectory() as directory:
        tables = Tables(Path(directory), smallest=smallest)
        chosen = {"epsilon": epsilon, "embedding": str(tables.home / "embedding") if smallest else "glove"}
        if words:
            mechanism = {"name": "tree", "clusters": [clusters], "least": 2, **chosen}
        else:
            mechanism = {"name": "passages", "passages": "wordnet", "clusters": clusters, **chosen}
        policy = {"profile": "readable", "stop_words": "drop"} if words else {"profile": "passages"}
        sections = {"mechanism": {**mechanism, "public": True}, "text": policy}
        config = tables.config(tables.home / "none", "none", "tree", **sections)
        bundle = build_bundle(config)
        codec = ColumnsCodec(TextColumns(symbols=True), config.policy, bundle, None)
        ids = codec.encode([pa.array(texts, pa.string())], np.zeros(len(texts), np.bool_)).columns[0].ids
    symbols: Any = bundle.mechanism.symbols
    if words:
        # The unknown word is none of the symbols.
        ids = symbols.read[ids[ids < len(symbols.read)]]
    return np.bincount(ids, minlength=symbols.law.size), symbols.law


def draw(truth: np.ndarray, law: SymbolLaw, rng: np.random.Generator) -> np.ndarray:
    """Draw the counts of symbols a hundred times: int64 ``(DRAWS, symbols)``."""
    rows = zip(truth.tolist(), make_matrix(law), strict=True)
    return np.sum([rng.multinomial(count, row / row.sum(), size=DRAWS) for count, row in rows if count], axis=0)


def measure(truth: np.ndarray, law: SymbolLaw, seed: int) -> dict[str, Any]:
    """Compare both counts of one corpus, and both trends to a second one."""
    rng, estimator, draws = np.random.default_rng(seed), Estimator(law), int(truth.sum())
    drawn = draw(truth, law, rng)
    found = estimator.estimate(drawn)
    top = np.argsort(-truth, kind="stable")[:TOP]
    naive, estimated = (float(np.abs(counts - truth)[:, top].mean() / draws) for counts in (drawn, found.counts))
    covered = float(((found.low <= truth) & (truth <= found.high)).mean())
    faster = truth**1.2
    later = np.floor(faster * (draws / faster.sum())).astype(np.int64)
    second = draw(later, law, rng)
    changes = compare_shares(drawn, second, estimator)
    difference = later / later.sum() - truth / draws
    drawn_difference = second / second.sum(axis=1, keepdims=True) - drawn / draws
    is_covered = (changes.low <= difference) & (difference <= changes.high)
    return {
        "symbols": len(truth),
        "draws": draws,
        "naive_error": naive,
        "estimated_error": estimated,
        "naive_over_estimated": naive / estimated,
        "coverage": covered,
        "naive_trend_error": float(np.abs(drawn_difference - difference)[:, top].mean()),
        "estimated_trend_error": float(np.abs(changes.differences - difference)[:, top].mean()),
        "trend_coverage": float(is_covered.mean()),
    }


def measure_all(*, smallest: bool) -> list[dict[str, Any]]:
    """Measure each corpus at each epsilon."""
    found: list[dict[str, Any]] = []
    texts = read_texts(smallest=smallest)
    for unit, losses in (("subjects", SUBJECTS), ("words", WORDS)):
        for epsilon, chosen in losses.items():
            clusters, laws = (4 if smallest else chosen), []
            for corpus, strings in texts.items():
                truth, law = count_symbols(strings, epsilon, clusters, words=unit == "words", smallest=smallest)
                laws.append(law)
                found.append({"corpus": corpus, "unit": unit, "epsilon": epsilon, **measure(truth, law, int(epsilon))})
            shares = 1 / np.arange(1, laws[0].size + 1)
            for records in (10_000, 100_000, 1_000_000):
                zipf = np.random.default_rng(records).multinomial(records, shares / shares.sum())
                row = {"corpus": "Zipf's law", "unit": unit, "epsilon": epsilon}
                found.append({**row, **measure(zipf, laws[0], seed=records)})
    return found


def measure_spark(*, smallest: bool) -> dict[str, Any]:
    """Time the counts of symbols in groups beside the count of rows, in turns, on one core."""
    from pyspark.sql import SparkSession

    from wordveil.spark.analytics import Meanings, SymbolCounts

    rng, records, size = np.random.default_rng(1), RECORDS // (1000 if smallest else 1), 500
    law = SymbolLaw.of_response(8.0, size)
    with tempfile.TemporaryDirectory() as directory:
        for part in range(4):
            count = records // 4
            values = pa.array(rng.integers(0, size, count * SYMBOLS_OF_A_RECORD, dtype=np.int32))
            offsets = pa.array(np.arange(count + 1, dtype=np.int32) * SYMBOLS_OF_A_RECORD)
            columns = {
                "product": pa.array(rng.integers(0, GROUPS[0], count).astype(str)),
                "week": pa.array(rng.integers(0, GROUPS[1], count)),
                "symbols": pa.ListArray.from_arrays(offsets, values),
            }
            pq.write_table(pa.table(columns), Path(directory) / f"{part}.parquet")
        options = {"spark.ui.enabled": "false", "spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"}
        spark = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
        rows = spark.read.parquet(directory)
        meanings = Meanings(Estimator(law), [{"written": "", "keywords": "", "size": 1}] * size)
        runs: dict[str, Callable[[], object]] = {
            "count": rows.count,
            "symbols": lambda: SymbolCounts.count(rows, (), meanings),
            "symbols by product and week": lambda: SymbolCounts.count(rows, ("product", "week"), meanings),
        }
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(4):
            for name, run in runs.items():
                started = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - started)
        spark.stop()
    draws = records * SYMBOLS_OF_A_RECORD
    best = {name: min(values) for name, values in seconds.items()}
    speeds = {name: draws / best[name] for name in best if name != "count"}
    return {"records": records, "draws": draws, "seconds": seconds, "best": best, "symbols_a_second": speeds}


def measure_conditions(*, smallest: bool) -> list[dict[str, Any]]:
    """Invert the laws of the most frequent words, drawn as Zipf's law has it: condition, and errors of shares."""
    found = []
    for words in (100,) if smallest else (500, 2000, 4000):
        embedding = load("demo").select(np.arange(words), "most frequent")
        shares = 1 / np.arange(1, words + 1)
        shares /= shares.sum()
        for name, epsilon in ((name, epsilon) for name in ("staircase", "exponential") for epsilon in (4, 8, 12)):
            kind = MECHANISMS[name]
            artifact = kind.build(embedding, kind.settings_type(epsilon=epsilon), padding=False, work=BuildContext())
            mechanism = kind.load(words, artifact.parameters, artifact.arrays)
            law = np.stack([mechanism.probabilities(word)[:words] for word in range(words)])
            condition = float(np.linalg.cond(law))
            row = {"mechanism": name, "epsilon": epsilon, "words": words, "stay": float(np.median(law.diagonal()))}
            row |= {"condition": condition, "error_of_share": None}
            if condition < 1e12:  # beyond it rounding makes the inverse
                variances = (shares @ law) @ np.linalg.inv(law) ** 2 - shares**2
                row["error_of_share"] = float(np.median(np.sqrt(variances[:TOP] / RECORDS) / shares[:TOP]))
            found.append(row)
    return found


def main() -> None:
    """Measure, write, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--spark", action="store_true", help="time Spark, and nothing else")
    parser.add_argument("--conditions", action="store_true", help="invert laws of single words, and nothing else")
    arguments = parser.parse_args()
    smallest, console = arguments.smallest, Console(width=140)
    if arguments.spark:
        timed = measure_spark(smallest=smallest)
        save_results("estimates_spark", {"machine": machine(), **timed}, smallest=smallest)
        for name, speed in timed["symbols_a_second"].items():
            console.print(f"{name}: {speed / 1e6:.1f} million symbols a second, count {timed['best']['count']:.2f} s")
        return
    if arguments.conditions:
        conditions = measure_conditions(smallest=smallest)
        results = {"machine": machine(), "draws": RECORDS, "top": TOP, "found": conditions}
        save_results("estimates_conditions", results, smallest=smallest)
        for row in conditions:
            console.print(row)
        return
    found = measure_all(smallest=smallest)
    save_results("estimates", {"machine": machine(), "runs": DRAWS, "top": TOP, "found": found}, smallest=smallest)
    errors = ("naive_error", "estimated_error", "naive_trend_error", "estimated_trend_error")
    table = Table("corpus", "unit", "epsilon", "symbols", "draws", "ratio", *errors, "coverage", "of trends")
    for row in found:
        table.add_row(
            *(str(row[name]) for name in ("corpus", "unit", "epsilon")),
            *(f"{row[name]:,}" for name in ("symbols", "draws")),
            f"{row['naive_over_estimated']:.1f}",
            *(f"{row[name]:.3%}" for name in errors),
            *(f"{row[name]:.1%}" for name in ("coverage", "trend_coverage")),
        )
    console.print(table)


if __name__ == "__main__":
    main()
