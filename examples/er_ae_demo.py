"""The demo of er-ae: train a small generator on public sentences, then let it write news sentences anew.

All files are in ./er-ae-demo: the word vectors, the generator with the curves of its training, the corpus, a key, the
bundles, the outputs. The generator is trained once; a training that was interrupted goes on.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gensim.test.utils import datapath
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from wordveil.cli.app import app
from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.quantise import quantise_weights
from wordveil.generators.weights import load_weights
from wordveil.text.codec import Codec
from wordveil.text.policy import with_profile

HOME = Path("er-ae-demo")
TRAINING, CONFIG = Path("conf/generators/demo.yaml"), Path("conf/er-ae-demo.yaml")
WORDS = 8000
N_MAX = 20  # the configuration's text.n_max
SENTENCES = 300
SHOWN = (0, 2, 4, 7, 11)
# Choice and epsilon of each run.
RUNS = (("softmax-rr", 6), ("softmax-rr", 20), ("two-set", 6), ("two-set", 20))

console = Console(markup=False, emoji=False, highlight=False)  # texts and words are no markup
# The rows of each run by sentence, and texts by who wrote them.
Runs = dict[tuple[str, int], dict[int, dict[str, Any]]]
Written = dict[str, pa.StringArray]


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Say how long a stage took."""
    console.print(name, style="bold")
    wall, processor = time.monotonic(), time.process_time()
    yield
    wall, processor = time.monotonic() - wall, time.process_time() - processor
    console.print(f"  {wall:,.0f} s, {processor:,.0f} s of processor time without Spark's")


def make_embedding(path: Path) -> None:
    """Write the most frequent words of the demo embedding as an embedding of their own."""
    whole = load(DEMO)
    Embedding(whole.words.slice(0, WORDS), whole.vectors[:WORDS], f"the first {WORDS:,} words of {DEMO}").save(path)


def make_corpus(path: Path) -> pa.Table:
    """Write news sentences of 11 to 20 words, from the articles in gensim's wheel."""
    articles = Path(datapath("lee_background.cor")).read_text("utf-8").splitlines()
    sentences = [s for article in articles for s in re.split(r"(?<=[.!?]) +(?=[A-Z])", article.strip())]
    fitting = [sentence for sentence in sentences if 11 <= len(re.findall(r"[\w']+", sentence)) <= N_MAX][:SENTENCES]
    table = pa.table({"sentence": list(range(len(fitting))), "body": fitting})
    path.mkdir(parents=True)
    pq.write_table(table, path / "sentences.parquet")
    return table


def make_key(path: Path) -> None:
    """Write a key for this demo only, which only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32) + "\n")


def train_generator(path: Path) -> None:
    """Train the generator, or go on where a training was interrupted. One that is there stays."""
    if path.exists():
        console.print(f"  {path} is there already. Delete it and {path}.training to train again.")
    else:
        console.print("  Up to 14 minutes on two cores. You may interrupt it: the next run goes on from there.")
        app(args=["train", "--config", str(TRAINING)], standalone_mode=False)
    console.print(f"  The curves of its losses: {path.with_suffix('.svg')}")


def open_generator(path: Path) -> WholeNumberGenerator:
    """The generator as the mechanism uses it: in whole numbers."""
    weights = load_weights(path)
    return WholeNumberGenerator(weights.shape, quantise_weights(weights))


def encode(codec: Codec, texts: pa.StringArray) -> NDArray[np.int32]:
    """Texts as the mechanism reads them: int32 ``(texts, N_MAX)``, word ids that end in padding."""
    return codec.encode(texts).ids.reshape(-1, N_MAX)


def rewrite(generator: WholeNumberGenerator, codec: Codec, texts: pa.StringArray) -> pa.StringArray:
    """Texts as the generator alone would write them: the likeliest symbols, without any privacy."""
    shape = generator.shape
    sequences = encode(codec, texts).reshape(-1, shape.length)  # a sentence may be several
    state = generator.begin(sequences)
    written = np.full(sequences.shape, shape.padding, np.int32)
    symbols, is_open = generator.start_symbols(len(sequences)), np.ones(len(sequences), np.bool_)
    for step in range(shape.length):
        columns = generator.advance(state, symbols).argmax(axis=1).astype(np.int32)
        is_open &= columns != shape.end_column
        written[is_open, step] = columns[is_open]
        # The generator reads back what it wrote.
        symbols = np.where(columns == shape.end_column, np.int32(shape.end), columns)
    return codec.decode(written.ravel(), np.arange(len(texts) + 1) * N_MAX, None)


def sanitise(choice: str, epsilon: int) -> dict[int, dict[str, Any]]:
    """Run the job with a choice and an epsilon, and read its rows by sentence."""
    output = HOME / "sanitised" / f"{choice}-{epsilon}"
    settings = (f"mechanism.choice={choice}", f"mechanism.epsilon={epsilon}")
    chosen = [argument for setting in settings for argument in ("--set", setting)]
    job = ["sanitise", "--config", str(CONFIG), *chosen, "--set", f"output.path=../{output}"]
    app(args=job, standalone_mode=False)
    return {row["sentence"]: row for row in pq.read_table(output).to_pylist()}


def show_texts(named: Written) -> None:
    """Print sentences before and after."""
    table = Table(title="News sentences", title_justify="left")
    table.add_column("")
    table.add_column("text")
    for number in SHOWN:
        for name, texts in named.items():
            table.add_row(name, texts[number].as_py(), end_section=name == list(named)[-1])
    console.print(table)


def share_kept(originals: NDArray[np.int32], written: NDArray[np.int32]) -> float:
    """The share of the originals' known words that stand in the written text, wherever."""
    is_kept = (originals[:, :, None] == written[:, None, :]).any(axis=2)
    return float(is_kept[originals < WORDS].mean())


