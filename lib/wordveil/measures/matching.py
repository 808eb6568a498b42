"""Find the epsilon at which mechanisms are alike in one respect: an equal largest loss, or an equal share of words that
are recovered.

Equal nominal epsilons of two mechanisms are not equal protection. A comparison therefore fixes what is certified of a
token, or what the best guesser gets right, and looks for the epsilon that gives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from wordveil.embeddings.embedding import Embedding
from wordveil.measures.attackers import MaximumPosterior, attack
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext

DRAWS = 50_000
"""To fit a guesser on, and as many to measure it on, where probabilities are not known."""
STEPS = 10
"""Of a bisection: epsilon to a few thousandths of its range."""
_NEAR, _NEAREST = 0.995, 0.9975
_ABOVE = 1 + 1e-6
_BUILDS = 12
# In logarithms: a loss that grows less with epsilon has stopped to grow, and how far one correction goes at most.
_FLATTEST, _LARGEST_STEP = 1e-3, 3.0
_LEAST = 1e-6
# Where the bisection of a recovery begins: of mechanisms whose epsilon is a loss, and of those that it multiplies.
_LOSSES, _EPSILONS = (3.0, 20.0), (0.5, 60.0)
# Shares that are this near count as reached, where no epsilon that can be built gives the share itself.
_REACHED, _EXCEEDED = 0.98, 1.1
# How often a search of a recovery starts anew from what it found, and what it may miss by.
_ROUNDS, _MISSED = 5, 0.03


@dataclass(frozen=True)
class Candidate:
    """A mechanism whose epsilon is free.

    Attributes
    ----------
    label
        what a table calls it.
    mechanism
        its name.
    settings
        makes settings from a loss or an epsilon.
    by_loss
        whether what ``settings`` takes is the largest loss; else an epsilon that a distance or rating multiplies.
    rebuilt
        whether other settings than epsilon follow it, so that each epsilon needs a build.
    """

    label: str
    mechanism: str
    settings: Callable[[float], MechanismSettings]
    by_loss: bool
    rebuilt: bool = False


@dataclass(frozen=True)
class Matched:
    """The epsilon that was found, and what the mechanism puts into a bundle at it."""

    epsilon: float
    built: MechanismArtifact


def make_settings(mechanism: str, **settings: Any) -> Callable[[float], MechanismSettings]:
    """A function that makes a mechanism's settings from epsilon; the others are ``settings``."""
    kind: Callable[..., MechanismSettings] = MECHANISMS[mechanism].settings_type
    return lambda epsilon: kind(epsilon=epsilon, **settings)


