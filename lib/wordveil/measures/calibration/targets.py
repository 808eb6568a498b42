"""Search for the epsilon that meets a target: a share kept, a largest loss, a recovery, or another mechanism's figure.

A figure is exact if the mechanism has probabilities, otherwise drawn with the 95% interval of Clopper and Pearson
(1934). Draws use one public key at every epsilon, so that noise scales with epsilon and is not drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from wordveil.arrays import Float64
from wordveil.geometry.euclidean import round_down, round_up
from wordveil.measures.calibration.figures import FoundEpsilon
from wordveil.measures.calibration.meaning import BuiltSubject, Subject
from wordveil.measures.calibration.statistics import count_block, measure_counts, split_words
from wordveil.measures.recovery import draw_publicly, find_recovered, require_law
from wordveil.measures.search import FINE, FigureCache, Matched, find_built, find_epsilon, next_up
from wordveil.measures.token_draws import spread_words
from wordveil.mechanisms.base import Mechanism
from wordveil.privacy.recovery import round_figure
from wordveil.scores.counts import find_share_interval

SHARE_KEPT, PURE_EPSILON, BAYES_RECOVERY, WORST_N_W = "share_kept", "pure_epsilon", "bayes_recovery", "worst_n_w"
DRAWS = 20_000
"""Number of draws for the share kept, for fitting an attacker, and for measuring it."""
_WORDS = 10_000
# Search for the word that stays most: draws of each, and words that go on; the last one is drawn again.
_ROUNDS = ((4, 500), (40, 30), (500, 1))
_LAST = 4_000


@dataclass(frozen=True)
class Reading:
    """Figure with its interval; both ends are the figure if it is exact."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Reading:
        """Make from a computed figure."""
        return cls(value, value, value)

    @classmethod
    def of_hits(cls, hits: int, draws: int) -> Reading:
        """Make from a counted share."""
        return cls(hits / draws, *find_share_interval(hits, draws))

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