def show_accuracy(codec: Codec, texts: pa.StringArray, named: Written) -> None:
    """Print how much of the originals comes back."""
    table = Table(title=f"Words of the {len(texts)} originals that come back in their sentence", title_justify="left")
    for heading in ("", "come back", "in another sentence, by chance"):
        table.add_column(heading, justify="right" if heading else "left")
    originals = encode(codec, texts)
    for name, written in named.items():
        ids = encode(codec, written)
        # What frequent words alone account for: the words of the sentence before.
        by_chance = share_kept(originals, np.roll(ids, 1, axis=0))
        table.add_row(name, f"{share_kept(originals, ids):.1%}", f"{by_chance:.1%}")
    console.print(table)


def show_accounting(runs: Runs) -> None:
    """Explain what a record costs."""
    table = Table(title="What a sentence costs (column privacy of its row)", title_justify="left")
    for heading in ("", "keeps what was drawn", "per token", "tokens", "any two texts"):
        table.add_column(heading, justify="left" if not heading else "right")
    for (choice, epsilon), rows in runs.items():
        privacy = rows[SHOWN[0]]["privacy"]
        kept = f"{1 / (1 + np.exp(-epsilon / 2)):.3%}" if choice == "softmax-rr" else "where it is sure"
        price, tokens = privacy["epsilon"], privacy["tokens"]
        table.add_row(f"{choice}, epsilon {epsilon}", kept, f"{price:.2f}", f"{tokens}", f"{price * tokens:,.0f}")
    console.print(table)
    console.print(
        f"  Each token is one of s = {WORDS + 2:,} symbols: {WORDS:,} words, padding, the end. It costs at most\n"
        "  epsilon / 2 + ln(s - 1) nats: between any two texts the probability of a symbol differs by a factor of at\n"
        "  most e to this power. ln(s - 1) is spent at any epsilon.\n"
        "  One changed word may change everything that is written, and the length is drawn too. So a sentence of any\n"
        f"  length costs {N_MAX} times as much. Such a number promises little between two given sentences.\n"
        "  A smaller epsilon replaces more symbols by any other, and the generator goes on from what was written.\n"
        "  two-set chooses between five candidates and all other symbols. It keeps to the candidates only where the\n"
        "  generator is sure of them, so it needs a far larger epsilon than softmax-rr for text that can be read.\n",
        soft_wrap=True,
    )


def main() -> None:
    """Train, run the jobs, show the results."""
    HOME.mkdir(exist_ok=True)
    for folder in ("corpus", "sanitised"):
        shutil.rmtree(HOME / folder, ignore_errors=True)
    table = make_corpus(HOME / "corpus")
    texts = table.column("body").combine_chunks()
    if not (HOME / "embedding").exists():
        make_embedding(HOME / "embedding")
    if not (HOME / "wordveil.key").exists():
        make_key(HOME / "wordveil.key")
    codec = Codec(with_profile("strict", n_max=N_MAX), Vocabulary(load(str(HOME / "embedding")).words))
    with stage("1. Training a generator on public sentences"):
        train_generator(HOME / "generator.npz")
    with stage("2. What the generator writes by itself, without any privacy"):
        generator = open_generator(HOME / "generator.npz")
        named = {"original": texts, "generator alone": rewrite(generator, codec, texts)}
    runs: Runs = {}
    with stage("3. Building the bundle of the configuration (the jobs build those of their own choice and epsilon)"):
        app(args=["build", "--config", str(CONFIG)], standalone_mode=False)
    for choice, epsilon in RUNS:
        with stage(f"4. Sanitising {len(texts)} sentences: {choice}, epsilon {epsilon}"):
            runs[choice, epsilon] = sanitise(choice, epsilon)
        rows = runs[choice, epsilon]
        named[f"{choice}, epsilon {epsilon}"] = pa.array([rows[number]["text"] for number in range(len(texts))])
    show_texts(named)
    show_accuracy(codec, texts, named)
    show_accounting(runs)


if __name__ == "__main__":
    main()
