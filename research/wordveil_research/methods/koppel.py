"""Attribution among many authors by random subsets of features.

Koppel, Schler and Argamon 2011, "Authorship attribution in the wild", Language Resources and Evaluation 45: texts are
vectors of the frequencies of space-free character 4-grams. Each of ``iterations`` rounds uses a random ``share`` of the
features, and the author whose known text has the largest cosine with the snippet wins the round. The author who wins
most rounds is named if the share of rounds exceeds ``threshold``; otherwise the answer is "don't know". The paper has
100 rounds, 40% of the 100,000 most frequent features, 2,000 words of known text and snippets of 500 words.

All rounds of a snippet are one matrix product: its features by authors, weighted, with its features by rounds, 0 or 1.
All entries are whole numbers, and their sums stay below 2^53, so they are exact in any order of summation. A block of
authors therefore gives the same cosines as all authors do, and blocks can be merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import coo_array, csr_array

from wordveil.arrays import Float64, Int64, UInt8
from wordveil.evaluation.classifiers import RefusingClassifier, Scored, TextClassifier, take_known
from wordveil.scores.documents import UNKNOWN, Documents
from wordveil_research.methods.space_free import FeatureCounts, count_features

_EXACT = 2.0**53
_UNIT = 256
"""Steps of 1 in the squares of inverse document frequencies, which are rounded so that products are whole."""
_DENSE_BYTES = 2**28


class Weights(StrEnum):
    """What an entry of a text's vector is."""

    FREQUENCY = "frequency"
    TF_IDF = "tf-idf"


class Winners(NamedTuple):
    """The winner of each round.

    ``cosines``: float64 ``(texts, rounds)``, of the snippet with the winner's text, times the length of the snippet's
    vector; 0 where nothing is shared. ``labels``: int64 ``(texts, rounds)``, numbers of names; ``UNKNOWN`` where
    nothing is shared.
    """

    cosines: Float64
    labels: Int64

    def score(self, names: int) -> Scored:
        """Return the authors who win most rounds. Ties go to the lower number. ``names``: how many there are."""
        texts, rounds = self.labels.shape
        # One column more for rounds that nobody won.
        flat = (np.arange(texts)[:, None] * (names + 1) + self.labels + 1).ravel()
        wins = np.bincount(flat, minlength=texts * (names + 1)).reshape(texts, names + 1)[:, 1:]
        best = wins.argmax(axis=1) if names else np.zeros(texts, np.int64)
        shares = wins[np.arange(texts), best] / rounds if names else np.zeros(texts)
        return Scored(np.where(shares > 0, best, UNKNOWN), shares)


@dataclass(frozen=True)
class Subspace:
    """The features, and the rounds that use each.

    Attributes
    ----------
    codes
        int64 ``(features,)``, rising: numbers of features (:mod:`wordveil_research.methods.space_free`).
    weights
        float64 ``(features,)``, whole numbers: the squares of the weights of features, in one unit.
    masks
        uint8 ``(features, rounds)``: 1 where a round uses a feature.
    lower
        whether case is ignored.
    """

    codes: Int64
    weights: Float64
    masks: UInt8
    lower: bool

    def count(self, texts: Sequence[str]) -> csr_array:
        """Return how often each text has each feature: float64 ``(texts, features)``."""
        return count_features(texts, self.codes, lower=self.lower)


@dataclass(frozen=True)
class Koppel(TextClassifier):
    """The method of the module.

    Attributes
    ----------
    iterations
        rounds, at least 1.
    share
        the share of the features that a round uses, above 0 and at most 1.
    threshold
        the share of rounds that the named author must exceed, from 0 to below 1. 0 always answers.
    features
        how many features, the most frequent ones of the known texts.
    weights
        what an entry of a vector is: the frequency, as in the paper, or the frequency times
        ``1 + ln((1 + texts) / (1 + texts with the feature))``, which names more authors on every corpus measured here.
    lower
        whether case is ignored. Mechanisms usually write lower case, and an attacker knows that.

    Raises
    ------
    ValueError
        for settings outside these.
    """

    name: ClassVar[str] = "koppel"
    refuses: ClassVar[str] = "texts of fewer than two labels, and texts without a word"

    iterations: int = 100
    share: float = 0.4
    threshold: float = 0.9
    features: int = 100_000
    weights: Weights = Weights.TF_IDF
    lower: bool = True

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.features < 1:
            raise ValueError(
                f"Expected at least one iteration and feature, got iterations={self.iterations}, "
                f"features={self.features}."
            )
        if not 0 < self.share <= 1:
            raise ValueError(f"Expected 0 < share <= 1, got share={self.share}.")
        if not 0 <= self.threshold < 1:
            raise ValueError(f"Expected 0 <= threshold < 1, got threshold={self.threshold}.")

    @property
    def definition(self) -> str:
        return (
            f"Koppel, Schler and Argamon 2011: of {self.iterations} rounds over a random {self.share:.0%} of the "
            f"space-free character 4-grams, the author whose known text has the largest cosine most often."
        )

    def fit(self, known: Documents, seed: int) -> FittedKoppel:
        used = take_known(known)
        chosen = FeatureCounts.of(used.texts, lower=self.lower).take_most_frequent(self.features)
        space = self.make_subspace(chosen, len(used), seed)
        profiles = Profiles.of(space, space.count(used.texts), used.labels)
        return FittedKoppel(self.threshold, profiles, len(known.names))

    def make_subspace(self, chosen: FeatureCounts, texts: int, seed: int) -> Subspace:
        """Make the features with their weights and rounds. ``chosen``: the features of ``texts`` known texts."""
        weights = np.ones(len(chosen.codes))
        if self.weights == Weights.TF_IDF:
            weights = np.rint(_UNIT * (1 + np.log((1 + texts) / (1 + chosen.texts))) ** 2)
        taken = max(1, round(self.share * len(weights)))
        generator = np.random.Generator(np.random.PCG64(seed))
        masks = np.zeros((len(weights), self.iterations), np.uint8)
        for turn in range(self.iterations):
            masks[generator.permutation(len(weights))[:taken], turn] = 1
        return Subspace(chosen.codes, weights, masks, self.lower)


