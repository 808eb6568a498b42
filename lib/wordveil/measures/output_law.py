"""The law of what a mechanism draws for one word: exact where the mechanism knows it, or estimated from draws.

All draws are with a throwaway key unless keys are given, so that what they show says nothing about any release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.crypto.keys import ReleaseKeys, make_throwaway_keys
from wordveil.crypto.streams import derive_contexts, id_payload
from wordveil.mechanisms.base import Mechanism, TokenBatch

DRAWS = 2_000


@dataclass(frozen=True)
class OutputLaw:
    """The probabilities of the outputs of one word.

    Attributes
    ----------
    word
        the word's id.
    ids
        int32 ``(listed,)``, rising: the outputs that have an individual probability.
    probabilities
        float64 ``(listed,)``: theirs.
    unlisted
        how many other outputs there are.
    other
        the probability of each of these; at most that of any listed output.
    draws
        how many draws it was estimated from; None where it is exact.
    """

    word: int
    ids: Int32
    probabilities: Float64
    unlisted: int = 0
    other: float = 0.0
    draws: int | None = None

    @classmethod
    def of_probabilities(cls, word: int, law: Float64) -> Self:
        """The exact law of a word, from the probability of each output: float64 ``(outputs,)``.

        The outputs that share the least probability are not listed; where that is one output, all are.
        """
        least = law.min()
        unlisted = int(np.count_nonzero(law == least))
        ids = np.flatnonzero(law > least) if unlisted > 1 else np.arange(len(law))
        other = (unlisted, float(least)) if unlisted > 1 else (0, 0.0)
        return cls(word, ids.astype(np.int32), law[ids], *other)

    @classmethod
    def of_draws(cls, word: int, drawn: Int32) -> Self:
        """The shares of what was drawn for a word: int32 ``(draws,)``, at least one."""
        ids, counts = np.unique(drawn, return_counts=True)
        return cls(word, ids, counts / len(drawn), draws=len(drawn))

    def probability(self, output: int) -> float:
        """The probability of one output."""
        index = int(np.searchsorted(self.ids, output))
        listed = index < len(self.ids) and self.ids[index] == output
        return float(self.probabilities[index]) if listed else self.other


def find_laws(
    mechanism: Mechanism[Any], words: Int32, draws: int = DRAWS, keys: ReleaseKeys | None = None
) -> Iterator[OutputLaw]:
    """The output law of each word, one at a time: exact where probabilities are known, else from ``draws`` draws.

    Parameters
    ----------
    mechanism
        any mechanism.
    words
        int32 ``(words,)``: ids of words.
    draws
        draws of each word, where probabilities are not known.
    keys
        keys to draw with; throwaway keys if left out.
    """
    keys = keys or make_throwaway_keys()
    for word in words.tolist():
        if (law := mechanism.probabilities(word)) is not None:
            yield OutputLaw.of_probabilities(word, law)
        else:
            yield OutputLaw.of_draws(word, draw_tokens(mechanism, np.full(draws, word, np.int32), b"%d" % word, keys))


def spread_words(size: int, count: int) -> Int32:
    """Ids spread evenly over ``size`` words: int32, rising, at most ``count``."""
    return np.unique(np.arange(count) * size // count).astype(np.int32)


def draw_tokens(mechanism: Mechanism[Any], ids: Int32, name: bytes, keys: ReleaseKeys) -> Int32:
    """What a mechanism draws for ids as one record of that name: int32 ``(tokens,)`` for int32 ``(tokens,)``."""
    return mechanism.draw(as_record(ids, name, keys), keys).ids


def write_tokens(mechanism: Mechanism[Any], ids: Int32, name: bytes, keys: ReleaseKeys) -> Int32:
    """What is written for what it draws. A mechanism that chooses words by those beside them sees ids in this order."""
    return mechanism.render(mechanism.draw(as_record(ids, name, keys), keys)).ids


def as_record(ids: Int32, name: bytes, keys: ReleaseKeys) -> TokenBatch:
    """Ids, int32 ``(tokens,)``, as one record of that name."""
    return as_records(ids, np.array([0, len(ids)]), [name], keys)


def as_records(ids: Int32, offsets: Int64, names: Sequence[bytes], keys: ReleaseKeys) -> TokenBatch:
    """Ragged ids, int32 ``(tokens,)`` with int64 offsets ``(records + 1,)``, as records of those names."""
    return TokenBatch(ids, offsets, derive_contexts(keys.context, b"", names, [id_payload(ids, offsets)]))
