"""Space of a bundle's symbols, from its points or its embedding instead of the mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wordveil.arrays import Float64
from wordveil.artifacts import content_store
from wordveil.artifacts.bundle import Bundle
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES, Space
from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.metrics import uncap

UNKNOWN, PADDING = "the unknown word", "padding"


@dataclass(frozen=True)
class SymbolSpace:
    """Space of a bundle's symbols.

    ``size``: how many words there are; symbol ``size`` is padding, ``size + 1`` the unknown word. ``padding``: whether
    padding is a symbol. ``guarantee``: what the bundle claims. ``names``: the words. ``space``: the metric of the
    points; None where the metric is discrete or the points are missing. ``points``: float64 ``(symbols, n)``, by
    symbol; empty where there is no metric of points. A symbol that has no row, or whose row is NaN, has no point: it
    counts as farther from all others than the diameter.
    """

    size: int
    padding: bool
    guarantee: WordGuarantee
    names: Any
    space: Space | None = None
    points: Float64 = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def others(self) -> list[int]:
        """Symbols that are not words: the unknown word, and padding if it is a symbol."""
        return [self.size + 1, *([self.size] if self.padding else [])]

    def distances(self, symbol: int) -> Float64:
        """Compute the distance of each symbol, float64 ``(size + 2,)``: 0 to itself, infinite if it is not known."""
        distances = np.full(self.size + 2, np.inf)
        if self.space is not None and symbol < len(self.points) and not np.isnan(self.points[symbol, 0]):
            apart = self.space.distances(self.points[symbol], self.points)
            distances[: len(apart)] = np.where(np.isnan(apart), np.inf, apart)
        distances[symbol] = 0.0
        return distances

    def spell(self, symbol: int) -> str:
        """Spell a symbol for people: public, as all words of a vocabulary are."""
        if symbol >= self.size:
            return PADDING if symbol == self.size else UNKNOWN
        return str(self.names[symbol])

    def name(self, symbol: int) -> str:
        """Spell a symbol with quotes around a word."""
        return self.spell(symbol) if symbol >= self.size else f"'{self.spell(symbol)}'"


def stores_points(bundle: Bundle) -> bool:
    """Return whether the bundle itself has the points of its words, or no distance depends on points."""
    return not {"index", "points"}.isdisjoint(bundle.manifest["content"]["files"]) or (
        uncap(bundle.guarantee.metric.name) not in SPACES
    )


def find_space(bundle: Bundle, embedding: Embedding | None) -> SymbolSpace:
    """Find the space of a bundle's symbols.

    Additive noise is private in the metric of the points that the bundle stores, so these are used. A table stores no
    points: they come from the embedding, if there is one.

    Raises :class:`ValueError` if the embedding has other words than the bundle.
    """
    words = bundle.vocabulary.array.to_pylist()
    if embedding is not None and embedding.words.to_pylist() != words:
        raise ValueError(f"Expected an embedding with the bundle's {len(words):,} words, in their order.")
    symbols = SymbolSpace(len(words), bundle.padding, bundle.guarantee, words)
    arrays = content_store.map_arrays(bundle.path, bundle.manifest["content"]["files"])
    space = SPACES.get(uncap(bundle.guarantee.metric.name))
    if space is None:
        return symbols
    if "index" in arrays:
        return replace(symbols, space=space, points=arrays["index"][:, :-1].astype(np.float64))
    if "points" in arrays:
        return replace(symbols, space=space, points=_from_lorentz(arrays["points"]))
    return symbols if embedding is None else replace(symbols, space=space, points=space.points(embedding.vectors))


def _from_lorentz(points: Float64) -> Float64:
    """Convert to points of the ball by symbol, NaN for padding, which has none. ``points``: words, then the unknown
    word.
    """
    ball = points[:, 1:] / (1.0 + points[:, :1])
    return np.concatenate([ball[:-1], np.full((1, ball.shape[1]), np.nan), ball[-1:]])
