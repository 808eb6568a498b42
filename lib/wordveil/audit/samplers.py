"""What audits draw from: a mechanism under keys of their own, and the pairs of words to look at."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.audit.two_phase import Pair, Sampler
from wordveil.crypto.keys import ReleaseKeys
from wordveil.measures.output_law import as_records
from wordveil.mechanisms.base import Mechanism

# So draws go over many records and many positions.
_LENGTH = 64


@dataclass(frozen=True)
class MechanismSampler(Sampler):
    """A mechanism under keys of its own.

    Attributes
    ----------
    mechanism
        any mechanism.
    keys
        no release's keys.
    length
        tokens of a record. Of a mechanism whose :attr:`wordveil.mechanisms.base.Mechanism.reads_context` is true it
        must be 1: two tokens of one record are not independent.
    """

    mechanism: Mechanism[Any]
    keys: ReleaseKeys
    length: int = _LENGTH

    def draw(self, word: int, count: int, series: int) -> Int64:
        """As :class:`wordveil.audit.two_phase.Sampler` has it."""
        offsets = np.minimum(np.arange(0, count + self.length, self.length), count)
        names = [b"audit %d %d %d" % (word, series, record) for record in range(len(offsets) - 1)]
        batch = as_records(np.full(count, word, np.int32), offsets, names, self.keys)
        return self.mechanism.draw(batch, self.keys).ids.astype(np.int64)


@dataclass(frozen=True)
class PairCounts:
    """How many words are paired with their nearest, with their farthest, and at random; and how many with each symbol
    that is no word.
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
) -> tuple[Pair, ...]:
    """Pairs of words whose claims are tested: nearest neighbours, farthest words, random ones, words and symbols.

    A false claim about distances shows between neighbours, where a small probability of a word still counts; one about
    a constant shows wherever draws can reach it. Padding and the unknown word are where mechanisms have special cases.

    Parameters
    ----------
    words
        int32 ``(words,)``, at least two: among which pairs are chosen.
    distances
        from a word to others, int32 ``(count,)``: float64 ``(count,)``, in the unit of ``bound``.
    bound
        the claimed loss between words at a distance, in nats; of infinity, the largest of all.
    counts
        how many pairs of each kind.
    seed
        which words are chosen.
    delta
        of each claim.
    symbols
        inputs that are no words, by name; each is claimed to lose at most ``bound(inf)``.

    Raises
    ------
    ValueError
        where there are fewer than two words.
    """
    if len(words) < 2:
        raise ValueError(f"Expected at least two words, got {len(words)}.")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(words)
    found: dict[tuple[int, int], Pair] = {}

    def add(kind: str, first: int, second: int, limit: float) -> None:
        found.setdefault((min(first, second), max(first, second)), Pair(first, second, limit, delta, kind))

    for kind, count in (("nearest", counts.nearest), ("farthest", counts.farthest), ("random", counts.random)):
        for first in shuffled[:count].tolist():
            others = words[words != first]
            apart = distances(first, others)
            place = {"nearest": np.argmin, "farthest": np.argmax}.get(kind, lambda rest: rng.integers(len(rest)))(apart)
            add(kind, first, int(others[place]), bound(float(apart[place])))
    for kind, symbol in (symbols or {}).items():
        for first in shuffled[: counts.symbol].tolist():
            add(kind, first, symbol, bound(math.inf))
    return tuple(found.values())
