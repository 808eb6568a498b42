"""Laws of a mechanism: all words at once, for attackers; noise, a loss and an epsilon, for audits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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
