"""Attribution by n-grams with learned vectors.

Sari, Vlachos and Stevenson 2017, "Continuous n-gram representations for authorship attribution" (EACL, short papers):
each n-gram has a vector, a text is the mean of its n-grams' vectors, and a softmax over authors learns together with
the vectors. This is fastText's supervised model (:mod:`wordveil_research.methods.fasttext`), and the attacker of
Bo, Ding, Fung and Iqbal 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ClassVar

from wordveil.evaluation.classifiers import FittedModel, TextClassifier, join_words, take_known
from wordveil.scores.documents import Documents
from wordveil_research.methods.fasttext import FloretClassifier

_SPACE = "\u2581"
"""Replaces a space where characters are separated by spaces."""


class NgramUnit(StrEnum):
    """What n-grams are made of: characters of the whole text, words, or words and the characters inside them."""

    CHARACTERS = "characters"
    WORDS = "words"
    BOTH = "both"


@dataclass(frozen=True)
class ContinuousNgrams(TextClassifier):
    """The method of the module. Case is ignored.

    Attributes
    ----------
    unit
        what n-grams are made of: single words and pairs, single characters up to four, or single words and pairs with
        two to four characters inside words.
    dim, epochs, lr
        see :class:`wordveil_research.methods.fasttext.FloretClassifier`.
    """

    name: ClassVar[str] = "continuous-ngrams"
    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word"

    unit: NgramUnit = NgramUnit.WORDS
    dim: int = 20
    epochs: int = 50
    lr: float = 1.0

    @property
    def definition(self) -> str:
        units = "words and characters" if self.unit == NgramUnit.BOTH else self.unit
        return (
            f"Sari, Vlachos and Stevenson 2017: a softmax over authors of the mean of learned vectors of n-grams of "
            f"{units}, trained by floret."
        )

    def fit(self, known: Documents, seed: int) -> FittedModel:
        used = take_known(known)
        inside = (2, 4) if self.unit == NgramUnit.BOTH else (0, 0)
        longest = 4 if self.unit == NgramUnit.CHARACTERS else 2
        model = FloretClassifier(self.dim, self.epochs, self.lr, longest, *inside)
        write = partial(_write, unit=self.unit)
        return FittedModel(write, model.train(write(used.texts), used.labels, seed))


def _write(texts: Sequence[str], unit: NgramUnit) -> list[str]:
    """Write texts as units separated by spaces."""
    if unit == NgramUnit.CHARACTERS:
        return [" ".join(_SPACE.join(text.lower().split())) for text in texts]
    return join_words(texts)
