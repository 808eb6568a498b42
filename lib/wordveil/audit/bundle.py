"""Audit of a bundle's claims, from the bundle alone.

If the mechanism has exact probabilities, the largest loss is computed and compared with the certified one, and draws
are compared with the probabilities. If it adds noise, the noise itself is tested. In both cases draws of pairs of
symbols try to refute the claimed loss between them (:mod:`wordveil.audit.two_phase`).

The audit also tests whether the configured epsilon reaches the sampler: it compares the epsilons in the recipe, in the
manifest's guarantee, in the parameters that the mechanism was loaded with, and in its draws, by the median radius of
additive noise or :meth:`wordveil.mechanisms.base.Mechanism.shown_epsilon`.

All draws are of public words, with a public key for each purpose and seed. So an audit can be repeated, and reveals
nothing about any release. The audit tests draws; the written words are a function of these and of public data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, kstest

from wordveil.arrays import Int32
from wordveil.artifacts.bundle import Bundle
from wordveil.audit import two_phase
from wordveil.audit.findings import BUNDLE, DRAWS_FACT, TESTS_FACT, TESTS_VERSION, Audit, Finding, Verdict
from wordveil.audit.noise import NoiseSample, audit_noise, sample_noise
from wordveil.audit.repetition import CLAIM, audit_repetition
from wordveil.crypto.keys import ReleaseKeys
from wordveil.embeddings.embedding import Embedding
from wordveil.measures.losses import Loss, SymbolSpace, find_loss, find_space, find_supremum
from wordveil.measures.recovery import draw_publicly, make_public_keys, require_law
from wordveil.measures.search import find_epsilon
from wordveil.measures.token_draws import as_records, spread_words
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import Evidence, ExactLoss, ShownEpsilon
from wordveil.privacy.recovery import SUBJECT
from wordveil.version import __version__


def choose_symbol_pairs(space: SymbolSpace, counts: two_phase.PairCounts, seed: int) -> list[two_phase.WordPair]:
    """Choose pairs of symbols of all kinds; without known distances, random pairs replace the nearest."""
    if space.space is None:
        counts = replace(counts, nearest=0, farthest=0, random=counts.random + counts.nearest)
    guarantee = space.guarantee
    pairs = two_phase.choose_pairs(
        np.arange(space.size, dtype=np.int32),
        lambda word, others: space.distances(word)[others],
        guarantee.bound,
        counts=counts,
        seed=seed,
        delta=guarantee.delta,
        symbols=dict(zip(("unknown", "padding"), space.others, strict=False)),
    )
    both = [two_phase.WordPair(space.size + 1, space.size, 0.0, guarantee.delta, "padding")] if space.padding else []
    # If noise is added, the unknown word and padding have points too.
    chosen = [*pairs, *both]
    distances = [float(space.distances(pair.first)[pair.second]) for pair in chosen]
    return [replace(pair, bound=guarantee.bound(distance)) for pair, distance in zip(chosen, distances, strict=True)]


ROUNDING = 1e-9
"""Largest excess of a computed loss over a true claim: laws are float64, and certificates are rounded up."""


def find_excess(mechanism: Mechanism[Any], pairs: Iterable[two_phase.WordPair]) -> tuple[Loss, float] | None:
    """Find the loss and the bound of the pair of symbols whose loss exceeds its bound most; None without pairs."""
    losses = [(find_loss(mechanism, pair.first, pair.second), pair.bound) for pair in pairs]
    return max(losses, key=lambda row: row[0].nats - row[1], default=None)


def find_deviation(
    mechanism: Mechanism[Any], words: Int32, drawn: NDArray[np.integer[Any]], seed: int
) -> tuple[float, float]:
    """Measure how far draws are from the probabilities that the mechanism states.

    Each draw becomes a number that is uniform in [0, 1] if and only if it follows its law: outputs are sorted by
    falling probability, and a draw becomes a random point of its output's range (Rosenblatt 1952, randomised for laws
    that are not continuous). All numbers are compared with the uniform law by Kolmogorov and Smirnov.

    ``words``: int32 ``(words,)``. ``drawn``: int ``(words, draws)``, their outputs. Returns the largest distance of the
    two distribution functions, from 0 to 1, and its p-value; ``(1.0, 0.0)`` if a law rules an output out.
    """
    uniform = np.random.default_rng(seed).random(drawn.shape)
    points = np.empty(drawn.shape)
    for row, word in enumerate(words.tolist()):
        law = require_law(mechanism, word)
        order = np.argsort(-law, kind="stable")
        below = np.empty(len(law))
        below[order] = np.concatenate([[0.0], np.cumsum(law[order])[:-1]])
        if (drawn[row] >= len(law)).any() or not law[drawn[row]].all():
            return 1.0, 0.0
        points[row] = below[drawn[row]] + uniform[row] * law[drawn[row]]
    test = kstest(np.minimum(points.ravel(), 1.0), "uniform")
    return float(test.statistic), float(test.pvalue)


def exceeds(loss: float, claim: float) -> bool:
    """Return whether a computed loss exceeds a claim by more than rounding."""
    return not loss <= claim + ROUNDING * max(1.0, abs(claim)) or math.isnan(claim)


TEST = "plumbing"
_WORDS = 64
# The rounding of tables to whole numbers, and what a certified table leaves below epsilon, move an estimate by less.
_CLOSE = 1e-3
# The factor around the configured epsilon within which the noise's is searched for, and the precision of the search.
_RANGE, _SAME = 100.0, 1e-9


def audit_epsilon(bundle: Bundle, shown: ShownEpsilon | None) -> Finding:
    """Compare the epsilons that a bundle states with the one that its mechanism shows."""
    claim = "The configured epsilon is the one that the manifest states and that the mechanism draws with."
    configured = float(bundle.manifest["recipe"]["settings"].get("epsilon", 0.0))  # 0 if there is no epsilon
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


ALPHA, DRAWS, SEED = 0.01, 4_000, 0
# Pairs of the two-phase tests, and of the exact metric bound.
_PAIRS, _METRIC_PAIRS = two_phase.PairCounts(4, 2, 2, 2), two_phase.PairCounts(256, 32, 32, 16)
# Words that are drawn to compare draws with probabilities, and words at which the diameter is measured.
_LAW_WORDS, _LAW_DRAWS, _FAR_WORDS = 200, 100, 200
_OUTPUT_WORDS, _OUTPUT_DRAWS = 100, 5
# Draws of noise take long, and its own test covers far positions; in many dimensions more draws of words add no power.
_REPEATED_WORDS, _LAGS, _LAGS_OF_NOISE = 2, (1, 2**8, 2**16), (1, 2**8)
_ROUNDS_OF_NOISE = 1
# The parts that share alpha: pairs, draws against probabilities, noise, repetition, the epsilon shown.
_PARTS = 5


@dataclass(frozen=True)
class _Subject:
    """Subject of an audit, with its terms."""

    bundle: Bundle
    space: SymbolSpace
    alpha: float
    draws: int
    seed: int
    embedding: Embedding | None

    @property
    def mechanism(self) -> Mechanism[Any]:
        return self.bundle.mechanism

    @cached_property
    def supremum(self) -> Loss | None:
        return find_supremum(self.mechanism, self.space.size, self.space.others)

    @property
    def exact_loss(self) -> ExactLoss | None:
        """Loss that the mechanism states, or the one computed from its probabilities."""
        if (told := self.mechanism.exact_loss()) is not None or self.supremum is None:
            return told
        return ExactLoss(self.supremum.nats, self.describe(self.supremum))

    @cached_property
    def keys(self) -> ReleaseKeys:
        return make_public_keys(f"audit {self.seed}")

    @cached_property
    def noise(self) -> NoiseSample | None:
        """Noise of a mechanism that adds some."""
        return sample_noise(self.mechanism, self.keys, seed=self.seed)

    @property
    def is_known(self) -> bool:
        return not self.mechanism.reads_context and self.mechanism.probabilities(0) is not None

    def show(self, symbol: int) -> str:
        """Show a symbol for people, except for the outputs of private weights."""
        return "a symbol" if self.mechanism.private_weights else self.space.name(symbol)

    def describe(self, loss: Loss) -> str:
        first, second = self.space.name(loss.likely), self.space.name(loss.unlikely)
        often, seldom = f"{loss.high:.4g}", "never" if loss.low == 0 else f"with {loss.low:.4g}"
        return f"{first} becomes {self.space.name(loss.output)} with probability {often}, {second} {seldom}."


def audit_bundle(
    bundle: Bundle,
    embedding: Embedding | None = None,
    *,
    alpha: float = ALPHA,
    draws: int = DRAWS,
    seed: int = SEED,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Try to refute the claims of a bundle. The same arguments give the same findings.

    ``embedding``: the public one that it was built from; without it, claims of tables about distances are not tested.
    ``alpha``: the probability that any true claim is refuted, over all tests, in (0, 1). ``draws``: for each symbol, in
    each phase of the first round of two-phase tests, 2 or more. ``progress``: receives the name of each test before it
    starts. Raises :class:`ValueError` if the embedding has other words, or a number is out of range.
    """
    if not (0 < alpha < 1 and draws >= 2 and seed >= 0):
        raise ValueError(f"Expected alpha={alpha} in (0, 1), draws={draws} of 2 or more, seed={seed} of 0 or more.")
    subject = _Subject(bundle, find_space(bundle, embedding), alpha / _PARTS, draws, seed, embedding)
    findings: list[Finding] = []
    for title, test in _TESTS.items():
        progress(title)
        findings += _timed(test(subject))
    return Audit(
        kind=BUNDLE,
        subject=f"bundle {bundle.fingerprint[:16]}",
        identity=bundle.fingerprint,
        facts=_facts(subject),
        alpha=alpha,
        findings=tuple(findings),
        notes=tuple(_notes(subject)),
    )


