"""Accuracy of classifiers: of attackers on authors, and of tasks on texts.

A *static* attacker learns from clean text. An *adaptive* one learns from the same text, sanitised by the same mechanism
and text policy under a throwaway key, as anyone can do. The failure of a static attacker proves little: only the
adaptive one measures protection. Neither bounds a better attacker; the mechanism's guarantee does.

A task shows the utility of texts. If texts are sanitised, both training and test texts are, since a user of a release
has no others. The upper bound is the same task on the original texts, the lower bound on random words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordveil.arrays import Int64
from wordveil.evaluation.classifiers import RefusingClassifier, TextClassifier
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.evaluation import Confusion
from wordveil.scores.score import Accuracy, Group, Measurement, Score, measure_accuracy

TASK = "authors"
ORIGINAL = "original"
"""Subject of measurements on clean text."""
STATIC, ADAPTIVE = "static", "adaptive"
ACCURACY, PRECISION, ANSWERED = "accuracy", "precision", "answered"
_LEARNT = {STATIC: "clean text", ADAPTIVE: "text that was sanitised in the same way under a throwaway key"}


def measure_authorship(
    attack: TextClassifier,
    known: Documents,
    snippets: Documents,
    released: Sequence[str],
    redrawn: Sequence[str],
    subject: str,
    seed: int,
    *,
    with_original: bool = True,
) -> tuple[list[Score], list[Confusion]]:
    """Run an attack on sanitised snippets, static and adaptive, and on clean ones.

    ``known``: clean texts of known authors. ``snippets``: other clean texts by the same authors. ``released``: the
    sanitised snippets. ``redrawn``: the known texts, sanitised in the same way under a throwaway key.
    ``with_original``: attack clean snippets, too, under the subject :data:`ORIGINAL`; once is enough for several
    mechanisms.

    Returns the accuracy of each attacker, and its confusions, whose last column counts refusals. An attacker that may
    refuse (:class:`wordveil.evaluation.classifiers.RefusingClassifier`) is made to answer for the accuracy; two more
    figures are the share of snippets that it answers for and the precision of these answers. Raises :class:`ValueError`
    if fewer than two authors have known text, or no snippet has a known author.
    """
    clean, adapted = attack.fit(known, seed), attack.fit(known.with_texts(redrawn), seed)
    runs = [(clean, released, subject, STATIC), (adapted, released, subject, ADAPTIVE)]
    if with_original:
        runs.append((clean, snippets.texts, ORIGINAL, STATIC))
    scores: list[Score] = []
    confusions: list[Confusion] = []
    for fitted, texts, whose, variant in runs:
        measurement = Measurement(whose, TASK, attack.name, Group.ATTACK, variant)
        method = f"{attack.definition} It learns from {_LEARNT[variant]}."
        if isinstance(fitted, RefusingClassifier):
            votes = fitted.score(texts)
            answers = np.where(votes.shares > fitted.threshold, votes.labels, UNKNOWN)
            guesses, answered = votes.labels, _score_answers(measurement, answers, snippets, fitted.threshold, method)
        else:
            guesses, answered = (answers := fitted.predict(texts)), []
        accuracy = measure_accuracy(guesses, snippets.labels)
        definition = f"The share of snippets whose author is named. {method}"
        scores += [_make_score(measurement, ACCURACY, definition, accuracy, accuracy.chance), *answered]
        counts = count_confusions(answers, snippets.labels, len(snippets.names))
        confusions.append(Confusion(whose, attack.name, variant, snippets.names, counts))
    return scores, confusions


def _score_answers(
    measurement: Measurement, answers: Int64, snippets: Documents, threshold: float, method: str
) -> list[Score]:
    """Return the share of snippets that the attacker answers for, and the share of right answers."""
    chosen = f"snippets for which an author wins more than {threshold:.0%} of the rounds. {method}"
    answered = np.where(answers == UNKNOWN, UNKNOWN, snippets.labels)
    # Every answer counts as right here, so that the accuracy is the share of answers.
    share = measure_accuracy(answered, snippets.labels)
    precision = measure_accuracy(answers, answered) if (answered != UNKNOWN).any() else None
    chance = precision.chance if precision else None
    return [
        _make_score(measurement, ANSWERED, f"The share of {chosen}", share, None),
        _make_score(measurement, PRECISION, f"The share of right answers among the {chosen}", precision, chance),
    ]


def _make_score(
    measurement: Measurement, figure: str, definition: str, accuracy: Accuracy | None, chance: float | None
) -> Score:
    return measurement.make_score(
        figure,
        accuracy.value if accuracy else None,
        (accuracy.low, accuracy.high) if accuracy else None,
        accuracy.count if accuracy else 0,
        definition,
        chance=chance,
        higher_is_better=False,
        note="" if accuracy else "The attacker answers for no snippet.",
        detectable=accuracy.detectable if accuracy and chance is not None else None,
    )


def count_confusions(answers: Int64, labels: Int64, names: int) -> tuple[tuple[int, ...], ...]:
    """Count the texts of each label that were given each label; the last column counts refusals.

    ``answers``, ``labels``: int64 ``(texts,)``, without texts of unknown labels. ``names``: the number of labels.
    """
    is_known = labels != UNKNOWN
    columns = np.where(answers[is_known] == UNKNOWN, names, answers[is_known])
    flat = np.bincount(labels[is_known] * (names + 1) + columns, minlength=names * (names + 1))
    return tuple(tuple(row) for row in flat.reshape(names, names + 1).tolist())


def measure_task(
    classifier: TextClassifier, train: Documents, test: Documents, subject: str, task: str, seed: int
) -> list[Score]:
    """Train a classifier on one part of a data set and return its accuracy on the other.

    ``train``, ``test``: texts of different people or articles, with the same labels. Raises :class:`ValueError` if
    fewer than two labels have training texts, or no test text has a label.
    """
    guessed = classifier.fit(train, seed).predict(test.texts)
    return [make_task_score(classifier, guessed, test.labels, subject, task)]


def make_task_score(
    classifier: TextClassifier, guessed: Int64, labels: Int64, subject: str, task: str, note: str = ""
) -> Score:
    """Make the accuracy of guesses, int64 ``(texts,)`` as ``labels``."""
    definition = f"The share of test texts that get their true label. {classifier.definition}"
    accuracy = measure_accuracy(guessed, labels)
    return Measurement(subject, task, classifier.name).make_accuracy(accuracy, definition, note)
