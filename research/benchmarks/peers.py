"""Laplace with exact search, and TEM, against a Python library of metric differential privacy for text, word for word.

The peer is mldp-text 0.1.2 (PyPI, MIT): ``get_mechanism("multivariate_calibrated")``, the same mechanism: Gamma radius,
uniform direction, nearest word. It runs in an environment of its own, which this script makes with pip in the user's
cache directory (XDG_CACHE_HOME; several hundred MB, once): it needs NumPy below 2. The project's environment is left
alone.

* default: as it comes, ``use_faiss=True``: an approximate index (FAISS IVFFlat, 50 of 100 cells searched);
* exact: ``use_faiss=False``: the distance to every word.

Its ``get_mechanism("tem")`` is compared with the exponential mechanism with its own gamma and 256 neighbours, on the
demo embedding.

Same vectors, same words in the same order, same epsilon, one core: wordveil and the peer take turns on it, with BLAS,
OpenMP and FAISS on one thread. The peer's time is that of ``replace_word`` alone, a word at a time, which is all it
offers; words come split and all are in the vocabulary. wordveil's time is that of ``RecordSanitiser.sanitise``: texts
in, tokenised, looked up, drawn, joined, accounted, out; no padding. Indexes are built before the clock starts. A ratio
is that of the medians of the rounds.

    python research/benchmarks/peers.py [--smallest]

Writes research/results/peers.json and prints a table.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Self

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS; the peer's process inherits it

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from common import SMALL, load_embedding, machine, make_parser, real_texts, save_results
from wordveil.artifacts.bundle import Bundle, Recipe, open_bundle, write
from wordveil.crypto.keys import MasterKey
from wordveil.embeddings.embedding import Embedding, check_embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.geometry.euclidean import distances
from wordveil.mechanisms.additive.tails import MAX_DIGITS
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.tables.exponential import Exponential, ExponentialSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.exact import scoring_rows
from wordveil.privacy.guarantees import Metric, WordGuarantee
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN, UNKNOWN_COLUMN
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy

PEER = "mldp-text==0.1.2"
# What pip chose beside it; pinned, so that the same is measured again.
BESIDE = ("numpy==1.26.4", "scipy==1.12.0", "gensim==4.4.0", "faiss-cpu==1.15.1", "numba==0.68.1", "nltk==3.10.4")
# By shape: the peer's modes with the ratios that are aimed at.
TARGETS = {
    "demo": {"default": 20.0, "exact": 200.0},
    "synthetic": {"default": 30.0, "exact": 250.0},
    "tem": {"tem": 1.0},
}
# Each keeps a part of the words and changes the others.
EPSILONS = {"demo": 20.0, "synthetic": 5.0, "tem": 6.0}
NEIGHBOURS = 256
TOKENS = 200_000
WORDS_A_RECORD, RECORDS_A_BATCH = 100, 64


def peer_python() -> Path:
    """Return the interpreter of the peer's environment, which is made if it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wordveil-benchmarks"
    home = cache / f"{PEER.replace('==', '-')}-python{sys.version_info.major}.{sys.version_info.minor}"
    python, ready = home / "bin" / "python", home / "ready"
    if not ready.exists():
        print(f"making the peer's environment in {home}", file=sys.stderr)
        venv.create(home, clear=True, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PEER, *BESIDE], check=True
        )
        ready.touch()
    return python


