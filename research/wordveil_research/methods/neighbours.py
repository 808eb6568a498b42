"""Topics by the labels of the nearest texts, as in Fernandes, Dras, McIver 2018 and 2019 (section on topics).

The five nearest known texts vote: nearest by the distance of mean vectors, or by the exact Earth Mover's distance
(:mod:`wordveil_research.methods.emd`). Of labels with equal votes that of the nearest text wins. Words that the
embedding lacks are left out, and a text without any known word gets the most frequent label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from wordveil.arrays import Float64, Int64
from wordveil.embeddings.embedding import DEMO, Embedding, load
from wordveil.evaluation.classifiers import FittedClassifier, TextClassifier, take_known
from wordveil.scores.documents import Documents
from wordveil_research.methods.bags import Bags, WordVectors
from wordveil_research.methods.emd import MoverIndex

NEIGHBOURS = 5
_CELLS = 2**22
"""Distances that are in memory at once."""


@dataclass(frozen=True)
class NearestTexts(TextClassifier):
    """The method of the module.

    ``embedding``: a public one, such as the mechanism's; None for the demo embedding. ``distance``: ``mean``: the
    Euclidean distance of mean vectors. ``emd``: the Earth Mover's distance. ``count``: how many known texts vote.
    """

    needs_embedding: ClassVar[bool] = True
    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word of the embedding"

    embedding: Embedding | None = None
    distance: Literal["mean", "emd"] = "mean"
    count: int = NEIGHBOURS

    @property
    def name(self) -> str:
        return f"neighbours-{self.distance}"

    @property
    def definition(self) -> str:
        by = "Euclidean distance of mean vectors" if self.distance == "mean" else "exact Earth Mover's distance (POT)"
        return f"The label of most of the {self.count} nearest training texts by {by}, as in Fernandes et al. 2019."

    def fit(self, known: Documents, seed: int) -> FittedNearestTexts:  # noqa: ARG002 -- nothing is drawn
        """See :class:`TextClassifier`. Also raises :class:`ValueError` where no text has a word of the embedding."""
        documents = take_known(known)
        vectors = WordVectors(self.embedding or load(DEMO))
        bags = vectors.make_bags(documents.texts)
        if not len(bags.ids):
            raise ValueError("Expected at least one text with a word of the embedding to learn from.")
        fallback = int(np.argmax(np.bincount(documents.labels)))
        return FittedNearestTexts(self, vectors, bags, documents.labels, fallback)


def make_emd() -> NearestTexts:
    """Make the task that measures by the Earth Mover's distance."""
    return NearestTexts(distance="emd")


@dataclass(frozen=True)
class FittedNearestTexts(FittedClassifier):
    """Known texts with their labels. ``fallback``: the most frequent label."""

    settings: NearestTexts
    vectors: WordVectors
    bags: Bags
    labels: Int64
    fallback: int

    def predict(self, texts: Sequence[str]) -> Int64:
        """Predict the label of each text. The time is proportional to texts times known texts; the Earth Mover's
        distance is computed for a few known texts each.
        """
        bags = self.vectors.make_bags(texts)
        guessed = np.full(len(texts), self.fallback, np.int64)
        filled = np.flatnonzero(bags.sizes > 0)
        find = self._find_by_mean if self.settings.distance == "mean" else self._find_by_emd
        if len(filled):
            guessed[filled] = count_votes(self.labels[find(bags, filled)])
        return guessed

    def _find_by_mean(self, bags: Bags, filled: Int64) -> Int64:
        known = np.flatnonzero(self.bags.sizes > 0)
        means = self.bags.average(self.vectors.vectors)[known]
        asked = bags.average(self.vectors.vectors)[filled]
        return known[find_nearest(asked, means, self.settings.count)]

    def _find_by_emd(self, bags: Bags, filled: Int64) -> Int64:
        index = MoverIndex(self.bags, self.vectors.vectors)
        return np.stack([index.search(*bags.words_of(text), self.settings.count).texts for text in filled.tolist()])


def find_nearest(asked: Float64, known: Float64, count: int) -> Int64:
    """Find the indices of the nearest known points, the nearest first: int64 ``(asked, min(count, known))``. At equal
    distances the lower index comes first.

    ``asked``, ``known``: float64 ``(points, dimension)``.
    """
    lengths, step = np.einsum("ij,ij->i", known, known), max(1, _CELLS // max(1, len(known)))
    nearest = np.empty((len(asked), min(count, len(known))), np.int64)
    for start in range(0, len(asked), step):
        squares = lengths - 2 * (asked[start : start + step] @ known.T)
        nearest[start : start + step] = np.argsort(squares, axis=1, kind="stable")[:, :count]
    return nearest


def count_votes(labels: Int64) -> Int64:
    """Count the most frequent label of each row; of equally frequent ones the first in the row.

    ``labels``: int64 ``(texts, neighbours)``, the nearest neighbour's first.
    """
    votes = (labels[:, :, None] == labels[:, None, :]).sum(axis=2)
    return np.asarray(labels[np.arange(len(labels)), np.argmax(votes, axis=1)])
