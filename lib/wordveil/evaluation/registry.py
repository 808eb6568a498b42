"""The lists of statistics, attackers and utility tasks. Adding one is a file, and a line here."""

from __future__ import annotations

from collections.abc import Callable

from wordveil.evaluation.attackers import MaximumPosterior, NearestWord
from wordveil.evaluation.attacks.continuous_ngrams import ContinuousNgrams
from wordveil.evaluation.attacks.koppel import Koppel
from wordveil.evaluation.attacks.linear import LinearSvm, Unit
from wordveil.evaluation.attacks.nearest_author import NearestAuthor
from wordveil.evaluation.classifiers import TextClassifier
from wordveil.evaluation.protocols import Attacker, Statistic, UtilityTask
from wordveil.evaluation.statistics import (
    DistinctOutputs,
    KeepProbability,
    LargestEntropy,
    LeastEntropy,
    SupportSize,
)
from wordveil.evaluation.text_classification import NaiveBayes
from wordveil.evaluation.utility.fasttext import FastText
from wordveil.evaluation.utility.linear import LinearWords
from wordveil.evaluation.utility.neighbours import NearestTexts
from wordveil.evaluation.utility.sentences import SentenceVectors

_STATISTICS: tuple[Statistic, ...] = (
    KeepProbability(),
    SupportSize(),
    DistinctOutputs(),
    LargestEntropy(),
    LeastEntropy(),
)
_ATTACKERS: tuple[type[Attacker], ...] = (NearestWord, MaximumPosterior)
_UTILITY_TASKS: tuple[type[UtilityTask], ...] = (NaiveBayes,)

STATISTICS = {statistic.name: statistic for statistic in _STATISTICS}
ATTACKERS = {attacker.name: attacker for attacker in _ATTACKERS}
UTILITY_TASKS = {task.name: task for task in _UTILITY_TASKS}

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
