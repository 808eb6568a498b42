"""The sentence classification tasks of Feyisetan, Diethe, Drake 2019, Table VI, as far as their data is at hand.

Data with a test part is measured on it. ``mr``, ``cr`` and ``subj`` have none and are cross-validated in 10 folds, as
SentEval (Conneau, Kiela 2018) does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordveil.arrays import Int64
from wordveil.evaluation.accuracy import make_task_score, measure_task
from wordveil.evaluation.classifiers import TextClassifier, load_package
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.score import Score
from wordveil_research.tasks.datasets import load_documents

SENTENCE_TASKS = {"mr": False, "cr": False, "sst2": True, "sst5": True, "subj": False, "trec6": True}
"""The tasks by name, and whether the data has a test part."""
FOLDS = 10


@dataclass(frozen=True)
class SentenceTask:
    """A task with its data.

    Attributes
    ----------
    name
        one of :data:`SENTENCE_TASKS`.
    train
        what is learned from; all texts where there is no test part.
    test
        the test part; None where the task is cross-validated.
    """

    name: str
    train: Documents
    test: Documents | None


def load_sentence_task(data: Path, name: str) -> SentenceTask:
    """Read a task from ``<name>.jsonl.xz`` in the directory of the data sets: columns ``text``, ``label``, ``split``.

    Raises
    ------
    ValueError
        for a name that is not among :data:`SENTENCE_TASKS`.
    InputError
        where the file is missing or cannot be read.
    """
    if name not in SENTENCE_TASKS:
        raise ValueError(f"Expected one of {', '.join(SENTENCE_TASKS)}, got {name}.")
    path = data / f"{name}.jsonl.xz"
    if not SENTENCE_TASKS[name]:
        return SentenceTask(name, load_documents(path, "label"), None)
    train = load_documents(path, "label", where={"split": "train"})
    return SentenceTask(name, train, load_documents(path, "label", where={"split": "test"}, names=train.names))


def measure_sentences(classifier: TextClassifier, task: SentenceTask, subject: str, seed: int) -> list[Score]:
    """Measure the accuracy on the test part, or by cross-validation where there is none.

    ``task``: with sanitised texts, unless ``subject`` is the original. Raises :class:`ValueError` as
    :func:`wordveil.evaluation.accuracy.measure_task`.
    """
    if task.test is None:
        return measure_folds(classifier, task.train, subject, task.name, seed, FOLDS)
    return measure_task(classifier, task.train, task.test, subject, task.name, seed)


def measure_folds(
    classifier: TextClassifier, documents: Documents, subject: str, task: str, seed: int, folds: int = 10
) -> list[Score]:
    """Measure the same by cross-validation, for a data set without a test part.

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
    return [make_task_score(classifier, guessed, documents.labels, subject, task, note)]


def predict_folds(classifier: TextClassifier, documents: Documents, seed: int, folds: int = 10) -> Int64:
    """Return what is guessed for each text by a classifier that has not seen it: int64 ``(texts,)``. Raises
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
