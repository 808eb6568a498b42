"""Subjects found by a sentence model beside those found by sums of word vectors, on samples of a few thousand texts.

    export WORDVEIL_SENTENCE_MODEL=sentence-transformers:DIR
    python -m wordveil_research sentence-encoder --data ../shared/data --out DIR --processes 1
    python -m wordveil_research.papers.sentence_encoder DIR

The second command prints the tables of research/docs/passages.md and writes research/results/sentence_encoder.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from wordveil.arrays import Float32
from wordveil.assembly.passages import fit_passages, read_passages
from wordveil.assembly.word_tables import FittedWords
from wordveil.embeddings.embedding import Embedding, load
from wordveil.errors import ConfigError, Fault
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.inputs import WORDNET, PublicPassages
from wordveil.mechanisms.passages import model as models
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.clusters import whole_directions
from wordveil.report.files import read_evaluation
from wordveil.scores.evaluation import Evaluation
from wordveil.scores.methods import load_sentence_model
from wordveil.scores.score import Group, Measurement, Score
from wordveil_research.field.table import print_rows, shorten, show_interval
from wordveil_research.papers.passages import (
    CORPORA,
    FIELD,
    LOSSES,
    Texts,
    build_passages,
    learn_labels,
    load_passages,
    make_key,
)
from wordveil_research.papers.repeats import find_score, merge_repeats
from wordveil_research.runner.base import Cell, Experiment, Surroundings

MODEL = "WORDVEIL_SENTENCE_MODEL"
"""Environment variable with the value of ``mechanism.encoder``."""
SUMS = "sums"
SAMPLES = {"snips": 1_500, "TREC-6": 1_500, "SST-2": 1_500, "20 newsgroups": 600}
"""Corpora, and the most texts of each part: passages of the field, texts to learn from, texts to judge."""
SUBJECTS = (64, 200)
_WORDNET = 6_000
"""Sentences of WordNet that serve as passages."""
_BATCH = 32
_COMPARED, _THREADED = 300, 40
"""Texts that are read once more alone, and by two threads."""
_LOSS = LOSSES[0]
_RESULTS = Path(__file__).parents[2] / "results"


class SentenceEncoderTable(Experiment):
    """See the module."""

    name: ClassVar[str] = "sentence-encoder"
    title: ClassVar[str] = "Subjects by a sentence model, and by sums of word vectors"
    files: ClassVar[tuple[str, ...]] = tuple(f"{one.file}.jsonl.xz" for one in CORPORA if one.name in SAMPLES)

    def plan(self, around: Surroundings) -> Sequence[Cell]:
        """Plan a cell for each corpus. Raises :class:`ConfigError` if no model is named."""
        if not (model := os.environ.get(MODEL)):
            raise ConfigError("environment", [Fault(MODEL, "", "is not set. Set it to sentence-transformers:MODEL.")])
        settings = {"seeds": around.seeds, "model": model, "subjects": list(SUBJECTS), "wordnet": _WORDNET}
        return [Cell(name, {**settings, "texts": 300 if around.is_quick else most}) for name, most in SAMPLES.items()]

    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        corpus = next(one for one in CORPORA if one.name == cell.name)
        texts = Texts.read(corpus, around.data, load("glove"), cell.settings["texts"])
        model = open_model(cell.settings["model"])
        models.load_sentence_model = lambda *_, **__: model  # type: ignore[assignment]
        rows = [(name, source) for source in (FIELD, WORDNET) for name in (SUMS, "model")]
        scores = [
            score
            for name, source in rows
            for score in _measure_source(texts, name, source, around, "" if name == SUMS else cell.settings["model"])
        ]
        return [*scores, *_compare_readings(texts, model, around)]

    def report(self, around: Surroundings, results: Mapping[str, Sequence[Score]]) -> Evaluation:
        facts = {
            "model": "/".join(Path(os.environ[MODEL]).parts[-2:]),
            "packages": ", ".join(f"{name} {version(name)}" for name in ("sentence-transformers", "torch")),
            "embedding": "glove, 100,000 x 100: both parts for passages of the field, vectors alone for wordnet",
            "passages": f"field: texts that serve for nothing else; wordnet: {_WORDNET:,} of the package's sentences",
            "texts": "; ".join(f"{name}: at most {most:,} of each part" for name, most in SAMPLES.items()),
            "draws": f"{around.seeds} keys",
            "classifier": "the most frequent label of a drawn symbol",
        }
        scores = [score for found in results.values() for score in found]
        return Evaluation(self.title, facts, tuple(scores), is_private=False)


class BatchedModel:
    """Sentence model that reads in batches, and each text once. wordveil itself reads texts one at a time.

    ``known``: the vectors of texts read before.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.known: dict[str, Float32] = {}

    def encode(self, texts: Sequence[str], **_: object) -> Float32:
        """Compute the vectors of texts: float32 ``(texts, n)``."""
        if missing := [text for text in dict.fromkeys(texts) if text not in self.known]:
            self.known |= dict(zip(missing, read_texts(self.model, missing, _BATCH), strict=True))
        return np.stack([self.known[text] for text in texts])


def read_texts(model: Any, texts: Sequence[str], batch: int) -> Float32:
    """Read texts by a model itself, so many at once: float32 ``(texts, n)``."""
    return np.asarray(model.encode([*texts], batch_size=batch, show_progress_bar=False), np.float32)


