"""Mechanisms that are wrong in one way each, with the findings that must catch them, and sound ones beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from reference.metropolis import walk
from support.audits import ALPHA, EPSILON, audit_mechanism, derive_keys
from support.toys import build_mechanism, random_embedding, toy_embedding
from wordveil.audit.findings import Finding
from wordveil.audit.repetition import audit_repetition
from wordveil.audit.two_phase import Naming, Sampler, WordPair, audit_pairs
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import Contexts, KeyedStream, derive_contexts, frame_records
from wordveil.geometry.hyperbolic import ball_distances
from wordveil.measures import token_draws
from wordveil.mechanisms.additive.laplace import Laplace
from wordveil.mechanisms.base import Mechanism, TokenBatch

Floats = NDArray[np.float64]
SIZE = 24
COIN = np.array([[0.75, 0.25], [0.25, 0.75]])


@dataclass(frozen=True)
class LawSampler(Sampler):
    """Draws from known laws, ``(words, outputs)``, with NumPy's generator."""

    laws: Floats
    seed: int

    def draw(self, word: int, count: int, series: int) -> NDArray[np.int64]:
        rng = np.random.default_rng((self.seed, word, series))
        return np.searchsorted(np.cumsum(self.laws[word])[:-1], rng.random(count), side="right")


@dataclass(frozen=True)
class Case:
    """A broken mechanism: how to audit it with a seed and a number of draws, and the findings that must refute it."""

    audit: Callable[[int, int], list[Finding]]
    caught_by: frozenset[str]
    draws: int = 2_000
    has_fixed_draws: bool = False


# Tables: laws of a small vocabulary on a line, and what the sound ones claim.

PLACES = np.linspace(1.0, 7.0, SIZE)
APART = np.abs(np.subtract.outer(PLACES, PLACES))


def line_pairs(bound: Callable[[float], float] = lambda apart: EPSILON * apart) -> list[WordPair]:
    """Neighbours, and words that are two and five apart: some of each kind."""
    return [
        WordPair(word, word + step, bound(APART[word, word + step]), kind=kind)
        for step, apart, kind in ((1, 3, "nearest"), (2, 5, "near"), (5, 9, "random"))
        for word in range(0, SIZE - step, apart)
    ]


def law_of(scores: Floats) -> Floats:
    weights = np.exp(-scores)
    return weights / weights.sum(axis=1, keepdims=True)


def ranks() -> NDArray[np.int64]:
    """Of each word among the neighbours of another, itself the first."""
    return np.argsort(np.argsort(APART, axis=1, kind="stable"), axis=1, kind="stable")


def missed_words() -> Floats:
    """A list of neighbours that was searched approximately: it misses each third, which has the floor instead."""
    listed = (ranks() < 8) & ((np.add.outer(np.arange(SIZE), np.arange(SIZE)) % 3 > 0) | np.eye(SIZE, dtype=bool))
    radius = np.max(np.where(listed, APART, 0.0), axis=1, keepdims=True)
    return law_of(EPSILON / 2 * np.where(listed, APART, radius))


def own_neighbours() -> Floats:
    """Candidates are the word's own neighbours; no other output is possible."""
    return law_of(np.where(ranks() < 6, EPSILON / 2 * APART, np.inf))


def missing_tail() -> Floats:
    """The most probable half of the outputs, without a floor for the rest."""
    law = law_of(EPSILON / 2 * APART)
    law[law < np.median(law, axis=1, keepdims=True)] = 0.0
    return law / law.sum(axis=1, keepdims=True)


def small_gamma() -> Floats:
    """Words within one gamma have their distance, others a larger gamma, which is the one that was claimed."""
    return law_of(EPSILON / 2 * np.where(APART <= 1.0, APART, 4.0))


def floor_of_zero() -> Floats:
    """A floor that all words have but one."""
    law = 0.9 * law_of(EPSILON / 2 * APART) + 0.1 / SIZE
    law[7] = np.where(APART[7] < 1.0, law[7], 0.0)
    return law / law.sum(axis=1, keepdims=True)


def copied(symbol: str) -> Case:
    """A symbol that is no word comes through as itself. Outputs ``SIZE`` and ``SIZE + 1`` are padding and unknown."""
    row = SIZE + (symbol == "unknown")
    laws = np.zeros((SIZE + 2, SIZE + 2))
    laws[:SIZE, :SIZE] = law_of(EPSILON / 2 * APART)
    laws[row, row] = 1.0
    pairs = [WordPair(word, row, EPSILON * 1.5, kind=symbol) for word in (0, 9)]
    naming = Naming(symbols={"padding": SIZE, "the unknown word": SIZE + 1}, known=range(SIZE))
    return Case(
        lambda seed, draws: list(audit_pairs(LawSampler(laws, seed), pairs, alpha=ALPHA, draws=draws, naming=naming)),
        frozenset({f"two-phase:{symbol}"}),
    )


