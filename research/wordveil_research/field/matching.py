"""Mechanisms at an equal recovery: the epsilon at which the best attacker gets a share of the words right."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.measures import search
from wordveil.measures.recovery import find_recovered
from wordveil.measures.search import FigureCache, Matched, find_built
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings

DRAWS = 50_000
"""Draws to fit an attacker on, and as many to measure it on, where probabilities are not known."""
# The largest difference of a recovery between a mechanism that was moved and one that was built.
_MISSED = 0.03
# The range of a search for a recovery: of mechanisms whose epsilon is a loss, and of those that it multiplies.
_LOSSES, _EPSILONS = (3.0, 20.0), (0.5, 60.0)


@dataclass(frozen=True)
class Candidate(search.Candidate):
    """A mechanism whose epsilon is free. ``rebuilt``: whether other settings follow epsilon, so that each epsilon needs
    a build.
    """

    rebuilt: bool = False


def make_settings(mechanism: str, **settings: Any) -> Callable[[float], MechanismSettings]:
    """Make a function that makes a mechanism's settings from epsilon; the others are ``settings``."""
    kind: Callable[..., MechanismSettings] = MECHANISMS[mechanism].settings_type
    return lambda epsilon: kind(epsilon=epsilon, **settings)


@dataclass(frozen=True)
class Matcher(search.Matcher):
    """Builds mechanisms over one embedding, at the epsilon where they have a loss or a recovery. ``draws``: see
    :data:`DRAWS`.
    """

    draws: int = DRAWS

    def at_recovery(self, candidate: Candidate, prior: str, share: float) -> Matched | None:
        """Find the epsilon at which the best attacker recovers a share of the words, under a prior.

        None where no epsilon gives as much, as of a mechanism that writes one word for several, or where the least
        epsilon gives more.
        """
        least, most = _LOSSES if candidate.by_loss else _EPSILONS
        least = max(least, self.least_epsilon(candidate))
        most = max(most, 2 * least)
        built: dict[float, MechanismArtifact] = {}

        def build(epsilon: float) -> Mechanism[Any]:
            built.clear()
            built[epsilon] = self.build(candidate, epsilon)
            return self.load(candidate, built[epsilon])

        move = (lambda _base, _epsilon: None) if candidate.rebuilt else None
        figures = FigureCache(build, lambda mechanism: self.recover(mechanism, prior), move)
        if not candidate.rebuilt:
            figures.rebuild(least)  # some mechanisms can be moved upwards alone
        crossing, epsilon = find_built(figures, float, share, math.sqrt(least * most), least, most, missed=_MISSED)
        return Matched(epsilon, built[epsilon]) if crossing.is_near else None

    def recover(self, mechanism: Mechanism[Any], prior: str) -> float:
        """Return the best attacker's success: exact where the mechanism knows its probabilities, else an attacker's
        that was fitted on draws. ``prior``: ``uniform``, or ``public`` for words as frequent as in public text.
        """
        return find_recovered(mechanism, self.law(prior), self.draws)[0]

    def law(self, prior: str) -> NDArray[np.float64]:
        """Return the probability of each word before anything is seen: float64 ``(size,)``."""
        size = self.embedding.size
        return self.inputs.frequencies_of(size) if prior == "public" else np.full(size, 1 / size)
