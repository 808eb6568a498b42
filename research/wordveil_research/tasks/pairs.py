"""Pairs of sentences: does one entail the other, is one a paraphrase of the other, how similar are they?

A pair's features are ``|u - v|`` and ``u * v``, element by element, of the mean vectors ``u`` and ``v`` of its two
sentences: those of Tai, Socher, Manning 2015 (section 3.2), which SentEval uses. Labels are found by logistic
regression, and degrees of similarity by ridge regression, or without training by the cosine of ``u`` and ``v``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import stats

from wordveil.arrays import Float64, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import InputError
from wordveil.evaluation.classifiers import load_package
from wordveil.evaluation.encoders import find_cosines
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil.scores.score import Measurement, Score, measure_accuracy, resample
from wordveil_research.methods.bags import WordVectors
from wordveil_research.methods.sentences import fit_logistic
from wordveil_research.tasks.datasets import read_columns

METHOD, COSINE = "pair-vectors", "pair-cosine"
_RIDGE = 1.0
_EQUAL = 1e-12
_AND = "similarity with that found by"


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of sentences with a label each, such as ``entailment`` or ``paraphrase``.

    Attributes
    ----------
    first, second
        the sentences.
    labels
        int64 ``(pairs,)``: numbers of :attr:`names`, or :data:`wordveil.scores.documents.UNKNOWN`.
    names
        the labels' names.
    """

    first: Sequence[str]
    second: Sequence[str]
    labels: Int64
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_lengths(self.first, self.second, len(self.labels))

    def with_texts(self, first: Sequence[str], second: Sequence[str]) -> LabelledPairs:
        """Return the same labels on other sentences, such as these sanitised. Raises :class:`ValueError`."""
        return replace(self, first=first, second=second)


@dataclass(frozen=True)
class GradedPairs:
    """Pairs of sentences with a degree of similarity each.

    Attributes
    ----------
    first, second
        the sentences.
    grades
        float64 ``(pairs,)``: larger for more similar ones.
    """

    first: Sequence[str]
    second: Sequence[str]
    grades: Float64

    def __post_init__(self) -> None:
        _check_lengths(self.first, self.second, len(self.grades))

    def with_texts(self, first: Sequence[str], second: Sequence[str]) -> GradedPairs:
        """Return the same degrees on other sentences, such as these sanitised. Raises :class:`ValueError`."""
        return replace(self, first=first, second=second)


def load_labelled_pairs(
    path: Path,
    first: str,
    second: str,
    label: str,
    where: Mapping[str, str] | None = None,
    names: tuple[str, ...] | None = None,
) -> LabelledPairs:
    """Read pairs with labels from a file.

    Parameters
    ----------
    path
        see :func:`wordveil_research.tasks.datasets.read_table`.
    first, second, label
        the columns.
    where
        values that columns must have, such as ``{"split": "train"}``.
    names
        the labels in their order; by default all that occur, in alphabetical order. Other labels become unknown.

    Raises
    ------
    InputError
        as :func:`wordveil_research.tasks.datasets.read_columns`.
    """
    one, other, labels = read_columns(path, (first, second, label), where)
    documents = Documents.of(one, labels, names)
    return LabelledPairs(one, other, documents.labels, documents.names)


def load_graded_pairs(
    path: Path, first: str, second: str, grade: str, where: Mapping[str, str] | None = None
) -> GradedPairs:
    """Read pairs with degrees of similarity from a file; parameters as of :func:`load_labelled_pairs`.

    Raises
    ------
    InputError
        as :func:`wordveil_research.tasks.datasets.read_columns`, and where a degree is not a finite number.
    """
    one, other, grades = read_columns(path, (first, second, grade), where)
    try:
        numbers = np.array(grades, np.float64)
    except ValueError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise InputError(f"{path}: column {grade}: expected a finite number in each row.")
    return GradedPairs(one, other, numbers)


def measure_pairs(
    embedding: Embedding, train: LabelledPairs, test: LabelledPairs, subject: str, task: str
) -> list[Score]:
    """Measure how often the label of a pair is found: the accuracy, with its interval and the chance level.

    Parameters
    ----------
    embedding
        a public one.
    train, test
        pairs with the same names of labels; with sanitised sentences, unless ``subject`` is the original.
    subject, task
        as in :class:`Score`.

    Raises
    ------
    ValueError
        where the names of labels differ, fewer than two labels have training pairs, or no test pair has a label.
    """
    if train.names != test.names:
        raise ValueError(f"Expected the same labels in both parts of {task}, got {train.names} and {test.names}.")
    known = np.flatnonzero(train.labels != UNKNOWN)
    if len(np.unique(train.labels[known])) < 2:
        raise ValueError("Expected pairs of at least two labels to learn from.")
    vectors = WordVectors(embedding)
    model = fit_logistic(_make_features(vectors, train)[known], train.labels[known])
    guessed = np.asarray(model.predict(_make_features(vectors, test)), np.int64)
    definition = (
        "The share of test pairs that get their true label, by logistic regression over |u - v| and u * v of the "
        "sentences' mean vectors."
    )
    found = measure_accuracy(guessed, test.labels)
    return [Measurement(subject, task, METHOD).make_accuracy(found, definition)]


