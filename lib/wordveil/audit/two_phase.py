"""Refutation of a bound on a loss by draws: some choose an event, fresh ones test it.

Mechanisms are sampled as black boxes of words or of texts, under public keys.

A mechanism ``M`` claims that ``Pr[M(w) in S] <= exp(bound) Pr[M(v) in S] + delta`` for every set ``S`` of outputs.
Draws of both words choose a set, in each direction. Fresh draws count it: ``k`` of ``n`` for the first word and ``l``
of ``n`` for the second. Bounds of Clopper and Pearson (:mod:`wordveil.scores.counts`), each wrong with a probability of
at most ``tail``, give ``P_low`` and ``Q_high``. The claim is refuted if ``P_low > exp(bound) Q_high + delta``.

**Events.** Half of the draws that choose rank the outputs by their likelihood ratios, and the other half choose a set
from that ranking. With the same draws for both, a set that came by chance alone would look best.

**Correction** (Bonferroni). With ``m`` tests, two directions of each pair in each round, ``tail = alpha / (2 m)``. A
test refutes a true claim only if one of its two bounds is wrong, so any of them does with a probability of at most
``alpha``. The choice of the event does not matter: given the draws that chose it, it is fixed. Words may share draws,
since nothing is assumed about the dependence of tests.

**Rounds.** A round draws twice as often as the one before, and later rounds run only while nothing is refuted. All
rounds are counted in ``m`` from the start, so it does not matter when they end.

**Power.** Let ``p = k / n``, and let ``l*`` be the largest ``l`` for which ``P_low > exp(bound) Q_high + delta``, with
``k`` as counted. Let ``q`` be the upper bound of Clopper and Pearson for ``l*`` hits at the tail 1/2. Had the true loss
of the event been ``L = ln((p - delta) / q)`` or more, at the same ``P(S) = p``, then ``Q(S) <= q``. By the definition
of ``q``, at most ``l*`` hits would then have come with a probability of at least 1/2, and the claim would have been
refuted. So the least factor is ``L / bound``. If even ``l = 0`` refutes nothing, it is infinite. ``Q_high`` of 0 hits
is ``1 - tail^(1/n)``, nearly ``ln(1/tail) / n``, and ``P_low`` is at most 1: so the factor is infinite for every event
where the bound exceeds ``ln(n / ln(1/tail))``, which is ``ln(n / ln(2/alpha))`` for a single test.

Two phases, one that chooses an event and one that tests it: Ding, Wang, Wang, Zhang and Kifer 2018, "Detecting
Violations of Differential Privacy"; Bichsel, Gehr, Drachsler-Cohen, Tsankov and Vechev 2018, "DP-Finder".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from scipy.stats import binom

from wordveil.arrays import Float64, Int32, Int64
from wordveil.audit.findings import Finding, Verdict
from wordveil.crypto.keys import ReleaseKeys
from wordveil.measures.token_draws import as_records
from wordveil.mechanisms.base import Mechanism
from wordveil.privacy.recovery import SUBJECT, WORD
from wordveil.scores.counts import bound_above, bound_below

# Single outputs and, at most, sets of the ranking to try; and outputs of a set to show.
_SINGLES, _SETS, _SHOWN = 32, 48, 3
_OWN_AND_OTHER = {
    WORD: ("the word itself", "the other word"),
    SUBJECT: ("the text's own subject", "the other text's subject"),
}


@dataclass(frozen=True)
class OutputEvent:
    """Set of outputs, int64, rising, or of all others if ``is_rest``. ``name``: for people; empty if redundant."""

    outputs: Int64
    is_rest: bool = False
    name: str = ""

    def count(self, drawn: Int64) -> int:
        """Count those of ``drawn``, int64 ``(draws,)``, that are in the event."""
        inside = int(np.isin(drawn, self.outputs).sum())
        return len(drawn) - inside if self.is_rest else inside

    def describe(self, show: Callable[[int], str]) -> str:
        """Describe the event in words. ``show``: formats an output for people."""
        if self.name:
            return self.name
        some = ", ".join(show(output) for output in self.outputs[:_SHOWN].tolist())
        if len(self.outputs) == 1:
            return f"{'any output but' if self.is_rest else 'the output'} {some}"
        more = ", ..." if len(self.outputs) > _SHOWN else ""
        return f"{'none' if self.is_rest else 'one'} of {len(self.outputs):,} outputs ({some}{more})"


def find_excess(bound: float | Float64, delta: float | Float64, low: Float64, high: Float64) -> Float64:
    """Compute ``ln((low - delta) / high) - bound``, in nats: float64 of the shape of all.

    ``low``, ``high``: a lower bound of ``P(S)``, an upper bound of ``Q(S)``. ``-inf`` if ``low`` is at most ``delta``.
    """
    with np.errstate(divide="ignore"):
        losses = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return np.asarray(losses - bound)


def name_events(first: int, second: int, naming: Naming) -> list[OutputEvent]:
    """List events that are tried for every pair of words, besides those that draws suggest."""
    named = zip(_OWN_AND_OTHER[naming.of], (first, second), strict=True)
    events = [OutputEvent(np.array([output]), name=name) for name, output in (*named, *naming.symbols.items())]
    if naming.known is not None:
        outside = OutputEvent(
            np.unique(np.fromiter(naming.known, np.int64)), is_rest=True, name="an output outside the known ones"
        )
        events.append(outside)
    return events


def choose_event(
    likely: Int64, unlikely: Int64, pair: WordPair, named: list[OutputEvent], draws: int, tail: float
) -> OutputEvent:
    """Choose the event that most probably refutes the claim about a pair.

    ``likely``, ``unlikely``: int64 ``(draws,)``, outputs of the word whose probability should be large, and of the
    other word. ``named``: events to try in any case. ``draws``: number of draws of each word in the test. ``tail``: of
    each bound of the test.
    """
    likely_half, unlikely_half = len(likely) // 2, len(unlikely) // 2
    order, hits = _rank_outputs(likely, unlikely, likely_half, unlikely_half)
    spans, counted = _list_candidates(hits)
    of_named = [(event.count(likely[likely_half:]), event.count(unlikely[unlikely_half:])) for event in named]
    # Named events come first: they win ties, since their names say more.
    counted = np.concatenate([np.array(of_named, np.int64).reshape(-1, 2), counted])
    scaled = counted * (draws / np.array([len(likely) - likely_half, len(unlikely) - unlikely_half]))
    low, high = bound_below(scaled[:, 0], draws, tail), bound_above(scaled[:, 1], draws, tail)
    best = int(np.argmax(find_excess(pair.bound, pair.delta, low, high)))
    if best < len(named):
        return named[best]
    start, stop, is_rest = spans[best - len(named)].tolist()
    return OutputEvent(np.sort(order[start:stop]), bool(is_rest))


def _rank_outputs(likely: Int64, unlikely: Int64, likely_half: int, unlikely_half: int) -> tuple[Int64, Int64]:
    """Rank the outputs of the first halves by falling likelihood ratio, and count each in the second halves.

    Counts are int64 ``(2, outputs + 1)``, where the last column counts all outputs outside the ranking.
    """
    first, second = likely[:likely_half], unlikely[:unlikely_half]
    outputs, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    above = np.bincount(codes[:likely_half], minlength=len(outputs))
    below = np.bincount(codes[likely_half:], minlength=len(outputs))
    # Half an occurrence added to each keeps outputs that came only once from leading.
    order = np.lexsort((-above, -(above + 0.5) / (below + 0.5)))
    hits = np.empty((2, len(outputs) + 1), np.int64)
    for row, fresh in enumerate((likely[likely_half:], unlikely[unlikely_half:])):
        codes = np.minimum(np.searchsorted(outputs, fresh), len(outputs) - 1)
        came = np.bincount(codes[outputs[codes] == fresh], minlength=len(outputs))
        hits[row] = np.append(came[order], len(fresh) - came.sum())
    return outputs[order], hits


def _list_candidates(hits: Int64) -> tuple[Int64, Int64]:
    """List single outputs, the first ones of the ranking, and all outputs but the last ones, with their counts.

    Candidates are int64 ``(candidates, 3)``, start and stop in the ranking and whether it is all but these; counts in
    the second halves are int64 ``(candidates, 2)``.
    """
    count = hits.shape[1] - 1
    sizes = np.unique(np.geomspace(1, count, _SETS).astype(np.int64))
    singles = np.argsort(-hits[0, :-1], kind="stable")[:_SINGLES]
    starts = np.concatenate([singles, np.zeros_like(sizes), count - sizes])
    stops = np.concatenate([singles + 1, sizes, np.full_like(sizes, count)])
    is_rest = np.arange(len(starts)) >= len(singles) + len(sizes)
    below = np.concatenate([np.zeros((2, 1), np.int64), hits[:, :-1].cumsum(axis=1)], axis=1)
    inside = below[:, stops] - below[:, starts]
    counted = np.where(is_rest, hits.sum(axis=1, keepdims=True) - inside, inside)
    return np.stack([starts, stops, is_rest], axis=1), counted.T


DRAWS, ROUNDS = 4_000, 3
# Smaller p-values count as 0: SciPy's quantiles of such small tails are not exact.
_LEAST = 1e-60
_HALVINGS = 40


class Sampler(Protocol):
    """Sampler of a mechanism as a black box."""

    def draw(self, word: int, count: int, series: int) -> Int64:
        """Draw independent outputs for one word: int64 ``(count,)``.

        Outputs of different series, and of different words in one series, are independent. Any number may be an output,
        even one that is not the id of a word. Raises any error of the mechanism.
        """


@dataclass(frozen=True)
class WordPair:
    """Pair of words, and a mechanism's claim about them: ``P(S) <= exp(bound) Q(S) + delta`` for every event ``S``.

    ``bound``: claimed loss between them, in nats, finite. ``delta``: excess of a probability that the claim allows.
    ``kind``: reason of the choice, such as ``nearest``. A finding summarises the pairs of one kind.
    """

    first: int
    second: int
    bound: float
    delta: float = 0.0
    kind: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.bound < math.inf:
            raise ValueError(f"Expected bound={self.bound} in [0, inf).")
        if not 0 <= self.delta < 1:
            raise ValueError(f"Expected delta={self.delta} in [0, 1).")

    def swap(self) -> WordPair:
        """Return the same pair in the other direction."""
        return WordPair(self.second, self.first, self.bound, self.delta, self.kind)


@dataclass(frozen=True)
class PairTest:
    """Result of one test of one direction of a pair, whose ``first`` word should have the larger probability.

    ``hits``: occurrences of the event for the first and for the second word, in ``draws`` of each. ``loss``: lower
    bound on the loss of the event, in nats, at least 0. All these bounds together hold except with probability
    ``alpha``. ``p_value``: least ``2 tail`` at which the claim would be refuted. ``power``: see the module.
    """

    pair: WordPair
    event: OutputEvent
    hits: tuple[int, int]
    draws: int
    loss: float
    p_value: float
    power: float
    is_refuted: bool


@dataclass(frozen=True)
class Naming:
    """Names of outputs for people, and outputs to test in any case.

    ``show``: formats an output; a public word at most. ``symbols``: outputs that are not words, such as padding, by
    name. ``known``: all outputs that the mechanism should have; None if unknown. ``of``: what symbols stand for: words,
    or the subjects of texts.
    """

    show: Callable[[int], str] = str
    symbols: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    known: Collection[int] | None = None
    of: str = WORD


def audit_pairs(
    sampler: Sampler,
    pairs: Sequence[WordPair],
    *,
    alpha: float,
    draws: int = DRAWS,
    rounds: int = ROUNDS,
    naming: Naming | None = None,
) -> tuple[Finding, ...]:
    """Try to refute the claims of pairs: one finding for each kind of pair, ``two-phase:nearest`` and so on.

    ``alpha``: the probability that any true claim of all pairs is refuted, in (0, 1). ``draws``: for each word, in each
    phase of the first round. ``rounds``: largest number of rounds, each with twice the draws of the previous one.
    Raises :class:`ValueError` if there are no pairs, or a number is out of range.
    """
    started = time.process_time()
    naming = naming or Naming()
    tests, taken = measure_pairs(sampler, pairs, alpha=alpha, draws=draws, rounds=rounds, naming=naming)
    seconds = (time.process_time() - started) / len(pairs)
    findings = []
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        its = [test for test in tests if test.pair.kind == kind]
        share = len(its) / len(tests)
        findings.append(summarise(kind, its, naming, round(taken * share), seconds * len(its) / 2))
    return tuple(findings)


def measure_pairs(
    sampler: Sampler, pairs: Sequence[WordPair], *, alpha: float, draws: int, rounds: int, naming: Naming
) -> tuple[list[PairTest], int]:
    """Test both directions of all pairs; return the tests of the last round, and the draws of all rounds."""
    if not pairs:
        raise ValueError("Expected at least one pair of words.")
    if not 0 < alpha < 1:
        raise ValueError(f"Expected alpha={alpha} in (0, 1).")
    if not (draws >= 2 and rounds >= 1):
        raise ValueError(f"Expected draws={draws} of 2 or more and rounds={rounds} of 1 or more.")
    directed = [turned for pair in pairs for turned in (pair, pair.swap())]
    tail = alpha / (2 * len(directed) * rounds)
    words = sorted({pair.first for pair in directed})
    taken, tests = 0, []
    for number in range(rounds):
        count = draws << number
        choosing = {word: _draw(sampler, word, count, 2 * number) for word in words}
        events = []
        for pair in directed:
            named = name_events(pair.first, pair.second, naming)
            events.append(choose_event(choosing[pair.first], choosing[pair.second], pair, named, count, tail))
        testing = {word: _draw(sampler, word, count, 2 * number + 1) for word in words}
        tests = measure_events(directed, events, testing, tail)
        taken += 2 * count * len(words)
        if any(test.is_refuted for test in tests):
            break
    return tests, taken


def _draw(sampler: Sampler, word: int, count: int, series: int) -> Int64:
    drawn = np.asarray(sampler.draw(word, count, series), np.int64)
    if drawn.shape != (count,):
        raise ValueError(f"Expected {count} outputs of word {word}, of shape ({count},), got {drawn.shape}.")
    return drawn


def measure_events(
    pairs: Sequence[WordPair], events: Sequence[OutputEvent], drawn: Mapping[int, Int64], tail: float
) -> list[PairTest]:
    """Test one event for each pair, in the direction from the first word to the second.

    ``drawn``: int64 ``(draws,)`` for each word; these draws must not have chosen any event. ``tail``: see the module.
    """
    draws = len(next(iter(drawn.values())))
    counted = [
        (event.count(drawn[pair.first]), event.count(drawn[pair.second]))
        for pair, event in zip(pairs, events, strict=True)
    ]
    above, below = np.array(counted).T
    bounds, deltas = np.array([(pair.bound, pair.delta) for pair in pairs]).T
    low = bound_below(above, draws, tail)
    excess = find_excess(bounds, deltas, low, bound_above(below, draws, tail))
    p_values = _find_p_values(bounds, deltas, above, below, draws)
    powers = find_powers(bounds, deltas, low, above / draws, draws, tail)
    return [
        PairTest(
            pair,
            events[row],
            counted[row],
            draws,
            loss=max(float(excess[row]) + pair.bound, 0.0),
            p_value=float(p_values[row]),
            power=float(powers[row]),
            is_refuted=bool(excess[row] > 0),
        )
        for row, pair in enumerate(pairs)
    ]


def _find_p_values(bounds: Float64, deltas: Float64, above: Int64, below: Int64, draws: int) -> Float64:
    """Compute twice the least tail at which each claim would be refuted, by bisection of its logarithm."""
    low, high = np.full(len(bounds), math.log(_LEAST)), np.full(len(bounds), math.log(0.5))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tail = np.exp(middle)
        ends = bound_below(above, draws, tail), bound_above(below, draws, tail)
        refutes = find_excess(bounds, deltas, *ends) > 0
        low, high = np.where(refutes, low, middle), np.where(refutes, middle, high)
    return np.asarray(np.minimum(2 * np.exp(high), 1.0))


def find_powers(bounds: Float64, deltas: Float64, low: Float64, shares: Float64, draws: int, tail: float) -> Float64:
    """Compute the least factor on each claim that would have been refuted, infinite if there is none; see the module.

    ``low``, ``shares``: float64 ``(claims,)``, the lower bounds of ``P(S)`` and the shares of its hits.
    """
    # Q_high of l hits is below a number if and only if a binomial law of that probability has at most l hits with a
    # chance below the tail. So l* is one less than the quantile of that law.
    most = binom.ppf(tail, draws, np.clip((low - deltas) * np.exp(-bounds), 0.0, 1.0)) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log((shares - deltas) / bound_above(np.maximum(most, 0), draws, 0.5))
        factors = np.maximum(losses / bounds, 1.0)
    return np.where((most >= 0) & (bounds > 0), factors, math.inf)


def summarise(kind: str, tests: list[PairTest], naming: Naming, draws: int, seconds: float) -> Finding:
    """Make the finding of the pairs of one kind, with the evidence of the least p-value."""
    best = min(tests, key=lambda test: (test.p_value, test.pair.bound - test.loss))
    delta = " but for delta" if best.pair.delta else ""
    nouns, pairs = "texts" if naming.of == SUBJECT else "words", len(tests) // 2
    return Finding(
        test=f"two-phase:{kind}" if kind else "two-phase",
        verdict=Verdict.REFUTED if any(test.is_refuted for test in tests) else Verdict.NOT_REFUTED,
        claim=f"No event tells two {nouns} apart by more than the claimed loss{delta}: {pairs} pairs of them.",
        evidence=_describe(best, naming),
        claimed=best.pair.bound,
        observed=best.loss,
        p_value=best.p_value,
        power=min(test.power for test in tests),
        draws=draws,
        seconds=seconds,
    )


def _describe(test: PairTest, naming: Naming) -> str:
    first, second = naming.show(test.pair.first), naming.show(test.pair.second)
    return (
        f"{test.event.describe(naming.show)}: {test.hits[0]:,} of {test.draws:,} draws of {first}, {test.hits[1]:,} of "
        f"{test.draws:,} of {second}. The loss is at least {test.loss:.3g}; claimed is {test.pair.bound:.3g}."
    )


LENGTH = 64
"""Number of tokens of a record, so that draws cover many records and many positions."""
_RECORDS = 10_000


@dataclass(frozen=True)
class MechanismSampler(Sampler):
    """Sampler of a mechanism under keys that no release has.

    ``length``: tokens of a record; 1 if a word's law depends on the others, so that tokens are dependent.
    """

    mechanism: Mechanism[Any]
    keys: ReleaseKeys
    length: int = LENGTH

    def draw(self, word: int, count: int, series: int) -> Int64:
        """Draw as :class:`wordveil.audit.two_phase.Sampler` describes."""
        offsets = np.minimum(np.arange(0, count + self.length, self.length), count)
        names = [b"audit %d %d %d" % (word, series, record) for record in range(len(offsets) - 1)]
        batch = as_records(np.full(count, word, np.int32), offsets, names, self.keys)
        return self.mechanism.draw(batch, self.keys).ids.astype(np.int64)


@dataclass(frozen=True)
class TextSampler(Sampler):
    """Sampler of whole texts of one length, for a mechanism that reads them whole, under keys of no release.

    An output is a number whose digits are its symbols, to the base ``outputs``. ``texts``: by numbers below 0.
    """

    mechanism: Mechanism[Any]
    outputs: int
    keys: ReleaseKeys
    texts: Mapping[int, Sequence[int]]

    def draw(self, word: int, count: int, series: int) -> Int64:
        """Draw independent outputs for one text: int64 ``(count,)``."""
        text = np.array(self.texts[word], np.int32)
        drawn = np.empty((count, len(text)), np.int64)
        for start in range(0, count, _RECORDS):
            records = range(start, min(start + _RECORDS, count))
            names = [b"audit %d %d %d" % (word, series, record) for record in records]
            offsets = np.arange(len(records) + 1, dtype=np.int64) * len(text)
            batch = as_records(np.tile(text, len(records)), offsets, names, self.keys)
            drawn[start : records.stop] = self.mechanism.draw(batch, self.keys).ids.reshape(-1, len(text))
        return np.asarray(drawn @ self.outputs ** np.arange(len(text), dtype=np.int64), np.int64)

    def symbols_of(self, number: int) -> Sequence[int]:
        """Return the symbols of a text of :attr:`texts`, by its own number or by that of an output."""
        if number < 0:
            return self.texts[number]
        length = len(next(iter(self.texts.values())))
        return [number // self.outputs**position % self.outputs for position in range(length)]


@dataclass(frozen=True)
class PairCounts:
    """Numbers of pairs of each kind: words with nearest, farthest, and random words, and with other symbols."""

    nearest: int = 16
    farthest: int = 4
    random: int = 8
    symbol: int = 4


def choose_pairs(
    words: Int32,
    distances: Callable[[int, Int32], Float64],
    bound: Callable[[float], float],
    *,
    counts: PairCounts,
    seed: int,
    delta: float = 0.0,
    symbols: Mapping[str, int] | None = None,
) -> tuple[WordPair, ...]:
    """Choose pairs of words to test: nearest neighbours, farthest words, random ones, words and symbols.

    A false claim about distances shows between neighbours, where even a small probability counts. A false claim about a
    constant shows wherever draws can reach it. Mechanisms treat padding and the unknown word as special cases.

    ``words``: int32 ``(words,)``, at least two. ``distances``: from a word to others, int32 ``(count,)``: float64
    ``(count,)``, in the unit of ``bound``. ``bound``: returns the claimed loss between words at a distance, in nats; at
    infinity, the largest loss of all. ``delta``: for each claim. ``symbols``: inputs that are not words, by name; each
    is claimed to lose at most ``bound(inf)``. Raises :class:`ValueError` for fewer than two words.
    """
    if len(words) < 2:
        raise ValueError(f"Expected at least two words, got {len(words)}.")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(words)
    pairs: dict[tuple[int, int], WordPair] = {}

    def add(kind: str, first: int, second: int, limit: float) -> None:
        pairs.setdefault((min(first, second), max(first, second)), WordPair(first, second, limit, delta, kind))

    for kind, count in (("nearest", counts.nearest), ("farthest", counts.farthest), ("random", counts.random)):
        for first in shuffled[:count].tolist():
            others = words[words != first]
            apart = distances(first, others)
            choose = {"nearest": np.argmin, "farthest": np.argmax}.get(kind, lambda rest: rng.integers(len(rest)))
            index = choose(apart)
            add(kind, first, int(others[index]), bound(float(apart[index])))
    for kind, symbol in (symbols or {}).items():
        for first in shuffled[: counts.symbol].tolist():
            add(kind, first, symbol, bound(math.inf))
    return tuple(pairs.values())
