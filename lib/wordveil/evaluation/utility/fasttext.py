"""Topics by fastText's classifier: Joulin, Grave, Bojanowski, Mikolov 2017, "Bag of tricks for efficient text
classification". It is trained by floret (:mod:`wordveil.evaluation.utility.floret_model` says why).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from wordveil.evaluation.classifiers import FittedClassifier, TextClassifier
from wordveil.evaluation.utility.floret_model import FittedFloret, FloretClassifier
from wordveil.evaluation.utility.words import cut_words, take_known
from wordveil.scores.documents import Documents, Int64

_SETTINGS = FloretClassifier(dim=10, epochs=25, lr=0.5, word_ngrams=2)


@dataclass(frozen=True)
class FastText(TextClassifier):
    """The method of the module.

    ``settings``: of floret. The paper takes 10 dimensions, bigrams, 5 epochs and rates of 0.05 to 0.5 for topics and
    sentiments; data sets of a hundredth of its texts need more epochs, 25 by default.
    """

    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word"

    settings: FloretClassifier = _SETTINGS

    @property
    def name(self) -> str:
        return "fasttext"

    @property
    def definition(self) -> str:
        runs = "words" if self.settings.word_ngrams == 1 else f"runs of 1 to {self.settings.word_ngrams} words"
        return (
            f"A linear softmax classifier over the mean of learned vectors of {runs} (Joulin et al. 2017), by floret."
        )

    def fit(self, known: Documents, seed: int) -> FittedFastText:
        """As the protocol has it; raises :class:`ValueError` also where no text has a word, and :class:`PlatformError`
        where floret is not installed.
        """
        documents = take_known(known)
        lines = cut_words(documents.texts).join()
        return FittedFastText(self.settings.train(lines, documents.labels, seed))


@dataclass(frozen=True)
class FittedFastText(FittedClassifier):
    """A trained :class:`FastText`."""

    model: FittedFloret

    def predict(self, texts: Sequence[str]) -> Int64:
        return self.model.predict(cut_words(texts).join())
