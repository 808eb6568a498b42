"""Samplers of audits: mechanisms under public keys, as black boxes of words or of texts; and the pairs to test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.audit.two_phase import Sampler, WordPair
from wordveil.crypto.keys import ReleaseKeys
from wordveil.measures.token_draws import as_records
from wordveil.mechanisms.base import Mechanism

LENGTH = 64
"""Tokens of a record, so that draws cover many records and many positions."""
_RECORDS = 10_000


@dataclass(frozen=True)
class MechanismSampler(Sampler):
    """Sampler of a mechanism under keys that no release has.

    ``length``: tokens of a record. It must be 1 if :attr:`wordveil.mechanisms.base.Mechanism.reads_context` is true:
    two tokens of one record are then dependent.
    """

    mechanism: Mechanism[Any]
    keys: ReleaseKeys
    length: int = LENGTH

    def draw(self, word: int, count: int, series: int) -> Int64:
        """Draw as :class:`wordveil.audit.two_phase.Sampler` describes."""
        offsets = np.minimum(np.arange(0, count + self.length, self.length), count)
        names = [b"audit %d %d %d" % (word, series, record) for record in range(len(offsets) - 1)]
        batch = as_records(np.full(count, word, np.int32), offsets, names, self.keys)
        return self.mechanism.draw(batch, self.keys).ids.astype(np.int64)


@dataclass(frozen=True)
class TextSampler(Sampler):
    """Sampler of whole texts of one length, for a mechanism that reads them whole.

    An output is a number whose digits are its symbols, to the base ``outputs``, the number of symbols. ``texts``: the
    symbols of each text, by a number below 0. ``keys`` are those of no release.
    """

    mechanism: Mechanism[Any]
    outputs: int
    keys: ReleaseKeys
    texts: Mapping[int, Sequence[int]]

    def draw(self, word: int, count: int, series: int) -> Int64:
        """Draw independent outputs for one text: int64 ``(count,)``."""
        text = np.array(self.texts[word], np.int32)
        drawn = np.empty((count, len(text)), np.int64)
        for start in range(0, count, _RECORDS):
            records = range(start, min(start + _RECORDS, count))
            names = [b"audit %d %d %d" % (word, series, record) for record in records]
            offsets = np.arange(len(records) + 1, dtype=np.int64) * len(text)
            batch = as_records(np.tile(text, len(records)), offsets, names, self.keys)
            drawn[start : records.stop] = self.mechanism.draw(batch, self.keys).ids.reshape(-1, len(text))
        return np.asarray(drawn @ self.outputs ** np.arange(len(text), dtype=np.int64), np.int64)

    def symbols_of(self, number: int) -> Sequence[int]:
        """Return the symbols of a text of :attr:`texts`, by its own number or by that of an output."""
        if number < 0:
            return self.texts[number]
        length = len(next(iter(self.texts.values())))
        return [number // self.outputs**position % self.outputs for position in range(length)]


@dataclass(frozen=True)
class PairCounts:
    """Numbers of pairs of each kind: words with their nearest, with their farthest, at random, and with other
    symbols.
    """

    nearest: int = 16
    farthest: int = 4
    random: int = 8
    symbol: int = 4


def choose_pairs(
    words: Int32,
    distances: Callable[[int, Int32], Float64],
    bound: Callable[[float], float],
    *,
    counts: PairCounts,
    seed: int,
    delta: float = 0.0,
    symbols: Mapping[str, int] | None = None,
) -> tuple[WordPair, ...]:
    """Choose pairs of words to test: nearest neighbours, farthest words, random ones, words and symbols.

    A false claim about distances shows between neighbours, where even a small probability counts. A false claim about
    a constant shows wherever draws can reach it. Mechanisms treat padding and the unknown word as special cases.

    ``words``: int32 ``(words,)``, at least two: the words to choose from. ``distances``: from a word to others, int32
    ``(count,)``: float64 ``(count,)``, in the unit of ``bound``. ``bound``: the claimed loss between words at a
    distance, in nats; of infinity, the largest loss of all. ``counts``: how many pairs of each kind. ``seed``: which
    words are chosen. ``delta``: of each claim. ``symbols``: inputs that are not words, by name; each is claimed to lose
    at most ``bound(inf)``.

    Raises
    ------
    ValueError
        where there are fewer than two words.
    """
    if len(words) < 2:
        raise ValueError(f"Expected at least two words, got {len(words)}.")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(words)
    pairs: dict[tuple[int, int], WordPair] = {}

    def add(kind: str, first: int, second: int, limit: float) -> None:
        pairs.setdefault((min(first, second), max(first, second)), WordPair(first, second, limit, delta, kind))

    for kind, count in (("nearest", counts.nearest), ("farthest", counts.farthest), ("random", counts.random)):
        for first in shuffled[:count].tolist():
            others = words[words != first]
            apart = distances(first, others)
            choose = {"nearest": np.argmin, "farthest": np.argmax}.get(kind, lambda rest: rng.integers(len(rest)))
            index = choose(apart)
            add(kind, first, int(others[index]), bound(float(apart[index])))
    for kind, symbol in (symbols or {}).items():
        for first in shuffled[: counts.symbol].tolist():
            add(kind, first, symbol, bound(math.inf))
    return tuple(pairs.values())
