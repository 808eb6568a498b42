"""How surely a record is linked to its original, before anything is drawn: from the mechanism's laws and public data.

Candidate originals are texts of words drawn independently by their public frequency, all of one length. Some of them
become records, by the mechanism's exact laws, and the attacker of :mod:`wordveil.evaluation.attacks.linkage` ranks all
candidates for each. Real texts differ in more than their words, and a policy may show lengths, copied words and types:
whoever holds the originals of real records links more of them, not fewer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Float64, Int32
from wordveil.evaluation.attacks.linkage import rank_candidates
from wordveil.measures.posterior import WordScores
from wordveil.mechanisms.laws import WordLaws

CANDIDATES = 10_000
"""Texts that a record may come from."""
LENGTHS = (5, 20)
"""Words of the texts whose linkage is forecast, those that are drawn."""
_HALVES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_RECORDS = 400


@dataclass(frozen=True)
class LinkageForecast:
    """How many records the attacker links.

    Attributes
    ----------
    candidates
        texts that a record may come from.
    linked
        the share of linked records by their number of drawn words.
    half
        the least number of drawn words of which at least half of the records are linked, among 1, 2, 3, 4, 6, 8, 12 and
        so on to 512; None where fewer are linked even of 512.
    typical
        which of these numbers of drawn words is that of a sample's median record; None without a sample.
    """

    candidates: int
    linked: dict[int, float]
    half: int | None
    typical: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def forecast_linkage(
    laws: WordLaws, frequencies: Float64, lengths: Sequence[int] = LENGTHS, seed: int = 0
) -> LinkageForecast:
    """Forecast linkage where the order of words shows.

    Parameters
    ----------
    laws
        of the mechanism's words.
    frequencies
        float64 ``(size,)``: how often each word is drawn for, up to a factor.
    lengths
        drawn words of the texts whose linkage is forecast.
    seed
        of the candidates and of what is drawn for them: the same figures each time.

    Returns
    -------
    LinkageForecast
        over 400 records each; the standard error of a share is at most 0.025.
    """
    find_linked = _Trials(laws, frequencies, seed)
    tried = {words: find_linked(words) for words in lengths}
    # Longer texts are linked more often.
    index = bisect_left(_HALVES, x=True, key=lambda words: find_linked(words) >= 1 / 2)
    return LinkageForecast(CANDIDATES, tried, _HALVES[index] if index < len(_HALVES) else None)


def forecast_share(laws: WordLaws, frequencies: Float64, words: int, seed: int = 0) -> float:
    """As :func:`forecast_linkage`: the share of linked records of this number of drawn ``words``."""
    return _Trials(laws, frequencies, seed)(words)


class _Trials:
    """Links records of one length after another."""

    def __init__(self, laws: WordLaws, frequencies: Float64, seed: int) -> None:
        self._laws, self._scores = laws, WordScores(laws)
        self._below = np.cumsum(frequencies) / frequencies.sum()
        self._rng = np.random.Generator(np.random.PCG64(seed))

    def __call__(self, words: int) -> float:
        """The share of linked records."""
        uniform = self._rng.random((CANDIDATES, words))
        texts = np.searchsorted(self._below, uniform, side="right").astype(np.int32)
        drawn = _draw(self._laws, texts[:_RECORDS], self._rng)
        return float(rank_candidates(self._scores.by_output, texts, drawn).hits.mean())


def _draw(laws: WordLaws, words: Int32, rng: np.random.Generator) -> Int32:
    """An output of each word by its law, int32 of the same shape."""
    first, last = laws.offsets[words], laws.offsets[words + 1]
    is_listed = (rng.random(words.shape) >= laws.shares[words]) & (first < last)
    cumulative = np.cumsum(laws.common)
    drawn = np.searchsorted(cumulative, rng.random(words.shape) * cumulative[-1], side="right")
    first, last, uniform = first[is_listed], last[is_listed], rng.random(words.shape)[is_listed]
    ends = np.concatenate([[0.0], np.cumsum(laws.extras)])
    entries = np.searchsorted(ends, ends[first] + uniform * (ends[last] - ends[first]), side="right") - 1
    drawn[is_listed] = laws.ids[np.clip(entries, first, last - 1)]
    return np.asarray(drawn, np.int32)
