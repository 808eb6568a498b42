"""Linear classifiers over n-grams, weighted by TF-IDF and trained by scikit-learn.

The baseline of most comparisons of attribution, which few methods beat: Stamatatos 2009, "A survey of modern authorship
attribution methods", section 3; Joachims 1998, "Text categorization with support vector machines", for the classifier.
For an attacker the weight of an n-gram is ``1 + ln(count)`` times ``1 + ln((1 + texts) / (1 + texts with it))``. A
task's weights are over words: ``1 + ln(count)`` times ``ln((1 + n) / (1 + texts with it)) + 1``. A text's weights have
length 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal

import numpy as np

from wordveil.evaluation.classifiers import FittedModel, TextClassifier, join_words, load_package, take_known
from wordveil.scores.documents import Documents


class Unit(StrEnum):
    """Unit of n-grams."""

    CHARACTERS = "characters"
    WORDS = "words"


@dataclass(frozen=True)
class LinearSvm(TextClassifier):
    """Attacker by the method of the module. Case is ignored.

    ``unit``: characters, spaces and punctuation included, or words alone. ``shortest``, ``longest``: units of an
    n-gram; by default 2 to 4 characters, or 1 to 2 words. ``cost``: weight of errors against that of large
    coefficients. Raises :class:`ValueError` unless 1 <= shortest <= longest and ``cost`` is positive.
    """

    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word"

    unit: Unit = Unit.CHARACTERS
    shortest: int | None = None
    longest: int | None = None
    cost: float = 1.0

    def __post_init__(self) -> None:
        low, high = self.lengths
        if not 1 <= low <= high:
            raise ValueError(f"Expected 1 <= shortest <= longest, got shortest={low}, longest={high}.")
        if not 0 < self.cost < float("inf"):
            raise ValueError(f"Expected a positive cost, got cost={self.cost}.")

    @property
    def lengths(self) -> tuple[int, int]:
        """Lengths of the shortest and the longest n-gram."""
        low, high = (2, 4) if self.unit == Unit.CHARACTERS else (1, 2)
        return self.shortest or low, self.longest or high

    @property
    def name(self) -> str:
        return f"svm-{self.unit}"

    @property
    def definition(self) -> str:
        low, high = self.lengths
        return (
            f"A linear support vector machine (C = {self.cost:g}) over TF-IDF weights of n-grams of {low} to {high} "
            f"{self.unit}, by scikit-learn."
        )

    def fit(self, known: Documents, seed: int) -> FittedModel:
        """Fit as :class:`TextClassifier` describes. Raises :class:`PlatformError` if scikit-learn is not installed."""
        has_words = self.unit == Unit.WORDS
        machine = load_package("sklearn.svm").LinearSVC(C=self.cost, random_state=seed % 2**32)
        analyzer, prepare = ("word", join_words) if has_words else ("char", list)
        return _fit(known, machine, prepare, analyzer=analyzer, ngram_range=self.lengths, dtype=np.float32)


@dataclass(frozen=True)
class LinearWords(TextClassifier):
    """Classifier by the method of the module.

    ``model``: ``svm``, linear support vector machines, one label against all others, or ``logistic``, multinomial
    logistic regression. ``cost``: weight of errors against that of large coefficients. ``word_ngrams``: the longest
    n-grams.
    """

    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word"

    model: Literal["svm", "logistic"] = "svm"
    cost: float = 1.0
    word_ngrams: int = 1

    @property
    def name(self) -> str:
        return "linear-words" if self.model == "svm" else "logistic-words"

    @property
    def definition(self) -> str:
        classifier = "A linear support vector machine" if self.model == "svm" else "Multinomial logistic regression"
        features = "words" if self.word_ngrams == 1 else f"runs of 1 to {self.word_ngrams} words"
        return f"{classifier} (C = {self.cost:g}) over TF-IDF weights of {features}, by scikit-learn."

    def fit(self, known: Documents, seed: int) -> FittedModel:
        """Fit as :class:`TextClassifier` describes. Raises :class:`PlatformError` if scikit-learn is not installed."""
        if self.model == "svm":
            model = load_package("sklearn.svm").LinearSVC(C=self.cost, random_state=seed % 2**32)
        else:
            model = load_package("sklearn.linear_model").LogisticRegression(C=self.cost, max_iter=1_000)
        return _fit(known, model, join_words, analyzer="word", ngram_range=(1, self.word_ngrams), dtype=np.float64)


def _fit(known: Documents, model: Any, prepare: Callable[[Sequence[str]], list[str]], **options: Any) -> FittedModel:
    """Fit a model to the TF-IDF weights of texts. ``options``: of scikit-learn's vectoriser."""
    used = take_known(known)
    lines = prepare(used.texts)
    if not any(lines):
        raise ValueError("Expected at least one text with a word to learn from.")
    # Without a pattern, as for characters, scikit-learn would cut words differently.
    pattern = r"\S+" if options["analyzer"] == "word" else None
    vectoriser = load_package("sklearn.feature_extraction.text").TfidfVectorizer(
        sublinear_tf=True, token_pattern=pattern, **options
    )
    pipeline = load_package("sklearn.pipeline").make_pipeline(vectoriser, model)
    return FittedModel(prepare, pipeline.fit(lines, used.labels))
