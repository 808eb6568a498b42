"""Noise on Poincare embeddings: two additive mechanisms in hyperbolic space.

Feyisetan, Diethe, Drake 2019. Noise moves a word's point ``w`` of hyperbolic space H^n by a distance ``r`` in a uniform
direction; the nearest word is the output. The density with respect to hyperbolic volume is a function ``f`` of the
distance from ``w`` alone (docs/proofs/hyperbolic.md):

- ``hyperbolic-laplace``: ``f(r) ~ exp(-epsilon r)``, ``epsilon d_H``-private. It exists iff ``epsilon > n - 1``; its
  radius has ``exp(-2r) ~ Beta((epsilon - n + 1)/2, n)``.
- ``hyperbolic-fdd``: the paper's Eq. 7, ``f(r) ~ exp(-epsilon r) sech^{2n}(r/2)``, ``(epsilon + n) d_H``-private: the
  paper's epsilon costs ``n`` more for each unit of distance. It exists for every epsilon. The ball's radius ``rho`` has
  density ``~ rho^{n-1} ((1 - rho)/(1 + rho))^epsilon`` and is drawn exactly, by rejection.

The noise is kept as the time-like vector ``q = (1 + t, (1 - t) U) / 2``, ``t = exp(-2r)``, which is the hyperboloid's
point scaled by ``exp(-r)``. A boost is linear and the nearest word does not depend on the query's scale, so no radius
is too large. Radii take as many bits as the guarantee needs (:mod:`wordveil.mechanisms.additive.tails`). The unknown
word is the origin. There is no padding: it would need a point that no word is near.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Self

import numpy as np
from annotated_types import Ge, Le
from scipy.special import exp10, expm1, gammaincinv, log1p, ndtri, xlogy

from wordveil.arrays import Bool, Float64, Int32, Int64
from wordveil.crypto.keys import ReleaseKeys, Secret
from wordveil.crypto.streams import CONTEXT_BYTES, Contexts, KeyedStream, max_positions
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import norms
from wordveil.geometry.hyperbolic import boost, diameter, to_lorentz
from wordveil.geometry.spaces import SPACES, digest_points
from wordveil.mechanisms.additive.tails import (
    End,
    depth,
    digits_at,
    end_of,
    find_ends,
    gamma_at,
    hyperbolic_fdd,
    hyperbolic_laplace,
    log_at,
)
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, Mechanism, MechanismArtifact, TokenBatch
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import AdditiveNoise, RadialLaw
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings
from wordveil.mechanisms.tables.mechanism import points_of
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.exact import LorentzNearest
from wordveil.privacy.guarantees import Metric, WordGuarantee

# Tokens whose noise is in memory at once: one block of the search.
_CHUNK = 768
_MIN_EPSILON, _MAX_EPSILON = 1e-9, 1e9
# At most half of these attempts at a radius fail. Tokens left after the first are drawn one at a time. The last attempt
# is accepted unchecked, with a probability below that of what any number of digits misses.
_ATTEMPTS, _MAX_ATTEMPTS = 64, 2**17
_WORDS, _MANY_STAY = 1000, 0.95
# Public, so that every build of the same bundle measures the same share. No key of a release comes from it.
_PUBLIC_KEY = Secret(sha256(b"wordveil: noise on public words, to see how many stay").digest())


@dataclass(frozen=True, kw_only=True)
class HyperbolicSettings(MechanismSettings):
    """Noise on the points of a Poincare embedding, then the nearest word.

    Attributes
    ----------
    epsilon : float
        the loss of a token, per unit of hyperbolic distance; for ``hyperbolic-fdd`` the published parameter, whose true
        constant is ``epsilon + n`` in ``n`` dimensions. It has no default.
    """

    epsilon: Annotated[float, Ge(_MIN_EPSILON), Le(_MAX_EPSILON)]

    @property
    def terms(self) -> ComparisonTerms:
        return ComparisonTerms("hyperbolic")


class _Hyperbolic(Mechanism[HyperbolicSettings]):
    """Base class. Array ``points``: float64 ``(size + 1, n + 1)``, Lorentz points of words, then the unknown word."""

    sampler_version = 2
    settings_type = HyperbolicSettings
    supports_padding = False
    padding_advice = (
        "an additive hyperbolic mechanism has no point for padding that hides where the text ends. "
        "Set text.length: sample, which hides the length too, or as_is; or use mechanism.name: exponential with "
        "metric: hyperbolic and gamma."
    )
    is_exact = False

    def __init__(self, size: int, epsilon: float, points: Float64, *, digits: int) -> None:
        self._dimension = points.shape[1] - 1
        _check_epsilon(epsilon)
        self.check(epsilon, self._dimension)
        self._size = size
        self._epsilon = epsilon
        self._digits = digits
        self._points = points
        self._nearest = LorentzNearest(points[:size])
        self._direction_blocks: int = (self._dimension + 1) // 2
        self._blocks = self._direction_blocks + self.radius_blocks(self._dimension)

    @classmethod
    def check(cls, epsilon: float, dimension: int) -> None:
        """Raise :class:`ValueError` if no such noise exists in ``dimension`` dimensions."""

    @classmethod
    def true_epsilon(cls, epsilon: float, dimension: int) -> float:  # noqa: ARG003 - HyperbolicFDD adds it
        """Return the true constant, per unit of hyperbolic distance, for the configured ``epsilon``."""
        return epsilon

    @classmethod
    def radius_uniforms(cls, dimension: int) -> int:
        """Return an upper bound on the mean number of uniforms for a radius."""
        return dimension

    @classmethod
    def radius_blocks(cls, dimension: int) -> int:
        """Count the blocks of two uniforms that a radius may need."""
        return (dimension + 1) // 2

    @abstractmethod
    def contractions(self, stream: KeyedStream, context: Contexts, position: Int64) -> tuple[Float64, Float64]:
        """Draw ``t = exp(-2r)`` and ``1 - t`` of the noise of each token, float64 ``(count,)`` each."""

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[HyperbolicSettings]:
        return (HyperbolicSettings(epsilon=1.0),) if terms.metric == "hyperbolic" else ()

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: HyperbolicSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,  # noqa: ARG003
    ) -> MechanismArtifact:
        epsilon, dimension = settings.epsilon, embedding.dimension
        _check_epsilon(epsilon)
        try:
            cls.check(epsilon, dimension)
        except ValueError as error:
            raise BundleError(f"mechanism.epsilon = {epsilon:g}: {error}") from None
        cls.require_padding(padding=padding)
        ball = points_of(SPACES["hyperbolic"], embedding, f"mechanism.name = {cls.name}")
        work.progress("measuring the embedding's hyperbolic diameter")
        largest = diameter(ball)
        true = cls.true_epsilon(epsilon, dimension)
        smallest = max(_MIN_EPSILON, cls.min_epsilon(dimension))
        deep = depth(cls.radius_uniforms(dimension), epsilon, true - epsilon, largest, smallest)
        work.progress("writing the search index")
        points = to_lorentz(np.concatenate([ball, np.zeros((1, dimension))]).T).T
        metric = Metric("hyperbolic", digest_points(f"{ball.shape}", ball))
        guarantee = WordGuarantee(metric, nominal_epsilon=epsilon, epsilon=true, diameter=largest, delta=deep.delta)
        work.progress("measuring how many words stay")
        array = np.ascontiguousarray(points)
        stays = cls(embedding.size, epsilon, array, digits=deep.digits).measure_stays()
        notes = [_note_stays(stays, dimension)] if stays > _MANY_STAY else []
        if true != epsilon:
            charged = f"the true constant, which is charged, is epsilon + n = {true:g} per unit of distance"
            notes.insert(0, f"mechanism.epsilon = {epsilon:g} is the parameter as published; {charged}")
        parameters = {"epsilon": epsilon, "digits": deep.digits}
        return MechanismArtifact(parameters, {"points": array}, guarantee, tuple(notes))

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:  # noqa: ARG003
        return cls(size, parameters["epsilon"], arrays["points"], digits=parameters["digits"])

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

    def noise_at(self, contexts: Contexts, positions: Int64, keys: ReleaseKeys) -> AdditiveNoise:
        stream = KeyedStream(keys.noise, self._blocks)
        around = self.noise(stream, contexts, positions)[1:]
        return AdditiveNoise.of_contractions(*self.contractions(stream, contexts, positions), around)

    def noisy(self, stream: KeyedStream, rows: Int32, context: Contexts, position: Int64) -> Float64:
        """Compute the queries ``(-z_0, z)`` of the noisy points, up to scale: float64 ``(n + 1, count)``."""
        query = boost(self._points[rows].T, self.noise(stream, context, position))
        np.negative(query[0], out=query[0])
        return query

    # Frozen: golden outputs; raise sampler_version.
    def noise(self, stream: KeyedStream, context: Contexts, position: Int64) -> Float64:
        """Draw noise about the origin, time-like and scaled by ``exp(-r)``: float64 ``(n + 1, count)``."""
        t, rest = self.contractions(stream, context, position)
        vectors = np.empty((self._dimension + 1, len(position)))
        vectors[0] = (1.0 + t) / 2
        uniforms = stream.uniforms(context, position, (0, self._direction_blocks))
        direction: Float64 = ndtri(uniforms[: self._dimension])
        vectors[1:] = direction * (rest / 2 / norms(direction))
        return vectors

    def measure_stays(self) -> float:
        """Measure the share of 1,000 words, evenly spread over the vocabulary, that stay themselves."""
        words = (np.arange(_WORDS) * self._size // _WORDS).astype(np.int32)
        stream = KeyedStream(_PUBLIC_KEY, self._blocks)
        noisy = self.noisy(stream, words, np.zeros((_WORDS, CONTEXT_BYTES), np.uint8), np.arange(_WORDS))
        return float(np.mean(self._nearest.search(noisy) == words))

    def at_epsilon(self, epsilon: float) -> Self:
        return type(self)(self._size, epsilon, self._points, digits=digits_at(self._digits, epsilon / self._epsilon))


def _check_epsilon(epsilon: float) -> None:
    if not _MIN_EPSILON <= epsilon <= _MAX_EPSILON:
        raise ValueError(f"Expected epsilon={epsilon} in [{_MIN_EPSILON}, {_MAX_EPSILON:g}].")


class HyperbolicLaplace(_Hyperbolic):
    """Density ``exp(-epsilon r)`` by hyperbolic volume. ``epsilon d_H``-private; needs ``epsilon > n - 1``."""

    name = "hyperbolic-laplace"

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        return {"": Example(HyperbolicSettings(epsilon=13.0), HyperbolicSettings(epsilon=110.0))}

    @classmethod
    def min_epsilon(cls, dimension: int) -> float:
        return (dimension - 1) * (1 + 1e-3)

    @classmethod
    def check(cls, epsilon: float, dimension: int) -> None:
        if not epsilon > dimension - 1:
            raise ValueError(
                f"in {dimension} dimensions volume grows as exp({dimension - 1} r), so noise that falls as "
                f"exp(-{epsilon:g} r) cannot be normalised: it exists only for an epsilon above "
                f"{dimension - 1}. Raise epsilon, use an embedding of fewer dimensions, or use mechanism.name: "
                "exponential with metric: hyperbolic, which supports any epsilon in any dimension."
            )

    @property
    def radial_law(self) -> RadialLaw:
        return hyperbolic_laplace

    # Frozen: golden outputs; raise sampler_version.
    def contractions(self, stream: KeyedStream, context: Contexts, position: Int64) -> tuple[Float64, Float64]:
        first = (self._epsilon - self._dimension + 1) / 2
        uniforms = stream.uniforms(context, position, (self._direction_blocks, self._blocks))[: self._dimension]
        logs = xlogy(1.0, uniforms)
        first_number = 2 * self._direction_blocks
        for step, token, end in find_ends(stream, uniforms, context, position, first_number, self._digits):
            logs[step, token] = log_at(end)
        # A beta whose second parameter is whole is a product of powers of uniforms.
        double = np.zeros(len(position))
        for step, log in enumerate(logs):
            double -= log / (first + step)
        return exp10(-double / math.log(10)), -expm1(-double)


class HyperbolicFDD(_Hyperbolic):
    """Density of the paper's Eq. 7; see the module. ``(epsilon + n) d_H``-private."""

    name = "hyperbolic-fdd"

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        return {"": Example(HyperbolicSettings(epsilon=3.0), HyperbolicSettings(epsilon=30.0))}

    def __init__(self, size: int, epsilon: float, points: Float64, *, digits: int) -> None:
        super().__init__(size, epsilon, points, digits=digits)
        n = self._dimension
        mode = (n - 1) / (epsilon + math.hypot(epsilon, n - 1))
        self._tilt = mode / (1 + mode)
        self._log_most = math.log1p(mode) - (self._tilt * math.log(mode) if mode else 0.0)
        self._inner, self._outer = n - self._tilt * epsilon, epsilon + 1

    @classmethod
    def radius_uniforms(cls, dimension: int) -> int:  # noqa: ARG003 - two attempts of three, whatever the dimension
        return 6

    @classmethod
    def radius_blocks(cls, dimension: int) -> int:  # noqa: ARG003 - three uniforms an attempt, whatever the dimension
        return 3 * _ATTEMPTS // 2

    @property
    def radial_law(self) -> RadialLaw:
        return hyperbolic_fdd

    @classmethod
    def true_epsilon(cls, epsilon: float, dimension: int) -> float:
        return epsilon + dimension

    # Frozen: golden outputs; raise sampler_version.
    def contractions(self, stream: KeyedStream, context: Contexts, position: Int64) -> tuple[Float64, Float64]:
        rho, gap = np.empty(len(position)), np.empty(len(position))
        waiting = np.arange(len(position))
        uniforms = np.empty((0, 0))
        for attempt in range(_ATTEMPTS):
            if attempt % 2 == 0:
                first = self._direction_blocks + 3 * (attempt // 2)
                uniforms = stream.uniforms(context[waiting], position[waiting], (first, first + 3))
            parts = self._parts(stream, uniforms[:3], context[waiting], position[waiting], attempt)
            rho[waiting], gap[waiting], accepted = self._propose(*parts)
            waiting, uniforms = waiting[~accepted], uniforms[3:, ~accepted]
            if not len(waiting):
                break
        for token in waiting.tolist():
            rho[token], gap[token] = self._persist(stream, context[token], int(position[token]))
        contraction = gap / (1 + rho)
        return contraction * contraction, 4 * rho / ((1 + rho) * (1 + rho))

    def _parts(
        self, stream: KeyedStream, uniforms: Float64, context: Contexts, position: Int64, attempt: int
    ) -> tuple[Float64, Float64, Float64]:
        """Turn an attempt's uniforms ``(3, count)`` into the proposal's two Gammas and the coin's logarithm."""
        near, far, coin = uniforms
        parts = gammaincinv(self._inner, near), gammaincinv(self._outer, far), xlogy(1.0, coin)
        for row, token, end in find_ends(stream, uniforms, context, position, self._number(attempt), self._digits):
            parts[row][token] = self._parts_at(row, end)
        return parts

    def _parts_at(self, row: int, end: End) -> float:
        return log_at(end) if row == 2 else gamma_at((self._inner, self._outer)[row], end)

    def _number(self, attempt: int) -> int:
        """Return the index of an attempt's first uniform within its position."""
        return 2 * self._direction_blocks + 3 * attempt

    def _persist(self, stream: KeyedStream, context: Contexts, position: int) -> tuple[float, float]:
        """Draw ``rho`` and ``1 - rho`` of one token whose first attempts have all failed."""
        rho = gap = np.empty(0)
        for attempt in range(_ATTEMPTS, _MAX_ATTEMPTS):
            numbers = range(self._number(attempt), self._number(attempt + 1))
            ends = (end_of(stream.digits(context, position, number), self._digits) for number in numbers)
            rho, gap, accepted = self._propose(*(np.array([self._parts_at(row, end)]) for row, end in enumerate(ends)))
            if accepted[0]:
                break
        return float(rho[0]), float(gap[0])

    def _propose(self, inner: Float64, outer: Float64, log_coin: Float64) -> tuple[Float64, Float64, Bool]:
        """Propose ``rho`` and ``1 - rho`` from Beta(n - lam epsilon, epsilon + 1), and decide whether to accept them.

        The density over the proposal's is ``((1 + rho) / rho^lam)^-epsilon``, greatest at the mode ``lam / (1 - lam)``.
        """
        total = inner + outer
        rho = inner / total
        accepted = log_coin <= -self._epsilon * (log1p(rho) - xlogy(self._tilt, rho) - self._log_most)
        return rho, outer / total, accepted


def _note_stays(stays: float, dimension: int) -> str:
    """Explain a keep-rate of noise in hyperbolic space that hardly falls with epsilon."""
    return (
        f"{stays:.1%} of the words stay themselves, and a lower epsilon hardly changes that: words of this embedding "
        f"are so far apart that noise in {dimension} dimensions hardly ever reaches halfway to another one. Use "
        "mechanism.name: exponential with metric: hyperbolic, or an embedding of fewer dimensions"
    )
