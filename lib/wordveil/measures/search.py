"""Search for the epsilon at which a figure of a mechanism has a given value.

Figures (a loss, the share of words that stay, the share that an attacker recovers) rise with epsilon, nearly as a power
of it, so searches use logarithms of both. They step outwards until the value lies between two epsilons, and then call
Brent's method. A build takes seconds to minutes, hence none is made twice.

Equal nominal epsilons of two mechanisms are not equal protection. A comparison therefore fixes the certified loss of a
token, and searches for the epsilon that gives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import round_down, round_up
from wordveil.measures.recovery import load_built
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext

Figure = TypeVar("Figure")
LEAST, MOST = 1e-6, 1e5
"""Default range of epsilon."""
FINE = 1e-3
"""Precision of a search, in the logarithm of epsilon. Epsilons of three digits differ by at least as much."""
# Figures are compared by their logarithms, so that none may be 0.
_ZERO = 1e-12
# How far a step outwards goes at most, and one away from what cannot be built, in the logarithm of epsilon.
_LARGEST_STEP, _RETREAT = 3.0, 1.5
# A loss that grows by a smaller power has stopped growing.
_FLATTEST = 1e-3
_PROPORTION, _BEYOND = 0.99, 3
_STEPS = 40
_REACHED, _EXCEEDED = 0.98, 1.1
_ROUNDS, _MISSED = 4, 0.005
# A part of epsilon too small for four digits to show.
_HAIR = 1e-9


@dataclass(frozen=True)
class Crossing:
    """End of a search: the epsilon with the wanted figure, or the nearest end of the range.

    ``ratio``: the figure there over the wanted one; 1 if it is reached.
    """

    epsilon: float
    is_reached: bool = True
    ratio: float = 1.0

    @property
    def is_near(self) -> bool:
        """True if the figure is reached, or is from 2% less to 10% more at the end of the range."""
        return self.is_reached or _REACHED <= self.ratio <= _EXCEEDED


def find_epsilon(
    measure: Callable[[float], float],
    wanted: float,
    start: float,
    least: float = LEAST,
    most: float = MOST,
    *,
    fine: float = FINE,
    flattest: float = -math.inf,
) -> Crossing:
    """Find the epsilon at which a rising figure has the value ``wanted``.

    ``measure``: returns the figure at an epsilon; if it raises :class:`BundleError` or :class:`ValueError` the range
    ends. ``start``: the first epsilon to measure. If it has no figure, larger ones are tried: they make smaller
    bundles. ``fine``: precision in the logarithm of epsilon. ``flattest``: the range ends where the figure grows by a
    smaller power of epsilon. Raises :class:`BundleError` or :class:`ValueError` if none from ``start`` on has a figure.
    """
    wanted, seen = max(wanted, _ZERO), dict[float, float]()
    low, high = math.log(least), math.log(most)

    def read(log: float) -> float:
        # The logarithm's rounding must not lead out of the range, nor away from its ends.
        ends = {low: least, high: most}
        return ends[log] if log in ends else min(max(math.exp(log), least), most)

    def miss(log: float) -> float:
        if log not in seen:
            seen[log] = math.log(max(measure(read(log)), _ZERO) / wanted)
        return seen[log]

    inner = _first_measured(miss, min(max(math.log(start), low), high), high)
    slope, largest = 1.0, _LARGEST_STEP
    for _ in range(_STEPS):
        if miss(inner) == 0:
            return Crossing(read(inner))
        # Half of ``fine`` beyond where the line through the last two points leads, so that the value lies between.
        step = min(abs(miss(inner)) / slope + fine / 2, largest) if slope > 0 else largest
        outer = min(max(inner - math.copysign(step, miss(inner)), low), high)
        if outer == inner or largest < fine:
            break
        try:
            crosses = miss(outer) * miss(inner) <= 0
        except (BundleError, ValueError):
            largest = step / 4
            continue
        if crosses:
            from scipy.optimize import brentq  # takes half a second to load, which jobs do without

            return Crossing(read(brentq(miss, inner, outer, xtol=fine / 2)))
        slope = (miss(outer) - miss(inner)) / (outer - inner)
        inner = outer
        if slope < flattest:
            break
    return Crossing(read(inner), is_reached=False, ratio=math.exp(miss(inner)))


def _first_measured(miss: Callable[[float], float], log: float, high: float) -> float:
    while True:
        try:
            miss(log)
        except (BundleError, ValueError):
            if log >= high:
                raise
            log = min(log + _RETREAT, high)
        else:
            return log


class Matched(NamedTuple):
    """Epsilon, and the mechanism's content of a bundle at it."""

    epsilon: float
    built: MechanismArtifact


