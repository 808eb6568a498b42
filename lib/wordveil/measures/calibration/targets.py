"""Search for the epsilon that meets a target: a share kept, a largest loss, a recovery, or another mechanism's figure.

:mod:`wordveil.measures.search` has the search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import attrgetter

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
from wordveil.measures.search import FINE, Figures, find_built, find_epsilon, next_up
from wordveil.privacy.recovery import round_figure

TARGETS = (SHARE_KEPT, PURE_EPSILON, BAYES_RECOVERY)
"""The figures that an epsilon can be asked for."""
MATCHES = (WORST_N_W, BAYES_RECOVERY)
"""The figures in which two mechanisms can be made equal."""
_LEAST = 1e-3
# Where draws decide, the interval is wider than this, in the logarithm of epsilon.
_ROUGH = 4e-3
_NEAR = 0.9


class UnreachableError(ValueError):
    """Error for a figure that no epsilon gives."""


def find_target(subject: Subject, name: str, value: float) -> FoundEpsilon:
    """Find the epsilon, of three digits, that gives a figure.

    The mechanism is built at that epsilon and measured there. The interval is that of the figure where it is drawn, and
    else how precise the search was.

    ``subject``: the mechanism. ``name``: ``share_kept``: the share of the vocabulary's words that stay themselves, each
    of which counts once. ``pure_epsilon``: the certified loss of a token between any two symbols, in nats; the largest
    epsilon that costs no more. ``bayes_recovery``: the share of words that the best attacker gets right from one
    output, words being as frequent as in public text. ``value``: the figure: between 0 and 1, or a positive loss.

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
    return _find_figure(subject, READINGS[name], f"{name}={value:g}", Reading.exact(value))


def check_target(name: str, value: float) -> None:
    """Raise :class:`ValueError` unless a target has a known name and a possible value."""
    if name not in TARGETS:
        raise ValueError(f"Expected a target of {', '.join(TARGETS)}; got {name}.")
    if not 0 < value < (math.inf if name == PURE_EPSILON else 1.0):
        limits = "a positive loss in nats" if name == PURE_EPSILON else "a share between 0 and 1"
        raise ValueError(f"Expected {name}={value:g} to be {limits}.")


def match(subject: Subject, other: BuiltSubject, by: str) -> FoundEpsilon:
    """Find the epsilon, of three digits, at which a mechanism equals another in one figure.

    ``by``: ``worst_n_w``, the share of draws in which the word that stays most often stays, or ``bayes_recovery`` as in
    :func:`find_target`, each mechanism with its own vocabulary's frequencies. The interval covers the uncertainty of
    draws of both. Raises :class:`ValueError` if ``by`` is neither, :class:`UnreachableError` if no epsilon gives as
    much, and :class:`BundleError` if the mechanism cannot be built at its configured epsilon.
    """
    if by not in MATCHES:
        raise ValueError(f"Expected by={by} to be {' or '.join(MATCHES)}.")
    wanted = READINGS[by](other.mechanism, other.subject.frequencies)
    name = f"{by}={round_figure(wanted.value):g} of {other.subject.mechanism} at epsilon {other.epsilon:g}"
    return _find_figure(subject, READINGS[by], name, wanted)


def _find_figure(subject: Subject, read: Read, target: str, wanted: Reading) -> FoundEpsilon:
    least = max(_LEAST, subject.least_epsilon)
    start = max(subject.settings.nominal_epsilon, least)
    figures = Figures(
        lambda epsilon: subject.build(epsilon).mechanism, lambda mechanism: read(mechanism, subject.frequencies)
    )
    is_exact = figures.rebuild(start).is_exact and wanted.is_exact
    fine = FINE if is_exact else _ROUGH
    crossing, epsilon = find_built(figures, attrgetter("value"), wanted.value, start, least, fine=fine, digits=3)
    if not crossing.is_reached:
        raise UnreachableError(_explain(subject, target, wanted, figures.seen))
    reached = figures.at(epsilon)
    if is_exact:
        low, high = (crossing.epsilon * math.exp(side * fine / 2) for side in (-1, 1))
        low, high = round_figure(min(low, epsilon)), round_figure(max(high, epsilon))
    else:
        low = find_epsilon(lambda at: figures.at(at).high, wanted.low, epsilon, least, fine=fine).epsilon
        high = find_epsilon(lambda at: figures.at(at).low, wanted.high, epsilon, least, fine=fine).epsilon
        low, high = round_down(min(low, epsilon), 3), round_up(max(high, epsilon), 3)
    return FoundEpsilon(target, epsilon, low, high, round_figure(reached.value), is_exact)


def _explain(subject: Subject, target: str, wanted: Reading, seen: Mapping[float, Reading]) -> str:
    least, most = min(seen), max(seen)
    ends = " and ".join(f"{seen[epsilon].value:.3g} at epsilon {epsilon:.3g}" for epsilon in (least, most))
    advice = "a larger" if seen[least].value > wanted.value else "a smaller"
    return (
        f"{target}: no epsilon of mechanism {subject.mechanism} gives it. It reaches {ends}, the ends of what can be "
        f"built. Ask for {advice} figure, or name another mechanism."
    )


def _find_pure(subject: Subject, loss: float) -> FoundEpsilon:
    """Find the largest epsilon of three digits that costs no more than ``loss``, and the next one, which costs more."""
    matched = subject.matcher.at_loss(subject.candidate, loss, least=_LEAST, digits=3)
    if matched is None or matched.built.guarantee.pure < _NEAR * loss:
        raise UnreachableError(_explain_loss(subject, loss, matched))
    reached, high = round_figure(matched.built.guarantee.pure), next_up(matched.epsilon)
    return FoundEpsilon(f"{PURE_EPSILON}={loss:g}", matched.epsilon, matched.epsilon, high, reached, is_exact=True)


def _explain_loss(subject: Subject, loss: float, matched: Matched | None) -> str:
    """Explain why no epsilon costs ``loss``, with the cost of the nearest one. ``matched``: the least cost below it."""
    if matched is None:
        epsilon = max(subject.least_epsilon, min(subject.settings.nominal_epsilon, 1.0))
        costs, amount, advice = subject.build(epsilon).guarantee.pure, "little", "a larger"
    else:
        epsilon, costs, amount, advice = matched.epsilon, matched.built.guarantee.pure, "much", "a smaller"
    return (
        f"{PURE_EPSILON}={loss:g}: no epsilon of mechanism {subject.mechanism} costs so {amount}. It costs {costs:.4g} "
        f"nats at epsilon {epsilon:.3g}. Ask for {advice} loss, or name another mechanism."
    )
