"""Attribution by the nearest known text in the mechanism's representation.

Fernandes, Dras and McIver 2019, "Generalised differential privacy for text document processing" (POST): a text is a bag
of word vectors, and its author is that of the nearest known text. Distances are those of mean vectors, which bound the
Earth Mover's distance of the bags from below (Kusner et al. 2015, "From word embeddings to document distances",
section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wordveil.arrays import Float64, Int64
from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.evaluation.classifiers import FittedClassifier, TextClassifier, take_known
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.methods.bags import WordVectors
from wordveil_research.methods.neighbours import find_nearest


@dataclass(frozen=True)
class NearestAuthor(TextClassifier):
    """The method of the module.

    ``embedding``: the mechanism's, or another public one; None for the demo embedding.
    """

    name: ClassVar[str] = "nearest-author"
    definition: ClassVar[str] = (
        "Fernandes, Dras and McIver 2019: the author of the known text whose mean word vector is nearest, by "
        "Euclidean distance."
    )
    needs_embedding: ClassVar[bool] = True
    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word of the embedding"

    embedding: Embedding | None = None

    def fit(self, known: Documents, seed: int) -> FittedNearestAuthor:  # noqa: ARG002 - nothing is drawn
        """See :class:`TextClassifier`. Also raises :class:`ValueError` where no text has a word of the embedding."""
        used = take_known(known)
        vectors = WordVectors(self.embedding or load(DEMO))
        bags = vectors.make_bags(used.texts)
        has_words = bags.sizes > 0
        if not has_words.any():
            raise ValueError("Expected at least one text with a word of the embedding to learn from.")
        return FittedNearestAuthor(vectors, bags.average(vectors.vectors)[has_words], used.labels[has_words])


@dataclass(frozen=True)
class FittedNearestAuthor(FittedClassifier):
    """Known texts: their mean vectors, float64 ``(texts, dimension)``, and their authors."""

    vectors: WordVectors
    means: Float64
    labels: Int64

    def predict(self, texts: Sequence[str]) -> Int64:
        """Predict the author of the nearest known text, the first of equals. Unknown where a text has no known word."""
        bags = self.vectors.make_bags(texts)
        nearest = find_nearest(bags.average(self.vectors.vectors), self.means, 1)[:, 0]
        return np.where(bags.sizes > 0, self.labels[nearest], UNKNOWN)