def audit_laws(laws: Floats, pairs: list[WordPair], seed: int, draws: int) -> list[Finding]:
    return list(audit_pairs(LawSampler(laws, seed), pairs, alpha=ALPHA, draws=draws))


def table_case(laws: Floats, *caught_by: str, draws: int = 2_000) -> Case:
    return Case(lambda seed, count: audit_laws(laws, line_pairs(), seed, count), frozenset(caught_by), draws)


# Gumbel noise in float32, over so many far words that the largest of them is drawn at once.

FAR, GAPS = 300_000, (20.0, 18.0)


@dataclass(frozen=True)
class GumbelSampler(Sampler):
    """The output with the largest of a weight's logarithm and Gumbel noise: 0 is the word, 1 any of the far words.

    The largest of ``FAR`` uniforms is a uniform to the power ``1 / FAR``. In float32 uniforms are whole multiples of
    2^-24, so that no Gumbel exceeds 16.7, and what is 20 nats less likely than the word never comes.
    """

    seed: int
    single: bool = True

    def draw(self, word: int, count: int, series: int) -> NDArray[np.int64]:
        rng = np.random.default_rng((self.seed, word, series))
        near, far = rng.random((2, count))
        far **= 1 / FAR
        if self.single:
            near, far = np.floor(near * 2**24) / 2**24, np.floor(far * 2**24) / 2**24
        with np.errstate(divide="ignore"):
            near, far = -np.log(-np.log(near)), -np.log(-np.log(far))
        return (far - GAPS[word] > near).astype(np.int64)


def gumbel_loss() -> float:
    """The larger loss of the exact laws of both words."""
    shares = [FAR * math.exp(-gap) / (1 + FAR * math.exp(-gap)) for gap in GAPS]
    return math.log(shares[1] / shares[0])


def audit_gumbel(seed: int, draws: int, *, single: bool = True) -> list[Finding]:
    pair = WordPair(0, 1, gumbel_loss(), kind="nearest")
    return list(audit_pairs(GumbelSampler(seed, single), [pair], alpha=ALPHA, draws=draws, rounds=1))


# The random walk, at this epsilon: what it claims is twice epsilon times the distance.

WALK = 6.0


@dataclass(frozen=True)
class WalkSampler(Sampler):
    """Where chains of Metropolis and Hastings end: points of the ball, each as a number of its own."""

    points: Floats
    seed: int
    steps: int = 12

    def draw(self, word: int, count: int, series: int) -> NDArray[np.int64]:
        rng = np.random.default_rng((self.seed, word, series))
        starts = np.repeat(self.points[:, [word]], count, axis=1)
        ends = walk(starts, WALK, self.steps, 0.6, rng)
        return np.ascontiguousarray(ends.T).view(np.int64)[:, 0] >> 1


def audit_walk(seed: int, draws: int) -> list[Finding]:
    points = np.array([[0.0, 0.05], [0.1, 0.1]])
    apart = float(ball_distances(points[:, :1], points[:, 1:])[0])
    pair = WordPair(0, 1, 2 * WALK * apart, kind="nearest")
    return list(audit_pairs(WalkSampler(points, seed), [pair], alpha=ALPHA, draws=draws))


# Additive noise.


class Short(Laplace):
    """Noise that is too short by a factor."""

    factor = 1.0

    def _radii(self, stream: KeyedStream, uniform: Floats, context: Contexts, position: NDArray[np.int64]) -> Floats:
        return super()._radii(stream, uniform, context, position) / self.factor


class ShortByHalf(Short):
    factor = 1.5


class ShortByTwo(Short):
    factor = 2.0


class Positive(Laplace):
    """Directions of the cube [0, 1]^n, as the paper of 2018 can be read."""

    def _noise(self, stream: KeyedStream, context: Contexts, position: NDArray[np.int64]) -> Floats:
        return np.abs(super()._noise(stream, context, position))


class ShortSeeds(Laplace):
    """Positions are numbered with 16 bits."""

    def _noise(self, stream: KeyedStream, context: Contexts, position: NDArray[np.int64]) -> Floats:
        return super()._noise(stream, context, position % 2**16)


class Restricted(Laplace):
    """The nearest of the word's own neighbours, not of all words."""

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        drawn = super().draw(batch, keys)
        allowed = np.abs(drawn.ids - batch.ids) <= 2
        return replace(drawn, ids=np.where(allowed, drawn.ids, batch.ids))


@cache
def laplace_on_a_line(kind: type[Laplace] = Laplace, n: int = 1) -> Laplace:
    """The sound mechanism, or a broken one with the same arrays, over words of a line in ``n`` dimensions."""
    vectors = np.zeros((SIZE, n))
    vectors[:, 0] = PLACES
    words = random_embedding(SIZE, 1).words.to_pylist()
    sound = build_mechanism(toy_embedding(words, vectors), {"epsilon": EPSILON}, padding=False)
    assert isinstance(sound, Laplace)
    return kind(SIZE, EPSILON, sound._index, padding=False, digits=sound._digits)


