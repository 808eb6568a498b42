"""Noise on Poincare embeddings: two additive mechanisms in hyperbolic space.

Feyisetan, Diethe, Drake 2019. A word's point ``w`` of hyperbolic space H^n is moved by noise at distance ``r`` from the origin in a uniform
direction, by the isometry that takes the origin to ``w``; the word nearest to where it lands is the output. So the noisy point lies
at distance ``r`` from ``w``, and its density with respect to hyperbolic volume is a function ``f`` of its distance from ``w`` alone:

``hyperbolic-laplace``: ``f(r) ~ exp(-epsilon r)``. By the triangle inequality exactly ``epsilon d_H``-private, and no better. Volume grows as
    ``sinh^{n-1} r``, so that this is a distribution iff ``epsilon > n - 1``; its radius has ``exp(-2r) ~ Beta((epsilon - n + 1)/2, n)``.
``hyperbolic-fdd``: the paper's Eq. 7, ``exp(-epsilon r)`` with respect to Lebesgue measure in the ball, where ``dx = (cosh(r/2))^{-2n} dV`` up to a
    constant: ``f(r) ~ exp(-epsilon r) sech^{2n}(r/2)``. As ``-(ln f)' = epsilon + n tanh(r/2)`` rises to ``epsilon + n``, this is
    ``(epsilon + n) d_H``-private and no better: what the paper calls epsilon costs ``n`` more for each unit of distance. It exists for every epsilon.
    The ball's radius ``rho`` has density ``~ rho^{n-1} ((1 - rho)/(1 + rho))^epsilon`` and is drawn exactly, by rejection.

No mechanism of this kind has a constant below ``n - 1``: docs/guarantees.md.

The noise is kept as the time-like vector ``q = (1 + t, (1 - t) U) / 2``, ``t = exp(-2r)``, which is the hyperboloid's point scaled by
``exp(-r)``. A boost is linear, and the nearest word does not depend on the query's scale. So no radius is too large: the point itself is never formed.

The unknown word enters as the origin. There is no padding: it would need a point that no other word is near.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import exp10, expm1, gammaincinv, log1p, ndtri, xlogy

from wordveil.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import FloatArray, norms
from wordveil.geometry.hyperbolic import boost, diameter, to_lorentz
from wordveil.geometry.spaces import SPACES
from wordveil.keys import ReleaseKeys, Secret
from wordveil.mechanisms.base import NO_FILES, Built, Mechanism, TokenBatch
from wordveil.mechanisms.tabled import points_of
from wordveil.neighbours.blocks import Workshop
from wordveil.neighbours.exact import LorentzNearest
from wordveil.privacy.guarantees import WordGuarantee
from wordveil.privacy.metrics import Metric
from wordveil.randomness import CONTEXT_BYTES, Contexts, KeyedStream, max_positions

# Tokens whose noise is in memory at once: one block of the search.
_CHUNK = 768
_UNPROVED = 2.0**-53
_LEAST_EPSILON, _MOST_EPSILON = 1e-9, 1e9
# Of these attempts at a radius at most half fail: the last is taken with a probability below 2^-63.
_ATTEMPTS = 64
_WORDS = 1000
_MANY_STAY = 0.95
# Public, so that whoever builds the same bundle measures the same share. No key of a release comes from it.
_PUBLIC_KEY = Secret(sha256(b"wordveil: noise on public words, to see how many stay").digest())


class _Hyperbolic(Mechanism):
    """What both have in common. Array ``points``: float64 ``(size + 1, n + 1)``, Lorentz coordinates of words and unknown word."""

    sampler_version = 1

    def __init__(self, size: int, epsilon: float, points: FloatArray) -> None:
        self._dimension = points.shape[1] - 1
        _check_epsilon(epsilon)
        self.check(epsilon, self._dimension)
        self._size = size
        self._epsilon = epsilon
        self._points = points
        self._nearest = LorentzNearest(points[:size])
        self._direction_blocks = (self._dimension + 1) // 2
        self._blocks = self._direction_blocks + self.radius_blocks(self._dimension)

    @classmethod
    def check(cls, epsilon: float, dimension: int) -> None:
        """Raise :class:`ValueError` where there is no such noise in ``dimension`` dimensions."""

    @classmethod
    @abstractmethod
    def true_epsilon(cls, epsilon: float, dimension: int) -> float:
        """What is true, per unit of hyperbolic distance, where ``epsilon`` is configured."""

    @classmethod
    def radius_blocks(cls, dimension: int) -> int:
        """Blocks of two uniforms that a radius may need."""
        return (dimension + 1) // 2

    @abstractmethod
    def contractions(self, stream: KeyedStream, context: Contexts, position: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """``t = exp(-2r)`` and ``1 - t`` of the noise of each token, float64 ``(count,)`` each."""

    @classmethod
    def build(cls, embedding: Embedding, settings: Mapping[str, Any], *, padding: bool, work: Workshop) -> Built:
        epsilon, dimension = float(settings["epsilon"]), embedding.dimension
        _check_epsilon(epsilon)
        try:
            cls.check(epsilon, dimension)
        except ValueError as error:
            raise BundleError(f"mechanism.epsilon = {epsilon:g}: {error}") from None
        if padding:
            raise BundleError(f"text.length = pad: {NO_PADDING}")
        ball = points_of(SPACES["hyperbolic"], embedding, f"mechanism.name = {cls.name}")
        work.progress("measuring the embedding's hyperbolic diameter")
        largest = diameter(ball)
        work.progress("writing the search index")
        points = to_lorentz(np.concatenate([ball, np.zeros((1, dimension))]).T).T
        digest = sha256(f"{ball.shape}".encode())
        digest.update(np.ascontiguousarray(ball, "<f8").data)
        guarantee = WordGuarantee(
            metric=Metric("hyperbolic", digest.hexdigest()),
            nominal_epsilon=epsilon,
            epsilon=cls.true_epsilon(epsilon, dimension),
            diameter=largest,
            delta=_UNPROVED,
        )
        work.progress("measuring how many words stay")
        array = np.ascontiguousarray(points)
        stays = cls(embedding.size, epsilon, array).measure_stays()
        notes = [*cls.remarks(epsilon, dimension), *([_stays_note(stays, dimension)] if stays > _MANY_STAY else [])]
        return Built({"epsilon": epsilon}, {"points": array}, guarantee, tuple(notes))

    @classmethod
    def remarks(cls, epsilon: float, dimension: int) -> tuple[str, ...]:  # noqa: ARG003 - one of them looks at it
        """What a user should know of these settings, in sentences."""
        return ()

    @classmethod
    def load(
        cls,
        size: int,
        parameters: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        files: Mapping[str, Path] = NO_FILES,  # noqa: ARG003 - it has none
    ) -> Self:
        return cls(size, parameters["epsilon"], arrays["points"])

    @property
    def max_tokens(self) -> int:
        return max_positions(self._blocks)

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        stream = KeyedStream(keys.noise, self._blocks)
        rows = np.where(batch.ids < self._size, batch.ids, self._size)  # the unknown word's id is size + 1
        drawn = np.empty_like(batch.ids)
        for part, context, position in batch.parts(_CHUNK):
            drawn[part] = self._nearest.search(self.noisy(stream, rows[part], context, position))
        return TokenBatch(drawn, batch.offsets, batch.contexts)

    def noisy(self, stream: KeyedStream, rows: NDArray[np.int32], context: Contexts, position: NDArray[np.int64]) -> FloatArray:
        """Queries of the search, ``(-z_0, z)`` of the noisy points up to scale: float64 ``(n + 1, count)``."""
        query = boost(self._points[rows].T, self.noise(stream, context, position))
        np.negative(query[0], out=query[0])
        return query

    def noise(self, stream: KeyedStream, context: Contexts, position: NDArray[np.int64]) -> FloatArray:
        """Noise about the origin, time-like and scaled by ``exp(-r)``: float64 ``(n + 1, count)``."""
        t, rest = self.contractions(stream, context, position)
        vectors = np.empty((self._dimension + 1, len(position)))
        vectors[0] = (1.0 + t) / 2
        uniforms = stream.uniforms(context, position, (0, self._direction_blocks))
        direction: FloatArray = ndtri(uniforms[: self._dimension])
        vectors[1:] = direction * (rest / 2 / norms(direction))
        return vectors

    def measure_stays(self) -> float:
        """The share of 1,000 words, evenly spread over the vocabulary, that are drawn for themselves."""
        words = (np.arange(_WORDS) * self._size // _WORDS).astype(np.int32)
        stream = KeyedStream(_PUBLIC_KEY, self._blocks)
        noisy = self.noisy(stream, words, np.zeros((_WORDS, CONTEXT_BYTES), np.uint8), np.arange(_WORDS))
        return float(np.mean(self._nearest.search(noisy) == words))

    def at_epsilon(self, epsilon: float) -> Self:
        return type(self)(self._size, epsilon, self._points)


def _check_epsilon(epsilon: float) -> None:
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        raise ValueError(f"Expected epsilon={epsilon} in [{_LEAST_EPSILON}, {_MOST_EPSILON:g}].")


def _stays_note(stays: float, dimension: int) -> str:
    return (
        f"{stays:.1%} of the words stay themselves, and a lower epsilon changes that little: words of this embedding lie so far apart that noise in "
        f"{dimension} dimensions hardly ever goes halfway to another one. Take mechanism.name: exponential with metric: hyperbolic, or an "
        "embedding of fewer dimensions"
    )


NO_PADDING = (
    "an additive hyperbolic mechanism has no point for padding that would not tell where the text ends. Set text.length: sample, which hides the "
    "length too, or as_is; or take mechanism.name: exponential with metric: hyperbolic and gamma."
)


class HyperbolicLaplace(_Hyperbolic):
    """``exp(-epsilon r)`` with respect to hyperbolic volume; see the module. Exactly ``epsilon d_H``-private; needs ``epsilon > n - 1``."""

    name = "hyperbolic-laplace"

    @classmethod
    def least_epsilon(cls, dimension: int) -> float:
        return (dimension - 1) * (1 + 1e-3)

    @classmethod
    def check(cls, epsilon: float, dimension: int) -> None:
        if not epsilon > dimension - 1:
            raise ValueError(
                f"in {dimension} dimensions volume grows as exp({dimension - 1} r), so noise that falls as exp(-{epsilon:g} r) has no total: "
                f"it exists for an epsilon above {dimension - 1} alone. Raise epsilon, take an embedding of fewer dimensions, or take "
                "mechanism.name: exponential with metric: hyperbolic, which keeps any epsilon in any dimension."
            )

    @classmethod
    def true_epsilon(cls, epsilon: float, dimension: int) -> float:  # noqa: ARG003 - the other looks at it
        return epsilon

    def contractions(self, stream: KeyedStream, context: Contexts, position: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        least = (self._epsilon - self._dimension + 1) / 2
        uniforms = stream.uniforms(context, position, (self._direction_blocks, self._blocks))
        # A beta of whole second parameter is a product of powers of uniforms.
        double = np.zeros(len(position))
        for step, uniform in enumerate(uniforms[: self._dimension]):
            double -= xlogy(1 / (least + step), uniform)
        return exp10(-double / math.log(10)), -expm1(-double)


class HyperbolicFDD(_Hyperbolic):
    """The paper's Eq. 7; see the module. ``(epsilon + n) d_H``-private."""

    name = "hyperbolic-fdd"

    def __init__(self, size: int, epsilon: float, points: FloatArray) -> None:
        super().__init__(size, epsilon, points)
        n = self._dimension
        mode = (n - 1) / (epsilon + math.hypot(epsilon, n - 1))
        self._tilt = mode / (1 + mode)
        self._log_most = math.log1p(mode) - (self._tilt * math.log(mode) if mode else 0.0)

    @classmethod
    def radius_blocks(cls, dimension: int) -> int:  # noqa: ARG003 - three uniforms an attempt, whatever the dimension
        return 3 * _ATTEMPTS // 2

    @classmethod
    def true_epsilon(cls, epsilon: float, dimension: int) -> float:
        return epsilon + dimension

    @classmethod
    def remarks(cls, epsilon: float, dimension: int) -> tuple[str, ...]:
        true = epsilon + dimension
        note = f"mechanism.epsilon = {epsilon:g} is the published parameter; what is true and charged is epsilon + n = {true:g} per unit of distance"
        return (note,)

    def contractions(self, stream: KeyedStream, context: Contexts, position: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        rho, gap = np.empty(len(position)), np.empty(len(position))
        waiting = np.arange(len(position))
        uniforms = np.empty((0, 0))
        for attempt in range(_ATTEMPTS):
            if attempt % 2 == 0:
                first = self._direction_blocks + 3 * (attempt // 2)
                uniforms = stream.uniforms(context[waiting], position[waiting], (first, first + 3))
            near, far, coin = uniforms[:3]
            rho[waiting], gap[waiting], accepted = self._propose(near, far, coin)
            waiting, uniforms = waiting[~accepted], uniforms[3:, ~accepted]
            if not len(waiting):
                break
        contraction = gap / (1 + rho)
        return contraction * contraction, 4 * rho / ((1 + rho) * (1 + rho))

    def _propose(self, near: FloatArray, far: FloatArray, coin: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """``rho`` and ``1 - rho`` from Beta(n - lam epsilon, epsilon + 1), and whether they are accepted.

        The density over the proposal's is ``((1 + rho) / rho^lam)^-epsilon``, greatest at the mode ``lam / (1 - lam)``.
        """
        inner = gammaincinv(self._dimension - self._tilt * self._epsilon, near)
        outer = gammaincinv(self._epsilon + 1, far)
        total = inner + outer
        rho = inner / total
        accepted = xlogy(1.0, coin) <= -self._epsilon * (log1p(rho) - xlogy(self._tilt, rho) - self._log_most)
        return rho, outer / total, accepted
