"""Looks into ER-AE: Bo, Ding, Fung, Iqbal (2021), Tables 2 to 4, on novels whose copyright has ended.

Table 2 has the likeliest words of a generator with and without the embedding reward, Table 3 how likely one of the
words most similar to the original is, by ER-AE's choices and by a plain exponential mechanism over all words, and Table
4 sentences beside what is written of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.embeddings.embedding import DEMO, Embedding
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.quantise import quantise_weights
from wordveil.generators.training.settings import require_packages
from wordveil.generators.weights import GeneratorWeights
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.scores.evaluation import Evaluation, TextExample
from wordveil.scores.score import Group, Measurement, Score, find_mean_interval
from wordveil_research.papers.eraee import LOSSES, MODEL, SYNTF_LOSS, choose_losses, find_epsilon, list_rows
from wordveil_research.papers.repeats import find_score
from wordveil_research.papers.rows import Row, load_embedding, open_row
from wordveil_research.papers.samples import NOVELS, Split, read_novels
from wordveil_research.papers.sentences import Sentences, choose_sentences, read_rows
from wordveil_research.papers.similar_words import (
    Places,
    draw_sets,
    weigh_exponential,
    weigh_softmax_rr,
)
from wordveil_research.papers.trained import (
    PLAIN,
    QUICK_SIZES,
    REWARDED,
    GeneratorPlan,
    GeneratorSizes,
    describe_generators,
    score_training,
    train_or_load,
)
from wordveil_research.runner.base import Cell, Experiment, Surroundings

_CANDIDATES, _SIMILAR, _SETS = 5, 5, 200
_KINDS = (PLAIN, REWARDED)
_TRAINING, _LIKELIEST, _NEAR, _WRITTEN = "training", "likeliest words", "similar words", "sentences"


@dataclass(frozen=True)
class Sizes:
    """Sentences that are shown, those whose candidates are shown, those whose places are counted; words of each of two
    known novels of an author, and of each of three snippets of the third; the generator's sizes.
    """

    shown: int = 8
    listed: int = 3
    counted: int = 150
    book_words: int = 9_000
    snippet_words: int = 600
    generator: GeneratorSizes = field(default_factory=GeneratorSizes)


_QUICK = Sizes(3, 2, 20, 100, 40, QUICK_SIZES)


class ERAETables(Experiment):
    """See the module."""

    name: ClassVar[str] = "eraee-tables"
    title: ClassVar[str] = "Candidates, choices and sentences of ER-AE (Bo, Ding, Fung, Iqbal 2021, Tables 2 to 4)"
    version: ClassVar[int] = 2
    embedding: ClassVar[str] = DEMO
    files: ClassVar[tuple[str, ...]] = (NOVELS,)

    def plan(self, around: Surroundings) -> Sequence[Cell]:
        """Plan the trainings, and then each table's rows. Raises :class:`PlatformError` where the extra ``er-ae`` is
        not installed.
        """
        require_packages()
        sizes = asdict(_sizes(around))
        looks = [
            Cell(f"{what}, {kind}", {**sizes, "what": what, "kind": kind})
            for what in (_TRAINING, _LIKELIEST, _NEAR)
            for kind in _KINDS
        ]
        rows = [
            Cell(f"{_WRITTEN}, {row.name}", {**sizes, "what": _WRITTEN, "row": row.name, **row.plain()})
            for row in _rows(around)
        ]
        return looks + rows

    def measure(self, cell: Cell, around: Surroundings) -> Sequence[Score]:
        """Measure a training, or a part of a table."""
        what, novels = cell.settings["what"], _Novels(around)
        if what == _WRITTEN:
            (row,) = [row for row in _rows(around) if row.name == cell.settings["row"]]
            return [*novels.write(row)]
        kind = cell.settings["kind"]
        if what == _TRAINING:
            return score_training(novels.plan(kind), novels.train(kind))
        return [*(novels.list_likeliest(kind) if what == _LIKELIEST else novels.count_similar(kind))]

    def report(self, around: Surroundings, results: Mapping[str, Sequence[Score]]) -> Evaluation:
        """Table 3 as figures, Tables 2 and 4 as texts."""
        sizes, every = _sizes(around), [score for part in results.values() for score in part]
        generator = sizes.generator
        facts = {
            "words": f"the {generator.words:,} first ones of the embedding {around.embedding}",
            "texts": f"novels by 33 authors; two of each ({sizes.book_words:,} words of each) train, and sentences of "
            f"a third one, of at most {generator.length} words, are judged",
            "generators": describe_generators(generator),
        }
        scores = tuple(replace(score, note="") if score.task in (_LIKELIEST, _WRITTEN) else score for score in every)
        examples = tuple(_show(score) for score in every if score.task in (_LIKELIEST, _WRITTEN))
        notes = (*_note_findings(scores), *_DIFFERENCES)
        return Evaluation(self.title, facts, scores, examples=examples, notes=notes, is_private=False)


def _sizes(around: Surroundings) -> Sizes:
    sizes = _QUICK if around.is_quick else Sizes()
    return replace(sizes, generator=replace(sizes.generator, vectors=around.embedding))


def _rows(around: Surroundings) -> Iterator[Row]:
    return list_rows(around, _sizes(around).generator)


class _Novels:
    """The texts and their generators."""

    def __init__(self, around: Surroundings) -> None:
        self._around, self._sizes = around, _sizes(around)
        self._embedding: Embedding = load_embedding(self._sizes.generator.embedding, around.work)

    def plan(self, kind: str) -> GeneratorPlan:
        return GeneratorPlan("novels", kind, self._sizes.generator)

    def _read(self) -> Split:
        sizes = self._sizes
        return read_novels(self._around.data, self._around.work, sizes.book_words, sizes.snippet_words, 3)

    def train(self, kind: str) -> GeneratorWeights:
        return train_or_load(self.plan(kind), self._read().train.texts, self._embedding, self._around.work)

    def _open(self, kind: str) -> WholeNumberGenerator:
        weights = self.train(kind)
        return WholeNumberGenerator(weights.shape, quantise_weights(weights))

    def _choose(self, count: int) -> Sentences:
        return choose_sentences(self._read().test, self._embedding, self._sizes.generator.length, count)

    def list_likeliest(self, kind: str) -> Iterator[Score]:
        """Table 2: for each sentence, the likeliest words at each place, and what the original word has there."""
        sentences = self._choose(self._sizes.listed)
        listed: list[list[tuple[str, list[str], float]]] = [[] for _ in sentences.ids]
        for rows, words, softmaxes in read_rows(self._open(kind), sentences):
            likeliest = np.argsort(-softmaxes, axis=1, kind="stable")[:, :_CANDIDATES]
            for row, word, candidates, softmax in zip(rows.tolist(), words.tolist(), likeliest, softmaxes, strict=True):
                listed[row].append((self._name([word])[0], self._name(candidates), float(softmax[word])))
        for number, (places, text) in enumerate(zip(listed, sentences.texts, strict=True), 1):
            shown = "; ".join(f"{word}: {', '.join(candidates)}" for word, candidates, _ in places)
            value = float(np.mean([chance for *_, chance in places]))
            measured = Measurement(kind, _LIKELIEST, f"sentence {number}", Group.TEXT)
            yield measured.make_score("original", value, None, len(places), _ORIGINAL, note=json.dumps([text, shown]))

    def _name(self, words: Sequence[int] | NDArray[np.int64]) -> list[str]:
        found: list[str] = self._embedding.words.take(pa.array(words, pa.int64())).to_pylist()
        return found

    def count_similar(self, kind: str) -> Iterator[Score]:
        """Table 3: the probability of a word that is among the most similar ones to the original."""
        size = self._sizes.generator.words
        places = self._look(kind)
        measured = Measurement(f"{kind}, the generator alone", _NEAR, "generator", Group.UTILITY)
        yield _score_similar(measured, places.held, size)
        drawn = draw_sets(places, _CANDIDATES, _SETS, seed=0)
        for loss in choose_losses(self._around):
            epsilon = find_epsilon(loss, size)
            found = {
                "exponential": weigh_exponential(places, loss),
                "two-set": drawn.weigh(epsilon),
                "softmax-rr": weigh_softmax_rr(places, epsilon),
            }
            for choice, values in found.items():
                measured = Measurement(f"{kind}, {loss:g} a token", _NEAR, choice, Group.UTILITY)
                yield _score_similar(measured, values, size)

    def _look(self, kind: str) -> Places:
        """Return what the generator says at all places of the counted sentences."""
        found = list(read_rows(self._open(kind), self._choose(self._sizes.counted)))
        words = np.concatenate([words for _, words, _ in found])
        rows = np.concatenate([softmaxes for *_, softmaxes in found])
        return Places(rows, find_similar(self._embedding, words, _SIMILAR))

    def write(self, row: Row) -> Iterator[Score]:
        """Table 4: sentences, and what is written of them."""
        texts = self._choose(self._sizes.shown).texts
        kind = row.settings.get(MODEL)
        inputs = PublicInputs(generator=self.train(kind)) if kind else NO_INPUTS
        written = open_row(row, self._embedding, self._around.work, inputs=inputs).sanitise(texts, 0)
        for number, (text, output) in enumerate(zip(texts, written, strict=True), 1):
            pairs = list(zip(text.split(), output.split(), strict=True))
            value = sum(one == other for one, other in pairs) / len(pairs)
            measured = Measurement(row.name, _WRITTEN, f"sentence {number}", Group.TEXT)
            yield measured.make_score("kept", value, None, len(pairs), _KEPT, note=json.dumps([text, output]))


def find_similar(embedding: Embedding, words: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Find the words with the highest cosines to each of ``words``, itself among them: int64 ``(words, count)``."""
    lengths = np.linalg.norm(embedding.vectors, axis=1, keepdims=True)
    units = embedding.vectors / np.maximum(lengths, 1e-12)
    return np.asarray(np.argpartition(-(units[words] @ units.T), count - 1, axis=1)[:, :count].astype(np.int64))


