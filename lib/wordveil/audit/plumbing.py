"""Does the configured epsilon reach the sampler?

Four places tell an epsilon: the recipe, which is the configuration's; the manifest's guarantee; the parameters that the
mechanism was loaded with; and what the mechanism draws with. The last one is not asked for but measured, for each kind
of mechanism in its own way:

- a pure table: the largest loss between two symbols is epsilon;
- an exponential mechanism: log odds fall by ``epsilon / 2`` per unit of its score, the distance; where ``tight`` chose
  the slope, by between that and epsilon. Of SynTF the score is the rating, ``sin^2(angle / 2)``;
- additive noise: the median radius is that of its law;
- the choice of a symbol (er-ae): the probability with which one is kept is the logistic function of ``epsilon / 2``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit
from scipy.stats import binom

from wordveil.artifacts.bundle import Bundle
from wordveil.audit.findings import Finding, Verdict
from wordveil.audit.noise import NoiseSample
from wordveil.audit.radial import RADIAL_LAWS
from wordveil.audit.symbols import SymbolSpace
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.measures.exact_loss import Loss
from wordveil.measures.output_law import spread_words
from wordveil.measures.posterior import require_law
from wordveil.measures.search import find_epsilon
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.er_ae.mechanism import ErAe
from wordveil.mechanisms.er_ae.symbol_choice import SymbolChoice
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.mechanisms.tables.syntf import SynTF
from wordveil.scores.binomial import bound_above, bound_below

TEST = "plumbing"
_WORDS = 64
# Whole numbers of tables, and the hair that a certified table leaves below epsilon, move an estimate by less.
_CLOSE = 1e-3
# Scores above 40 ln 2 are capped (:data:`wordveil.mechanisms.tables.table.MAX_SCORE`), so that log odds stop growing.
_STEEPEST = 27.0
_CHOICES = 2**16
# By what factor the noise's epsilon is looked for above and below the configured one.
_RANGE, _SAME = 100.0, 1e-9


@dataclass(frozen=True)
class Shown:
    """The epsilon that a mechanism was seen to draw with: between two numbers, and how that was seen."""

    low: float
    high: float
    how: str


def audit_epsilon(bundle: Bundle, shown: Shown | None) -> Finding:
    """Compare the epsilons that a bundle tells with the one that its mechanism shows (:func:`measure_epsilon`)."""
    claim = "The configured epsilon is the one that the manifest states and that the mechanism draws with."
    told = _told_epsilons(bundle)
    configured = told["the recipe"]
    for place, epsilon in told.items():
        if not math.isclose(epsilon, configured, rel_tol=1e-12):
            evidence = f"The recipe says epsilon {configured:g}, and {place} {epsilon:g}."
            return Finding(TEST, Verdict.REFUTED, claim, evidence)
    if shown is None:
        evidence = f"Recipe, manifest and parameters say {configured:g}. What is drawn with it could not be measured."
        return Finding(TEST, Verdict.NOT_TESTED, claim, evidence)
    fits = shown.low * (1 - _CLOSE) <= configured <= shown.high * (1 + _CLOSE)
    seen = f"{shown.low:.6g}" if shown.low == shown.high else f"between {shown.low:.6g} and {shown.high:.6g}"
    evidence = f"Recipe, manifest and parameters say {configured:g}; {shown.how} show {seen}."
    return Finding(TEST, Verdict.NOT_REFUTED if fits else Verdict.REFUTED, claim, evidence)


def _told_epsilons(bundle: Bundle) -> dict[str, float]:
    """What epsilon is by each place that tells one; 0 where there is none to configure."""
    manifest = bundle.manifest
    configured = float(manifest["recipe"]["settings"].get("epsilon", 0.0))
    parameters = manifest["content"]["parameters"]
    return {
        "the recipe": configured,
        "the manifest's guarantee": bundle.guarantee.nominal_epsilon,
        "the mechanism's parameters": float(parameters.get("epsilon", configured)),
    }


def measure_epsilon(
    bundle: Bundle,
    space: SymbolSpace,
    supremum: Loss | None,
    embedding: Embedding | None,
    noise: NoiseSample | None,
    alpha: float,
    seed: int,
) -> Shown | None:
    """The epsilon that a mechanism shows by its probabilities, by its noise, or by what it keeps.

    Parameters
    ----------
    bundle
        an opened bundle.
    space
        where its symbols lie.
    supremum
        the largest loss of its words, where it is known.
    embedding
        the embedding that the bundle was built from, where it is at hand.
    noise
        the noise of a mechanism that adds some.
    alpha
        the probability that an epsilon seen in draws is not between the two numbers.
    seed
        of what is drawn.

    Returns
    -------
    Shown or None
        None where it is not known how to see it, or the points are not at hand.
    """
    mechanism, settings = bundle.mechanism, bundle.manifest["recipe"]["settings"]
    if isinstance(mechanism, ErAe):
        return _measure_choice(mechanism.choice, alpha, seed)
    if noise is not None:
        return _measure_noise(mechanism, noise, bundle.guarantee.nominal_epsilon, alpha)
    if supremum is None:
        return None
    if mechanism.name in (Exponential.name, SynTF.name):
        return _measure_odds(bundle, space, embedding)
    if mechanism.is_pure:
        # Lists that stay in small classes may use less than the whole loss.
        most = math.inf if settings.get("classes") else supremum.nats
        return Shown(supremum.nats, most, "the probabilities of the table")
    return None


def _measure_odds(bundle: Bundle, space: SymbolSpace, embedding: Embedding | None) -> Shown | None:
    """What the log odds of a table show of words and their nearest neighbours."""
    score: Callable[[float], float] = float
    if bundle.mechanism.name == SynTF.name:
        if embedding is None:
            return None
        angular = SPACES["angular"]
        space = replace(space, space=angular, points=angular.points(embedding.vectors))
        score = _rate_angle
    slope = _measure_slope(bundle, space, score)
    if slope is None:
        return None
    is_tight = bundle.manifest["recipe"]["settings"].get("tight")
    return Shown(slope if is_tight else 2 * slope, 2 * slope, "the log odds of the table")


def _rate_angle(angle: float) -> float:
    """What the rating of two words lacks to 1."""
    return math.sin(angle / 2) ** 2


def _measure_noise(mechanism: Mechanism[Any], noise: NoiseSample, epsilon: float, alpha: float) -> Shown | None:
    """The epsilons for which the median radius is about the law's: the number of radii below that is binomial."""
    law = RADIAL_LAWS.get(mechanism.name)
    if law is None:
        return None
    median, n, count = np.median(noise.radii, keepdims=True).ravel(), noise.dimension, noise.radii.size
    low, high = (float(place) / count for place in binom.interval(1 - alpha, count, 0.5))
    least, most = max(epsilon / _RANGE, mechanism.min_epsilon(n)), epsilon * _RANGE

    def measure(at: float) -> float:  # the share of radii below the median rises with epsilon
        return float(law(median, n, at)[0])

    low, high = (find_epsilon(measure, share, epsilon, least, most, fine=_SAME).epsilon for share in (low, high))
    return Shown(low, high, f"{count:,} radii")


