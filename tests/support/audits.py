"""Small audits of mechanisms, and every shipped mechanism over a small vocabulary."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from support.toys import build_artifact, load_built, random_embedding
from wordveil.audit import repetition
from wordveil.audit.findings import Finding, Verdict
from wordveil.audit.noise import audit_noise, sample_noise
from wordveil.audit.repetition import audit_repetition
from wordveil.audit.two_phase import MechanismSampler, WordPair, audit_pairs
from wordveil.crypto.keys import MasterKey, ReleaseKeys
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import Example
from wordveil.privacy.guarantees import WordGuarantee

EPSILON = 2.0  # of the broken mechanisms
ALPHA = 0.01


def list_refuted(findings: list[Finding]) -> set[str]:
    return {finding.test for finding in findings if finding.verdict is Verdict.REFUTED}


def derive_keys(seed: int) -> ReleaseKeys:
    """Keys that repeat: a public key for each seed."""
    return MasterKey(bytes(range(50, 82))).for_release(f"auditor-{seed}")


def audit_mechanism(
    mechanism: Mechanism[Any], pairs: list[WordPair], seed: int, *, epsilon: float = EPSILON, draws: int = 1_000
) -> list[Finding]:
    """All tests that fit a mechanism, at a family-wise error of :data:`ALPHA`: words, noise, repetition."""
    keys = derive_keys(seed)
    length = 1 if mechanism.reads_context else 64
    sampler = MechanismSampler(mechanism, keys, length)
    findings = list(audit_pairs(sampler, pairs, alpha=ALPHA / 3, draws=draws, rounds=1))
    if (sample := sample_noise(mechanism, keys, records=draws, seed=seed)) is not None:
        findings += audit_noise(sample, mechanism.radial_law, epsilon, alpha=ALPHA / 3)
    if not mechanism.reads_context:
        lags = [lag for lag in repetition.LAGS if lag < 2**16]
        words = pairs[0].first, pairs[0].second
        findings.append(audit_repetition(mechanism, keys, words, alpha=ALPHA / 3, seed=seed, lags=lags))
    return findings


WORDS = 100
SHIPPED: dict[str, tuple[type[Mechanism[Any]], Example]] = {
    f"{name} {label}".strip(): (kind, example)
    for name, kind in MECHANISMS.items()
    for label, example in kind.examples().items()
    if not example.extra or find_spec(example.extra) is not None
}
"""Every mechanism of the registry with each of its examples, by name."""


def make_space(name: str) -> Embedding:
    embedding = random_embedding(WORDS, 12)
    if SHIPPED[name][1].small.terms.metric != "hyperbolic":
        return embedding
    longest = float(np.linalg.norm(embedding.vectors, axis=1).max())
    return replace(embedding, vectors=embedding.vectors * np.float32(0.6 / longest))


@cache
def build_shipped(name: str) -> tuple[Mechanism[Any], WordGuarantee, tuple[WordPair, ...]]:
    """A mechanism of a small vocabulary, what it guarantees, and pairs of words with that as their claim."""
    kind, example = SHIPPED[name]
    embedding = make_space(name)
    built = build_artifact(kind, embedding, example.small, padding=kind.draws_texts)
    guarantee = built.guarantee
    space = SPACES.get(guarantee.metric.name.removesuffix("-capped"))
    points = None if space is None else space.points(embedding.vectors)
    pairs = []
    for word in range(3):
        others = np.arange(WORDS) != word
        apart = np.full(WORDS, np.inf) if space is None else space.distances(points[word], points)
        near = int(np.flatnonzero(others)[np.argmin(apart[others])])
        for other, why in ((near, "nearest"), (WORDS - 1 - word, "random")):
            bound = guarantee.bound(float(apart[other]))
            pairs.append(WordPair(word, other, bound, guarantee.delta, why))
    return load_built(kind, WORDS, built), guarantee, tuple(pairs)


def audit_shipped(name: str, seed: int, draws: int) -> list[Finding]:
    mechanism, guarantee, pairs = build_shipped(name)
    return audit_mechanism(mechanism, list(pairs), seed, epsilon=guarantee.nominal_epsilon, draws=draws)
