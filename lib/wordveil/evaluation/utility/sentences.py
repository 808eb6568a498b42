"""The sentence classification tasks of Feyisetan, Diethe, Drake 2019, Table VI, as far as their data is at hand.

A sentence is the mean of its words' vectors, and logistic regression finds its label. This is how SentEval (Conneau,
Kiela 2018) measures a bag of vectors. Data with a test part is measured on it; ``mr``, ``cr`` and ``subj`` have none
and are cross-validated in 10 folds, as SentEval does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.evaluation.classifiers import FittedClassifier, TextClassifier
from wordveil.evaluation.datasets import load_documents
from wordveil.evaluation.documents import Documents, Int64
from wordveil.evaluation.packages import load_package
from wordveil.evaluation.report.scores import Score
from wordveil.evaluation.utility.bags import WordVectors
from wordveil.evaluation.utility.tasks import measure_folds, measure_task
from wordveil.evaluation.utility.words import take_known

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
        where the file is not there or cannot be read.
    """
    if name not in SENTENCE_TASKS:
        raise ValueError(f"Expected one of {', '.join(SENTENCE_TASKS)}, got {name}.")
    path = data / f"{name}.jsonl.xz"
    if not SENTENCE_TASKS[name]:
        return SentenceTask(name, load_documents(path, "label"), None)
    train = load_documents(path, "label", where={"split": "train"})
    return SentenceTask(name, train, load_documents(path, "label", where={"split": "test"}, names=train.names))


def measure_sentences(classifier: TextClassifier, task: SentenceTask, subject: str, seed: int) -> list[Score]:
    """The accuracy on the test part, or by cross-validation where there is none.

    ``task``: with sanitised texts, unless ``subject`` is the original. Raises :class:`ValueError` as
    :func:`wordveil.evaluation.utility.tasks.measure_task`.
    """
    if task.test is None:
        return measure_folds(classifier, task.train, subject, task.name, seed, FOLDS)
    return measure_task(classifier, task.train, task.test, subject, task.name, seed)


@dataclass(frozen=True)
class SentenceVectors(TextClassifier):
    """Logistic regression over mean vectors.

    Attributes
    ----------
    embedding
        a public one, such as the mechanism's; None for the one that comes with the package.
    cost
        the weight of errors against that of large coefficients. Features have variance 1.
    """

    embedding: Embedding | None = None
    cost: float = 1.0

    @property
    def name(self) -> str:
        return "sentence-vectors"

    @property
    def definition(self) -> str:
        return (
            f"Multinomial logistic regression (C = {self.cost:g}) over the mean vector of a text's words, as SentEval "
            "measures bags of vectors, by scikit-learn."
        )

    def fit(self, known: Documents, seed: int) -> FittedSentenceVectors:  # noqa: ARG002 -- nothing is drawn
        """As the protocol has it; raises :class:`PlatformError` where scikit-learn is not installed."""
        documents = take_known(known)
        vectors = WordVectors(self.embedding or load(DEMO))
        return FittedSentenceVectors(
            vectors, fit_logistic(vectors.average(documents.texts), documents.labels, self.cost)
        )


@dataclass(frozen=True)
class FittedSentenceVectors(FittedClassifier):
    """A trained :class:`SentenceVectors`: scikit-learn's model of mean vectors."""

    vectors: WordVectors
    model: Any

    def predict(self, texts: Sequence[str]) -> Int64:
        if not len(texts):
            return np.empty(0, np.int64)
        return np.asarray(self.model.predict(self.vectors.average(texts)), np.int64)


def fit_logistic(features: Any, labels: Int64, cost: float = 1.0) -> Any:
    """Fit multinomial logistic regression to features that are scaled to mean 0 and variance 1.

    ``features``: float64 ``(texts, features)``. Raises :class:`PlatformError` where scikit-learn is not installed.
    """
    pipeline, preprocessing = load_package("sklearn.pipeline"), load_package("sklearn.preprocessing")
    model = load_package("sklearn.linear_model").LogisticRegression(C=cost, max_iter=2_000)
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model).fit(features, labels)
