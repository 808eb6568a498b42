"""Protocol of classifiers of texts: an attacker names authors, a task names topics.

A classifier whose labels are authors is an attacker. A *static* attacker learns from clean text, an *adaptive* one from
text that was sanitised in the same way under a throwaway key. Only the adaptive one measures protection: the mechanism
is public.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from wordveil.arrays import Float64, Int64
from wordveil.scores.documents import UNKNOWN, Documents


class FittedClassifier(Protocol):
    """Classifier that names the label of a text."""

    def predict(self, texts: Sequence[str]) -> Int64:
        """Predict the label of each text: int64 ``(texts,)``, numbers of the names that it was fitted with.

        The number is :data:`wordveil.scores.documents.UNKNOWN` if it refuses to guess.
        """


@dataclass(frozen=True)
class FittedModel(FittedClassifier):
    """Model of another library. ``prepare`` turns texts into the input of the model's ``predict``."""

    prepare: Callable[[Sequence[str]], Any]
    model: Any

    def predict(self, texts: Sequence[str]) -> Int64:
        # scikit-learn refuses to predict nothing.
        return np.asarray(self.model.predict(self.prepare(texts)) if len(texts) else [], np.int64)


class Scored(NamedTuple):
    """The named labels, and the share of votes that each won.

    ``labels``: int64 ``(texts,)``, numbers of names, or :data:`wordveil.scores.documents.UNKNOWN` where no label won a
    vote. ``shares``: float64 ``(texts,)``, from 0 to 1.
    """

    labels: Int64
    shares: Float64


@dataclass(frozen=True)
class RefusingClassifier(FittedClassifier):
    """Answers only where a label wins more than ``threshold`` of the votes."""

    threshold: float

    @abstractmethod
    def score(self, texts: Sequence[str]) -> Scored:
        """Return the label of most votes, whatever its share, and that share."""

    def predict(self, texts: Sequence[str]) -> Int64:
        scored = self.score(texts)
        return np.where(scored.shares > self.threshold, scored.labels, UNKNOWN)


class TextClassifier(Protocol):
    """Way to classify texts, with its settings: a frozen dataclass."""

    needs_embedding: ClassVar[bool] = False
    """Whether it uses word vectors. Then it has a field ``embedding``, which takes the mechanism's."""
    refuses: ClassVar[str] = "texts of fewer than two labels"
    """The texts that it cannot learn from, for people. :meth:`fit` raises :class:`ValueError` for these."""

    @property
    def name(self) -> str:
        """Name in configurations and reports: words joined by hyphens."""

    @property
    def definition(self) -> str:
        """Definition of its method, in one sentence, with its paper or library."""

    def fit(self, known: Documents, seed: int) -> FittedClassifier:
        """Learn from the texts whose label is known. The same seed gives the same classifier. Raises
        :class:`ValueError` if fewer than two labels have texts.
        """
