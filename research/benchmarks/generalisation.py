"""Which mechanism generalises: how often a word that changes becomes one of its hypernyms, and at which loss.

Words are those that the demo and the demo Poincare embedding share, in the demo embedding's order, and for some rows
all of the demo embedding; each word with a hypernym among them counts alike. Hypernyms are the package's pairs, which
have all of a word up to the root. Laws are exact, except for noise, which is drawn. ``staircase`` gets the same pairs
as partners of a word: all alike, or the most specific first, which is the hypernym with the fewest words below it.
``tree`` cuts subtrees by them, and writes the hypernym. Of each row a public sentence is drawn as an example.

    python research/benchmarks/generalisation.py [--smallest]

Writes research/results/generalisation.json and prints a table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from common import machine, make_parser, save_results
from wordveil.assembly.inputs import read_files
from wordveil.embeddings import embedding
from wordveil.embeddings.embedding import DEMO, DEMO_POINCARE, Embedding, check_embedding
from wordveil.measures.calibration.statistics import WordHierarchy, count_block, split_words
from wordveil.measures.recovery import load_built
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.inputs import Pairs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.neighbours.blocks import BuildContext

DRAWS = 200
SENTENCE = "the nurse gave the patient a drug for his fever and called a hospital in boston on tuesday"

SHARED, BALL = "demo, shared words", "demo-poincare, shared words"


@dataclass(frozen=True)
class Row:
    """A mechanism over an embedding. ``pairs``: which pairs it gets, if any."""

    name: str
    mechanism: str
    settings: dict[str, Any] = field(default_factory=dict)
    embedding: str = SHARED
    pairs: str = ""


def _hyperbolic(epsilon: float, gamma: float | None = None) -> Row:
    capped = "" if gamma is None else f", gamma {gamma:g}"
    settings = {"epsilon": epsilon, "metric": "hyperbolic", "gamma": gamma}
    return Row(f"exponential, hyperbolic, {epsilon:g}{capped}", "exponential", settings, BALL)


def _staircase(epsilon: float, pairs: str = "", embedding: str = SHARED) -> Row:
    name = f"staircase{f' with pairs, {pairs}' if pairs else ''}, {epsilon:g}"
    return Row(name, "staircase", {"epsilon": epsilon}, embedding, pairs)


def _hypernyms(clusters: int, epsilon: float, embedding: str = SHARED, **more: Any) -> Row:
    settings = {"epsilon": epsilon, "clusters": (clusters,), "least": 5, "output": "hypernym", "pairs": "demo", **more}
    return Row(f"tree, hypernyms of {clusters} clusters, {epsilon:g}", "tree", settings, embedding, "alike")


ROWS = (
    Row("random", "random"),
    *map(_hyperbolic, (0.5, 1.0, 2.0, 4.0)),
    _hyperbolic(1.0, 8.0),
    _hyperbolic(2.0, 4.0),
    *(Row(f"hyperbolic-fdd, {epsilon:g}", "hyperbolic-fdd", {"epsilon": epsilon}, BALL) for epsilon in (0.5, 8.0)),
    Row("hyperbolic-laplace, 10", "hyperbolic-laplace", {"epsilon": 10.0}, BALL),
    Row("tree, 300 clusters, 8", "tree", {"epsilon": 8.0, "clusters": (300,)}),
    *(_hypernyms(300, epsilon) for epsilon in (6.0, 8.0)),
    *map(_staircase, (6.0, 8.0)),
    *(_staircase(epsilon, "alike") for epsilon in (6.0, 8.0, 10.0)),
    *(_staircase(epsilon, "specific first") for epsilon in (4.0, 6.0, 8.0, 10.0)),
    *(_staircase(epsilon, pairs, DEMO) for epsilon in (8.0, 10.0) for pairs in ("", "specific first")),
    *(_hypernyms(500, epsilon, DEMO, classes="stop-words:en") for epsilon in (8.0, 10.0)),
)


def load_embeddings(words: int | None) -> dict[str, Embedding]:
    """Load the embeddings of the rows. ``words``: how many of each, the first ones; None: all."""
    flat, ball = embedding.load(DEMO), embedding.load(DEMO_POINCARE)
    known = set(ball.words.to_pylist())
    kept = [word for word in flat.words.to_pylist() if word in known][:words]
    return {
        DEMO: restrict(flat, flat.words.to_pylist()[:words]),
        SHARED: restrict(flat, kept),
        BALL: restrict(ball, kept),
    }


def restrict(whole: Embedding, kept: list[str]) -> Embedding:
    """Return the embedding of ``kept`` words, in that order."""
    place = {word: row for row, word in enumerate(whole.words.to_pylist())}
    return check_embedding(kept, whole.vectors[[place[word] for word in kept]], whole.source)


def make_pairs(hierarchy: WordHierarchy, kind: str) -> Pairs | None:
    """Make the hierarchy's pairs as partners of words: none, ``alike``, or the most ``specific first``."""
    above = hierarchy.below.T.tocsr()
    words = np.repeat(np.arange(above.shape[0], dtype=np.int32), np.diff(above.indptr))
    below = np.diff(hierarchy.below.indptr)[above.indices]
    similarities = {"alike": np.ones(len(words)), "specific first": 1.0 / below}.get(kind)
    return None if similarities is None else Pairs(words, above.indices.astype(np.int32), similarities)


