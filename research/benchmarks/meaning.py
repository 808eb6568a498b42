"""How much meaning each mechanism leaves, at an equal certified loss and at an equal share of words recovered.

Every word of public corpora is replaced, unknown words too. Classifiers are trained and tested on what comes out:

* topic: 20 newsgroups by date; SST-2; TREC-6; intent: Snips: accuracy of a linear SVM on TF-IDF of words; higher is
  more useful;
* author: the same on C50, 50 authors: the attack; lower is better;
* kept: the share of known words that stay themselves;
* cosine: of a word and its replacement, in vectors that no mechanism uses, over pairs that these know: GloVe's of web
  pages, or the demo embedding's where mechanisms use GloVe's;
* perplexity: of what comes out, under a bigram model of film reviews, which no mechanism uses;
* recovered: the best attacker's success for a word, who knows public frequencies and the mechanism (exact from tables).

The first block has mechanisms at the same largest loss of a token (``E``, certified), the second at the same recovery.
Each figure is the mean of five keys, with a 95% t-interval. Embeddings: `glove`, of encyclopaedia and newswire, which
knows none of these corpora; the demo embedding, which knows parts of all but Snips; and one trained on old books, which
knows none. Over `glove` the trees are compared by their clusters' number, least size, weight and rarity.

    python research/benchmarks/meaning.py [--embedding glove|demo|books] [--block loss|recovery] [--loss E]
        [--mechanism M] [--smallest]
    python research/benchmarks/meaning.py --draw

Writes research/results/meaning_<embedding>.json and prints tables; ``--draw`` makes docs/pictures/meaning.svg and
prints the tables from these files. Needs the data directory.
"""

from __future__ import annotations

import json
import lzma
import math
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from wordveil.arrays import Int32

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse, stats

from common import DATA, RESULTS, glove, machine, make_parser, save_results
from wordveil.assembly.inputs import read_files
from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.embeddings.embedding import Embedding, check_embedding, load
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.measures.token_draws import as_records
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.mechanisms.keep_rate import measure_keep_rate
from wordveil.neighbours.blocks import BuildContext
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy
from wordveil_research.field.matching import Candidate, Matcher, make_settings
from wordveil_research.field.rows import make_randomised_response

SEEDS = 5
LOSSES = {"glove": (7.0, 8.0), "demo": (6.0, 6.85, 7.0, 8.0, 10.0, 12.0)}
# Under the public prior an attacker who does not look is right in more than 5% of the cases: 5% is of the uniform.
RECOVERIES = {
    "glove": (("public", 0.18),),
    "demo": (("uniform", 0.05), ("public", 0.10), ("public", 0.18), ("public", 0.25)),
}
LOSSES["books"], RECOVERIES["books"] = LOSSES["demo"], RECOVERIES["demo"]
TASKS = {"topic": "news20_bydate", "sst2": "sst2", "trec6": "trec6", "intent": "snips7", "author": "c50_reuters"}
DRAWN = (
    "laplace",
    "exponential",
    "TEM, tight",
    "randomised response",
    "staircase, floors",
    "tree 80, representative",
    "tree 20, representative",
)
SMALL = ("sst2", "trec6", "intent")  # the corpora that noise on vectors is fast enough for
SHOWN = ("topic", "sst2", "trec6", "intent", "author", "kept", "cosine", "perplexity", "recovered")
CUTS = (("least", 5), ("least", 10), ("weight", 0.25), ("weight", 0.75), ("rarity", 0.0), ("rarity", 0.5))
PERPLEXITY_TOKENS = 400_000
SVM_C = 0.1
DISCOUNT = 0.75
PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "meaning.svg"
EMBEDDINGS, BLOCKS = ("glove", "demo", "books"), ("loss", "recovery")
BOOK_WORDS = 20_000


