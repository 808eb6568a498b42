"""Plausible deniability of words: how often a word stays itself, and among how many words it hides.

Feyisetan, Balle, Drake, Diethe 2020, "Privacy- and Utility-Preserving Textual Analysis via Calibrated Multivariate
Perturbations": ``N_w = Pr[M(w) = w]``, and ``S_w``, the least number of outputs of which one comes out with a
probability of at least ``1 - eta`` (:class:`SupportSize`). Feyisetan, Diethe, Drake 2019, "Leveraging Hierarchical
Representations for Preserving Privacy and Utility in Text", section VI, have another ``S_w``: how many different
outputs 1,000 draws give (:class:`DistinctOutputs`). They also speak of the largest and the least entropy, which are
here those of the outputs of a word: Renyi's of order 0 and of order infinity, in bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from wordveil.arrays import Float64, Int32
from wordveil.crypto.keys import ReleaseKeys
from wordveil.measures.output_law import DRAWS, OutputLaw, find_laws
from wordveil.mechanisms.base import Mechanism

ETA = 0.05
RUNS = 1_000
"""Draws of one word, as Feyisetan, Diethe, Drake 2019 have them."""
# Sums of probabilities err by less than this.
_ROUNDING = 1e-12


class Statistic(Protocol):
    """A named figure of the outputs of a mechanism for one word."""

    name: ClassVar[str]

    def measure(self, law: OutputLaw) -> float:
        """The figure of the word whose output law is ``law``."""


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


def count_distinct(probabilities: Float64, runs: int) -> Float64:
    """The probability that an output comes at least once in ``runs`` draws, ``1 - (1 - p)^runs``: float64 of the shape
    of ``probabilities``.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(runs * np.log1p(-np.minimum(probabilities, 1.0))))


def measure_words(
    statistic: Statistic,
    mechanism: Mechanism[Any],
    words: Int32,
    draws: int = DRAWS,
    keys: ReleaseKeys | None = None,
) -> Float64:
    """A statistic of each word: float64 ``(words,)``.

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
