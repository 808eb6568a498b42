"""How surely a record is linked to its original, by its number of drawn words and epsilon, before anything is drawn.

The mechanism that `wordveil init` drafts (`tree`, 500 clusters of `glove`), at each epsilon, with its exact laws; texts
of words by their public frequency, stop-words left out, since `readable` copies them; 10,000 candidate originals.

    python research/benchmarks/linkage.py

Writes research/results/linkage.json and docs/pictures/linkage.svg, and prints a table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

from common import draft_job, draft_mechanism, machine, make_parser, save_results
from wordveil.assembly.bundles import build_bundle
from wordveil.evaluation.linkage import CANDIDATES, LinkageTrials
from wordveil.evaluation.redrawn import find_hidden_share
from wordveil.measures.recovery import guess_outputs
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.mechanisms.laws import WordLaws

mpl.use("svg")
import matplotlib.pyplot as plt

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "linkage.svg"
EPSILONS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200)


def find_laws(mechanism: Mechanism[Any], epsilon: float) -> WordLaws:
    """Find the laws of a mechanism that knows them, at another epsilon."""
    changed = mechanism.at_epsilon(epsilon)
    laws = changed.word_laws() if changed else None
    if laws is None:
        raise ValueError(f"Expected a mechanism that knows its laws at epsilon={epsilon}.")
    return laws


def measure(epsilons: Sequence[float], *, smallest: bool) -> list[dict[str, Any]]:
    """For each epsilon: shares of linked records by length, and what an attacker of single words recovers."""
    with tempfile.TemporaryDirectory() as store:
        config = draft_job(store, draft_mechanism(store, smallest=smallest), {"profile": "readable"})
        bundle = build_bundle(config)
        frequencies = rank_frequencies(bundle.vocabulary.size)
        hidden = frequencies * find_hidden_share(config.policy, bundle.vocabulary.array)
        rows = []
        for epsilon in epsilons:
            laws = find_laws(bundle.mechanism, epsilon)
            found = LinkageTrials(laws, hidden).forecast(LENGTHS)
            recovered = float(guess_outputs(laws, frequencies)[1].sum())
            rows.append({"epsilon": epsilon, **asdict(found), "recovered": recovered})
    return rows


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw a line for each epsilon."""
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["svg.hashsalt"] = "linkage"
    figure, axis = plt.subplots(figsize=(7, 4))
    for row in rows:
        axis.plot(LENGTHS, list(row["linked"].values()), marker=".", label=f"E = {row['epsilon']:g}")
    axis.axhline(0.5, color="grey", linestyle=":")
    axis.set(xscale="log", xlabel="drawn words of a record", ylabel=f"linked, among {CANDIDATES:,} candidates")
    axis.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Measure, write, draw, show."""
    smallest = make_parser(__doc__).parse_args().smallest
    rows = measure(EPSILONS[: 1 if smallest else None], smallest=smallest)
    save_results("linkage", {"machine": machine(), "rows": rows}, smallest=smallest)
    if not smallest:
        draw(rows)
    table = Table(title=f"Linked among {CANDIDATES:,} candidates, by drawn words")
    for name in ("epsilon", *map(str, LENGTHS), "half from", "words recovered"):
        table.add_column(name, justify="right")
    for row in rows:
        shares = (f"{share:.0%}" for share in row["linked"].values())
        table.add_row(f"{row['epsilon']:g}", *shares, str(row["half"] or "never"), f"{row['recovered']:.1%}")
    Console().print(table)


if __name__ == "__main__":
    main()
