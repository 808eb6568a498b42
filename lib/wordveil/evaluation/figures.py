"""Measures of an evaluation: each attacker, each task and each figure of the texts, as scores of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.artifacts.bundle import Bundle
from wordveil.artifacts.ngram_model import DEMO, bigrams_of, open_named
from wordveil.crypto.streams import draw_words
from wordveil.embeddings.embedding import Embedding
from wordveil.evaluation.accuracy import ACCURACY, ADAPTIVE, ORIGINAL, measure_authorship, measure_task
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.context import PublicLanguage, measure_word_recovery
from wordveil.evaluation.encoders import SentenceEncoder, measure_similarity
from wordveil.evaluation.linkage import LINKED, measure_linkage
from wordveil.evaluation.pairs import Pairs
from wordveil.evaluation.redrawn import BundleSanitiser, NotDrawnByWordError, Redrawn, redraw_columns
from wordveil.evaluation.topics import measure_terms
from wordveil.privacy.recovery import PriorRecovery, Recovered
from wordveil.scores.documents import Documents
from wordveil.scores.evaluation import Confusion
from wordveil.scores.methods import AUTHOR_ATTACKS, TEXT_TASKS, Make
from wordveil.scores.score import Group, Score
from wordveil.text.choices import Length
from wordveil.text.stop_words import load_stop_words

RELEASE = "release"
"""Subject of figures of sanitised texts; ``original``: that of the texts before."""
POOL, TEXT_POOL = 2_000, 10_000
"""Number of records that are linked to their originals, each among as many; and under a mechanism that draws whole
texts, of which far more share an output.
"""
_PRIORS = {
    "uniform": "all words of the vocabulary equally likely",
    "frequency": "words as likely as they are frequent in public text",
}


@dataclass
class Figures:
    """Figures measured so far, in the order of the report; ``missing``: attackers and tasks that could not run."""

    scores: list[Score] = field(default_factory=list)
    confusions: list[Confusion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, more: Figures) -> None:
        """Add further figures."""
        for name, items in vars(more).items():
            getattr(self, name).extend(items)

    def miss(self, classifier: TextClassifier) -> None:
        """Note that a method could not learn from these texts, and why."""
        self.missing.append(classifier.name)
        self.notes.append(f"{classifier.name} could not be measured: it refuses {classifier.refuses}.")


@dataclass(frozen=True)
class Split:
    """Labelled records in two parts, for learning and for guessing: original texts, and the same texts as released."""

    known: Documents
    others: Documents
    known_released: Sequence[str]
    others_released: Sequence[str]


def measure_words(bundle: Bundle) -> list[Score]:
    """Report the bundle's own figures of recovered single words, which depend on no text."""
    if bundle.recovery is None:
        return []
    priors = {"uniform": bundle.recovery.uniform, "frequency": bundle.recovery.frequency}
    size, of = bundle.vocabulary.size, bundle.recovery.of
    return [_word_score(name, prior, item, size, of) for name, prior in priors.items() for item in prior.after]


def _word_score(name: str, prior: PriorRecovery, recovered: Recovered, words: int, of: str) -> Score:
    draws = "one draw" if recovered.draws == 1 else f"{recovered.draws} draws of the same {of}"
    is_exact = recovered.at_most == recovered.at_least
    return Score(
        subject=RELEASE,
        group=Group.PRIVACY,
        task=f"{of}s",
        method=f"best-guess-{name}",
        variant=f"draws-{recovered.draws}",
        figure="recovered",
        value=recovered.at_least,
        low=None if is_exact else recovered.at_least,
        high=None if is_exact else recovered.at_most,
        chance=prior.before,
        count=words,
        definition=f"The share of {of}s that the best attacker of single {of}s recovers from {draws}, "
        f"{_PRIORS[name].replace('word', of)}.",
        higher_is_better=False,
        note="" if recovered.at_most is not None else "A lower bound: the mechanism does not know its probabilities.",
    )


def measure_attacks(
    split: Split, redrawn: Sequence[str], names: Sequence[str], embedding: Embedding | None, seed: int
) -> Figures:
    """Measure how many authors of the other records attackers name, static and adaptive.

    ``redrawn``: the known texts under a throwaway key. ``embedding``: the mechanism's, or None for the package's.
    """
    figures = Figures()
    for name in names:
        attack = _make(AUTHOR_ATTACKS[name], embedding)
        try:
            scores, confusions = measure_authorship(
                attack, split.known, split.others, split.others_released, redrawn, RELEASE, seed
            )
        except ValueError:  # its message may quote a text
            figures.miss(attack)
            continue
        figures.scores += scores
        figures.confusions += confusions
    return figures