def find_correlation_interval(first: Float64, second: Float64, seed: int) -> tuple[float, float]:
    """Find the 95% interval of Pearson's correlation of two or more pairs, by the percentile bootstrap. For ranks it is
    that of Spearman's correlation, without ranking each resample again.
    """

    def correlate(left: Float64, right: Float64, axis: int) -> Float64:
        left = left - left.mean(axis=axis, keepdims=True)
        right = right - right.mean(axis=axis, keepdims=True)
        spread = np.sqrt((left * left).sum(axis=axis) * (right * right).sum(axis=axis))
        products = (left * right).sum(axis=axis)
        return np.asarray(np.divide(products, spread, out=np.zeros_like(spread), where=spread > 0))

    return resample((first, second), correlate, seed)


def measure_similarity(
    embedding: Embedding, train: GradedPairs | None, test: GradedPairs, subject: str, task: str, seed: int
) -> list[Score]:
    """Measure how well the similarity of pairs is found: the correlations of Pearson and of Spearman, with their
    intervals.

    Parameters
    ----------
    embedding
        a public one.
    train
        pairs to learn from by ridge regression; None takes the cosine of the mean vectors.
    test
        at least three pairs.
    subject, task
        as in :class:`Score`.
    seed
        of the bootstrap.

    Raises
    ------
    ValueError
        where there are fewer than three test pairs, or their degrees are all equal.
    """
    if len(test.grades) < 3 or np.ptp(test.grades) == 0:
        raise ValueError(f"Expected at least three pairs of different similarity, got {len(test.grades)} pairs.")
    guessed = _find_similarity(WordVectors(embedding), train, test)
    by = "the cosine of the sentences' mean vectors" if train is None else "ridge regression over |u - v| and u * v"
    measurement = Measurement(subject, task, COSINE if train is None else METHOD)
    # Pearson's correlation of ranks is Spearman's.
    ranked = stats.rankdata(guessed), stats.rankdata(test.grades)
    return [
        _correlate(measurement, "pearson", guessed, test.grades, f"Pearson's correlation of true {_AND} {by}.", seed),
        _correlate(measurement, "spearman", *ranked, f"Spearman's correlation of true {_AND} {by}.", seed),
    ]


def _correlate(
    measurement: Measurement, figure: str, guessed: Float64, grades: Float64, definition: str, seed: int
) -> Score:
    """Return a correlation with its interval; without a value where all guesses are equal."""
    if np.ptp(guessed) < _EQUAL:
        note = "All pairs are found equally similar, so that there is no correlation."
        return measurement.make_score(figure, None, None, len(guessed), definition, chance=0.0, note=note)
    interval = find_correlation_interval(guessed, grades, seed)
    value = float(np.corrcoef(guessed, grades)[0, 1])
    return measurement.make_score(figure, value, interval, len(guessed), definition, chance=0.0)


def _find_similarity(vectors: WordVectors, train: GradedPairs | None, test: GradedPairs) -> Float64:
    if train is None:
        return find_cosines(vectors.average(test.first), vectors.average(test.second))
    pipeline, preprocessing = load_package("sklearn.pipeline"), load_package("sklearn.preprocessing")
    ridge = load_package("sklearn.linear_model").Ridge(alpha=_RIDGE)
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), ridge)
    return np.asarray(model.fit(_make_features(vectors, train), train.grades).predict(_make_features(vectors, test)))


def _make_features(vectors: WordVectors, pairs: LabelledPairs | GradedPairs) -> Float64:
    """float64 ``(pairs, 2 * dimension)``."""
    one, other = vectors.average(pairs.first), vectors.average(pairs.second)
    return np.hstack([np.abs(one - other), one * other])


def _check_lengths(first: Sequence[str], second: Sequence[str], values: int) -> None:
    if not len(first) == len(second) == values:
        raise ValueError(
            f"Expected as many first as second sentences as values, got {len(first)}, {len(second)} and {values}."
        )
