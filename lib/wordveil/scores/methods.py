"""The registry of attackers that name authors and of tasks on texts. Adding one is a file, and a line here.

An entry says where a method is and imports nothing. So configurations, which know of no measurement, take their names
from here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Method:
    """A :class:`wordveil.evaluation.classifiers.TextClassifier` with its default settings, imported when it is made.

    Attributes
    ----------
    path
        ``module:callable``.
    """

    path: str

    def __call__(self) -> Any:
        """Make the classifier."""
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)()


AUTHOR_ATTACKS = {
    "koppel": Method("wordveil.evaluation.attacks.koppel:Koppel"),
    "svm-characters": Method("wordveil.evaluation.attacks.linear:LinearSvm"),
    "svm-words": Method("wordveil.evaluation.attacks.linear:make_word_svm"),
    "continuous-ngrams": Method("wordveil.evaluation.attacks.continuous_ngrams:ContinuousNgrams"),
    "nearest-author": Method("wordveil.evaluation.attacks.nearest_author:NearestAuthor"),
}
"""Attackers that name authors, by their names (:attr:`wordveil.evaluation.classifiers.TextClassifier.name`)."""

TEXT_TASKS = {
    "fasttext": Method("wordveil.evaluation.utility.fasttext:FastText"),
    "linear-words": Method("wordveil.evaluation.utility.linear:LinearWords"),
    "logistic-words": Method("wordveil.evaluation.utility.linear:make_logistic"),
    "neighbours-mean": Method("wordveil.evaluation.utility.neighbours:NearestTexts"),
    "neighbours-emd": Method("wordveil.evaluation.utility.neighbours:make_emd"),
    "sentence-vectors": Method("wordveil.evaluation.utility.sentences:SentenceVectors"),
}
"""Classifiers of topics, sentiments and intents, by their names."""