def _make(method: Make, embedding: Embedding | None) -> TextClassifier:
    """Make a classifier, with the mechanism's embedding if it needs and has one."""
    made: Any = method()
    classifier: TextClassifier = replace(made, embedding=embedding) if made.needs_embedding and embedding else made
    return classifier


def find_attack_to_chance(figures: Figures, bound: float) -> float | None:
    """Find the largest accuracy of an adaptive attacker (upper end of its interval) divided by its chance level.

    Return None if an attacker is missing, or if so little was measured that no attack would have been above chance, or
    even one that names all authors within ``bound``: the absence of an attack then proves nothing.
    """
    scores = [
        score
        for score in figures.scores
        if (score.subject, score.variant, score.figure) == (RELEASE, ADAPTIVE, ACCURACY)
        and score.high is not None
        and score.chance
    ]
    if figures.missing or any(score.detectable == math.inf or 1 / (score.chance or 1) <= bound for score in scores):
        return None
    return max((score.high / score.chance for score in scores if score.high and score.chance), default=None)


def measure_tasks(split: Split, names: Sequence[str], label: str, embedding: Embedding | None, seed: int) -> Figures:
    """Measure how well labels are recognised in sanitised texts alone and, as the upper bound, in originals."""
    figures = Figures()
    subjects = {
        ORIGINAL: (split.known, split.others),
        RELEASE: (split.known.with_texts(split.known_released), split.others.with_texts(split.others_released)),
    }
    for name in names:
        classifier = _make(TEXT_TASKS[name], embedding)
        try:
            for subject, (train, test) in subjects.items():
                figures.scores += measure_task(classifier, train, test, subject, label, seed)
        except ValueError:  # its message may quote a text
            figures.miss(classifier)
    return figures


def measure_texts(
    pairs: Pairs, sanitiser: BundleSanitiser, encoder: SentenceEncoder, topics: int, seed: int
) -> list[Score]:
    """Measure what needs neither authors nor labels: words, links, terms and ``topics``, and similarity.

    Words and links are measured on at most :data:`POOL` or :data:`TEXT_POOL` records of the sample. ``sanitiser``: the
    one that drew the texts; the attacker who links records draws again with a throwaway key. ``encoder``: computes the
    vectors for similarity and linkage.
    """
    originals, released = pairs.sampled
    befores, afters, redrawn = _redraw_pool(pairs, sanitiser, seed)
    return [
        *(_measure_context(redrawn, seed) if sanitiser.bundle.topics is None else ()),
        *measure_linkage(befores, afters, encoder, RELEASE, seed, redrawn),
        *measure_terms(originals, released, RELEASE, seed, topics, load_stop_words(None, sanitiser.policy.language)),
        *measure_similarity(originals, released, encoder, RELEASE, seed),
    ]


def find_linked(pairs: Pairs, sanitiser: BundleSanitiser, encoder: SentenceEncoder, seed: int) -> float | None:
    """Measure the share of records that the best attacker links to their originals.

    Return None for words sampled from several columns: the attackers here link far fewer of these than there may be.

    The figure is the upper end of its interval, which is high if there are few records. The same records and ``seed``
    give the same figure. The arguments are those of :func:`measure_texts`.
    """
    befores, afters, redrawn = _redraw_pool(pairs, sanitiser, seed, drawing=seed)
    if redrawn is None and sanitiser.policy.length == Length.SAMPLE:
        return None
    scores = measure_linkage(befores, afters, encoder, RELEASE, seed, redrawn)
    return max(score.high for score in scores if score.figure == LINKED and score.high is not None)


def _redraw_pool(
    pairs: Pairs, sanitiser: BundleSanitiser, seed: int, drawing: int | None = None
) -> tuple[list[str], list[str], Redrawn | None]:
    """Choose records of the sample: their originals, their released texts, and their tokens drawn again.

    There are no tokens of a generator, nor of words sampled from several columns. ``drawing``: seed of the attacker's
    key; None: a fresh key.
    """
    most = POOL if sanitiser.bundle.topics is None else TEXT_POOL
    chosen = np.argsort(draw_words(seed, b"linkage", len(pairs.sample)), kind="stable")[:most]
    pool = pairs.sample[chosen]
    redrawn = None
    with suppress(NotDrawnByWordError):
        redrawn = redraw_columns(sanitiser, [column.take(pa.array(pool)) for column in pairs.texts], drawing)
    originals = pairs.originals
    return [originals[row] for row in pool], [pairs.released[row] for row in pool], redrawn


def _measure_context(redrawn: Redrawn | None, seed: int) -> list[Score]:
    """Measure what is recovered of the words of these texts, with and without the words around them."""
    if redrawn is None or redrawn.laws is None:
        return []
    language = PublicLanguage.of(bigrams_of(open_named(DEMO)), redrawn.words)
    return measure_word_recovery(redrawn, language, RELEASE, seed)
