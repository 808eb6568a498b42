"""Figures by which an epsilon is chosen: exact if the mechanism has probabilities, otherwise drawn.

A drawn figure has the 95% interval of Clopper and Pearson (1934). Draws use one public key at every epsilon, so that
noise scales with epsilon and is not drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.measures.calibration.drawing import count_block, split_words
from wordveil.measures.calibration.values import measure_laws, measure_rows
from wordveil.measures.posterior import require_law
from wordveil.measures.recovery import draw_publicly, find_interval, find_recovered
from wordveil.measures.token_draws import spread_words
from wordveil.mechanisms.base import Mechanism

SHARE_KEPT, PURE_EPSILON, BAYES_RECOVERY, WORST_N_W = "share_kept", "pure_epsilon", "bayes_recovery", "worst_n_w"
DRAWS = 20_000
"""Of words, for the share kept; and as many to fit an attacker on as to measure it on."""
_WORDS = 10_000
# The search for the word that stays most: draws of each, and how many words go on; the last one is drawn anew.
_ROUNDS = ((4, 500), (40, 30), (500, 1))
_LAST = 4_000


@dataclass(frozen=True)
class Reading:
    """Figure with its interval; both ends are the figure if it is exact."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Reading:
        """Make from a computed figure."""
        return cls(value, value, value)

    @classmethod
    def of_hits(cls, hits: int, draws: int) -> Reading:
        """Make from a counted share."""
        return cls(hits / draws, *find_interval(hits, draws))

    @property
    def is_exact(self) -> bool:
        """True if the figure was computed."""
        return self.low == self.high


def read_share_kept(mechanism: Mechanism[Any], frequencies: Float64) -> Reading:
    """Measure the share of words that stay themselves; each word of the vocabulary counts once.

    ``frequencies``: float64 ``(size,)``; only their number is used.
    """
    size = len(frequencies)
    if (stays := _find_stays(mechanism, size)) is not None:
        return Reading.exact(float(stays.mean()))
    words = (np.arange(DRAWS) * size // DRAWS).astype(np.int32)
    return Reading.of_hits(int((draw_publicly(mechanism, words, "share kept") == words).sum()), DRAWS)


def read_recovery(mechanism: Mechanism[Any], frequencies: Float64) -> Reading:
    """Measure the share of words that the best attacker recovers from one output.

    Words are as frequent as ``frequencies``, float64 ``(size,)``. If probabilities are not available, an attacker is
    fitted on other draws, so that the best one may recover more.
    """
    share, draws = find_recovered(mechanism, frequencies, DRAWS)
    return Reading.exact(share) if draws is None else Reading.of_hits(round(share * draws), draws)


def read_worst(mechanism: Mechanism[Any], frequencies: Float64) -> Reading:
    """Measure ``N_w`` of the word that stays itself most often, from 0 to 1.

    If it is drawn, the word is searched among 10,000 words evenly spread over the vocabulary, in rounds of few words
    and many draws; its share is then measured by separate draws. Another word may stay a little more often.
    ``frequencies``: float64 ``(size,)``; only their number is used.
    """
    size = len(frequencies)
    if (stays := _find_stays(mechanism, size)) is not None:
        return Reading.exact(float(stays.max()))
    words = spread_words(size, _WORDS)
    for draws, count in _ROUNDS:
        kept = _count_stays(mechanism, words, draws)
        words = words[np.sort(np.argsort(-kept, kind="stable")[:count])]
    drawn = draw_publicly(mechanism, np.repeat(words, _LAST), "worst word")
    return Reading.of_hits(int((drawn == words[0]).sum()), _LAST)


def _count_stays(mechanism: Mechanism[Any], words: Int32, draws: int) -> Int64:
    counted = [count_block(mechanism, part, draws) for part in split_words(words, draws)]
    stays = []
    for block in counted:
        own = np.repeat(np.arange(len(block.words)), np.diff(block.offsets))
        stays.append(np.bincount(own, block.counts * (block.ids == block.words[own]), len(block.words)))
    return np.concatenate(stays).astype(np.int64)


def _find_stays(mechanism: Mechanism[Any], size: int) -> Float64 | None:
    """Find the probability that each word stays, float64 ``(size,)``; None if it is not known."""
    if (laws := mechanism.word_laws()) is not None:
        return measure_laws(laws, 1, 0.0).stays
    if mechanism.probabilities(0) is None:
        return None
    everything = np.arange(size, dtype=np.int32)
    known = mechanism.stay_probabilities(everything)
    return (
        known
        if known is not None
        else measure_rows(lambda word: require_law(mechanism, word), everything, size, 1, 0.0).stays
    )


Read = Callable[[Mechanism[Any], Float64], Reading]
READINGS: dict[str, Read] = {SHARE_KEPT: read_share_kept, BAYES_RECOVERY: read_recovery, WORST_N_W: read_worst}
"""What reads each figure from a mechanism and the frequencies of words."""