def find_laws(mechanism: Mechanism[Any], words: NDArray[np.int32], size: int) -> Iterator[csr_array]:
    """Return what words become, some at a time and in their order: float64 ``(words, size)``, exact where it is
    known.
    """
    if mechanism.probabilities(0) is None:
        blocks = [count_block(mechanism, block, DRAWS) for block in split_words(words, DRAWS)]
        for block in blocks:
            yield csr_array((block.counts / DRAWS, block.ids, block.offsets), shape=(len(block.words), size))
        return
    for part in np.array_split(words, max(1, len(words) // 256)):
        laws = [mechanism.probabilities(word) for word in part.tolist()]
        yield csr_array(np.stack([law[:size] for law in laws if law is not None]))


def measure(row: Row, chosen: Embedding, hierarchy: WordHierarchy) -> dict[str, Any]:
    """Measure the figures of a row: the certified loss between any two words; the share of draws that give the word
    itself; of the others the share that are its hypernyms; and which share of the words lies below such a hypernym, on
    average. With what becomes of a sentence in one draw, where laws are exact; words without a vector stay.
    """
    kind = MECHANISMS[row.mechanism]
    above, below = hierarchy.below.T.tocsr(), np.diff(hierarchy.below.indptr) / chosen.size
    words = np.flatnonzero(np.diff(above.indptr)).astype(np.int32)
    files = {name: row.settings[name] for name in ("classes",) if name in row.settings}
    inputs = replace(read_files(files).fit(chosen.words).inputs, pairs=make_pairs(hierarchy, row.pairs))
    built = kind.build(chosen, kind.settings_type(**row.settings), padding=False, work=BuildContext(), inputs=inputs)
    stays, risen, breadth, first = 0.0, 0.0, 0.0, 0
    with load_built(kind, built, chosen.size) as mechanism:
        is_drawn = mechanism.probabilities(0) is None
        for laws in find_laws(mechanism, words, chosen.size):
            part = words[first : first + laws.shape[0]]
            stays += float(laws[np.arange(len(part)), part].sum())
            raised = csr_array(laws.multiply(above[part]))
            risen += float(raised.sum())
            breadth += float((raised @ below).sum())
            first += len(part)
        example = None if is_drawn else draw_sentence(mechanism, chosen)
    changed = len(words) - stays
    return {
        "row": row.name,
        "embedding": row.embedding,
        "words": len(words),
        "loss": built.guarantee.pure,
        "stays": stays / len(words),
        "hypernyms": risen / changed if changed else None,
        "below_hypernym": breadth / risen if risen else None,
        "drawn": is_drawn,
        "example": example,
    }


def draw_sentence(mechanism: Mechanism[Any], chosen: Embedding) -> str:
    """Return what becomes of :data:`SENTENCE`, word by word."""
    rng, words = np.random.default_rng(1), chosen.words.to_pylist()
    ids = {word: row for row, word in enumerate(words)}
    laws = {word: mechanism.probabilities(ids[word]) for word in SENTENCE.split() if word in ids}
    return " ".join(
        words[rng.choice(len(law), p=law / law.sum())] if (law := laws.get(word)) is not None else word
        for word in SENTENCE.split()
    )


def show(results: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table("embedding", "mechanism", "largest loss", "stays", "hypernyms of what changes", "words below these")
    for result in results:
        shares = ("" if result[name] is None else f"{result[name]:.1%}" for name in ("hypernyms", "below_hypernym"))
        table.add_row(result["embedding"], result["row"], f"{result['loss']:.3g}", f"{result['stays']:.1%}", *shares)
    Console().print(table)


def main() -> None:
    """Measure all rows, or some over few words."""
    smallest = make_parser(__doc__).parse_args().smallest
    about = machine()
    embeddings = load_embeddings(300 if smallest else None)
    hierarchies = {name: WordHierarchy.shipped(used.words) for name, used in embeddings.items()}
    rows = [row for row in ROWS if not smallest or ("8" in row.name and row.mechanism != "tree")]
    results = [measure(row, embeddings[row.embedding], hierarchies[row.embedding]) for row in rows]
    sizes = {name: {"words": used.size, "pairs": int(hierarchies[name].below.nnz)} for name, used in embeddings.items()}
    content = {"machine": about, "embeddings": sizes, "draws": DRAWS, "rows": results}
    save_results("generalisation", content, smallest=smallest)
    show(results)


if __name__ == "__main__":
    main()
