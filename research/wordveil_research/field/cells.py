"""What one cell of the table measures: the figures of a system on texts, under one seed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from wordveil.artifacts.ngram_model import bigrams_of, open_named
from wordveil.evaluation.accuracy import measure_authorship, measure_task
from wordveil.evaluation.classifiers import FittedClassifier, TextClassifier, cut_words
from wordveil.evaluation.context import Decoding, PublicLanguage, measure_word_recovery
from wordveil.evaluation.linear import LinearSvm, LinearWords, Unit
from wordveil.evaluation.redrawn import BundleSanitiser, redraw
from wordveil.scores.documents import Documents
from wordveil.scores.score import Group, Measurement, Score
from wordveil_research.field.parts import (
    AuthorPart,
    Size,
    load_authors,
    load_task,
)
from wordveil_research.papers.systems import TextSanitiser
from wordveil_research.peers.processes import PeerSanitiser, PlainWords
from wordveil_research.tasks.perplexity import BigramLaw, measure_perplexity

TASK = LinearWords(cost=0.1)
ATTACKS: tuple[LinearSvm, ...] = (LinearSvm(Unit.WORDS), LinearSvm(Unit.CHARACTERS))
WORDS_ONLY = ("c50",)
"""The corpora that are attacked by words alone: fitting fifty authors on characters takes longer than all else."""
FLUENCY = "imdb"
"""The corpus whose sanitised texts perplexity, speed and recovery in context are measured on."""
RECORD_WORDS = 200
"""The length of a record, for core-hours."""
RECORDS = 1_000_000
_CONTEXT_TEXTS = 200
# What an attacker draws with: no seed of the other draws.
_REDRAWN = 1_000_003


@dataclass(frozen=True)
class Measured:
    """Whose texts, by what, on what.

    Attributes
    ----------
    subject
        of the scores.
    system
        sanitises.
    size
        the parts of the corpora.
    data
        the directory of the data sets.
    seed
        of the draws.
    is_plain
        whether the system writes words alone, so that an attacker who knows clean text takes its words alone too.
    """

    subject: str
    system: TextSanitiser
    size: Size
    data: Path
    seed: int
    is_plain: bool


def measure_cell(measured: Measured) -> list[Score]:
    """Measure all figures that are measured on texts."""
    scores: list[Score] = []
    for task, part in measured.size.tasks.items():
        texts = load_task(part, measured.data)
        both = [*texts.train.texts, *texts.test.texts]
        started, before = time.process_time(), _peer_seconds(measured.system)
        sanitised = measured.system.sanitise(both, measured.seed)
        seconds = time.process_time() - started + _peer_seconds(measured.system) - before
        train = texts.train.with_texts(sanitised[: len(texts.train)])
        test = texts.test.with_texts(sanitised[len(texts.train) :])
        scores += measure_task(TASK, train, test, measured.subject, task, measured.seed)
        if task == FLUENCY:
            scores += measure_perplexity(open_law(), test.texts, measured.subject, task, measured.seed)
            if sanitised != both:
                scores += score_speed(measured.subject, len(cut_words(both).words), seconds)
            scores += measure_context(measured, texts.test.texts[:_CONTEXT_TEXTS])
    for name, authors in measured.size.authors.items():
        scores += measure_authors(measured, name, authors)
    return scores


def _peer_seconds(system: TextSanitiser) -> float:
    return system.seconds if isinstance(system, PeerSanitiser) else 0.0


@cache
def open_law() -> BigramLaw:
    """Open the package's own bigram model."""
    return BigramLaw.open()


def measure_authors(measured: Measured, name: str, part: AuthorPart) -> list[Score]:
    """Attack the authors of a corpus, static and adaptive."""
    texts = load_authors(part, measured.data)
    released = measured.system.sanitise(texts.snippets.texts, measured.seed)
    redrawn = measured.system.sanitise(texts.known.texts, measured.seed + _REDRAWN)
    known = make_plain(part, measured.data) if measured.is_plain else texts.known
    scores: list[Score] = []
    for attack in ATTACKS[:1] if name in WORDS_ONLY else ATTACKS:
        kept = KeptAttack(attack, known, part, measured.data, measured.is_plain)
        found, _ = measure_authorship(
            kept, known, texts.snippets, released, redrawn, measured.subject, measured.seed, with_original=False
        )
        scores += [replace(score, task=name) for score in found]
    return scores


@cache
def make_plain(part: AuthorPart, data: Path) -> Documents:
    """Make the known texts of a corpus as words alone."""
    known = load_authors(part, data).known
    return known.with_texts(PlainWords().sanitise(known.texts))


@cache
def fit_clean(attack: LinearSvm, part: AuthorPart, data: Path, *, is_plain: bool) -> FittedClassifier:
    """Fit a static attacker: the same for every system, so that a process fits it once."""
    return attack.fit(make_plain(part, data) if is_plain else load_authors(part, data).known, 0)


@dataclass(frozen=True)
class KeptAttack(TextClassifier):
    """An attack that is fitted on one set of clean texts once, and on others when asked."""

    attack: LinearSvm
    clean: Documents
    part: AuthorPart
    data: Path
    is_plain: bool

    @property
    def name(self) -> str:
        return self.attack.name

    @property
    def definition(self) -> str:
        return self.attack.definition

    def fit(self, known: Documents, seed: int) -> FittedClassifier:
        if known is self.clean:
            return fit_clean(self.attack, self.part, self.data, is_plain=self.is_plain)
        return self.attack.fit(known, seed)


def measure_context(measured: Measured, texts: Sequence[str]) -> list[Score]:
    """Measure what is recovered of words with the words around them, and without, of running text."""
    if not isinstance(measured.system, BundleSanitiser):
        return []
    drawn = redraw(measured.system, list(texts), measured.seed)
    language = PublicLanguage.of(bigrams_of(open_named("demo")), drawn.words)
    found = measure_word_recovery(drawn, language, measured.subject, measured.seed)
    wanted = (str(Decoding.MARGINAL), "maximum-posterior")
    return [score for score in found if score.method in wanted and score.figure in ("recovered", "gain-by-context")]


def score_speed(subject: str, words: int, seconds: float) -> list[Score]:
    """Return words a second of one core, and core-hours of a million records."""
    rate = words / seconds if seconds > 0 else None
    hours = None if rate is None else RECORDS * RECORD_WORDS / rate / 3600
    named = (
        ("tokens-a-second", rate, "Words sanitised in a second of processor time, loading not counted.", True),
        (
            "core-hours",
            hours,
            f"Hours of processor time for a million records of {RECORD_WORDS} words, at that speed.",
            False,
        ),
    )
    return [
        Measurement(subject, "speed", "one-core", Group.COST).make_score(
            figure, value, None, words, definition, higher_is_better=better
        )
        for figure, value, definition, better in named
    ]
