"""Classification of texts by multinomial naive Bayes: a utility task that needs nothing but token ids.

Manning, Raghavan, Schütze 2008, "Introduction to Information Retrieval", section 13.2: a text gets the label with the
largest ``log Pr[label] + sum over its words of log Pr[word | label]``, from counts with one added to each. Padding and
unknown words are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.evaluation.protocols import LabelledTexts, UtilityTask


@dataclass(frozen=True)
class NaiveBayes(UtilityTask):
    """See the module. The score is the accuracy: the share of texts with the right label.

    Attributes
    ----------
    labels
        float64 ``(labels,)``: logarithms of the labels' shares; minus infinity for one that no text had.
    words
        float64 ``(labels, size)``: logarithms of the words' shares under each label.
    """

    name: ClassVar[str] = "naive-bayes"
    labels: NDArray[np.float64]
    words: NDArray[np.float64]

    @classmethod
    def train(cls, texts: LabelledTexts) -> Self:
        _check_texts(texts)
        count = int(texts.labels.max()) + 1
        ids, label = texts.ids, np.repeat(texts.labels, np.diff(texts.offsets))
        known = ids < texts.size
        flat = np.bincount(label[known] * texts.size + ids[known], minlength=count * texts.size)
        words = flat.reshape(count, texts.size) + 1.0
        with np.errstate(divide="ignore"):
            shares = np.log(np.bincount(texts.labels, minlength=count) / len(texts))
        return cls(shares, np.log(words / words.sum(axis=1, keepdims=True)))

    def predict(self, texts: LabelledTexts) -> NDArray[np.int64]:
        """The label of each text: int64 ``(texts,)``; ties go to the lower label."""
        known = texts.ids < texts.size
        text = np.repeat(np.arange(len(texts)), np.diff(texts.offsets))[known]
        sums = [np.bincount(text, row[texts.ids[known]], len(texts)) for row in self.words]
        return np.asarray(np.argmax(self.labels[:, None] + np.stack(sums), axis=0))

    def score(self, texts: LabelledTexts) -> float:
        _check_texts(texts)
        return float(np.mean(self.predict(texts) == texts.labels))


def _check_texts(texts: LabelledTexts) -> None:
    if not len(texts) or len(texts.offsets) != len(texts) + 1 or texts.offsets[-1] != len(texts.ids):
        raise ValueError(
            f"Expected at least one text with a label each, got {len(texts)} labels, {len(texts.offsets)} offsets and "
            f"{len(texts.ids)} ids."
        )