def _measure_choice(choice: SymbolChoice, alpha: float, seed: int) -> Shown:
    """What the choice keeps of a row with all its weight on one column, as often as ``sigma(epsilon / 2)``."""
    row = np.zeros((1, choice.columns), np.uint32)
    row[0, 0] = 2**31
    words = np.random.default_rng(seed).integers(2**64, size=(2 * choice.blocks, _CHOICES), dtype=np.uint64)
    kept = int((choice.draw(row, np.zeros(_CHOICES, np.int64), words) == 0).sum())
    low, high = bound_below(kept, _CHOICES, alpha / 2), bound_above(kept, _CHOICES, alpha / 2)
    return Shown(2 * float(logit(low)), 2 * float(logit(high)), f"{_CHOICES:,} choices")


def _measure_slope(bundle: Bundle, space: SymbolSpace, score: Callable[[float], float]) -> float | None:
    """By how much log odds fall per unit of the score: the median over words and their nearest neighbours."""
    slopes = [_slope_at(bundle, space, word, score) for word in spread_words(space.size, _WORDS).tolist()]
    found = [slope for slope in slopes if slope is not None]
    return float(np.median(found)) if found else None


def _slope_at(bundle: Bundle, space: SymbolSpace, word: int, score: Callable[[float], float]) -> float | None:
    """The slope from a word to its nearest neighbour; None where that has its point, or is too far to be told."""
    apart = space.distances(word)[: space.size]
    apart[word] = math.inf
    other = int(np.argmin(apart))
    if not 0 < apart[other] < math.inf:
        return None
    law = require_law(bundle.mechanism, word)
    if not law[other] > 0:
        return None
    fall = math.log(law[word] / law[other])
    capped = bundle.guarantee.metric.is_capped
    nearest = score(min(float(apart[other]), bundle.guarantee.diameter) if capped else float(apart[other]))
    return fall / nearest if nearest > 0 and 0 < fall < _STEEPEST else None