def _timed(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Add the processor time to findings whose test has not measured it."""
    started = time.process_time()
    for finding in findings:
        yield finding if finding.seconds else replace(finding, seconds=time.process_time() - started)
        started = time.process_time()


def _facts(subject: _Subject) -> dict[str, str]:
    bundle, guarantee = subject.bundle, subject.bundle.guarantee
    words, token = ("words", "token") if bundle.topics is None else ("subjects", "text")
    return {
        "mechanism": bundle.mechanism.name,
        "fingerprint": bundle.fingerprint,
        words: f"{subject.space.size:,}",
        **({} if bundle.topics else {"padding": "yes" if subject.space.padding else "no"}),
        "epsilon": f"{guarantee.nominal_epsilon:g} configured, {guarantee.epsilon:g} certified",
        "metric": guarantee.metric.identifier,
        f"loss of a {token}": f"{guarantee.pure:g} at most, delta {guarantee.delta:g}",
        DRAWS_FACT: f"{subject.draws:,}",
        "seed": str(subject.seed),
        "wordveil": __version__,
        "sampler version": str(bundle.manifest["content"]["sampler_version"]),
        TESTS_FACT: TESTS_VERSION,
    }


def _notes(subject: _Subject) -> Iterator[str]:
    if subject.mechanism.reads_context:
        yield (
            f"{subject.mechanism.name} reads whole texts. Single choices and short texts are tested; the sum over a "
            "text's tokens rests on the proof that each choice is bounded whatever was read."
        )
    if subject.mechanism.private_weights:
        yield "the private corpus trained this mechanism's weights: this audit is internal, do not publish it."
    if subject.bundle.guarantee.delta:
        yield "delta is too small for any number of draws to show: the digits that it stands for are not tested."
    if subject.mechanism.is_pure and subject.bundle.guarantee.pure == 0:
        yield "the mechanism's outputs do not depend on the word."


def _test_supremum(subject: _Subject) -> Iterator[Finding]:
    """Compare the largest loss between any two symbols, computed, with the certified one."""
    claim = "No two symbols (words, unknown word, padding) lose more than the certified loss of a token."
    if subject.space.of == SUBJECT:
        claim = "No two texts lose more than the certified loss of a text."
    claimed, exact = subject.bundle.guarantee.pure, subject.exact_loss
    if exact is None:
        why = "The mechanism's probabilities are not known: draws are tested."
        yield Finding("supremum", Verdict.NOT_TESTED, claim, why, claimed)
    else:
        verdict = Verdict.REFUTED if exceeds(exact.nats, claimed) else Verdict.HOLDS
        yield Finding("supremum", verdict, claim, exact.reason, claimed, exact.nats)


def _test_metric(subject: _Subject) -> Iterator[Finding]:
    """Test the bound that grows with distance: exact for pairs of a table; for noise, the diameter."""
    guarantee, space = subject.bundle.guarantee, subject.space
    claim = "The loss between two symbols is at most epsilon times their distance, plus the slack."
    if guarantee.metric.is_discrete:
        return
    if space.space is None:
        why = "The embedding is not at hand, and the bundle of a table stores no points."
        yield Finding("metric", Verdict.NOT_TESTED, claim, why)
        return
    if subject.is_known:
        pairs = choose_symbol_pairs(space, _METRIC_PAIRS, subject.seed)
        worst = find_excess(subject.mechanism, pairs)
        assert worst is not None  # there is at least the unknown word
        loss, bound = worst
        verdict = Verdict.REFUTED if exceeds(loss.nats, bound) else Verdict.HOLDS
        evidence = f"Of {len(pairs):,} pairs, exactly: {subject.describe(loss)}"
        yield Finding("metric", verdict, claim, evidence, bound, loss.nats)
    yield _test_cap(subject) if guarantee.metric.is_capped else _test_diameter(subject)


def _test_diameter(subject: _Subject) -> Finding:
    space, diameter = subject.space, subject.bundle.guarantee.diameter
    claim = f"No two symbols are farther apart than the certified diameter, {diameter:g}."
    farthest = []
    for symbol in [*spread_words(space.size, _FAR_WORDS).tolist(), *space.others]:
        distances = np.nan_to_num(space.distances(symbol), posinf=0.0)
        farthest.append((float(distances.max()), symbol, int(np.argmax(distances))))
    apart, first, second = max(farthest)
    evidence = f"{space.name(first)} and {space.name(second)} are {apart:.6g} apart, the farthest pair measured."
    verdict = Verdict.REFUTED if exceeds(apart, diameter) else Verdict.NOT_REFUTED
    return Finding("diameter", verdict, claim, evidence)


def _test_cap(subject: _Subject) -> Finding:
    """Test that the largest of capped distances is the cap."""
    diameter, cap = subject.bundle.guarantee.diameter, subject.bundle.manifest["recipe"]["settings"].get("gamma")
    claim = f"Distances are capped at the certified diameter, {diameter:g}."
    verdict = Verdict.HOLDS if cap == diameter else Verdict.REFUTED
    return Finding("diameter", verdict, claim, f"The recipe says gamma {cap}.")


def _test_law(subject: _Subject) -> Iterator[Finding]:
    """Test draws against the probabilities that the mechanism states."""
    claim = "Draws follow the probabilities from which the loss is computed."
    if not subject.is_known:
        return
    words = np.array([*spread_words(subject.space.size, _LAW_WORDS), *subject.space.others], np.int32)
    repeated = np.repeat(words, _LAW_DRAWS)
    drawn = draw_publicly(subject.mechanism, repeated, f"audit {subject.seed} law").reshape(len(words), _LAW_DRAWS)
    distance, p_value = find_deviation(subject.mechanism, words, drawn, subject.seed)
    verdict = Verdict.REFUTED if p_value < subject.alpha else Verdict.NOT_REFUTED
    evidence = f"The distribution functions of draws and probabilities are at most {distance:.3g} apart."
    yield Finding("law", verdict, claim, evidence, p_value=p_value, draws=len(repeated))


def _test_outputs(subject: _Subject) -> Iterator[Finding]:
    """Test whether draws are outputs at all: a symbol that is copied through reveals itself."""
    space, claim = subject.space, "Every output is a word, or padding where texts are padded."
    if space.of == SUBJECT:
        claim = "Every output is a subject, or that of a text without a known word."
    inputs = np.repeat(np.array([*spread_words(space.size, _OUTPUT_WORDS), *space.others], np.int32), _OUTPUT_DRAWS)
    offsets = np.arange(len(inputs) + 1, dtype=np.int64)
    batch = as_records(inputs, offsets, [b"outputs %d" % record for record in range(len(inputs))], subject.keys)
    drawn = subject.mechanism.draw(batch, subject.keys).ids
    wrong = np.flatnonzero((drawn < 0) | (drawn >= space.size + space.padding))
    verdict = Verdict.REFUTED if len(wrong) else Verdict.NOT_REFUTED
    evidence = f"{len(wrong):,} of {len(inputs):,} outputs are none of these."
    if len(wrong):
        evidence += f" The first is drawn for {subject.show(int(inputs[wrong[0]]))}."
    yield Finding("outputs", verdict, claim, evidence, draws=len(inputs))


def _test_pairs(subject: _Subject) -> Iterator[Finding]:
    """Test pairs of symbols in two phases."""
    space = subject.space
    pairs = choose_symbol_pairs(space, _PAIRS, subject.seed)
    if (worst := subject.supremum) is not None and worst.likely != worst.unlikely:
        bound = subject.bundle.guarantee.pure
        pairs.append(two_phase.WordPair(worst.likely, worst.unlikely, bound, kind="worst"))
    padding = {space.spell(space.size): space.size} if space.padding else {}
    naming = two_phase.Naming(show=subject.show, symbols=padding, known=range(space.size + space.padding), of=space.of)
    reads_context = subject.mechanism.reads_context
    sampler = two_phase.MechanismSampler(subject.mechanism, subject.keys, 1 if reads_context else two_phase.LENGTH)
    alpha = subject.alpha / 2 if reads_context else subject.alpha
    rounds = two_phase.ROUNDS if subject.noise is None else _ROUNDS_OF_NOISE
    yield from two_phase.audit_pairs(sampler, pairs, alpha=alpha, draws=subject.draws, rounds=rounds, naming=naming)
    if reads_context:
        yield from _test_texts(subject, alpha)


def _test_texts(subject: _Subject, alpha: float) -> Iterator[Finding]:
    """Test two texts of two words without a word in common, for a mechanism that reads whole texts."""
    size = subject.space.size
    words = [quarter * size // 4 for quarter in range(4)]
    sampler = two_phase.TextSampler(subject.mechanism, size + 1, subject.keys, {-1: words[:2], -2: words[2:]})
    pairs = [two_phase.WordPair(-1, -2, 2 * subject.bundle.guarantee.pure, kind="texts")]
    naming = two_phase.Naming(show=lambda text: " ".join(map(subject.show, sampler.symbols_of(text))))
    yield from two_phase.audit_pairs(sampler, pairs, alpha=alpha, draws=subject.draws, naming=naming)


def _test_epsilon(subject: _Subject) -> Iterator[Finding]:
    yield audit_epsilon(subject.bundle, _measure_epsilon(subject))


def _measure_epsilon(subject: _Subject) -> ShownEpsilon | None:
    """Measure the epsilon that a mechanism shows by its probabilities, by its noise, or by the words it keeps.

    Return None if no such measurement is known, or the points are missing. An epsilon seen in draws is outside the
    interval with a probability of alpha.
    """
    guarantee, space, worst = subject.bundle.guarantee, subject.space, subject.supremum
    if subject.noise is not None:
        return _measure_noise(subject.mechanism, subject.noise, guarantee.nominal_epsilon, subject.alpha)
    evidence = Evidence(
        settings=subject.bundle.manifest["recipe"]["settings"],
        words=spread_words(space.size, _WORDS),
        distances=lambda word: space.distances(word)[: space.size],
        cap=guarantee.diameter if guarantee.metric.is_capped else math.inf,
        embedding=subject.embedding,
        loss=None if worst is None else worst.nats,
        alpha=subject.alpha,
        random_words=lambda shape: np.random.default_rng(subject.seed).integers(2**64, size=shape, dtype=np.uint64),
    )
    return subject.mechanism.shown_epsilon(evidence)


def _measure_noise(mechanism: Mechanism[Any], noise: NoiseSample, epsilon: float, alpha: float) -> ShownEpsilon | None:
    """Find the epsilons whose law has about this median radius: the radii below it are binomially distributed."""
    law = mechanism.radial_law
    if law is None:
        return None
    median, n, count = np.median(noise.radii, keepdims=True).ravel(), noise.dimension, noise.radii.size
    low, high = (float(below) / count for below in binom.interval(1 - alpha, count, 0.5))
    min_epsilon, max_epsilon = max(epsilon / _RANGE, mechanism.min_epsilon(n)), epsilon * _RANGE

    def measure(at: float) -> float:  # the share of radii below the median rises with epsilon
        return float(law(median, n, at)[0])

    low, high = (
        find_epsilon(measure, share, epsilon, min_epsilon, max_epsilon, fine=_SAME).epsilon for share in (low, high)
    )
    return ShownEpsilon(low, high, f"{count:,} radii")


def _test_noise(subject: _Subject) -> Iterator[Finding]:
    """Test radius, direction, independence and repetition of additive noise."""
    law = subject.mechanism.radial_law
    if subject.noise is not None and law is not None:
        epsilon = subject.bundle.guarantee.nominal_epsilon
        yield from audit_noise(subject.noise, law, epsilon, alpha=subject.alpha)


def _test_repetition(subject: _Subject) -> Iterator[Finding]:
    """Test whether draws repeat at other positions, in other records and in other versions of a record."""
    if subject.mechanism.reads_context or subject.space.size < 2:
        why = "A word's outputs depend on the words before it, so series of outputs cannot be compared."
        yield Finding("repetition", Verdict.NOT_TESTED, CLAIM, why)
        return
    words = spread_words(subject.space.size, _REPEATED_WORDS).tolist()
    lags = _LAGS if subject.noise is None else _LAGS_OF_NOISE
    yield audit_repetition(subject.mechanism, subject.keys, words, alpha=subject.alpha, seed=subject.seed, lags=lags)


_TESTS: dict[str, Callable[[_Subject], Iterator[Finding]]] = {
    "computing the largest loss": _test_supremum,
    "comparing losses with distances": _test_metric,
    "comparing draws with probabilities": _test_law,
    "looking for the configured epsilon": _test_epsilon,
    "looking at outputs": _test_outputs,
    "looking at the noise": _test_noise,
    "looking for draws that repeat": _test_repetition,
    "drawing pairs of symbols": _test_pairs,
}
