"""Plausible deniability of words: how often a word stays itself, and among how many words it hides.

Feyisetan, Balle, Drake, Diethe 2020, "Privacy- and Utility-Preserving Textual Analysis via Calibrated Multivariate
Perturbations": ``N_w = Pr[M(w) = w]``, and ``S_w``, the least number of outputs of which one comes out with a
probability of at least ``1 - eta``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wordveil.crypto.keys import ReleaseKeys
from wordveil.evaluation.output_law import DRAWS, OutputLaw, find_laws
from wordveil.evaluation.protocols import Statistic
from wordveil.mechanisms.base import Mechanism

ETA = 0.05
# Sums of probabilities err by less than this.
_ROUNDING = 1e-12


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


def measure_words(
    statistic: Statistic,
    mechanism: Mechanism[Any],
    words: NDArray[np.int32],
    draws: int = DRAWS,
    keys: ReleaseKeys | None = None,
) -> NDArray[np.float64]:
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