def audit_on_a_line(mechanism: Mechanism[Any], seed: int, draws: int) -> list[Finding]:
    return audit_mechanism(mechanism, line_pairs(), seed, draws=draws)


def noise_case(kind: type[Laplace], n: int, *caught_by: str, draws: int = 1_000) -> Case:
    audit = lambda seed, count: audit_on_a_line(laplace_on_a_line(kind, n), seed, count)
    return Case(audit, frozenset(caught_by), draws)


# Draws that repeat.


class ShortSeedsTable:
    """A mechanism's draws at positions that are numbered with 16 bits: longer records repeat."""

    def __init__(self, sound: Mechanism[Any]) -> None:
        self.sound = sound
        self.max_tokens = sound.max_tokens

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        drawn = self.sound.draw(batch, keys)
        ids = drawn.ids.copy()
        for start, stop in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
            for again in range(start + 2**16, stop, 2**16):
                length = min(2**16, stop - again)
                same = batch.ids[again : again + length] == batch.ids[start : start + length]
                ids[again : again + length][same] = ids[start : start + length][same]
        return replace(drawn, ids=ids)


@cache
def exponential_on_a_line() -> Mechanism[Any]:
    words = random_embedding(SIZE, 1).words.to_pylist()
    settings = {"epsilon": EPSILON}
    return build_mechanism(toy_embedding(words, PLACES), settings, padding=False, mechanism="exponential")


def audit_short_seeds(seed: int, draws: int) -> list[Finding]:
    broken: Any = ShortSeedsTable(exponential_on_a_line())
    return [audit_repetition(broken, derive_keys(seed), (3, 9), alpha=ALPHA, seed=seed)]


def audit_contexts_without_text(seed: int, draws: int) -> list[Finding]:
    """The sound mechanism, where the context of a record's noise leaves out its text."""

    def as_records(ids: Any, offsets: Any, names: Any, keys: ReleaseKeys) -> TokenBatch:
        return TokenBatch(ids, offsets, derive_contexts(keys.context, b"", frame_records(names, [])))

    with mock.patch.object(token_draws, "as_records", as_records):
        return [audit_repetition(exponential_on_a_line(), derive_keys(seed), (3, 9), alpha=ALPHA, seed=seed, lags=[1])]


BROKEN: Mapping[str, Case] = {
    "noise shorter by 1.5": noise_case(ShortByHalf, 3, "radius"),
    "noise shorter by 1.5, words of a line": noise_case(ShortByHalf, 1, "radius", "two-phase:nearest", draws=4_000),
    "noise shorter by 2": noise_case(ShortByTwo, 100, "radius"),
    "noise shorter by 2, words of a line": noise_case(ShortByTwo, 1, "radius", "two-phase:nearest", draws=2_000),
    "directions all positive": noise_case(Positive, 3, "direction"),
    "directions all positive, words of a line": noise_case(Positive, 1, "direction", "two-phase:nearest"),
    "restricted to the word's neighbours": noise_case(Restricted, 1, "two-phase:random", draws=1_000),
    "restricted to the word's candidates": table_case(own_neighbours(), "two-phase:nearest"),
    "approximate lists": table_case(missed_words(), "two-phase:nearest"),
    "missing tail": table_case(missing_tail(), "two-phase:nearest"),
    "factor 1/2 forgotten": table_case(law_of(EPSILON * APART), "two-phase:nearest", draws=8_000),
    "gamma too small": table_case(small_gamma(), "two-phase:nearest"),
    "floor 0 for one word": table_case(floor_of_zero(), "two-phase:nearest"),
    "unknown words copied": copied("unknown"),
    "padding copied": copied("padding"),
    "float32 Gumbel": Case(audit_gumbel, frozenset({"two-phase:nearest"}), 400_000),
    "atom of a random walk": Case(audit_walk, frozenset({"two-phase:nearest"}), 1_000),
    "context without the text": Case(audit_contexts_without_text, frozenset({"repetition"}), has_fixed_draws=True),
    "positions of 16 bits": Case(audit_short_seeds, frozenset({"repetition"}), has_fixed_draws=True),
    "positions of 16 bits, noise": noise_case(ShortSeeds, 3, "repetition", draws=500),
}
"""By name: what is wrong."""


SOUND: Mapping[str, Callable[[int, int], list[Finding]]] = {
    "tables": lambda seed, draws: audit_laws(law_of(EPSILON / 2 * APART), line_pairs(), seed, draws),
    "Gumbel noise in float64": lambda seed, draws: audit_gumbel(seed, draws, single=False),
    "a claim that is attained": lambda seed, draws: audit_laws(COIN, [WordPair(0, 1, math.log(3))], seed, draws),
    "laplace on a line": lambda seed, draws: audit_on_a_line(laplace_on_a_line(), seed, draws),
    "laplace in 3 dimensions": lambda seed, draws: audit_on_a_line(laplace_on_a_line(n=3), seed, draws),
    "exponential on a line": lambda seed, draws: audit_on_a_line(exponential_on_a_line(), seed, draws),
}
"""Sound ones of the same kinds, by name."""
