"""What can be measured of a mechanism: a statistic of a word's outputs, an attacker, a utility task.

:mod:`wordveil.evaluation.registry` lists the ones that exist. A new one is a file, and a line there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.evaluation.output_law import OutputLaw

Int32 = NDArray[np.int32]


class Statistic(Protocol):
    """A named figure of the outputs of a mechanism for one word."""

    name: ClassVar[str]

    def measure(self, law: OutputLaw) -> float:
        """The figure of the word whose output law is ``law``."""


class Attacker(Protocol):
    """Guesses words from what a mechanism drew for them, one token at a time.

    An attacker knows the mechanism: it is fitted on pairs that anyone can draw with their own keys.
    """

    name: ClassVar[str]

    @classmethod
    def fit(cls, words: Int32, drawn: Int32, size: int) -> Self:
        """Learn from pairs of a word and what was drawn for it.

        Parameters
        ----------
        words
            int32 ``(pairs,)``: ids of words, ``0 .. size - 1``. How often each is there is the attacker's prior.
        drawn
            int32 ``(pairs,)``: what was drawn for each; ``size`` is padding.
        size
            words of the vocabulary.

        Raises
        ------
        ValueError
            where there are no pairs, or where ids are out of range.
        """

    def predict(self, drawn: Int32) -> Int32:
        """The word that the attacker takes each output for: int32 ``(tokens,)`` for int32 ``(tokens,)``."""


@dataclass(frozen=True)
class LabelledTexts:
    """Texts as ragged token ids, each with a label.

    Attributes
    ----------
    ids
        int32 ``(tokens,)``; words ``0 .. size - 1``, then ``size`` for padding and ``size + 1`` for the unknown word.
    offsets
        int64 ``(texts + 1,)``, rising from 0 to ``tokens``.
    labels
        int64 ``(texts,)``, ``0 .. labels - 1``.
    size
        words of the vocabulary.
    """

    ids: Int32
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    size: int

    def __len__(self) -> int:
        return len(self.labels)


class UtilityTask(Protocol):
    """A task for which texts are used: it measures how useful sanitised texts still are."""

    name: ClassVar[str]

    @classmethod
    def train(cls, texts: LabelledTexts) -> Self:
        """Learn the task from texts, as a rule sanitised ones. Raises :class:`ValueError` where there are none."""

    def score(self, texts: LabelledTexts) -> float:
        """How well the task is done on texts that were not trained on, from 0 to 1; 1 is best.

        Raises :class:`ValueError` where there are no texts.
        """
