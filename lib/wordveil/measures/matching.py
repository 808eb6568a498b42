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
from wordveil.measures.attackers import attack
from wordveil.measures.search import LEAST, Figures, find_built, find_loss
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext

DRAWS = 50_000
"""To fit a guesser on, and as many to measure it on, where probabilities are not known."""
# Where no number of digits is asked for: the part of a loss that is near enough to it.
_DIGITS, _NEAR = 6, 0.995
# By how much a recovery may differ between a mechanism that was moved and one that was built.
_MISSED = 0.03
# The range of a search for a recovery: of mechanisms whose epsilon is a loss, and of those that it multiplies.
_LOSSES, _EPSILONS = (3.0, 20.0), (0.5, 60.0)


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


def make_candidate(mechanism: str, settings: MechanismSettings) -> Candidate:
    """A mechanism with its settings, whose epsilon is free where it has one."""
    make = settings.at_epsilon if settings.has_epsilon() else lambda _: settings
    return Candidate(settings.terms.label(mechanism), mechanism, make, by_loss=MECHANISMS[mechanism].is_pure)


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

    def at_loss(
        self,
        candidate: Candidate,
        loss: float,
        *,
        start: float | None = None,
        least: float = LEAST,
        digits: int | None = None,
    ) -> Matched | None:
        """Find the epsilon at which the largest loss of a token is ``loss`` nats or at most 0.5% less.

        ``digits``: finds the largest epsilon of so many digits instead. ``start``: the first epsilon to build; None:
        ``loss`` or 1. ``least``: the least epsilon. None where no epsilon has so small a loss, as of additive noise in
        hyperbolic space.
        """
        start = start or (loss if candidate.by_loss else 1.0)
        least = max(least, self.least_epsilon(candidate))
        digits, near = (_DIGITS, _NEAR) if digits is None else (digits, 1.0)
        build = partial(self.build, candidate)
        best = find_loss(build, loss, start, least, digits=digits, near=near)
        return None if best is None else Matched(*best)

    def least_epsilon(self, candidate: Candidate) -> float:
        """The epsilon below which there is no such mechanism; 0 where there is for each."""
        return MECHANISMS[candidate.mechanism].min_epsilon(self.embedding.dimension)

    def at_recovery(self, candidate: Candidate, prior: str, share: float) -> Matched | None:
        """Find the epsilon at which the best guesser recovers a share of the words, under a prior.

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
        figures = Figures(build, lambda mechanism: self.recover(mechanism, prior), move)
        if not candidate.rebuilt:
            figures.rebuild(least)  # some mechanisms can be moved upwards alone
        crossing, epsilon = find_built(figures, float, share, math.sqrt(least * most), least, most, missed=_MISSED)
        return Matched(epsilon, built[epsilon]) if crossing.is_near else None

    def recover(self, mechanism: Mechanism[Any], prior: str) -> float:
        """The best guesser's success: exact where the mechanism knows its probabilities, else a guesser's that was
        fitted on draws. ``prior``: ``uniform``, or ``public`` for words as frequent as in public text.
        """
        return attack(mechanism, self.law(prior), draws=self.draws).rate

    def law(self, prior: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The probability of each word before anything is seen: float64 ``(size,)``."""
        size = self.embedding.size
        return self.inputs.frequencies_of(size) if prior == "public" else np.full(size, 1 / size)
