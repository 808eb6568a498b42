"""The distances between a bundle's symbols, measured from points and not asked of the mechanism; pairs to test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wordveil.arrays import Float64
from wordveil.artifacts import content_store
from wordveil.artifacts.bundle import Bundle
from wordveil.audit.samplers import PairCounts, choose_pairs
from wordveil.audit.two_phase import Pair
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES, Space
from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.metrics import uncap

UNKNOWN, PADDING = "the unknown word", "padding"


@dataclass(frozen=True)
class SymbolSpace:
    """Where the symbols of a bundle lie.

    Attributes
    ----------
    size
        how many words there are; ``size`` is padding, ``size + 1`` the unknown word.
    padding
        whether padding is a symbol.
    guarantee
        what the bundle claims.
    space
        the metric of the points; None where the metric is discrete or the points are not at hand.
    points
        float64 ``(symbols, n)``, by symbol; empty where there is no metric of points. A symbol that is no row, or whose
        row is NaN, has no point: it counts as farther from all others than the diameter.
    names
        the words, for people.
    """

    size: int
    padding: bool
    guarantee: WordGuarantee
    names: Any
    space: Space | None = None
    points: Float64 = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def others(self) -> list[int]:
        """The symbols that are no words: the unknown word, and padding where it is one."""
        return [self.size + 1, *([self.size] if self.padding else [])]

    def distances(self, symbol: int) -> Float64:
        """The distance of each symbol, float64 ``(size + 2,)``: 0 to itself, infinite where it is not known."""
        found = np.full(self.size + 2, np.inf)
        if self.space is not None and symbol < len(self.points) and not np.isnan(self.points[symbol, 0]):
            apart = self.space.distances(self.points[symbol], self.points)
            found[: len(apart)] = np.where(np.isnan(apart), np.inf, apart)
        found[symbol] = 0.0
        return found

    def name(self, symbol: int) -> str:
        """A symbol for people: public, as all words of a vocabulary are."""
        if symbol >= self.size:
            return PADDING if symbol == self.size else UNKNOWN
        return f"'{self.names[symbol]}'"


def find_space(bundle: Bundle, embedding: Embedding | None) -> SymbolSpace:
    """Where the symbols of a bundle lie.

    Additive noise is private in the metric of the points that the bundle stores, and these are read. A table stores no
    points: they are those of the embedding, where that is at hand.

    Raises :class:`ValueError` where the embedding has other words than the bundle.
    """
    words = bundle.vocabulary.array.to_pylist()
    size = len(words)
    if embedding is not None and embedding.words.to_pylist() != words:
        raise ValueError(f"Expected an embedding with the bundle's {size:,} words, in their order.")
    found = SymbolSpace(size, bundle.padding, bundle.guarantee, words)
    arrays = content_store.map_arrays(bundle.path, bundle.manifest["content"]["files"])
    space = SPACES.get(uncap(bundle.guarantee.metric.name))
    if space is None:
        return found
    if "index" in arrays:
        return replace(found, space=space, points=arrays["index"][:, :-1].astype(np.float64))
    if "points" in arrays:
        return replace(found, space=space, points=_from_lorentz(arrays["points"]))
    if embedding is None:
        return found
    return replace(found, space=space, points=space.points(embedding.vectors))


def _from_lorentz(points: Float64) -> Float64:
    """Points of the ball by symbol; padding, which has none, is NaN. ``points``: words, then the unknown word."""
    ball = points[:, 1:] / (1.0 + points[:, :1])
    return np.concatenate([ball[:-1], np.full((1, ball.shape[1]), np.nan), ball[-1:]])


def choose_symbol_pairs(space: SymbolSpace, counts: PairCounts, seed: int) -> list[Pair]:
    """Choose pairs of words, of words with the unknown word and with padding, and of these two.

    ``counts``: how many of each kind. Where no distances are known, none are nearest or farthest. ``seed``: which
    words.
    """
    words = np.arange(space.size, dtype=np.int32)
    symbols = {
        name: symbol
        for name, symbol in (("unknown", space.size + 1), ("padding", space.size))
        if symbol in space.others
    }
    if space.space is None:
        counts = replace(counts, nearest=0, farthest=0, random=counts.random + counts.nearest)
    guarantee = space.guarantee
    pairs = choose_pairs(
        words,
        lambda word, others: space.distances(word)[others],
        guarantee.bound,
        counts=counts,
        seed=seed,
        delta=guarantee.delta,
        symbols=symbols,
    )
    both = [Pair(space.size + 1, space.size, 0.0, guarantee.delta, "padding")] if space.padding else []
    # The unknown word and padding have points too, where noise is added.
    return [
        replace(one, bound=guarantee.bound(float(space.distances(one.first)[one.second]))) for one in [*pairs, *both]
    ]