@cache
def open_model(name: str) -> BatchedModel:
    """Load a model once in a process."""
    return BatchedModel(load_sentence_model("mechanism.encoder", name, "none", device="cpu"))


def _measure_source(texts: Texts, name: str, source: str, around: Surroundings, encoder: str = "") -> Iterator[Score]:
    """Measure an encoder over passages of one source, for each number of subjects."""
    work = BuildContext(kept=around.work / "kept")
    for subjects in SUBJECTS:
        passages = texts.passages if source == FIELD else None
        if passages is not None and len(passages) < 2 * subjects:
            continue
        kept = None if passages is not None else around.work / f"{name}-{subjects}.npz"
        if kept is not None and kept.exists():  # the same for every corpus
            mechanism = load_passages(kept)
        else:
            chosen = passages or _sample_wordnet(texts.embedding)
            mechanism = build_passages(texts.embedding, chosen, source, subjects, work, kept, encoder)
        started = time.process_time()
        symbols = mechanism.encoder.encode(texts.ids, texts.offsets, texts.whole)
        seconds = time.process_time() - started
        row = f"{name}, {source}, {subjects} subjects"
        yield texts.judge(f"{row}, no noise", "most-frequent", learn_labels(texts, symbols, subjects + 1))
        drawn = (draw_tokens(mechanism, symbols, b"texts", make_key(seed)) for seed in range(around.seeds))
        yield from merge_repeats(
            [texts.judge(f"{row}, loss {_LOSS:g}", "most-frequent", learn_labels(texts, one, subjects + 1))]
            for one in drawn
        )
        if name == SUMS:
            yield Measurement(row, texts.corpus.name, "one-core", Group.COST).make_score(
                "texts-a-second",
                len(texts.whole) / seconds,
                None,
                len(texts.whole),
                "As for the model, without cutting.",
            )


def _sample_wordnet(embedding: Embedding) -> PublicPassages:
    sentences = read_passages(WORDNET, "passages")
    chosen = np.random.default_rng(0).permutation(len(sentences))[:_WORDNET]
    return fit_passages(sentences.take(chosen), FittedWords(embedding.words, "passages", WORDNET, []))


def _compare_readings(texts: Texts, model: BatchedModel, around: Surroundings) -> Iterator[Score]:
    """Compare texts read alone on one thread, as wordveil does, with texts in batches and on more threads."""
    strings, seconds = texts.whole.to_pylist(), {}
    with threadpool_limits(limits=1):
        for batch in (1, _BATCH):
            started = time.process_time()
            vectors = read_texts(model.model, strings[:_COMPARED], batch)
            seconds[batch] = time.process_time() - started
            if batch == 1:
                alone = _make_points(vectors)
    others = {f"batches of {_BATCH}": _make_points(vectors)}
    with threadpool_limits(limits=2):
        others["two threads"] = _make_points(read_texts(model.model, strings[:_THREADED], 1))
    every = _make_points(model.encode(strings))
    for batch, spent in seconds.items():
        yield Measurement(f"model, {batch} at once", texts.corpus.name, "one-core", Group.COST).make_score(
            "texts-a-second", _COMPARED / spent, None, _COMPARED, "Texts read in a second of processor time."
        )
    for label, points in others.items():
        own = alone[: len(points)]
        figures = {
            "other-points": (float((points != own).any(axis=1).mean()), "The share of texts with another point.")
        }
        for count in SUBJECTS:
            centres = load_passages(around.work / f"model-{count}.npz").encoder.centres
            products, changed = own @ centres.T, points @ centres.T
            moved = float((products.argmax(axis=1) != changed.argmax(axis=1)).mean())
            ranked = np.sort(every @ centres.T, axis=1)
            close = float((ranked[:, -1] - ranked[:, -2] <= 2 * np.abs(products - changed).max()).mean())
            figures[f"other-symbols-{count}"] = moved, f"The share of texts with another of {count} symbols."
            figures[f"close-{count}"] = (
                close,
                ("The share of all texts whose two nearest centres differ by at most twice the largest change."),
            )
        for figure, (value, definition) in figures.items():
            yield Measurement(label, texts.corpus.name, "one-text", Group.TEXT).make_score(
                figure, value, None, len(points), definition, higher_is_better=None
            )


def _make_points(vectors: Float32) -> Float32:
    points = np.empty(vectors.shape, np.float32)
    whole_directions(vectors, points)
    return points


def main() -> None:
    """Print the tables, and write the results file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="that the experiment wrote")
    evaluation = read_evaluation(parser.parse_args().directory)
    (_RESULTS / "sentence_encoder.json").write_text(json.dumps(shorten(evaluation), indent=1) + "\n", "utf-8")
    endings = (", no noise", f", loss {_LOSS:g}")
    columns = [(name, end) for end in endings for name in (SUMS, "model")]
    rows: list[Sequence[Any]] = []
    for source in (FIELD, WORDNET):
        for subjects in SUBJECTS:
            for corpus in SAMPLES:
                names = [f"{name}, {source}, {subjects} subjects{end}" for name, end in columns]
                found = [find_score(evaluation.scores, name, task=corpus, figure="accuracy") for name in names]
                rows.append([corpus, source, f"{subjects}", *map(show_interval, found)])
    print_rows(["corpus", "passages", "subjects", *(name + end for name, end in columns)], rows)
    for score in evaluation.scores:
        if score.figure != "accuracy":
            print(f"{score.task}, {score.subject}: {score.figure} {score.value:.4g}")


if __name__ == "__main__":
    main()