def read_share_kept(mechanism: Mechanism[Any], frequencies: Float64) -> Reading:
    """Measure the share of words that stay themselves; each word of the vocabulary counts once."""
    size = len(frequencies)
    if (stays := _find_stays(mechanism, size)) is not None:
        return Reading.exact(float(stays.mean()))
    words = (np.arange(DRAWS) * size // DRAWS).astype(np.int32)
    return Reading.of_hits(int((draw_publicly(mechanism, words, "share kept") == words).sum()), DRAWS)


def read_recovery(mechanism: Mechanism[Any], frequencies: Float64) -> Reading:
    """Measure the share of words that the best attacker recovers from one output.

    Words are as frequent as ``frequencies``, float64 ``(size,)``. If probabilities are not available, an attacker is
    fitted on other draws, so that the best one may recover more.
    """
    share, draws = find_recovered(mechanism, frequencies, DRAWS)
    return Reading.exact(share) if draws is None else Reading.of_hits(round(share * draws), draws)


def read_worst(mechanism: Mechanism[Any], frequencies: Float64) -> Reading:
    """Measure ``N_w`` of the word that stays itself most often, from 0 to 1.

    Without probabilities, the word is searched among 10,000 words evenly spread over the vocabulary, in rounds of fewer
    words and more draws, and measured by separate draws. Another word may stay a little more often.
    """
    size = len(frequencies)
    if (stays := _find_stays(mechanism, size)) is not None:
        return Reading.exact(float(stays.max()))
    words = spread_words(size, _WORDS)
    for draws, count in _ROUNDS:
        blocks = (count_block(mechanism, block, draws) for block in split_words(words, draws))
        stays = measure_counts(blocks, words, size, draws, 1.0).stays
        words = words[np.sort(np.argsort(-stays, kind="stable")[:count])]
    drawn = draw_publicly(mechanism, np.repeat(words, _LAST), "worst word")
    return Reading.of_hits(int((drawn == words[0]).sum()), _LAST)


def _find_stays(mechanism: Mechanism[Any], size: int) -> Float64 | None:
    """Find the probability that each word stays, float64 ``(size,)``; None if it is not known."""
    stays = mechanism.stay_probabilities(np.arange(size, dtype=np.int32))
    if stays is not None or mechanism.probabilities(0) is None:
        return stays
    return np.array([require_law(mechanism, word)[word] for word in range(size)])


Read = Callable[[Mechanism[Any], Float64], Reading]
READINGS: dict[str, Read] = {SHARE_KEPT: read_share_kept, BAYES_RECOVERY: read_recovery, WORST_N_W: read_worst}
"""Functions that read each figure from a mechanism and the frequencies of words."""


TARGETS = (SHARE_KEPT, PURE_EPSILON, BAYES_RECOVERY)
"""Figures that an epsilon can be asked for."""
MATCHES = (WORST_N_W, BAYES_RECOVERY)
"""Figures in which two mechanisms can be made equal."""
_LEAST = 1e-3
# Drawn figures have intervals wider than this, in the logarithm of epsilon.
_ROUGH = 4e-3
_NEAR = 0.9


class UnreachableError(ValueError):
    """Error for a figure that no epsilon gives."""


def find_target(subject: Subject, name: str, value: float) -> FoundEpsilon:
    """Find the epsilon, of three digits, that gives a figure, and measure the mechanism built there.

    The interval is that of a drawn figure, or the precision of the search. ``name``: ``share_kept``: the share of the
    vocabulary's words that stay themselves; each counts once. ``pure_epsilon``: the certified loss of a token between
    any two symbols, in nats; finds the largest epsilon that costs no more. ``bayes_recovery``: the share of words,
    frequent as in public text, that the best attacker recovers from one output. Raises :class:`ValueError` for a wrong
    name or value; :class:`UnreachableError` if no epsilon gives it, with the figures within reach; :class:`BundleError`
    if the mechanism cannot be built at its configured epsilon.
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

    ``by``: ``worst_n_w``, the share of draws in which the word that stays most often stays, or ``bayes_recovery``, each
    with its own vocabulary's frequencies. The interval covers the uncertainty of draws of both. Raises the errors of
    :func:`find_target`.
    """
    if by not in MATCHES:
        raise ValueError(f"Expected by={by} to be {' or '.join(MATCHES)}.")
    target = READINGS[by](other.mechanism, other.subject.frequencies)
    name = f"{by}={round_figure(target.value):g} of {other.subject.mechanism} at epsilon {other.epsilon:g}"
    return _find_figure(subject, READINGS[by], name, target)


def _find_figure(subject: Subject, read: Read, target: str, wanted: Reading) -> FoundEpsilon:
    min_epsilon = max(_LEAST, subject.least_epsilon)
    start = max(subject.settings.nominal_epsilon, min_epsilon)
    figures = FigureCache(
        lambda epsilon: subject.build(epsilon).mechanism, lambda mechanism: read(mechanism, subject.frequencies)
    )
    is_exact = figures.rebuild(start).is_exact and wanted.is_exact
    fine = FINE if is_exact else _ROUGH
    crossing, epsilon = find_built(figures, attrgetter("value"), wanted.value, start, min_epsilon, fine=fine, digits=3)
    if not crossing.is_reached:
        raise UnreachableError(_explain(subject, target, wanted, figures.seen))
    reached = figures.at(epsilon)
    if is_exact:
        low, high = (crossing.epsilon * math.exp(side * fine / 2) for side in (-1, 1))
        low, high = round_figure(min(low, epsilon)), round_figure(max(high, epsilon))
    else:
        low = find_epsilon(lambda at: figures.at(at).high, wanted.low, epsilon, min_epsilon, fine=fine).epsilon
        high = find_epsilon(lambda at: figures.at(at).low, wanted.high, epsilon, min_epsilon, fine=fine).epsilon
        low, high = round_down(min(low, epsilon), 3), round_up(max(high, epsilon), 3)
    return FoundEpsilon(target, epsilon, low, high, round_figure(reached.value), is_exact)


def _explain(subject: Subject, target: str, wanted: Reading, seen: Mapping[float, Reading]) -> str:
    lowest, highest = min(seen), max(seen)
    ends = " and ".join(f"{seen[epsilon].value:.3g} at epsilon {epsilon:.3g}" for epsilon in (lowest, highest))
    advice = "a larger" if seen[lowest].value > wanted.value else "a smaller"
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
    """Explain why no epsilon costs ``loss``. ``matched``: the epsilon with the largest loss below it, if any."""
    if matched is None:
        epsilon = max(subject.least_epsilon, min(subject.settings.nominal_epsilon, 1.0))
        costs, amount, advice = subject.build(epsilon).guarantee.pure, "little", "a larger"
    else:
        epsilon, costs, amount, advice = matched.epsilon, matched.built.guarantee.pure, "much", "a smaller"
    return (
        f"{PURE_EPSILON}={loss:g}: no epsilon of mechanism {subject.mechanism} costs so {amount}. It costs {costs:.4g} "
        f"nats at epsilon {epsilon:.3g}. Ask for {advice} loss, or name another mechanism."
    )
