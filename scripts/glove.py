"""Makes the embedding `glove` that comes with the package, from GloVe's vectors.

    python scripts/glove.py GLOVE

GLOVE is `glove.6B.100d.txt` (Pennington, Socher, Manning 2014; public domain, PDDL 1.0), or a directory of an
embedding made from it. Writes lib/wordveil/data/glove_embedding: lower-case words, as the tokeniser cuts them, in
GloVe's order of frequency. A minute on one core.

* GloVe cuts `don't` into `do` and `n't`, so it lacks words with apostrophes. Those of the demo embedding are added,
  and the single letters that GLOVE lacks. A linear map, fitted to the words that both have (Mikolov, Le, Sutskever
  2013), brings their vectors over. Their rank is that of the demo embedding.
* The mean and the first two principal directions are taken out (Mu, Viswanath 2018): they say how frequent a word is.

The package's vectors were made from a copy of GloVe with 8 bits a value, which lacks all single letters.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordveil.embeddings.embedding import DEMO, FORMAT_VERSION, Embedding, load

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "lib" / "wordveil" / "data" / "glove_embedding"
SIZE = 100_000
DIRECTIONS = 2
WORD = re.compile("[a-z]+(['-][a-z]+)*")
SOURCE = (
    "GloVe 6B (Wikipedia 2014 and Gigaword 5), 100 dimensions, Pennington, Socher, Manning 2014, public domain (PDDL "
    "1.0). Mean and first two principal directions taken out; words with apostrophes and single letters mapped from "
    "the demo embedding; 8 bits a value, lower case, words in order of frequency"
)


def add_words(words: list[str], vectors: NDArray[np.float64], demo: Embedding) -> tuple[list[str], NDArray[np.float64]]:
    """Add the demo embedding's words with apostrophes and its letters, each before the word of its rank."""
    theirs = demo.words.to_pylist()
    rows = {word: row for row, word in enumerate(words)}
    both = [(row, rows[word]) for row, word in enumerate(theirs) if word in rows]
    known, target = map(list, zip(*both, strict=True))
    linear, *_ = np.linalg.lstsq(demo.vectors[known].astype(np.float64), vectors[target], rcond=None)
    added = [row for row, word in enumerate(theirs) if word not in rows and (len(word) == 1 or "'" in word)]
    mapped = demo.vectors[added].astype(np.float64) @ linear
    # A least-squares fit is too short.
    lengths = np.linalg.norm(vectors[target], axis=1).mean() / np.linalg.norm(mapped, axis=1)
    order = np.argsort(np.concatenate([np.arange(len(words)), np.array(added) - 0.5]), kind="stable")
    names = words + [theirs[row] for row in added]
    return [names[row] for row in order], np.concatenate([vectors, mapped * lengths[:, None]])[order]


def take_out(vectors: NDArray[np.float64], directions: int) -> NDArray[np.float64]:
    """Return vectors without their mean and their first principal directions."""
    centred: NDArray[np.float64] = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    common = axes[:, -directions:]
    return centred - centred @ common @ common.T


def main() -> None:
    """Read, make, write, say what was written."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).exists():
        sys.exit("usage: python scripts/glove.py GLOVE, or make glove GLOVE=...: glove.6B.100d.txt")
    source = load(sys.argv[1])
    chosen = [row for row, word in enumerate(source.words.to_pylist()) if WORD.fullmatch(word)][:SIZE]
    words = source.words.take(chosen).to_pylist()
    words, vectors = add_words(words, source.vectors[chosen].astype(np.float64), load(DEMO))
    vectors = take_out(vectors[:SIZE], DIRECTIONS)
    offset = float(vectors.min())
    scale = float(vectors.max() - offset) / 255
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir()
    np.save(TARGET / "vectors.npy", np.rint((vectors - offset) / scale).astype(np.uint8))
    (TARGET / "words.txt").write_text("".join(f"{word}\n" for word in words[:SIZE]), "utf-8")
    manifest = {"format_version": FORMAT_VERSION, "rows": SIZE, "dim": source.dimension, "scale": scale}
    manifest |= {"offset": offset, "source": SOURCE, "license": "PDDL-1.0"}
    (TARGET / "embedding.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    print(f"written: {TARGET.relative_to(ROOT)}, {sum(file.stat().st_size for file in TARGET.iterdir()):,} bytes")


if __name__ == "__main__":
    main()
