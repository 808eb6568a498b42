"""Labels by a linear classifier over the words of a text, weighted by TF-IDF: the field's reference.

Joachims 1998, "Text categorization with support vector machines". The weight of a word is ``1 + ln(count)`` times
``ln((1 + n) / (1 + texts with it)) + 1``, and a text's weights have length 1. Trained by scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from wordveil.evaluation.classifiers import FittedModel, TextClassifier
from wordveil.evaluation.packages import load_package
from wordveil.evaluation.utility.words import join_words, take_known
from wordveil.scores.documents import Documents


@dataclass(frozen=True)
class LinearWords(TextClassifier):
    """Classifier by the method of the module.

    ``model``: ``svm``: linear support vector machines, one label against all others. ``logistic``: multinomial logistic
    regression. ``cost``: the weight of errors against that of large coefficients. ``word_ngrams``: the longest n-grams
    of words that are features.
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
        kind = "A linear support vector machine" if self.model == "svm" else "Multinomial logistic regression"
        features = "words" if self.word_ngrams == 1 else f"runs of 1 to {self.word_ngrams} words"
        return f"{kind} (C = {self.cost:g}) over TF-IDF weights of {features}, by scikit-learn."

    def fit(self, known: Documents, seed: int) -> FittedModel:
        """Fit as :class:`TextClassifier` describes.

        Also raises :class:`ValueError` if no text has a word, and :class:`PlatformError` if scikit-learn is not
        installed.
        """
        text = load_package("sklearn.feature_extraction.text")
        documents = take_known(known)
        lines = join_words(documents.texts)
        if not any(lines):
            raise ValueError("Expected at least one text with a word to learn from.")
        counter = text.TfidfVectorizer(
            analyzer="word",
            tokenizer=str.split,
            token_pattern=None,
            lowercase=False,
            sublinear_tf=True,
            ngram_range=(1, self.word_ngrams),
            dtype=np.float64,
        )
        if self.model == "svm":
            model = load_package("sklearn.svm").LinearSVC(C=self.cost, random_state=seed % 2**32)
        else:
            model = load_package("sklearn.linear_model").LogisticRegression(C=self.cost, max_iter=1_000)
        pipeline = load_package("sklearn.pipeline").make_pipeline(counter, model)
        return FittedModel(join_words, pipeline.fit(lines, documents.labels))