@dataclass(frozen=True)
class Corpus:
    """Texts as ids, with labels; ``train`` says which are trained on."""

    ids: Int32
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    train: NDArray[np.bool_]

    def head(self, tokens: int) -> Corpus:
        """Return the first texts, of about that many tokens."""
        end = min(int(np.searchsorted(self.offsets, tokens)), len(self.labels))
        return Corpus(self.ids[: self.offsets[end]], self.offsets[: end + 1], self.labels[:end], self.train[:end])


def read(name: str, share: int = 1) -> list[dict[str, Any]]:
    """Read the records of a corpus, or one of ``share``."""
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, 0, None, share)]


def load_vectors(name: str) -> tuple[Embedding, NDArray[np.float64] | None]:
    """Load one of the package's, whose frequencies follow the rank; or the one trained on old books, with its
    counts.
    """
    if name != "books":
        return load(name), None
    with np.load(DATA / "fiction_w2v_100d.f16.npz") as found:
        words, vectors = found["words"].tolist()[:BOOK_WORDS], found["vectors"][:BOOK_WORDS].astype(np.float32)
    lines = (DATA / "fiction_w2v_100d.counts.tsv").read_text("utf-8").splitlines()[:BOOK_WORDS]
    counts = np.array([int(line.split("\t")[1]) for line in lines], np.float64)
    return check_embedding(words, vectors, "old books"), counts / counts.sum()


def load_corpora(codec: Codec, share: int) -> dict[str, Corpus]:
    """Load all tasks. Where a corpus has no test part, its part for validation is one."""
    corpora = {}
    for task, name in TASKS.items():
        rows = [row for row in read(name, share) if row["split"] in ("train", "test", "valid")]
        label = "author" if task == "author" else "label"
        names = sorted({row[label] for row in rows})
        encoded = codec.encode(pa.array([row["text"] for row in rows], pa.string()))
        labels = np.array([names.index(row[label]) for row in rows])
        train = np.array([row["split"] == "train" for row in rows])
        corpora[task] = Corpus(encoded.ids, encoded.offsets, labels, train)
    return corpora


