"""The quickstart: run the main job over 300 real news articles, and explain the result.

All files are in ./quickstart: the corpus (partitioned Parquet), a key generated for this run, the bundle, the output.
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

from wordveil import open_bundle
from wordveil.artifacts.bundle import Bundle
from wordveil.cli.app import app

HOME = Path("quickstart")
CONFIG = Path("conf/quickstart.yaml")
BATCHES = 3
SHOWN = ("001", "002", "009")

console = Console(markup=False, emoji=False, highlight=False)  # texts and words are no markup


def make_corpus(path: Path) -> None:
    """Write the news articles of gensim's wheel as Parquet, partitioned by batch."""
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
    """Write a key for this quickstart only, which only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32) + "\n")


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Read all rows of a table, by article."""
    rows = ds.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    return {row["article"]: row for row in rows}


def first_sentence(text: str) -> str:
    """The text up to the first full stop before a capital; both texts have it in the same place."""
    return re.split(r"(?<=[.!?]) +(?=[A-Z])", text, maxsplit=1)[0]


def show_texts(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> None:
    """Print three sentences before and after."""
    table = Table(title="Three sentences", title_justify="left", show_lines=True)
    for heading in ("article", "before", "after"):
        table.add_column(heading)
    for article in SHOWN:
        table.add_row(article, first_sentence(before[article]["body"]), first_sentence(after[article]["text"]))
    console.print(table)


def count_changed_words(before: str, after: str) -> int:
    """Count the words that changed; both texts have their words in the same places."""
    pairs = zip(re.findall(r"[\w']+", before), re.findall(r"[\w']+", after), strict=False)
    return sum(mine != theirs for mine, theirs in pairs)


def show_accounting(article: str, before: str, row: dict[str, Any]) -> None:
    """Explain the ``privacy`` column of one record."""
    privacy = row["privacy"]
    epsilon, words, bound = privacy["epsilon"], privacy["tokens"], privacy["epsilon_bound"]
    bundle = open_bundle(HOME / "bundles" / privacy["bundle"])
    clusters = bundle.manifest["recipe"]["settings"]["clusters"][0]
    hidden = next(note for note in bundle.manifest["notes"] if note.startswith("A word is hidden"))
    console.print(f"What article {article} cost (column privacy of its row)", style="bold")
    console.print(
        f"  The mechanism `{privacy['mechanism']}` drew a word for each of the {words} different words of the text.\n"
        "  One draw serves all places where a word stands (repeat: same), so the price counts different words.\n"
        f"  {count_changed_words(before, row['text'])} places changed.\n"
        f"  The vocabulary is cut into {clusters} public clusters of related words. A word most often becomes\n"
        "  the most frequent word of its own cluster, sometimes that of any other.\n"
        "  The guarantee: the words of one cluster are drawn alike, so nobody can tell which of them was in the text.\n"
        f"  {hidden}\n"
        f"  Between any two words the probability of an output differs by a factor of at most e^{epsilon:g}: each word "
        f"costs at most E = {epsilon:g}.\n"
        f"  For the whole article this adds up to at most epsilon_bound = {words} x {epsilon:g} = {bound:,.0f}.\n"
        "  Such a large number promises nothing between unrelated articles. It protects which of the related words\n"
        f"  was in the text.{describe_recovery(bundle)}\n"
        f"  The bound compares articles of the {privacy['relation'].replace('_', ' ')}. These are shown unchanged: "
        f"{', '.join(privacy['exposes'])}.\n"
        "  epsilon_pure is null: no bound holds between any two texts. The profile `strict` has one. Try it:\n"
        "    .venv/bin/wordveil sanitise --config conf/quickstart.yaml --set 'text={profile: strict, n_max: 64}' "
        "--set output.path=../quickstart/strict\n",
        soft_wrap=True,
    )


def describe_recovery(bundle: Bundle) -> str:
    """Say what share of the words a guesser recovers, as the bundle has it."""
    if bundle.recovery is None:
        return ""
    found = bundle.recovery.frequency
    return (
        "\n  A guesser who knows everything but the key and the text, and how frequent words are, recovers "
        f"{found.after[0].at_least:.0%} of\n  the words (without looking: {found.before:.1%})."
    )


def main() -> None:
    """Write corpus and key, run the job, show the result."""
    if HOME.exists():
        shutil.rmtree(HOME)
    HOME.mkdir()
    make_corpus(HOME / "corpus")
    make_key(HOME / "wordveil.key")
    app(args=["sanitise", "--config", str(CONFIG)], standalone_mode=False)
    before, after = read(HOME / "corpus"), read(HOME / "sanitised")
    show_texts(before, after)
    show_accounting(SHOWN[0], before[SHOWN[0]]["body"], after[SHOWN[0]])
    console.print("Files of this quickstart", style="bold")
    console.print(
        f"  {CONFIG}  the job\n"
        f"  {HOME}/corpus  the articles, Parquet partitioned by batch\n"
        f"  {HOME}/sanitised  the result: article, text, status, reason, privacy, content_tag, run_id\n"
        f"  {HOME}/bundles  the mechanism with its vectors, named by its fingerprint\n"
        f"  {HOME}/wordveil.key  this quickstart's key; with it one can undo much of the noise",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
