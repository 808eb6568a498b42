"""How well a task is done on texts: the accuracy of a classifier on texts that it was not trained on.

Where texts are sanitised, training and test texts both are: a user of a release has no others. The upper bound is the
same task on the original texts, the lower bound the same on random words.
"""

from __future__ import annotations

import numpy as np

from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.packages import load_package
from wordveil.scores.documents import UNKNOWN, Documents, Int64
from wordveil.scores.measurement import Measurement
from wordveil.scores.score import Score, measure_accuracy


def measure_task(
    classifier: TextClassifier, train: Documents, test: Documents, subject: str, task: str, seed: int
) -> list[Score]:
    """Train a classifier on one part of a data set and measure it on the other.

    Parameters
    ----------
    classifier
        any of :data:`wordveil.scores.methods.TEXT_TASKS`.
    train, test
        texts of different people or articles, with the same names of labels.
    subject, task
        as in :class:`Score`: whose texts, and the name of the data set.
    seed
        of the classifier and of the bootstrap.

    Returns
    -------
    list of Score
        the accuracy, with its interval and the chance level.

    Raises
    ------
    ValueError
        where the names of labels differ, fewer than two labels have training texts, or no test text has a label.
    """
    if train.names != test.names:
        raise ValueError(f"Expected the same labels in both parts of {task}, got {train.names} and {test.names}.")
    guessed = classifier.fit(train, seed).predict(test.texts)
    return [_make_score(classifier, guessed, test.labels, subject, task, seed)]


def measure_folds(
    classifier: TextClassifier, documents: Documents, subject: str, task: str, seed: int, folds: int = 10
) -> list[Score]:
    """The same by cross-validation, for a data set without a test part.

    Each fold in turn is the test part, and the classifier learns from the others. Folds are drawn with the seed and
    have each label in its share. The accuracy is over all texts. The interval takes them as independent, which is a
    little too narrow as folds share their training texts.

    Raises
    ------
    ValueError
        as :func:`measure_task`, and where no label has as many texts as there are folds.
    """
    guessed = predict_folds(classifier, documents, seed, folds)
    note = f"Cross-validated in {folds} folds."
    return [_make_score(classifier, guessed, documents.labels, subject, task, seed, note)]


def predict_folds(classifier: TextClassifier, documents: Documents, seed: int, folds: int = 10) -> Int64:
    """What is guessed for each text by a classifier that has not seen it: int64 ``(texts,)``. Raises
    :class:`ValueError`.
    """
    selection = load_package("sklearn.model_selection")
    splits = selection.StratifiedKFold(folds, shuffle=True, random_state=seed % 2**32)
    known = np.flatnonzero(documents.labels != UNKNOWN)
    guessed = np.full(len(documents), UNKNOWN, np.int64)
    for learned, held in splits.split(known, documents.labels[known]):
        fitted = classifier.fit(documents.take(known[learned]), seed)
        guessed[known[held]] = fitted.predict(documents.take(known[held]).texts)
    return guessed


def _make_score(
    classifier: TextClassifier, guessed: Int64, labels: Int64, subject: str, task: str, seed: int, note: str = ""
) -> Score:
    definition = f"The share of test texts that get their true label. {classifier.definition}"
    found = measure_accuracy(guessed, labels, seed)
    return Measurement(subject, task, classifier.name).make_accuracy(found, definition, note)
