"""Search for the epsilon at which a mechanism has a largest loss.

Equal nominal epsilons of two mechanisms are not equal protection. A comparison therefore fixes the certified loss of a
token, and searches for the epsilon that gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wordveil.embeddings.embedding import Embedding
from wordveil.measures.recovery import load_built
from wordveil.measures.search import LEAST, find_loss
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext

# Where no number of digits is asked for: the part of a loss that is near enough to it.
_DIGITS, _NEAR = 6, 0.995


@dataclass(frozen=True)
class Candidate:
    """Mechanism whose epsilon is free.

    ``label``: what a table calls it. ``mechanism``: its name. ``settings``: makes settings from a loss or an epsilon.
    ``by_loss``: whether what ``settings`` takes is the largest loss; else an epsilon that a distance or rating
    multiplies.
    """

    label: str
    mechanism: str
    settings: Callable[[float], MechanismSettings]
    by_loss: bool


@dataclass(frozen=True)
class Matched:
    """Epsilon, and the mechanism's content of a bundle at it."""

    epsilon: float
    built: MechanismArtifact


def make_candidate(mechanism: str, settings: MechanismSettings) -> Candidate:
    """Make a candidate of a mechanism with its settings, whose epsilon is free if it has one."""
    make = settings.at_epsilon if settings.has_epsilon() else lambda _: settings
    return Candidate(settings.terms.label(mechanism), mechanism, make, by_loss=MECHANISMS[mechanism].is_pure)


@dataclass(frozen=True)
class Matcher:
    """Builder of mechanisms over one embedding, at an epsilon or at a loss. ``padding``: whether texts are padded."""

    embedding: Embedding
    inputs: PublicInputs = NO_INPUTS
    work: BuildContext = field(default_factory=BuildContext)
    padding: bool = False

    def build(self, candidate: Candidate, epsilon: float) -> MechanismArtifact:
        """Build the mechanism's content of a bundle at an epsilon. Raises :class:`BundleError` or
        :class:`ValueError`.
        """
        kind = MECHANISMS[candidate.mechanism]
        settings = candidate.settings(epsilon)
        return kind.build(self.embedding, settings, padding=self.padding, work=self.work, inputs=self.inputs)

    def load(self, candidate: Candidate, built: MechanismArtifact) -> Mechanism[Any]:
        """Load the mechanism, ready to draw."""
        with load_built(MECHANISMS[candidate.mechanism], built, self.embedding.size) as mechanism:
            return mechanism

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
        ``loss`` or 1. ``least``: the least epsilon. None if no epsilon has so small a loss, as with additive noise in
        hyperbolic space.
        """
        start = start or (loss if candidate.by_loss else 1.0)
        least = max(least, self.least_epsilon(candidate))
        digits, near = (_DIGITS, _NEAR) if digits is None else (digits, 1.0)
        build = partial(self.build, candidate)
        best = find_loss(build, loss, start, least, digits=digits, near=near)
        return None if best is None else Matched(*best)

    def least_epsilon(self, candidate: Candidate) -> float:
        """Return the epsilon below which the mechanism does not exist; 0 if it exists at each."""
        return MECHANISMS[candidate.mechanism].min_epsilon(self.embedding.dimension)