@dataclass(frozen=True)
class Matcher:
    """Builds mechanisms over one embedding, at the epsilon where they have a loss or a recovery.

    Attributes
    ----------
    embedding
        public words and vectors.
    inputs
        other public data.
    work
        where lists of neighbours and clusters are kept.
    draws
        see :data:`DRAWS`.
    padding
        whether texts are padded.
    """

    embedding: Embedding
    inputs: PublicInputs = NO_INPUTS
    work: BuildContext = field(default_factory=BuildContext)
    draws: int = DRAWS
    padding: bool = False

    def build(self, candidate: Candidate, epsilon: float) -> MechanismArtifact:
        """What the mechanism puts into a bundle at an epsilon. Raises :class:`BundleError` or :class:`ValueError`."""
        kind = MECHANISMS[candidate.mechanism]
        settings = candidate.settings(epsilon)
        return kind.build(self.embedding, settings, padding=self.padding, work=self.work, inputs=self.inputs)

    def load(self, candidate: Candidate, built: MechanismArtifact) -> Mechanism[Any]:
        """The mechanism, ready to draw."""
        with TemporaryDirectory(prefix="wordveil-match-") as directory:
            files = built.write_files(Path(directory))
            kind = MECHANISMS[candidate.mechanism]
            return kind.load(self.embedding.size, built.parameters, built.arrays, files)

    def at_loss(self, candidate: Candidate, loss: float) -> Matched | None:
        """Find the epsilon at which the largest loss of a token is ``loss`` nats or at most 0.5% less.

        None where no epsilon has so small a loss, as of additive noise in hyperbolic space.
        """
        lowest = MECHANISMS[candidate.mechanism].min_epsilon(self.embedding.dimension)
        best: tuple[float, Matched] | None = None

        def measure(epsilon: float) -> float:
            nonlocal best
            built = self.build(candidate, epsilon)
            pure = built.guarantee.pure
            if pure <= loss * _ABOVE and (best is None or pure > best[0]):
                best = pure, Matched(epsilon, built)
            return pure

        search_loss(measure, loss if candidate.by_loss else max(1.0, lowest), loss, max(lowest, _LEAST))
        return None if best is None else best[1]

    def at_recovery(self, candidate: Candidate, prior: str, share: float) -> Matched | None:
        """Find the epsilon at which the best guesser recovers a share of the words, under a prior.

        None where no epsilon gives as much, as of a mechanism that writes one word for several, or where the least
        epsilon gives more.
        """
        limits = _LOSSES if candidate.by_loss else _EPSILONS
        lowest = max(limits[0], MECHANISMS[candidate.mechanism].min_epsilon(self.embedding.dimension))
        low, high = math.log(lowest), math.log(max(limits[1], 2 * lowest))
        base = self.load(candidate, self.build(candidate, math.exp(low)))
        best: tuple[float, Matched] | None = None
        for _ in range(_ROUNDS):
            found = bisect(partial(self._recover_at, candidate, base, prior), low, high, share)
            if found is None:
                break
            # A mechanism that is moved to another epsilon is close to one that is built there; how close depends on
            # how far it was moved. So the next round moves it from where this one ended.
            matched = Matched(math.exp(found), self.build(candidate, math.exp(found)))
            base = self.load(candidate, matched.built)
            missed = abs(self.recover(base, prior) / share - 1)
            if best is None or missed < best[0]:
                best = missed, matched
            if missed < _MISSED or candidate.rebuilt:
                break
        return None if best is None else best[1]

    def _recover_at(self, candidate: Candidate, base: Mechanism[Any], prior: str, log: float) -> float:
        epsilon = math.exp(log)
        changed = None if candidate.rebuilt else base.at_epsilon(epsilon)
        return self.recover(changed or self.load(candidate, self.build(candidate, epsilon)), prior)

    def recover(self, mechanism: Mechanism[Any], prior: str) -> float:
        """The best guesser's success: exact where the mechanism knows its probabilities, else a guesser's that was
        fitted on draws. ``prior``: ``uniform``, or ``public`` for words as frequent as in public text.
        """
        return attack(MaximumPosterior, mechanism, self.law(prior), draws=self.draws).rate

    def law(self, prior: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The probability of each word before anything is seen: float64 ``(size,)``."""
        size = self.embedding.size
        return self.inputs.frequencies_of(size) if prior == "public" else np.full(size, 1 / size)


def search_loss(measure: Callable[[float], float], start: float, loss: float, lowest: float) -> None:
    """Measure the loss at one epsilon after another, until it is ``loss`` or at most 0.5% less.

    The first correction is in proportion. The next ones follow the line through the logarithms of the last two
    measurements, and once epsilon is known to lie between two values, of these two, or halve what lies between where
    that gained little. (A loss that grows with the square of epsilon sends corrections in proportion to and fro.) It
    ends after 12 measurements, below ``lowest``, and where the loss has stopped to grow, such as at the floors of
    ``staircase``.
    """
    aim = math.log(_NEAREST * loss)
    low: tuple[float, float] | None = None
    high: tuple[float, float] | None = None
    before: tuple[float, float] | None = None
    place, width = math.log(start), math.inf
    for _ in range(_BUILDS):
        pure = measure(math.exp(place))
        if _NEAR * loss <= pure <= loss * _ABOVE:
            return
        point = place, math.log(pure)
        if pure < loss:
            low = point
        else:
            high = point
        if low is not None and high is not None:
            was, width = width, abs(high[0] - low[0])
            share = (aim - low[1]) / (high[1] - low[1]) if width < 0.6 * was else 0.5
            place = low[0] + share * (high[0] - low[0])
        else:
            slope = 1.0 if before is None else (point[1] - before[1]) / (point[0] - before[0])
            if slope < _FLATTEST:
                return
            step = (aim - point[1]) / slope
            place += math.copysign(min(abs(step), _LARGEST_STEP), step)
        before = point
        if place < math.log(lowest):
            return


def bisect(measure: Callable[[float], float], low: float, high: float, wanted: float) -> float | None:
    """Where a rising function reaches ``wanted``, in :data:`STEPS` halvings; from above, so that it is reached.

    None where even ``high`` gives less than 98% of it, or where ``low`` gives more than 110%. Where ``low`` gives more
    by less than that, it is ``low``.
    """
    least = measure(low)
    if measure(high) < wanted * _REACHED or least > wanted * _EXCEEDED:
        return None
    if least >= wanted:
        return low
    for _ in range(STEPS):
        middle = (low + high) / 2
        if measure(middle) < wanted:
            low = middle
        else:
            high = middle
    return high
