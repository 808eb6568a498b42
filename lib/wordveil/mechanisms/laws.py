"""Laws of a mechanism: all words at once, for attackers; noise, a loss and an epsilon, for audits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from wordveil.arrays import Float64, Int32, Int64, UInt64
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.euclidean import norms


@dataclass(frozen=True)
class WordLaws:
    """Output laws of all words: a law that all words share, and extra probabilities of each word.

    Word ``x`` becomes ``y`` with probability ``shares[x] * common[y]``, plus ``extras[j]`` if ``y`` is the output
    ``ids[j]`` of an entry ``j`` of ``x``. The entries of ``x`` are ``offsets[x]`` up to ``offsets[x + 1]``, with
    distinct outputs.

    ``common``: float64 ``(outputs,)``, sum 1. ``shares``: float64 ``(size,)``, from 0 to 1. ``offsets``: int64
    ``(size + 1,)``. ``ids``: int32 ``(entries,)``. ``extras``: float64 ``(entries,)``, positive.
    """

    common: Float64
    shares: Float64
    offsets: Int64
    ids: Int32
    extras: Float64


@dataclass(frozen=True)
class SymbolLaw:
    """Law of draws among symbols: clusters of words, or subjects of texts, and padding as the last one.

    A draw is uniform over the positions of a symbol's cluster at one of several levels, the lowest first: the symbol
    itself, and at the last level all. ``clusters``: int64 ``(levels, symbols)``, the number of each one's cluster.
    ``sizes``: int64 ``(symbols,)``, their positions. ``shares``: float64 ``(symbols, levels)``, the probability of each
    level; the rest is that of padding. ``padding``: the probability that padding stays, and does not become any
    position; None without padding, which the arrays do not have.
    """

    clusters: Int64
    sizes: Int64
    shares: Float64
    padding: float | None

    @classmethod
    def of_response(cls, epsilon: float, symbols: int) -> Self:
        """Make randomised response with a loss of ``epsilon`` over so many symbols (Warner 1965).

        Raises :class:`ValueError` for less than two symbols, and for an epsilon outside (0, inf).
        """
        if symbols < 2 or not 0 < epsilon < math.inf:
            raise ValueError(f"Expected at least 2 symbols and epsilon in (0, inf), got {symbols} and {epsilon}.")
        moved = symbols / (math.exp(epsilon) + symbols - 1)
        numbers = np.arange(symbols)
        shares = np.tile([1 - moved, moved], (symbols, 1))
        return cls(np.stack([numbers, np.zeros_like(numbers)]), np.ones_like(numbers), shares, None)

    @property
    def size(self) -> int:
        """Number of symbols, with padding."""
        return len(self.sizes) + (self.padding is not None)

    def stay_probabilities(self) -> Float64:
        """Compute the probability that each symbol stays itself: float64 ``(symbols,)``, without padding's."""
        positions = [np.bincount(level, self.sizes)[level] for level in self.clusters]
        return np.asarray((self.shares * self.sizes[:, None] / np.stack(positions, axis=1)).sum(axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without what follows from others: the first level, the last, equal rows."""
        rows, kinds = np.unique(self.shares, axis=0, return_inverse=True)
        return {
            "symbols": len(self.sizes),
            "sizes": [] if (self.sizes == self.sizes[0]).all() else self.sizes.tolist(),
            "levels": self.clusters[1:-1].tolist(),
            "shares": rows.tolist(),
            "kinds": [] if len(rows) == 1 else kinds.ravel().tolist(),
            "padding": self.padding,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_dict`; numbers may be strings. Raises :class:`ValueError` for values that are no law."""
        try:
            count = int(values["symbols"])
            numbers, levels = np.arange(count), [np.array(level, np.int64) for level in values["levels"]]
            shares = np.array([[float(share) for share in row] for row in values["shares"]])
            padding = None if values["padding"] is None else float(values["padding"])
            kinds = np.array(values["kinds"] or np.zeros(count), np.int64)
            law = cls(
                np.stack([numbers, *levels, np.zeros_like(numbers)]),
                np.array(values["sizes"] or np.ones(count), np.int64),
                shares[kinds],
                padding,
            )
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ValueError(f"Expected the law of symbols, got values without it ({type(error).__name__}).") from None
        rest = 1 - law.shares.sum(axis=1)
        is_law = (law.shares >= 0).all() and (rest > -1e-9).all() and (padding is not None or (rest < 1e-9).all())
        is_law &= padding is None or 0 <= padding <= 1
        is_law &= law.sizes.shape == (count,) and bool((law.sizes > 0).all() and (kinds >= 0).all())
        if not is_law or law.shares.shape != (count, len(law.clusters)):
            raise ValueError("Expected probabilities of levels that add up to 1, and sizes above 0.")
        return law


@dataclass(frozen=True)
class DrawnSymbols:
    """Numbers of what is drawn, which every written word tells, and their law.

    ``read``: int32 ``(size,)``, the symbol of each word of a text. ``written``: int32 ``(outputs,)``, the symbol for
    which an output is written, -1 for those that are never written; the last is padding, if there is any.
    """

    law: SymbolLaw
    read: Int32
    written: Int32

    @property
    def has_representatives(self) -> bool:
        """True if symbols are clusters of words, each of which is written as one word that stands for it."""
        used = self.written[self.written >= 0]
        return len(self.law.sizes) < len(self.read) and len(np.unique(used)) == len(used)


@dataclass(frozen=True)
class ExactLoss:
    """Largest loss between any two symbols in nats, exact except for rounding, with its reason as a sentence."""

    nats: float
    reason: str


@dataclass(frozen=True)
class Evidence:
    """Evidence from which an audit measures an epsilon.

    ``settings``: from the bundle's recipe. ``words``: int32 ``(words,)``, ids to measure. ``distances``: from a word to
    all words in the guarantee's metric, float64 ``(size,)``; infinite if unknown. ``cap``: the distance beyond which
    all count alike, or infinity. ``embedding``: that of the bundle, or None. ``loss``: the largest loss by the
    mechanism's probabilities, or None. ``alpha``: the probability with which draws may mislead. ``random_words``: draws
    independent uniform words, uint64 of a shape; equal ones each time.
    """

    settings: Mapping[str, Any]
    words: Int32
    distances: Callable[[int], Float64]
    cap: float
    embedding: Embedding | None
    loss: float | None
    alpha: float
    random_words: Callable[[tuple[int, int]], UInt64]


@dataclass(frozen=True)
class ShownEpsilon:
    """Interval for a mechanism's epsilon, as measured, and its justification."""

    low: float
    high: float
    shown_by: str


RadialLaw = Callable[[Float64, int, float], Float64]
"""``law(radii, n, epsilon)``: the distribution function of the radius, float64 in the shape of ``radii``, for noise in
``n`` dimensions at the configured epsilon.
"""


@dataclass(frozen=True)
class AdditiveNoise:
    """Noise of tokens: the distance and the direction in which it moves a word.

    ``radii``: float64 ``(count,)``, in the unit of the mechanism's metric. ``directions``: float64 ``(n, count)``, unit
    vectors.
    """

    radii: Float64
    directions: Float64

    @classmethod
    def of_vectors(cls, vectors: Float64) -> AdditiveNoise:
        """Make from noise vectors in a Euclidean space: float64 ``(n, count)``."""
        radii = norms(vectors)
        return cls(radii, vectors / radii)

    @classmethod
    def of_contractions(cls, t: Float64, rest: Float64, around: Float64) -> AdditiveNoise:
        """Make from noise in hyperbolic space.

        ``t``, ``rest``: ``exp(-2r)`` of a radius ``r`` and ``1 - exp(-2r)``, float64 ``(count,)``, of which the smaller
        is exact; ``around``: vectors in the noise's directions, float64 ``(n, count)``. A radius beyond float64 is
        infinite.
        """
        with np.errstate(divide="ignore"):
            logs = np.where(t < rest, np.log(t), np.log1p(-rest))
        return cls(-logs / 2, around / norms(around))
