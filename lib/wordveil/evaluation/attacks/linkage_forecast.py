"""Forecast of linkage before anything is drawn, from the mechanism's laws and public data.

Candidate originals are texts of words drawn independently by their public frequency, all of one length. Some of them
become records, and the attacker of :mod:`wordveil.evaluation.attacks.linkage` ranks all candidates for each. Real texts
differ in more than their words, and a policy may show lengths, copied words and types: anyone with the originals of
real records links more of them, not fewer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
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
# The standard error of a share is at most 0.025. A mechanism that searches takes up to 0.2 ms for a word, so it draws
# fewer long records: then the standard error is at most 0.07.
_RECORDS, _FEWEST, _DRAWN = 400, 50, 10_000


@dataclass(frozen=True)
class LinkageForecast:
    """Forecast of the records that the attacker links.

    ``candidates``: texts that a record may come from. ``linked``: the share of linked records by their number of drawn
    words. ``half``: the least number of drawn words of which at least half of the records are linked, among 1, 2, 3, 4,
    6, 8, 12 and so on to 512; None where fewer are linked even of 512. ``is_exact``: whether the attacker has the
    mechanism's own laws. With estimates of them it links fewer. ``typical``: which of these numbers of drawn words is
    that of a sample's median record; None without a sample.
    """

    candidates: int
    linked: dict[int, float]
    half: int | None
    is_exact: bool = True
    typical: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


class LinkageTrials:
    """Trials of linking records of a length, if the order of words shows.

    ``laws``: of the mechanism's words. ``frequencies``: float64 ``(size,)``, how often each word is drawn for, up to a
    factor. ``draw``: what the mechanism draws for words, int32 ``(count,)`` for int32 ``(count,)``, where ``laws`` are
    estimates. By default records are drawn by ``laws``. ``seed``: of the candidates and of what is drawn by ``laws``:
    the same figures each time, in any order.
    """

    def __init__(
        self, laws: WordLaws, frequencies: Float64, draw: Callable[[Int32], Int32] | None = None, seed: int = 0
    ) -> None:
        self._laws, self._scores, self._draw = laws, WordScores(laws), draw
        self._below = np.cumsum(frequencies) / frequencies.sum()
        self._seed = seed

    def forecast(self, lengths: Sequence[int] = LENGTHS) -> LinkageForecast:
        """Forecast the shares for texts of so many drawn words, and the length from which on half are linked."""
        tried = {words: self.find_linked(words) for words in lengths}
        # Longer texts are linked more often.
        index = bisect_left(_HALVES, x=True, key=lambda words: self.find_linked(words) >= 1 / 2)
        half = _HALVES[index] if index < len(_HALVES) else None
        return LinkageForecast(CANDIDATES, tried, half, is_exact=self._draw is None)

    def find_linked(self, words: int) -> float:
        """Estimate the share of linked records of so many drawn ``words``."""
        rng = np.random.Generator(np.random.PCG64([self._seed, words]))
        uniform = rng.random((CANDIDATES, words))
        texts = np.searchsorted(self._below, uniform, side="right").astype(np.int32)
        if self._draw is None:
            drawn = _draw(self._laws, texts[:_RECORDS], rng)
        else:
            chosen = texts[: min(_RECORDS, max(_FEWEST, _DRAWN // words))]
            drawn = self._draw(chosen.ravel()).reshape(chosen.shape)
        return float(rank_candidates(self._scores.by_output, texts, drawn).hits.mean())


def _draw(laws: WordLaws, words: Int32, rng: np.random.Generator) -> Int32:
    """Draw an output of each word by its law, int32 of the same shape."""
    first, last = laws.offsets[words], laws.offsets[words + 1]
    is_listed = (rng.random(words.shape) >= laws.shares[words]) & (first < last)
    cumulative = np.cumsum(laws.common)
    drawn = np.searchsorted(cumulative, rng.random(words.shape) * cumulative[-1], side="right")
    first, last, uniform = first[is_listed], last[is_listed], rng.random(words.shape)[is_listed]
    ends = np.concatenate([[0.0], np.cumsum(laws.extras)])
    entries = np.searchsorted(ends, ends[first] + uniform * (ends[last] - ends[first]), side="right") - 1
    drawn[is_listed] = laws.ids[np.clip(entries, first, last - 1)]
    return np.asarray(drawn, np.int32)