def find_loss(
    build: Callable[[float], MechanismArtifact],
    loss: float,
    start: float,
    least: float = LEAST,
    *,
    digits: int = 3,
    near: float = 1.0,
) -> Matched | None:
    """Find the epsilon at which the largest loss of a token is ``loss`` nats or hardly less, and never more.

    Epsilon has ``digits`` digits. The next one costs more: it is built too, unless the loss was seen to grow as fast as
    epsilon. ``build``: makes the content of a bundle at an epsilon; other parameters and errors are those of
    :func:`find_epsilon`. ``near``: part of the loss that ends the search earlier; 1: none. Returns epsilon and its
    build, which has a smaller loss if the loss stops growing, as at the floors of ``staircase``; None if each epsilon
    costs more, as with additive noise in hyperbolic space.
    """
    target = loss * (near + 1) / 2
    losses: dict[float, float] = {}
    best: Matched | None = None

    def cost(epsilon: float) -> float:
        nonlocal best
        if epsilon not in losses:
            built = build(epsilon)
            losses[epsilon] = max(built.guarantee.pure, _ZERO)
            if losses[epsilon] <= loss and (best is None or epsilon > best.epsilon):
                best = Matched(epsilon, built)
        return losses[epsilon]

    def is_largest(epsilon: float) -> bool:
        following = next_up(epsilon, digits)
        if losses[epsilon] >= near * loss:
            return True
        if following in losses:
            return losses[following] > loss
        return losses[epsilon] * following / epsilon > loss and _grows_in_proportion(losses, epsilon)

    def measure(epsilon: float) -> float:
        short = shorten(epsilon, least, digits)
        costs = cost(short)
        # Exactly what is wanted ends the search. Else losses are taken to be in proportion between short epsilons.
        return target if best is not None and is_largest(best.epsilon) else costs * epsilon / short

    find_epsilon(measure, target, start, least, fine=_HAIR, flattest=_FLATTEST)
    for _ in range(_BEYOND):
        if best is None or best.built.guarantee.pure < _REACHED * loss or is_largest(best.epsilon):
            break
        cost(next_up(best.epsilon, digits))
    return best


def _grows_in_proportion(losses: Mapping[float, float], epsilon: float) -> bool:
    """Return whether a loss grows as fast as epsilon between the two nearest builds; True for one build.

    If it grows more slowly, a line through two builds does not predict the cost of the next epsilon.
    """
    others = [other for other in losses if other != epsilon]
    if not others:
        return True
    near = min(others, key=lambda other: abs(math.log(other / epsilon)))
    return math.log(losses[near] / losses[epsilon]) / math.log(near / epsilon) > _PROPORTION


@dataclass
class FigureCache(Generic[Figure]):
    """Figures of a mechanism at several epsilons, each measured once.

    A built mechanism is moved to another epsilon if possible (:meth:`wordveil.mechanisms.base.Mechanism.at_epsilon`),
    otherwise built there.

    ``move``: returns the figure of a built mechanism moved to an epsilon, or None if it must be built there. ``base``:
    the last build, at ``base_epsilon``: the least epsilon if a mechanism can only be moved upwards. ``seen``: figures
    by epsilon.
    """

    build: Callable[[float], Mechanism[Any]]
    measure: Callable[[Mechanism[Any]], Figure]
    move: Callable[[Mechanism[Any], float], Figure | None] | None = None
    base: Mechanism[Any] | None = None
    base_epsilon: float = math.nan
    seen: dict[float, Figure] = field(default_factory=dict)

    def at(self, epsilon: float) -> Figure:
        """Return the figure at an epsilon. Raises :class:`BundleError` or :class:`ValueError` if there is none."""
        if epsilon not in self.seen:
            figure = self._move(epsilon)
            self.seen[epsilon] = self._build(epsilon) if figure is None else figure
        return self.seen[epsilon]

    def rebuild(self, epsilon: float) -> Figure:
        """Build the mechanism at an epsilon, unless done, and forget the figures of other builds."""
        if epsilon != self.base_epsilon:
            self.seen = {epsilon: self._build(epsilon)}
        return self.seen[epsilon]

    def _build(self, epsilon: float) -> Figure:
        self.base, self.base_epsilon = self.build(epsilon), epsilon
        return self.measure(self.base)

    def _move(self, epsilon: float) -> Figure | None:
        if self.base is None:
            return None
        if self.move is not None:
            return self.move(self.base, epsilon)
        moved = self.base.at_epsilon(epsilon)
        return None if moved is None else self.measure(moved)


