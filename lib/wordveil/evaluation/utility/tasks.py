"""Utility of texts for a task: the accuracy of a classifier on texts that it was not trained on.

If texts are sanitised, both training and test texts are, since a user of a release has no others. The upper bound is
the same task on the original texts, the lower bound the same task on random words.
"""

from __future__ import annotations

from wordveil.arrays import Int64
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.scores.documents import Documents
from wordveil.scores.score import Measurement, Score, measure_accuracy


def measure_task(
    classifier: TextClassifier, train: Documents, test: Documents, subject: str, task: str, seed: int
) -> list[Score]:
    """Train a classifier on one part of a data set and measure it on the other.

    ``classifier``: any of :data:`wordveil.scores.methods.TEXT_TASKS`. ``train``, ``test``: texts of different people or
    articles, with the same names of labels. ``subject``, ``task``: as in :class:`Score`: whose texts, and the name of
    the data set. ``seed``: of the classifier.

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
    return [make_task_score(classifier, guessed, test.labels, subject, task)]


def make_task_score(
    classifier: TextClassifier, guessed: Int64, labels: Int64, subject: str, task: str, note: str = ""
) -> Score:
    """Make the accuracy of guesses, int64 ``(texts,)`` as ``labels``."""
    definition = f"The share of test texts that get their true label. {classifier.definition}"
    accuracy = measure_accuracy(guessed, labels)
    return Measurement(subject, task, classifier.name).make_accuracy(accuracy, definition, note)