@dataclass(frozen=True)
class Profiles:
    """Known texts of some authors, one vector each.

    Attributes
    ----------
    space
        the features.
    labels
        int64 ``(authors,)``, rising: the authors' numbers.
    entries
        ``(features, authors)``, whole numbers: counts times :attr:`Subspace.weights`. An array where it is small.
    norms
        float64 ``(rounds, authors)``: the lengths of the vectors; infinite where they are 0.
    """

    space: Subspace
    labels: Int64
    entries: Float64 | csr_array
    norms: Float64

    @classmethod
    def of(cls, space: Subspace, counts: csr_array, labels: Int64) -> Self:
        """Make the sums of texts by author.

        ``counts``: :meth:`Subspace.count` of the texts. ``labels``: int64 ``(texts,)``, their authors. Raises
        :class:`ValueError` where a sum of squares reaches 2^53: such texts are too long for exact sums.
        """
        # The paper has one known text for each author, so an author's counts are added: a product with a 0/1 matrix.
        present, numbers = np.unique(labels, return_inverse=True)
        grouping = coo_array((np.ones(len(labels)), (numbers, np.arange(len(labels)))), (len(present), len(labels)))
        sums = (grouping.tocsr() @ counts).tocsr()
        # `space.weights` are squares, so plain counts times weighted ones give the inner product of weighted vectors.
        weighted = sums.multiply(space.weights[None, :]).tocsr()
        squares = weighted.multiply(sums).tocsr()
        if squares.sum(axis=1).max(initial=0.0) >= _EXACT:
            raise ValueError("Expected known texts whose sum of squared counts is below 2^53. Use less of each author.")
        # A cosine needs the length over the features of its own round only. Infinity gives empty profiles the cosine 0.
        norms = np.sqrt((squares @ space.masks.astype(np.float64)).T)
        norms[norms == 0] = np.inf
        entries = weighted.T.tocsr()
        is_small = len(space.codes) * len(present) * 8 <= _DENSE_BYTES
        return cls(space, present, entries.toarray() if is_small else entries, norms)

    def find_winners(self, counts: csr_array) -> Winners:
        """Find the best of these authors for each snippet and round; ties go to the lower number.

        ``counts``: :meth:`Subspace.count` of the snippets.
        """
        shape = (counts.shape[0], self.space.masks.shape[1])
        cosines, labels = np.zeros(shape), np.full(shape, UNKNOWN, np.int64)
        for row in range(len(cosines) if len(self.labels) else 0):
            part = slice(counts.indptr[row], counts.indptr[row + 1])
            features = counts.indices[part]
            entries = self.entries[features]
            products = counts.data[part, None] * (entries.toarray() if isinstance(entries, csr_array) else entries)
            similarities = (self.space.masks[features].T.astype(np.float64) @ products) / self.norms
            best = similarities.argmax(axis=1)
            cosines[row] = similarities[np.arange(len(best)), best]
            labels[row] = np.where(cosines[row] > 0, self.labels[best], UNKNOWN)
        return Winners(cosines, labels)


@dataclass(frozen=True)
class FittedKoppel(RefusingClassifier):
    """Authors whose known texts were read. ``names``: how many names there are, authors without texts included."""

    profiles: Profiles
    names: int

    def score(self, texts: Sequence[str]) -> Scored:
        """Return the author who wins most rounds, whatever the share, and that share."""
        return self.profiles.find_winners(self.profiles.space.count(texts)).score(self.names)