def find_built(
    figures: FigureCache[Figure],
    value: Callable[[Figure], float],
    wanted: float,
    start: float,
    least: float,
    most: float = MOST,
    *,
    fine: float = FINE,
    digits: int | None = None,
    missed: float = _MISSED,
) -> tuple[Crossing, float]:
    """Find the epsilon at which a figure has a value, and build the mechanism there, as ``figures.base``.

    A moved mechanism is close to one that is built there, and the closer the less far it was moved. So the search
    restarts from the build, until that has the figure of the moved one, except for a relative difference of ``missed``.
    ``digits``: digits to which epsilon is rounded before the build; None: not rounded. Other parameters and errors are
    those of :func:`find_epsilon`. Returns the crossing, and the epsilon of the build.
    """
    for _ in range(_ROUNDS):
        crossing = find_epsilon(lambda epsilon: value(figures.at(epsilon)), wanted, start, least, most, fine=fine)
        start = crossing.epsilon if digits is None else round_within(crossing.epsilon, least, digits)
        if not crossing.is_near:
            break
        expected = value(figures.at(start))
        if abs(value(figures.rebuild(start)) - expected) <= missed * expected:
            break
    return crossing, start


def shorten(epsilon: float, least: float = 0.0, digits: int = 3) -> float:
    """Round down to an epsilon of a few digits, except for a rounding error; at least ``least``."""
    short = round_down(epsilon * (1 + _HAIR), digits)
    return short if short >= least else round_up(least, digits)


def round_within(epsilon: float, least: float, digits: int = 3) -> float:
    """Round to the nearest epsilon of a few digits that is at least ``least``."""
    short = float(f"{epsilon:.{digits}g}")
    return short if short >= least else round_up(least, digits)


def next_up(epsilon: float, digits: int = 3) -> float:
    """Return the next larger epsilon of as many digits."""
    return round_up(epsilon * (1 + _HAIR), digits)


# Without a number of digits: the part of a loss that is near enough to it.
_DIGITS, _NEAR = 6, 0.995


@dataclass(frozen=True)
class Candidate:
    """Mechanism whose epsilon is free.

    ``label``: its name in a table. ``settings``: makes settings from a loss if ``by_loss``, else from an epsilon that a
    distance or rating multiplies.
    """

    label: str
    mechanism: str
    settings: Callable[[float], MechanismSettings]
    by_loss: bool


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
        """Build the mechanism's content of a bundle. Raises :class:`BundleError` or :class:`ValueError`."""
        mechanism = MECHANISMS[candidate.mechanism]
        settings = candidate.settings(epsilon)
        return mechanism.build(self.embedding, settings, padding=self.padding, work=self.work, inputs=self.inputs)

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
        ``loss`` or 1. Return None if no epsilon has so small a loss, as with additive noise in hyperbolic space.
        """
        start = start or (loss if candidate.by_loss else 1.0)
        least = max(least, self.least_epsilon(candidate))
        digits, near = (_DIGITS, _NEAR) if digits is None else (digits, 1.0)
        return find_loss(partial(self.build, candidate), loss, start, least, digits=digits, near=near)

    def least_epsilon(self, candidate: Candidate) -> float:
        """Return the epsilon below which the mechanism does not exist; 0 if it exists at each."""
        return MECHANISMS[candidate.mechanism].min_epsilon(self.embedding.dimension)