def classify(corpus: Corpus, ids: Int32, size: int) -> float:
    """Accuracy on the test part of a linear SVM trained on the other, on TF-IDF of ``ids`` in the corpus's places."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    texts = len(corpus.labels)
    rows = np.repeat(np.arange(texts), np.diff(corpus.offsets))
    counts = sparse.csr_matrix((np.ones(len(ids), np.float32), (rows, ids)), shape=(texts, size + 2))
    features = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    fitted = LinearSVC(C=SVM_C, random_state=0).fit(features[corpus.train], corpus.labels[corpus.train])
    return float(fitted.score(features[~corpus.train], corpus.labels[~corpus.train]))


class Bigrams:
    """A bigram model of film reviews with absolute discounting (Ney, Essen, Kneser 1994); ids of words only."""

    def __init__(self, ids: Int32, offsets: NDArray[np.int64], size: int) -> None:
        self._size = size
        before, after = self._pairs(ids, offsets)
        self._codes, self._counts = np.unique(before * size + after, return_counts=True)
        singles = np.bincount(ids[ids < size], minlength=size) + 1.0
        self._single = singles / singles.sum()
        self._context = np.bincount(before, minlength=size).astype(np.float64)
        self._kinds = np.bincount(self._codes // size, minlength=size)

    def _pairs(self, ids: Int32, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        record = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        fit = (record[1:] == record[:-1]) & (ids[1:] < self._size) & (ids[:-1] < self._size)
        return ids[:-1][fit].astype(np.int64), ids[1:][fit].astype(np.int64)

    def perplexity(self, ids: Int32, offsets: NDArray[np.int64]) -> float:
        """Perplexity of a word given the one before it."""
        before, after = self._pairs(ids, offsets)
        place = np.minimum(np.searchsorted(self._codes, before * self._size + after), len(self._codes) - 1)
        seen = np.where(self._codes[place] == before * self._size + after, self._counts[place], 0)
        context = np.maximum(self._context[before], 1)
        left = np.where(self._context[before] > 0, DISCOUNT * self._kinds[before] / context, 1.0)
        share = np.maximum(seen - DISCOUNT, 0) / context + left * self._single[after]
        return float(np.exp(-np.log(share).mean()))


@dataclass(frozen=True)
class Setup:
    """What all measurements share."""

    embedding: Embedding
    corpora: dict[str, Corpus]
    bigrams: Bigrams
    judge: NDArray[np.float32]
    """A unit vector for each word, of vectors that no mechanism uses; zeros where they do not know it."""
    inputs: PublicInputs

    @classmethod
    def load(cls, name: str, share: int) -> Setup:
        """Read everything."""
        embedding, frequencies = load_vectors(name)
        vocabulary = Vocabulary(embedding.words)
        codec = Codec(TextPolicy(), vocabulary)
        reviews = codec.encode(pa.array([row["text"] for row in read("aclImdb", share) if row["split"] == "train"]))
        other = load("demo") if name == "glove" else glove()
        place = {word: row for row, word in enumerate(other.words.to_pylist())}
        units = other.vectors / np.linalg.norm(other.vectors, axis=1, keepdims=True)
        known = np.zeros((embedding.size, other.dimension), np.float32)
        for row, word in enumerate(embedding.words.to_pylist()):
            if word in place:
                known[row] = units[place[word]]
        return cls(
            embedding,
            load_corpora(codec, share),
            Bigrams(reviews.ids, reviews.offsets, embedding.size),
            known,
            PublicInputs(frequencies=frequencies, classes=set_apart(embedding)),
        )


def set_apart(embedding: Embedding) -> Int32 | None:
    """Return the stop-words of an embedding as a class of their own."""
    return read_files({"classes": "stop-words:en"}).fit(embedding.words).inputs.classes


def cut_trees() -> list[Candidate]:
    """Trees by how their words are cut into clusters."""

    def tree(label: str, output: str = "representative", **cut: Any) -> Candidate:
        return Candidate(f"{label}, {output}", "tree", make_settings("tree", **cut, output=output), by_loss=True)

    apart = {"classes": "stop-words:en"}
    found = [tree(f"{number:,} clusters", clusters=(number,), **apart) for number in (250, 500, 1_000, 2_000)]
    found += [tree(f"500, {name} {value:g}", clusters=(500,), **apart, **{name: value}) for name, value in CUTS]
    found.append(tree("500, no classes", clusters=(500,)))
    found.append(tree("500 clusters", "member", clusters=(500,), **apart))
    return [*found, tree("equal, of 200", sizes=(200,))]


def candidates(name: str, words: int) -> list[Candidate]:
    """Return the mechanisms of the comparison over an embedding, which has so many words."""
    if name == "glove":
        return cut_trees()
    tem, response = {"gamma": 3.0, "neighbours": 256, "tight": True}, make_randomised_response(words)
    found = [
        Candidate("laplace", "laplace", make_settings("laplace"), by_loss=False),
        Candidate("exponential", "exponential", make_settings("exponential", neighbours=256), by_loss=False),
        Candidate("TEM, tight", "exponential", make_settings("exponential", **tem), by_loss=False),
        Candidate("randomised response", "staircase", response, by_loss=True, rebuilt=True),
        Candidate("staircase, uniform", "staircase", make_settings("staircase", alpha=0.0), by_loss=True),
        Candidate("staircase, floors", "staircase", make_settings("staircase"), by_loss=True),
    ]
    for size, output in ((80, "representative"), (20, "member"), (20, "representative")):
        settings = make_settings("tree", sizes=(size,), output=output)
        found.append(Candidate(f"tree {size}, {output}", "tree", settings, by_loss=True))
    return found


class Bench:
    """Finds the epsilons of mechanisms and measures them."""

    def __init__(self, setup: Setup, kept: Path) -> None:
        self._setup = setup
        self.matcher = Matcher(setup.embedding, setup.inputs, BuildContext(kept=kept))

    def measure(self, mechanism: Mechanism[Any], seed: int) -> dict[str, float]:
        """Measure all figures of one key."""
        setup, size = self._setup, self._setup.embedding.size
        keys = MasterKey(sha256(b"benchmark %d" % seed).digest(), "benchmark").for_release("meaning")
        found: dict[str, float] = {}
        slow = mechanism.word_laws() is None and mechanism.probabilities(0) is None
        for task, corpus in setup.corpora.items():
            if not slow or task in SMALL:
                found[task] = classify(corpus, replace_words(mechanism, corpus, keys), size)
        part = setup.corpora["topic"].head(PERPLEXITY_TOKENS // (8 if slow else 1))
        drawn = replace_words(mechanism, part, keys)
        found["kept"] = measure_keep_rate(part.ids, drawn, size).rate or 0.0
        found["cosine"] = self._cosine(part.ids, drawn)
        found["perplexity"] = setup.bigrams.perplexity(drawn, part.offsets)
        return found

    def _cosine(self, before: Int32, after: Int32) -> float:
        vectors, size = self._setup.judge, self._setup.embedding.size
        words = (before < size) & (after < size)
        pairs, counts = np.unique(before[words].astype(np.int64) * size + after[words], return_counts=True)
        one, other = np.divmod(pairs, size)
        known = vectors[one].any(axis=1) & vectors[other].any(axis=1)
        cosines = np.einsum("ij,ij->i", vectors[one[known]], vectors[other[known]])
        return float(np.average(cosines, weights=counts[known]))


def replace_words(mechanism: Mechanism[Any], corpus: Corpus, keys: ReleaseKeys) -> Int32:
    """Return what a mechanism writes for the words of a corpus, text by text."""
    drawn = np.empty(len(corpus.ids), np.int32)
    texts = len(corpus.labels)
    for first in range(0, texts, 2_000):
        last = min(first + 2_000, texts)
        start, stop = corpus.offsets[first], corpus.offsets[last]
        offsets = corpus.offsets[first : last + 1] - start
        ids = corpus.ids[start:stop]
        names = [b"%d" % text for text in range(first, last)]
        batch = mechanism.draw(as_records(ids, offsets, names, keys), keys)
        drawn[start:stop] = mechanism.render(batch).ids
    return drawn


def measure_originals(setup: Setup) -> dict[str, float]:
    """Measure the figures of the texts as they are."""
    size = setup.embedding.size
    found = {task: classify(corpus, corpus.ids, size) for task, corpus in setup.corpora.items()}
    part = setup.corpora["topic"].head(PERPLEXITY_TOKENS)
    return {**found, "kept": 1.0, "cosine": 1.0, "perplexity": setup.bigrams.perplexity(part.ids, part.offsets)}


# Set before the processes of the pool start, which inherit it.
SHARED: dict[str, Any] = {}


def fit(task: tuple[int, str, Any]) -> tuple[dict[str, Any], MechanismArtifact] | None:
    """Build the mechanism of a row, and say what is known of it. None where there is no such mechanism."""
    number, block, value = task
    bench, candidate = SHARED["bench"], SHARED["candidates"][number]
    matcher = bench.matcher
    found = matcher.at_loss(candidate, value) if block == "loss" else matcher.at_recovery(candidate, *value)
    if found is None:
        return None
    epsilon, built = found.epsilon, found.built
    mechanism = matcher.load(candidate, built)
    recovered = {prior: matcher.recover(mechanism, prior) for prior in ("public", "uniform")}
    facts = {"number": number, "mechanism": candidate.label, "block": block, "at": value, "epsilon": epsilon}
    return {**facts, "loss": built.guarantee.pure, "recovered": recovered}, replace(built, notes=(), files={})


def measure(task: tuple[int, int]) -> dict[str, float]:
    """Measure one row under one key."""
    row, seed = task
    number, built = SHARED["rows"][row]
    bench = SHARED["bench"]
    return bench.measure(bench.matcher.load(SHARED["candidates"][number], built), seed)


def in_parallel(function: Callable[[Any], Any], tasks: list[Any]) -> list[Any]:
    """Return results of all tasks, on all cores, by processes that inherit :data:`SHARED`."""
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        return pool.map(function, tasks, chunksize=1)


def summarise(values: Iterable[float]) -> dict[str, float]:
    """Return mean and half the width of the 95% t-interval."""
    found = list(values)
    if len(found) < 2:
        return {"mean": found[0], "half": 0.0}
    spread = statistics.stdev(found) / math.sqrt(len(found))
    return {"mean": statistics.mean(found), "half": float(stats.t.ppf(0.975, len(found) - 1)) * spread}


def run(
    name: str,
    seeds: int,
    chosen_blocks: Sequence[str],
    losses: Sequence[float],
    labels: Sequence[str],
    *,
    smallest: bool,
) -> None:
    """Measure the rows of these blocks and mechanisms on one embedding. Other rows that were measured before are
    kept. Without labels all mechanisms are measured.
    """
    setup = Setup.load(name, 50 if smallest else 1)
    every = candidates(name, setup.embedding.size)
    if unknown := set(labels) - {candidate.label for candidate in every}:
        raise SystemExit(f"--mechanism {min(unknown)}: expected {', '.join(one.label for one in every)}.")
    chosen = [candidate for candidate in every if not labels or candidate.label in labels]
    blocks: list[tuple[str, Any]] = [("loss", loss) for loss in losses]
    blocks += [("recovery", wanted) for wanted in RECOVERIES[name]]
    if smallest:
        blocks, chosen, seeds = [("loss", 8.0)], chosen[3:4], 1
    blocks = [block for block in blocks if block[0] in chosen_blocks]
    with tempfile.TemporaryDirectory(prefix="wordveil-meaning-") as home:
        bench = Bench(setup, Path(home))
        SHARED.update(bench=bench, candidates=chosen)
        originals = measure_originals(setup)
        print("originals", {key: round(value, 3) for key, value in originals.items()}, flush=True)
        tasks = [(number, block, value) for number in range(len(chosen)) for block, value in blocks]
        rows, built = zip(*(row for row in in_parallel(fit, tasks) if row is not None), strict=True)
        print("built", len(rows), flush=True)
        SHARED["rows"] = [(row["number"], artifact) for row, artifact in zip(rows, built, strict=True)]
        figures = in_parallel(measure, [(row, seed) for row in range(len(rows)) for seed in range(seeds)])
    for place, row in enumerate(rows):
        mine = figures[place * seeds : (place + 1) * seeds]
        row["figures"] = {key: summarise(figure[key] for figure in mine) for key in mine[0]}
        print(row["mechanism"], row["block"], row["at"], {k: round(v["mean"], 3) for k, v in row["figures"].items()})
    before = [] if smallest or not result_file(name).exists() else results(name)["rows"]
    measured = {(candidate.label, *block) for candidate in chosen for block in blocks}
    rows = [*rows, *(row for row in before if (row["mechanism"], row["block"], place_of(row)) not in measured)]
    order = [candidate.label for candidate in every]
    rows.sort(key=lambda row: (order.index(row["mechanism"]), row["block"], place_of(row)))
    for row in rows:
        row.pop("number", None)
    content = {"machine": machine(), "embedding": name, "seeds": seeds, "originals": originals, "rows": rows}
    save_results(f"meaning_{name}", content, smallest=smallest)


def result_file(name: str) -> Path:
    """Return where the results of an embedding are."""
    return RESULTS / f"meaning_{name}.json"


def results(name: str) -> dict[str, Any]:
    """Return what was measured on an embedding."""
    found: dict[str, Any] = json.loads(result_file(name).read_text())
    return found


def place_of(row: dict[str, Any]) -> Any:
    """Return the loss of a row, or its prior and recovery."""
    return float(row["at"]) if row["block"] == "loss" else tuple(row["at"])


def show(name: str, figure: dict[str, float] | None) -> str:
    """Show a figure with its interval: perplexity in whole numbers, all others are shares."""
    if figure is None:
        return ""
    digits = 0 if name == "perplexity" else 3
    return f"{figure['mean']:.{digits}f} ±{figure['half']:.{digits}f}"


def print_tables(found: dict[str, Any]) -> None:
    """Print the rows as Markdown, one table for each loss and each recovery."""
    columns = [name for name in SHOWN if name in found["originals"]]
    originals = " | ".join(f"{found['originals'][name]:.3f}" for name in columns)
    for block, at in sorted({(row["block"], place_of(row)) for row in found["rows"]}):
        title = f"largest loss E = {at:g}" if block == "loss" else f"recovered, {at[0]} prior: {at[1]:.0%}"
        print(f"\n{found['embedding']}: {title}\n")
        print(f"| mechanism | E | recovered, public | uniform | {' | '.join(columns)} |")
        print("| --- |" + " ---: |" * (len(columns) + 3))
        print(f"| originals | | | | {originals} |")
        for row in found["rows"]:
            if (row["block"], place_of(row)) == (block, at):
                cells = " | ".join(show(name, row["figures"].get(name)) for name in columns)
                both = " | ".join(f"{row['recovered'][prior]:.3f}" for prior in ("public", "uniform"))
                print(f"| {row['mechanism']} | {row['loss']:.2f} | {both} | {cells} |")


def draw() -> None:
    """Draw topic and author attack against the loss and against the recovery, for the embeddings that were measured."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "wordveil"
    from matplotlib import pyplot as plt

    measured = [name for name in ("demo", "books") if result_file(name).exists()]
    figure, axes = plt.subplots(2, 2 * len(measured), figsize=(8 * len(measured), 8), sharey="row")
    for side, name in enumerate(measured):
        found = results(name)
        for line, task in enumerate(("topic", "author")):
            for place, against in enumerate(("loss", "recovered")):
                axis = axes[line, 2 * side + place]
                for mechanism in DRAWN:
                    rows = [row for row in found["rows"] if row["mechanism"] == mechanism and task in row["figures"]]
                    points = sorted(
                        (
                            row["loss"] if against == "loss" else row["recovered"]["public"],
                            row["figures"][task]["mean"],
                            row["figures"][task]["half"],
                        )
                        for row in rows
                    )
                    if points:
                        x, y, half = zip(*points, strict=True)
                        axis.errorbar(x, y, yerr=half, marker="o", markersize=3, label=mechanism)
                axis.axhline(found["originals"][task], color="grey", linestyle=":", label="originals")
                axis.set_xlabel("largest loss of a token" if against == "loss" else "recovered, public prior")
                axis.set_title(f"{name}: {'20 newsgroups' if task == 'topic' else 'C50 author attack'}")
    axes[0, 0].set_ylabel("accuracy: more is more useful")
    axes[1, 0].set_ylabel("accuracy: more is less private")
    axes[0, 1].legend(fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Measure, or draw what was measured."""
    parser = make_parser(__doc__)
    parser.add_argument("--embedding", choices=EMBEDDINGS, action="append")
    parser.add_argument("--block", choices=BLOCKS, action="append", help="by default both")
    parser.add_argument("--loss", type=float, action="append", help="a loss of the first block; by default all")
    parser.add_argument("--mechanism", action="append", help="a row's label; by default all", default=[])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--draw", action="store_true", help="print tables and draw the picture from the result files")
    chosen = parser.parse_args()
    for name in chosen.embedding or (["demo"] if chosen.smallest else EMBEDDINGS):
        if not chosen.draw:
            losses = chosen.loss or LOSSES[name]
            run(name, chosen.seeds, chosen.block or BLOCKS, losses, chosen.mechanism, smallest=chosen.smallest)
        elif result_file(name).exists():
            print_tables(results(name))
    if chosen.draw:
        draw()


if __name__ == "__main__":
    main()
