"""The lists of attackers that name authors and of tasks on texts. Adding one is a file, and a line here."""

from __future__ import annotations

from collections.abc import Callable

from wordveil.evaluation.attacks.continuous_ngrams import ContinuousNgrams
from wordveil.evaluation.attacks.koppel import Koppel
from wordveil.evaluation.attacks.linear import LinearSvm, Unit
from wordveil.evaluation.attacks.nearest_author import NearestAuthor
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.utility.fasttext import FastText
from wordveil.evaluation.utility.linear import LinearWords
from wordveil.evaluation.utility.neighbours import NearestTexts
from wordveil.evaluation.utility.sentences import SentenceVectors

AUTHOR_ATTACKS: dict[str, Callable[[], TextClassifier]] = {
    "koppel": Koppel,
    "svm-characters": LinearSvm,
    "svm-words": lambda: LinearSvm(Unit.WORDS),
    "continuous-ngrams": ContinuousNgrams,
    "nearest-author": NearestAuthor,
}
"""Attackers that name authors, with their default settings, by :attr:`TextClassifier.name`. Where the mechanism's
embedding is at hand, ``NearestAuthor(embedding)`` is the attacker of its representation.
"""

TEXT_TASKS: dict[str, Callable[[], TextClassifier]] = {
    "fasttext": FastText,
    "linear-words": LinearWords,
    "logistic-words": lambda: LinearWords("logistic"),
    "neighbours-mean": NearestTexts,
    "neighbours-emd": lambda: NearestTexts(distance="emd"),
    "sentence-vectors": SentenceVectors,
}
"""Classifiers of topics, sentiments and intents, with their default settings, by :attr:`TextClassifier.name`. Where the
mechanism's embedding is at hand, the last three take it as ``embedding``.
"""
