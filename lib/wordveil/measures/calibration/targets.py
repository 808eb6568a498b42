"""The epsilon that meets a target: a share of words kept, a largest loss, a recovery, or another mechanism's figure.

Every figure rises with epsilon, so halving the logarithm of epsilon finds where it crosses the target. Steps look at
the mechanism as it can be moved to another epsilon without a build
(:meth:`wordveil.mechanisms.base.Mechanism.at_epsilon`). What is found is built and measured again, and the search
begins anew from there where the two differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wordveil.errors import BundleError
from wordveil.geometry.euclidean import round_down, round_up
from wordveil.measures.calibration.figures import FoundEpsilon
from wordveil.measures.calibration.readings import (
    BAYES_RECOVERY,
    PURE_EPSILON,
    READINGS,
    SHARE_KEPT,
    WORST_N_W,
    Read,
    Reading,
)
from wordveil.measures.calibration.subjects import BuiltSubject, Subject
from wordveil.measures.matching import Matched
from wordveil.mechanisms.base import Mechanism
from wordveil.privacy.recovery import round_figure

TARGETS = (SHARE_KEPT, PURE_EPSILON, BAYES_RECOVERY)
"""The figures that an epsilon can be asked for."""
MATCHES = (WORST_N_W, BAYES_RECOVERY)
"""The figures in which two mechanisms can be made equal."""
_LEAST, _MOST = 1e-3, 1e5
# Neighbouring epsilons of three digits differ by at least so much.
_FINE = 1.001
# Where draws decide, the interval is wider than this.
_ROUGH = 1.004
# The first steps outwards.
_NARROW, _WIDE = 1.03, 2.0
_MISSED, _ROUNDS, _STEPS, _BEYOND = 0.005, 3, 40, 3
_NEAR = 0.9
# Less than three digits can tell.
_TINY = 1e-9


class UnreachableError(ValueError):
    """No epsilon gives the figure."""


def find_target(subject: Subject, name: str, value: float) -> FoundEpsilon:
    """Find the epsilon, of three digits, that gives a figure.

    Parameters
    ----------
    subject
        the mechanism.
    name
        ``share_kept``: the share of the vocabulary's words that stay themselves, each of which counts once.
        ``pure_epsilon``: the certified loss of a token between any two symbols, in nats; the largest epsilon that costs
        no more. ``bayes_recovery``: the share of words that the best guesser gets right from one output, words being as
        frequent as in public text.
    value
        the figure: between 0 and 1, or a positive loss.

    Returns
    -------
    FoundEpsilon
        built at that epsilon and measured there. Its interval is that of the figure where it is drawn, and else how
        near the search came.

    Raises
    ------
    ValueError
        where the name or the value is none; :class:`UnreachableError` where no epsilon gives it, with what is reached.
    BundleError
        where the mechanism cannot be built at its configured epsilon.
    """
    check_target(name, value)
    if name == PURE_EPSILON:
        return _find_pure(subject, value)
    return _Search(subject, READINGS[name], f"{name}={value:g}", Reading.exact(value)).find()


def check_target(name: str, value: float) -> None:
    """Raise :class:`ValueError` unless a target has a known name and a value that it can have."""
    if name not in TARGETS:
        raise ValueError(f"Expected a target of {', '.join(TARGETS)}; got {name}.")
    if not 0 < value < (math.inf if name == PURE_EPSILON else 1.0):
        limits = "a positive loss in nats" if name == PURE_EPSILON else "a share between 0 and 1"
        raise ValueError(f"Expected {name}={value:g} to be {limits}.")


def match(subject: Subject, other: BuiltSubject, by: str) -> FoundEpsilon:
    """Find the epsilon, of three digits, at which a mechanism is like another in one figure.

    Parameters
    ----------
    subject
        the mechanism whose epsilon is free.
    other
        the other mechanism, built at its own epsilon.
    by
        ``worst_n_w``: how often the word comes back that comes back most often. ``bayes_recovery``: as in
        :func:`find_target`, each mechanism with its own vocabulary's frequencies.

    Returns
    -------
    FoundEpsilon
        as :func:`find_target` does. Its interval covers what draws of either leave open.

    Raises
    ------
    ValueError
        where ``by`` is none of these; :class:`UnreachableError` where no epsilon gives as much.
    BundleError
        where the mechanism cannot be built at its configured epsilon.
    """
    if by not in MATCHES:
        raise ValueError(f"Expected by={by} to be {' or '.join(MATCHES)}.")
    wanted = READINGS[by](other.mechanism, other.subject.frequencies)
    name = f"{by}={round_figure(wanted.value):g} of {other.subject.mechanism} at epsilon {other.epsilon:g}"
    return _Search(subject, READINGS[by], name, wanted).find()


@dataclass
class _Search:
    """Looks for one figure. ``seen``: what was read at each epsilon from the mechanism ``base``."""

    subject: Subject
    read: Read
    target: str
    wanted: Reading
    base: Mechanism[Any] | None = None
    seen: dict[float, Reading] = field(default_factory=dict)

    def find(self) -> FoundEpsilon:
        start = max(self.subject.settings.nominal_epsilon, self._least)
        built = self.subject.build(start)
        for _ in range(_ROUNDS):
            self.base = built.mechanism
            self.seen = {built.epsilon: self._measure(built.mechanism)}
            low, epsilon, high = self._cross(built.epsilon)
            built = self.subject.build(epsilon)
            reached = self._measure(built.mechanism)
            if abs(reached.value - self.seen[epsilon].value) <= _MISSED * reached.value:
                break
        is_exact = reached.is_exact and self.wanted.is_exact
        return FoundEpsilon(self.target, epsilon, low, high, round_figure(reached.value), is_exact)

    @property
    def _least(self) -> float:
        return max(_LEAST, self.subject.least_epsilon * _FINE)

    def _measure(self, mechanism: Mechanism[Any]) -> Reading:
        return self.read(mechanism, self.subject.frequencies)

    def _at(self, epsilon: float) -> Reading:
        """What is read at an epsilon. Raises :class:`BundleError` or :class:`ValueError` where there is none."""
        if epsilon not in self.seen:
            moved = self.base.at_epsilon(epsilon) if self.base else None
            self.seen[epsilon] = self._measure(moved or self.subject.build(epsilon).mechanism)
        return self.seen[epsilon]

    def _cross(self, start: float) -> tuple[float, float, float]:
        """Epsilon, of three digits, and the interval that it lies in."""
        middle = self._bracket(start, lambda reading: reading.value >= self.wanted.value)
        epsilon = _shorten(math.sqrt(middle[0] * middle[1]), self._least)
        if self._at(epsilon).is_exact and self.wanted.is_exact:
            return round_figure(min(middle[0], epsilon)), epsilon, round_figure(max(middle[1], epsilon))
        low = self._bracket(epsilon, lambda reading: reading.high >= self.wanted.low, is_end=True)[0]
        high = self._bracket(epsilon, lambda reading: reading.low >= self.wanted.high, is_end=True)[1]
        return round_down(min(low, epsilon), 3), epsilon, round_up(max(high, epsilon), 3)

    def _bracket(
        self, start: float, is_enough: Callable[[Reading], bool], *, is_end: bool = False
    ) -> tuple[float, float]:
        """Two near epsilons, the lower of which gives too little and the upper enough.

        Where no epsilon gives too little, or enough, both are the last that was tried if an end of an interval is
        looked for (``is_end``), which is near ``start``; else :class:`UnreachableError` is raised.
        """
        enough, factor = is_enough(self._at(start)), _NARROW if is_end else _WIDE
        inner, outer = start, start
        for _ in range(_STEPS):
            inner, outer = outer, self._step(outer, 1 / factor if enough else factor)
            if outer == inner:
                if is_end:
                    return outer, outer
                raise UnreachableError(self._explain())
            if is_enough(self._at(outer)) != enough:
                break
            factor = min(factor**2, _WIDE)
        return self._halve(min(inner, outer), max(inner, outer), is_enough)

    def _step(self, epsilon: float, factor: float) -> float:
        """The next epsilon outwards; the same one where there is no other."""
        further = min(max(epsilon * factor, self._least), _MOST)
        try:
            self._at(further)
        except (BundleError, ValueError):
            return epsilon
        return further

    def _halve(self, low: float, high: float, is_enough: Callable[[Reading], bool]) -> tuple[float, float]:
        fine = _FINE if self.wanted.is_exact and self._at(low).is_exact else _ROUGH
        while high / low > fine:
            middle = math.sqrt(low * high)
            if is_enough(self._at(middle)):
                high = middle
            else:
                low = middle
        return low, high

    def _explain(self) -> str:
        least, most = min(self.seen), max(self.seen)
        ends = " and ".join(f"{self.seen[one].value:.3g} at epsilon {one:.3g}" for one in (least, most))
        advice = "a larger" if self.seen[least].value > self.wanted.value else "a smaller"
        return (
            f"{self.target}: no epsilon of mechanism {self.subject.mechanism} gives it. It reaches {ends}, the ends of "
            f"what can be built. Ask for {advice} figure, or name another mechanism."
        )


def _find_pure(subject: Subject, loss: float) -> FoundEpsilon:
    """An epsilon of three digits that costs no more than ``loss``, and the next one, which costs more or as much."""
    found = subject.matcher.at_loss(subject.candidate, loss)
    if found is None or found.built.guarantee.pure < _NEAR * loss:
        raise UnreachableError(_explain_loss(subject, loss, found))
    epsilon = round_down(found.epsilon * loss / found.built.guarantee.pure, 3)
    cost: dict[float, float] = {}

    def costs_more(value: float) -> bool:
        cost[value] = subject.build(value).guarantee.pure
        return cost[value] > loss

    while costs_more(epsilon):
        epsilon = _next_down(epsilon)
    # A loss that a build computes may stay the same from one epsilon to the next: hence few steps.
    for _ in range(_BEYOND):
        if costs_more(_next_up(epsilon)):
            break
        epsilon = _next_up(epsilon)
    reached = round_figure(cost[epsilon])
    return FoundEpsilon(f"{PURE_EPSILON}={loss:g}", epsilon, epsilon, _next_up(epsilon), reached, is_exact=True)


def _explain_loss(subject: Subject, loss: float, found: Matched | None) -> str:
    """Why no epsilon costs ``loss``, with what the nearest one costs; ``found``: what costs least below it."""
    if found is None:
        epsilon = max(subject.least_epsilon * _FINE, min(subject.settings.nominal_epsilon, 1.0))
        costs, amount, advice = subject.build(epsilon).guarantee.pure, "little", "a larger"
    else:
        epsilon, costs, amount, advice = found.epsilon, found.built.guarantee.pure, "much", "a smaller"
    return (
        f"{PURE_EPSILON}={loss:g}: no epsilon of mechanism {subject.mechanism} costs so {amount}. It costs {costs:.4g} "
        f"nats at epsilon {epsilon:.3g}. Ask for {advice} loss, or name another mechanism."
    )


def _shorten(value: float, least: float) -> float:
    """Three digits, and at least ``least``."""
    short = float(f"{value:.3g}")
    return short if short >= least else round_up(least, 3)


def _next_up(value: float) -> float:
    return round_up(value * (1 + _TINY), 3)


def _next_down(value: float) -> float:
    return round_down(value * (1 - _TINY), 3)