_ORIGINAL = (
    "The mean probability that the generator gives to the original word, where it has read the original words before."
)
_KEPT = "The share of the sentence's words that are written as they were."
_SIMILAR_WORDS = (
    f"The probability that what is written is one of the {_SIMILAR} words with the highest cosines to the original "
    "word, itself among them, where the generator has read the original words before it: the mean over places."
)


def _score_similar(measured: Measurement, values: NDArray[np.float64], size: int) -> Score:
    interval = find_mean_interval(values, seed=0)
    chance = _SIMILAR / size
    return measured.make_score("similar", float(values.mean()), interval, len(values), _SIMILAR_WORDS, chance=chance)


def _show(score: Score) -> TextExample:
    original, output = json.loads(score.note)
    return TextExample(f"{score.subject}, {score.task}", original, output)


def _note_findings(scores: Sequence[Score]) -> Iterator[str]:
    """Write a sentence for each generator and loss of Table 3."""
    for kind in _KINDS:
        alone = find_score(scores, f"{kind}, the generator alone", figure="similar")
        if alone and alone.value is not None:
            yield f"{kind}, the generator alone: P(a similar word) is {alone.value:.1%}."
        for loss in LOSSES:
            choices = ("exponential", "two-set", "softmax-rr")
            row = f"{kind}, {loss:g} a token"
            found = [find_score(scores, row, figure="similar", method=choice) for choice in choices]
            values = [score.value for score in found if score and score.value is not None]
            if len(values) == len(choices):
                shown = ", ".join(f"{value:.1%} by {choice}" for choice, value in zip(choices, values, strict=True))
                yield f"{kind}, {loss:g} a token: P(a similar word) is {shown}."


_DIFFERENCES = (
    (
        "A plain exponential mechanism with ratings in [0, 1] that add up to 1 costs half of what is usually charged: "
        "its rows are at that true loss. The paper compares mechanisms at an equal nominal epsilon."
    ),
    SYNTF_LOSS,
    (
        "Tables 2 and 3 let the generator read the original words before a place, so that all rows are about the same "
        "places. A release reads back what it wrote, as the sentences of Table 4 do."
    ),
    (
        "Figures of softmax-rr and of the exponential mechanism are exact for each place. Those of two-set are means "
        f"over {_SETS} sets that are drawn at each place, and exact for each set."
    ),
    (
        "The paper's words are reviews', and its similar words those of its own vectors. Here texts are novels, and "
        "similar words have the highest cosines in the demo embedding, which is also what the reward compares."
    ),
)
