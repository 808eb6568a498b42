"""Does the configured epsilon reach the sampler?

An epsilon stands in the recipe, which comes from the configuration; in the manifest's guarantee; in the parameters that
the mechanism was loaded with; and in what the mechanism draws. The last is measured. The median radius of additive
noise is that of its law. Each other mechanism says how to see its epsilon
(:meth:`wordveil.mechanisms.base.Mechanism.shown_epsilon`):

- a pure table: the largest loss between two symbols is epsilon;
- an exponential mechanism: log odds fall by ``epsilon / 2`` per unit of its score, the distance; where ``tight`` chose
  the slope, by between that and epsilon;
- the choice of a symbol (er-ae): a symbol is kept with the probability ``1 / (1 + exp(-epsilon / 2))``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binom

from wordveil.artifacts.bundle import Bundle
from wordveil.audit.findings import Finding, Verdict
from wordveil.audit.noise import NoiseSample
from wordveil.embeddings.embedding import Embedding
from wordveil.measures.exact_loss import Loss
from wordveil.measures.search import find_epsilon
from wordveil.measures.symbols import SymbolSpace
from wordveil.measures.token_draws import spread_words
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import Evidence, ShownEpsilon

TEST = "plumbing"
_WORDS = 64
# The rounding of tables to whole numbers, and what a certified table leaves below epsilon, move an estimate by less.
_CLOSE = 1e-3
# The factor around the configured epsilon within which the noise's is searched for, and the precision of the search.
_RANGE, _SAME = 100.0, 1e-9


def audit_epsilon(bundle: Bundle, shown: ShownEpsilon | None) -> Finding:
    """Compare the epsilons that a bundle states with the one that its mechanism shows (:func:`measure_epsilon`)."""
    claim = "The configured epsilon is the one that the manifest states and that the mechanism draws with."
    configured = float(bundle.manifest["recipe"]["settings"].get("epsilon", 0.0))  # 0 where there is none to configure
    stated = {
        "the manifest's guarantee": bundle.guarantee.nominal_epsilon,
        "the mechanism's parameters": float(bundle.manifest["content"]["parameters"].get("epsilon", configured)),
    }
    for source, epsilon in stated.items():
        if not math.isclose(epsilon, configured, rel_tol=1e-12):
            evidence = f"The recipe says epsilon {configured:g}, and {source} {epsilon:g}."
            return Finding(TEST, Verdict.REFUTED, claim, evidence)
    if shown is None:
        evidence = f"Recipe, manifest and parameters say {configured:g}. What is drawn with it could not be measured."
        return Finding(TEST, Verdict.NOT_TESTED, claim, evidence)
    fits = shown.low * (1 - _CLOSE) <= configured <= shown.high * (1 + _CLOSE)
    seen = f"{shown.low:.6g}" if shown.low == shown.high else f"between {shown.low:.6g} and {shown.high:.6g}"
    evidence = f"Recipe, manifest and parameters say {configured:g}; {shown.shown_by} show {seen}."
    return Finding(TEST, Verdict.NOT_REFUTED if fits else Verdict.REFUTED, claim, evidence)


def measure_epsilon(
    bundle: Bundle,
    space: SymbolSpace,
    supremum: Loss | None,
    embedding: Embedding | None,
    noise: NoiseSample | None,
    alpha: float,
    seed: int,
) -> ShownEpsilon | None:
    """Measure the epsilon that a mechanism shows by its probabilities, by its noise, or by what it keeps.

    None if no such measurement is known, or the points are missing.

    ``supremum``: the largest loss of its words, if it is known. ``alpha``: the probability that an epsilon seen in
    draws is outside the returned interval. ``seed``: of the draws.
    """
    if noise is not None:
        return _measure_noise(bundle.mechanism, noise, bundle.guarantee.nominal_epsilon, alpha)
    guarantee = bundle.guarantee
    evidence = Evidence(
        settings=bundle.manifest["recipe"]["settings"],
        words=spread_words(space.size, _WORDS),
        distances=lambda word: space.distances(word)[: space.size],
        cap=guarantee.diameter if guarantee.metric.is_capped else math.inf,
        embedding=embedding,
        loss=None if supremum is None else supremum.nats,
        alpha=alpha,
        random_words=lambda shape: np.random.default_rng(seed).integers(2**64, size=shape, dtype=np.uint64),
    )
    return bundle.mechanism.shown_epsilon(evidence)


def _measure_noise(mechanism: Mechanism[Any], noise: NoiseSample, epsilon: float, alpha: float) -> ShownEpsilon | None:
    """Find the epsilons whose law has about this median radius: the number of radii below the law's median is
    binomial.
    """
    law = mechanism.radial_law
    if law is None:
        return None
    median, n, count = np.median(noise.radii, keepdims=True).ravel(), noise.dimension, noise.radii.size
    low, high = (float(below) / count for below in binom.interval(1 - alpha, count, 0.5))
    least, most = max(epsilon / _RANGE, mechanism.min_epsilon(n)), epsilon * _RANGE

    def measure(at: float) -> float:  # the share of radii below the median rises with epsilon
        return float(law(median, n, at)[0])

    low, high = (find_epsilon(measure, share, epsilon, least, most, fine=_SAME).epsilon for share in (low, high))
    return ShownEpsilon(low, high, f"{count:,} radii")
