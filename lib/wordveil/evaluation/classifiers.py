"""The protocol of classifiers of texts: an attacker names authors, a task names topics.

A classifier whose labels are authors is an attacker. A *static* attacker learns from clean text, an *adaptive* one from
text that was sanitised in the same way under a throwaway key. Only the adaptive one says something about protection:
an attacker knows the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from wordveil.arrays import Int64
from wordveil.scores.documents import Documents


class FittedClassifier(Protocol):
    """Names the label of a text."""

    def predict(self, texts: Sequence[str]) -> Int64:
        """The label of each text: int64 ``(texts,)``, numbers of the names that it was fitted with, or
        :data:`wordveil.scores.documents.UNKNOWN` where it refuses to guess.
        """


@dataclass(frozen=True)
class FittedModel(FittedClassifier):
    """A model of another library. ``prepare`` turns texts into what the model's ``predict`` reads."""

    prepare: Callable[[Sequence[str]], Any]
    model: Any

    def predict(self, texts: Sequence[str]) -> Int64:
        # scikit-learn refuses to predict nothing.
        return np.asarray(self.model.predict(self.prepare(texts)) if len(texts) else [], np.int64)


class TextClassifier(Protocol):
    """A way to classify texts, with its settings: a frozen dataclass."""

    needs_embedding: ClassVar[bool] = False
    """Whether it uses word vectors. Then it has a field ``embedding``, which takes the mechanism's."""
    refuses: ClassVar[str] = "texts of fewer than two labels"
    """The texts that it cannot learn from, for people. :meth:`fit` raises :class:`ValueError` for these."""

    @property
    def name(self) -> str:
        """Its name in configurations and reports: words joined by hyphens."""

    @property
    def definition(self) -> str:
        """What it does, in one sentence, with its paper or library."""

    def fit(self, known: Documents, seed: int) -> FittedClassifier:
        """Learn from the texts whose label is known. The same seed gives the same classifier. Raises
        :class:`ValueError` where fewer than two labels have texts.
        """
