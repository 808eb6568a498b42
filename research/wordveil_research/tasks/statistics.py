"""Plausible deniability of words: how often a word stays itself, and among how many words it hides.

Feyisetan, Balle, Drake, Diethe 2020, "Privacy- and Utility-Preserving Textual Analysis via Calibrated Multivariate
Perturbations": ``N_w = Pr[M(w) = w]``, and ``S_w``, the least number of outputs of which one comes out with a
probability of at least ``1 - eta`` (:class:`SupportSize`). Feyisetan, Diethe, Drake 2019, "Leveraging Hierarchical
Representations for Preserving Privacy and Utility in Text", section VI, have another ``S_w``: how many different
outputs 1,000 draws give (:class:`DistinctOutputs`). They also speak of the largest and the least entropy, which are
here those of the outputs of a word: Renyi's of order 0 and of order infinity, in bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from wordveil.arrays import Float64, Int32
from wordveil.crypto.keys import ReleaseKeys, make_throwaway_keys
from wordveil.measures.calibration.statistics import RUNS, count_distinct
from wordveil.measures.token_draws import draw_tokens
from wordveil.mechanisms.base import Mechanism

ETA = 0.05
DRAWS = 2_000
# Sums of probabilities err by less than this.
_ROUNDING = 1e-12


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
        """Make the exact law of a word, from the probability of each output: float64 ``(outputs,)``.

        The outputs that share the least probability are not listed; where that is one output, all are.
        """
        least = law.min()
        unlisted = int(np.count_nonzero(law == least))
        ids = np.flatnonzero(law > least) if unlisted > 1 else np.arange(len(law))
        other = (unlisted, float(least)) if unlisted > 1 else (0, 0.0)
        return cls(word, ids.astype(np.int32), law[ids], *other)

    @classmethod
    def of_draws(cls, word: int, drawn: Int32) -> Self:
        """Make the shares of what was drawn for a word: int32 ``(draws,)``, at least one."""
        ids, counts = np.unique(drawn, return_counts=True)
        return cls(word, ids, counts / len(drawn), draws=len(drawn))

    def probability(self, output: int) -> float:
        """Return the probability of one output."""
        index = int(np.searchsorted(self.ids, output))
        listed = index < len(self.ids) and self.ids[index] == output
        return float(self.probabilities[index]) if listed else self.other


def find_laws(
    mechanism: Mechanism[Any], words: Int32, draws: int = DRAWS, keys: ReleaseKeys | None = None
) -> Iterator[OutputLaw]:
    """Find the output law of each word, one at a time: exact where probabilities are known, else from ``draws`` draws.

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


class Statistic(Protocol):
    """A named figure of the outputs of a mechanism for one word."""

    name: ClassVar[str]

    def measure(self, law: OutputLaw) -> float:
        """Measure the figure of the word whose output law is ``law``."""


@dataclass(frozen=True)
class KeepProbability(Statistic):
    """``N_w``: the probability that a word is drawn for itself, from 0 to 1."""

    name: ClassVar[str] = "keep-probability"

    def measure(self, law: OutputLaw) -> float:
        return law.probability(law.word)


@dataclass(frozen=True)
class SupportSize(Statistic):
    """``S_w``: how many outputs the most probable ones are that together have a probability of ``1 - eta`` or more.

    Attributes
    ----------
    eta
        the probability that may be left out, from 0 to less than 1. 0 counts all outputs of positive probability, or,
        of a law that is estimated from draws, all that were drawn.
    """

    name: ClassVar[str] = "support-size"
    eta: float = ETA

    def __post_init__(self) -> None:
        if not 0 <= self.eta < 1:
            raise ValueError(f"Expected eta={self.eta} in [0, 1).")

    def measure(self, law: OutputLaw) -> float:
        # Leave out the least probable first, as many as fit into eta: the unlisted ones are the least of all.
        allowed = self.eta + _ROUNDING if self.eta else 0.0
        fitting = law.unlisted if law.other == 0 else min(law.unlisted, int(allowed / law.other))
        left = law.unlisted - fitting
        if left == 0:
            rising = fitting * law.other + np.cumsum(np.sort(law.probabilities))
            return float(len(law.ids) - int((rising <= allowed).sum()))
        return float(left + len(law.ids))


@dataclass(frozen=True)
class DistinctOutputs(Statistic):
    """``S_w`` of 2019: how many different outputs some draws give, on average: the sum of ``1 - (1 - p)^runs``.

    A law that was estimated from draws gives less than more draws would, since it lacks outputs.

    Attributes
    ----------
    runs
        the draws, at least one.
    """

    name: ClassVar[str] = "distinct-outputs"
    runs: int = RUNS

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ValueError(f"Expected runs={self.runs} of at least 1.")

    def measure(self, law: OutputLaw) -> float:
        listed = count_distinct(law.probabilities, self.runs).sum()
        return float(listed + law.unlisted * count_distinct(np.array(law.other), self.runs))


@dataclass(frozen=True)
class LargestEntropy(Statistic):
    """``H0``: the binary logarithm of the number of outputs that have a positive probability; bits."""

    name: ClassVar[str] = "largest-entropy"

    def measure(self, law: OutputLaw) -> float:
        return float(np.log2(np.count_nonzero(law.probabilities) + (law.unlisted if law.other > 0 else 0)))


@dataclass(frozen=True)
class LeastEntropy(Statistic):
    """``H_inf``: minus the binary logarithm of the probability of the likeliest output; bits."""

    name: ClassVar[str] = "least-entropy"

    def measure(self, law: OutputLaw) -> float:
        return -float(np.log2(max(law.probabilities.max(initial=0.0), law.other)))


def measure_words(
    statistic: Statistic,
    mechanism: Mechanism[Any],
    words: Int32,
    draws: int = DRAWS,
    keys: ReleaseKeys | None = None,
) -> Float64:
    """Measure a statistic of each word: float64 ``(words,)``.

    Parameters
    ----------
    statistic
        what is measured.
    mechanism
        any mechanism. Where its probabilities are known the figures are exact; else they are estimates.
    words
        int32 ``(words,)``: ids of words.
    draws
        draws of each word, where probabilities are not known.
    keys
        keys to draw with; throwaway keys if left out.
    """
    return np.array([statistic.measure(law) for law in find_laws(mechanism, words, draws, keys)], np.float64)