class Peer:
    """The peer's process, on the cores of this one."""

    def __init__(self, home: Path, shape: Shape) -> None:
        np.save(home / "vectors.npy", shape.embedding.vectors)
        (home / "words.txt").write_text("\n".join(shape.embedding.words.to_pylist()), "utf-8")
        (home / "tokens.txt").write_text("\n".join(shape.tokens), "utf-8")
        # On import it looks for this and would load it from the network; the mechanism measured here does not use it.
        (home / "nltk" / "corpora" / "wordnet").mkdir(parents=True)
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        self._process: subprocess.Popen[str] = subprocess.Popen(
            [peer_python(), Path(__file__).parent / "peers_mldp.py"],
            env={**environment, "NLTK_DATA": str(home / "nltk")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        task = {name: str(home / f"{name}.txt") for name in ("words", "tokens")}
        mechanism = "tem" if shape.name == "tem" else "laplace"
        self.about = self._ask(
            {**task, "vectors": str(home / "vectors.npy"), "epsilon": shape.epsilon, "mechanism": mechanism}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def replace(self, mode: str, seconds: float) -> dict[str, Any]:
        """Replace words in about the given time."""
        return self._ask({"mode": mode, "seconds": seconds})

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        questions, answers = self._process.stdin, self._process.stdout
        print(json.dumps(question), file=questions, flush=True)
        line = answers.readline() if answers else ""
        if not line:
            raise SystemExit("The peer's process has ended; its message is above.")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(frozen=True)
class Shape:
    """An embedding and the words to replace."""

    name: str
    embedding: Embedding
    tokens: list[str]

    @property
    def epsilon(self) -> float:
        """Of both sides."""
        return EPSILONS[self.name]

    @classmethod
    def of(cls, name: str, *, smallest: bool = False) -> Shape:
        """``demo``, ``tem``: the newswire's words on the demo embedding; ``synthetic``: random words and vectors,
        seeded.
        """
        if name != "synthetic":
            embedding = load_embedding("small" if smallest else "demo")
            vocabulary = Vocabulary(embedding.words)
            texts = pa.array(text for text, _ in zip(real_texts(), range(600), strict=False))
            ids = Codec(TextPolicy(unknown="drop"), vocabulary).encode(texts).ids
        else:
            size, dimension = SMALL if smallest else 100_000, 300
            rng = np.random.default_rng(20261121)
            vectors = rng.standard_normal((size, dimension)).astype(np.float32)
            embedding = check_embedding([f"w{number}" for number in range(size)], vectors, "synthetic")
            vocabulary = Vocabulary(embedding.words)
            ids = rng.integers(0, size, TOKENS).astype(np.int32)
        return cls(name, embedding, vocabulary.array.take(pa.array(ids[:TOKENS])).to_pylist())


def bundle_of(home: Path, shape: Shape) -> Bundle:
    """Return the bundle of the exponential mechanism for the shape ``tem``; else the Laplace bundle without padding, as
    ``Laplace.build`` writes it, but for the diameter.

    The true diameter of 100,000 random points takes minutes; twice the radius bounds it, and only prices depend on it.
    """
    embedding, epsilon = shape.embedding, shape.epsilon
    if shape.name == "tem":
        # The peer's gamma: beyond it lie all words together with probability 0.001 at most.
        gamma = round(2 / epsilon * math.log(0.999 * embedding.size / 0.001), 1)
        settings = ExponentialSettings(epsilon=epsilon, gamma=gamma, neighbours=NEIGHBOURS)
        built = Exponential.build(embedding, settings, padding=False, work=BuildContext())
        recipe = Recipe(
            "exponential", settings.recipe(), padding=False, embedding=embedding.source, embedding_digest=""
        )
        return open_bundle(write(home / "bundles", embedding, built, recipe, {}))
    mean = embedding.vectors.mean(axis=0, dtype=np.float64)
    points = np.concatenate([embedding.vectors, np.tile(mean.astype(np.float32), (2, 1))])
    radius = float(distances(embedding.vectors.astype(np.float64).T, mean[:, None]).max())
    guarantee = WordGuarantee(Metric("euclidean", "0" * 64), epsilon, epsilon, 2 * radius, 2.0**-53)
    parameters = {"epsilon": epsilon, "padding": False, "pad_height": 0.0, "search": "exact", "digits": MAX_DIGITS}
    recipe = Recipe("laplace", {"epsilon": epsilon}, padding=False, embedding=embedding.source, embedding_digest="")
    return open_bundle(
        write(
            home / "bundles",
            embedding,
            MechanismArtifact(parameters, {"index": scoring_rows(points)}, guarantee),
            recipe,
            {},
        )
    )


class Wordveil:
    """wordveil's side: batches of texts, each of the same words in the same order."""

    def __init__(self, home: Path, shape: Shape) -> None:
        bundle = bundle_of(home, shape)
        policy = TextPolicy(tokeniser="whitespace", case="exact")
        keys = MasterKey(secrets.token_bytes(32)).for_release("peers")  # thrown away
        self._sanitiser = RecordSanitiser(RecordSettings("peers", "run", policy, ()), bundle, keys)
        texts = [" ".join(words) for words in _cut(shape.tokens, WORDS_A_RECORD)]
        self._batches = [self._batch(part) for part in _cut(texts, RECORDS_A_BATCH)]
        _ = list(self._sanitiser.sanitise(self._batches[0].slice(0, 2)))  # compiled code is ready then

    @staticmethod
    def _batch(texts: list[str]) -> pa.RecordBatch:
        ids = [str(number) for number in range(len(texts))]
        columns = [pa.array(ids), pa.array(texts), pa.nulls(len(texts), pa.string())]
        return pa.RecordBatch.from_arrays(columns, names=["id", TEXT_COLUMN, REASON_COLUMN])

    def replace(self, seconds: float) -> dict[str, Any]:
        """Replace words in about the given time, in whole batches."""
        results: list[tuple[pa.RecordBatch, pa.RecordBatch]] = []
        started = time.perf_counter()
        for batch in cycle(self._batches):
            results += [(batch, part) for part in self._sanitiser.sanitise(batch)]
            if (taken := time.perf_counter() - started) >= seconds:
                break
        done, kept = map(sum, zip(*(_compared(batch, part) for batch, part in results), strict=True))
        return {"tokens": done, "seconds": taken, "kept": kept / done}


def _cut(items: list[str], size: int) -> list[list[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _compared(batch: pa.RecordBatch, result: pa.RecordBatch) -> tuple[int, int]:
    """Return tokens of a batch and how many stayed themselves; all words must be known and every one be drawn."""
    before = " ".join(batch.column(TEXT_COLUMN).to_pylist()).split(" ")
    after = " ".join(result.column("text").to_pylist()).split(" ")
    if any(result.column(UNKNOWN_COLUMN).to_pylist()) or len(before) != len(after):
        raise SystemExit("The two sides do not replace the same words.")
    return len(before), sum(one == other for one, other in zip(before, after, strict=True))


def measure(shape: Shape, rounds: int, seconds: float) -> dict[str, Any]:
    """Measure all figures of one shape. Without rounds wordveil's side alone runs, over one batch."""
    with tempfile.TemporaryDirectory() as directory:
        ours = Wordveil(Path(directory), shape)
        if not rounds:
            return {"shape": shape.name, "kept": ours.replace(0.0)["kept"]}
        with Peer(Path(directory), shape) as peer:
            runs: dict[str, list[dict[str, Any]]] = {"wordveil": [], **{mode: [] for mode in TARGETS[shape.name]}}
            for _ in range(rounds):
                runs["wordveil"].append(ours.replace(seconds / 2))
                for mode in TARGETS[shape.name]:
                    runs[mode].append(peer.replace(mode, seconds))
    speeds = {
        side: statistics.median(run["tokens"] / run["seconds"] for run in side_runs) for side, side_runs in runs.items()
    }
    ratios = {mode: speeds["wordveil"] / speeds[mode] for mode in TARGETS[shape.name]}
    targets = TARGETS[shape.name]
    return {
        "shape": shape.name,
        "words": shape.embedding.size,
        "dimension": shape.embedding.dimension,
        "epsilon": shape.epsilon,
        "peer": peer.about,
        "tokens_per_second": speeds,
        "ratios": ratios,
        "targets": targets,
        "met": {mode: ratios[mode] >= targets[mode] for mode in targets},
        "runs": runs,
    }


def show(results: list[dict[str, Any]]) -> None:
    """Show the table of the results."""
    table = Table(title=f"wordveil's exact laplace, and TEM, against {PEER}, one core, words in and words out")
    for heading in (
        "words x dimension",
        "who",
        "tokens a round",
        "tok/s (median)",
        "wordveil over it",
        "target",
        "words kept",
    ):
        table.add_column(heading, justify="right")
    for result in results:
        for side, runs in result["runs"].items():
            ratio = result["ratios"].get(side)
            table.add_row(
                f"{result['words']:,} x {result['dimension']}",
                "wordveil" if ratio is None else f"peer, {side}",
                f"{statistics.median(run['tokens'] for run in runs):,.0f}",
                f"{result['tokens_per_second'][side]:,.1f}",
                "" if ratio is None else f"{ratio:,.0f}",
                "" if ratio is None else f"{result['targets'][side]:,.0f}",
                f"{statistics.mean(run['kept'] for run in runs):.1%}",
            )
    Console().print(table)
    for result in results:
        if (share := result["peer"].get("default_misses_nearest")) is None:
            continue
        print(
            f"{result['words']:,} x {result['dimension']}: the peer's default index misses the nearest word for "
            f"{share:.0%} of draws"
        )


def main() -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--only", choices=list(TARGETS), action="append", help="measure this shape alone, and write nothing"
    )
    arguments = parser.parse_args()
    smallest = arguments.smallest
    if smallest:
        print([measure(Shape.of(name, smallest=True), 0, 0.0) for name in TARGETS])
        return
    before = machine()
    peer_python()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the peer's process inherits it
    results = [measure(Shape.of(name), 3, 20.0) for name in arguments.only or TARGETS]
    if not arguments.only:
        save_results("peers", {"machine": before, "peer": PEER, "results": results}, smallest=False)
    show(results)


if __name__ == "__main__":
    main()
