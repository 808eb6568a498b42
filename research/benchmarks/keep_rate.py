"""How much of a text the Laplace mechanism leaves as it was, by epsilon, on the demo embedding and public news text.

For each epsilon: the share of running words that stay themselves, the same for distinct words counted once, and the
share of padding that comes back as padding. The text is public (it comes with gensim), so epsilon may be chosen by it.

    python research/benchmarks/keep_rate.py

Writes research/results/keep_rate.json and prints a table.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import numpy as np
import pyarrow as pa
from gensim.test.utils import datapath
from rich.console import Console
from rich.table import Table

from wordveil.crypto.keys import MasterKey
from wordveil.crypto.streams import derive_contexts, id_payload
from wordveil.embeddings import embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.mechanisms.base import TokenBatch
from wordveil.mechanisms.keep_rate import measure_keep_rate
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy

EPSILONS = (5.0, 8.0, 10.0, 12.0, 15.0, 18.0, 20.0, 25.0, 30.0, 40.0)
ARTICLES = 60


def main() -> None:
    """Measure, write, show."""
    demo = embedding.load("demo")
    vocabulary = Vocabulary(demo.words)
    texts = Path(datapath("lee_background.cor")).read_text("utf-8").splitlines()[:ARTICLES]
    ids = Codec(TextPolicy(unknown="drop"), vocabulary).encode(pa.array(texts)).ids
    everything = np.concatenate([ids, np.full(2000, vocabulary.pad, np.int32)])
    offsets = np.array([0, len(everything)])
    keys = MasterKey(secrets.token_bytes(32)).for_release("keep-rate")  # thrown away
    context = derive_contexts(keys.context, b"", [b"text"], [id_payload(everything, offsets)])
    rows = []
    for epsilon in EPSILONS:
        built = Laplace.build(demo, LaplaceSettings(epsilon=epsilon), padding=True, work=BuildContext())
        mechanism = Laplace.load(vocabulary.size, built.parameters, built.arrays)
        drawn = mechanism.draw(TokenBatch(everything, offsets, context), keys).ids
        distinct = np.unique(ids, return_index=True)[1]
        words, padding = drawn[: len(ids)], drawn[len(ids) :]
        rows.append(
            {
                "epsilon": epsilon,
                "running_words": measure_keep_rate(ids, words, vocabulary.size).rate,
                "distinct_words": measure_keep_rate(ids[distinct], words[distinct], vocabulary.size).rate,
                "padding": float(np.mean(padding == vocabulary.pad)),
            }
        )
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "keep_rate.json").write_text(json.dumps({"words": len(ids), "rows": rows}, indent=1) + "\n")
    table = Table(title=f"Kept by laplace, demo embedding, {len(ids):,} words")
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(f"{row['epsilon']:g}", *(f"{row[name]:.1%}" for name in list(row)[1:]))
    Console().print(table)


if __name__ == "__main__":
    main()
