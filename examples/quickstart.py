"""The quickstart: 300 real news articles through the main job, and what came out, explained.

Everything lies in ./quickstart: the corpus (partitioned Parquet), a key made for this run, the bundle, the output.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from gensim.test.utils import datapath
from rich.console import Console
from rich.table import Table

from wordveil.cli import app

HOME = Path("quickstart")
CONFIG = Path("conf/quickstart.yaml")
BATCHES = 3
SHOWN = ("001", "002", "009")

console = Console(highlight=False)


def make_corpus(path: Path) -> None:
    """The news articles that gensim's wheel carries, as Parquet partitioned by batch."""
    articles = Path(datapath("lee_background.cor")).read_text("utf-8").splitlines()
    table = pa.table(
        {
            "article": [f"{number:03d}" for number in range(len(articles))],
            "body": [article.strip() for article in articles],
            "batch": [number * BATCHES // len(articles) + 1 for number in range(len(articles))],
        }
    )
    partitioning = ds.partitioning(pa.schema([("batch", pa.int64())]), flavor="hive")
    ds.write_dataset(table, path, format="parquet", partitioning=partitioning)


def make_key(path: Path) -> None:
    """A key for this quickstart alone, readable by its owner alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32) + "\n")


def read(path: Path) -> dict[str, dict[str, Any]]:
    """All rows of a table, by article."""
    rows = ds.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    return {row["article"]: row for row in rows}


def first_sentence(text: str) -> str:
    """Up to the first full stop that a capital follows; both texts have it in the same place."""
    return re.split(r"(?<=[.!?]) +(?=[A-Z])", text, maxsplit=1)[0]


def show_texts(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> None:
    """Three sentences before and after."""
    table = Table(title="Three sentences", title_justify="left", show_lines=True)
    for heading in ("article", "before", "after"):
        table.add_column(heading)
    for article in SHOWN:
        table.add_row(article, first_sentence(before[article]["body"]), first_sentence(after[article]["text"]))
    console.print(table)


def show_accounting(article: str, privacy: dict[str, Any]) -> None:
    """The ``privacy`` column of one record, in plain words."""
    largest = privacy["epsilon_bound"] / privacy["tokens"] / privacy["epsilon"]
    console.print(
        f"[bold]What article {article} cost[/bold] (column [bold]privacy[/bold] of its row)\n"
        f"  {privacy['tokens']} words were replaced, each by the word nearest to its vector plus random noise "
        f"({privacy['mechanism']}, epsilon {privacy['epsilon']:g}).\n"
        f"  Take any word at distance d from the one that was written: with it the same output would have been at most\n"
        f"  exp({privacy['epsilon']:g} d) times as likely or unlikely. So words that lie close together hide each other; at distance 0.1 "
        f"the factor is {2.718281828 ** (privacy['epsilon'] * 0.1):.1f}.\n"
        f"  For the whole article the distances of its words add up. No two words lie further apart than {largest:.2f}, so the sum is at most\n"
        f"  epsilon_bound = {privacy['tokens']} x {privacy['epsilon']:g} x {largest:.2f} = {privacy['epsilon_bound']:,.0f}: "
        "so large that it promises nothing between unrelated articles.\n"
        f"  The bound compares articles with the same skeleton ({privacy['relation']}); shown as they were: {', '.join(privacy['exposes'])}.\n"
        "  epsilon_pure is null: there is no bound between any two texts. The profile `strict` has one. Try it:\n"
        "    .venv/bin/wordveil sanitise --config conf/quickstart.yaml --set 'text={profile: strict, n_max: 64}' "
        "--set output.path=quickstart/strict\n",
        soft_wrap=True,
    )


def main() -> None:
    """Make corpus and key, run the job, show what came out."""
    if HOME.exists():
        shutil.rmtree(HOME)
    HOME.mkdir()
    make_corpus(HOME / "corpus")
    make_key(HOME / "wordveil.key")
    app(args=["sanitise", "--config", str(CONFIG)], standalone_mode=False)
    before, after = read(HOME / "corpus"), read(HOME / "sanitised")
    show_texts(before, after)
    show_accounting(SHOWN[0], after[SHOWN[0]]["privacy"])
    console.print(
        f"[bold]Where everything lies[/bold]\n"
        f"  {CONFIG}  the job\n"
        f"  {HOME}/corpus  the articles, Parquet partitioned by batch\n"
        f"  {HOME}/sanitised  the result: article, text, status, reason, privacy, content_tag, run_id\n"
        f"  {HOME}/bundles  the mechanism with its vectors, named by its fingerprint\n"
        f"  {HOME}/wordveil.key  this quickstart's key; whoever has it can undo much of the noise",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
