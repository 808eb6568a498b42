"""Counts of subjects that are estimated from drawn symbols, against counts of what was drawn: error and coverage.

Subjects of real texts as the encoder finds them (20 newsgroups), and of a made corpus of a million records whose
subjects fall as in Zipf's law. Each is drawn a hundred times by randomised response; the mean absolute error is over
the 50 most frequent subjects, in shares of the records.

    python research/benchmarks/estimates.py [--smallest]

A minute. Writes research/results/estimates.json and prints a table.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from common import DATA, machine, make_parser, save_results
from tables import Tables
from wordveil.assembly.bundles import build_bundle
from wordveil.measures.estimates import Response, estimate_counts
from wordveil.records.codec import ColumnsCodec
from wordveil.records.columns import TextColumns

SUBJECTS = {4.0: 16, 6.0: 100, 8.0: 750}
DRAWS, TOP = 100, 50


def find_subjects(texts: list[str], epsilon: float, subjects: int, *, smallest: bool) -> np.ndarray:
    """Count the subjects of ``texts``, int64 ``(subjects + 1,)``, under a bundle of WordNet's sentences."""
    with tempfile.TemporaryDirectory() as directory:
        tables = Tables(Path(directory), smallest=smallest)
        embedding = str(tables.home / "embedding") if smallest else "glove"
        mechanism = {"name": "passages", "passages": "wordnet", "clusters": subjects, "epsilon": epsilon}
        sections = {
            "mechanism": {**mechanism, "embedding": embedding, "public": True},
            "text": {"profile": "passages"},
        }
        config = tables.config(tables.home / "none", "none", "tree", **sections)
        codec = ColumnsCodec(TextColumns(symbols=True), config.policy, build_bundle(config), None)
        encoded = codec.encode([pa.array(texts, pa.string())], np.zeros(len(texts), np.bool_))
    return np.bincount(encoded.columns[0].ids, minlength=subjects + 1)


def measure(truth: np.ndarray, epsilon: float, seed: int) -> dict[str, Any]:
    """Compare both counts of one corpus."""
    rng, size = np.random.default_rng(seed), len(truth)
    response = Response.of(epsilon, size)
    stays = rng.binomial(truth, response.own - response.other, size=(DRAWS, size))
    # What does not stay is uniform over all symbols.
    drawn = stays + np.stack([rng.multinomial(moved, np.full(size, 1 / size)) for moved in truth.sum() - stays.sum(1)])
    found = estimate_counts(drawn, response)
    top = np.argsort(-truth, kind="stable")[:TOP]
    records = int(truth.sum())
    naive, estimated = (float(np.abs(counts - truth)[:, top].mean() / records) for counts in (drawn, found.counts))
    covered = float(((found.low <= truth) & (truth <= found.high)).mean())
    return {
        "epsilon": epsilon,
        "symbols": size,
        "records": records,
        "naive_error": naive,
        "estimated_error": estimated,
        "naive_over_estimated": naive / estimated,
        "coverage": covered,
    }


def main() -> None:
    """Measure, write, print."""
    smallest = make_parser(__doc__).parse_args().smallest
    with lzma.open(DATA / "news20_bydate.jsonl.xz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 500 if smallest else None)]
    texts = [row["text"] for row in rows if row.get("split", "train") == "train"]
    found = []
    for epsilon, chosen in SUBJECTS.items():
        subjects = 4 if smallest else chosen
        truth = find_subjects(texts, epsilon, subjects, smallest=smallest)
        found.append({"corpus": "20 newsgroups", **measure(truth, epsilon, seed=int(epsilon))})
        for records in (10_000, 100_000, 1_000_000):
            shares = 1 / np.arange(1, subjects + 2)
            zipf = np.random.default_rng(records).multinomial(records, shares / shares.sum())
            found.append({"corpus": "Zipf's law", **measure(zipf, epsilon, seed=records)})
    save_results("estimates", {"machine": machine(), "draws": DRAWS, "top": TOP, "found": found}, smallest=smallest)
    table = Table("corpus", "epsilon", "symbols", "records", "naive", "estimated", "ratio", "coverage")
    for row in found:
        figures = (f"{row[name]:.2%}" for name in ("naive_error", "estimated_error"))
        ratio = f"{row['naive_over_estimated']:.1f}"
        table.add_row(
            row["corpus"],
            f"{row['epsilon']:g}",
            *(f"{row[name]:,}" for name in ("symbols", "records")),
            *(*figures, ratio, f"{row['coverage']:.1%}"),
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
