"""Two-phase tests: bounds, events, directions, corrections and power are what the module says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

from support.broken_mechanisms import COIN, LawSampler
from wordveil.audit.findings import Verdict
from wordveil.audit.two_phase import (
    Naming,
    OutputEvent,
    PairCounts,
    Sampler,
    WordPair,
    audit_pairs,
    choose_event,
    choose_pairs,
    find_powers,
    measure_events,
    measure_pairs,
)
from wordveil.scores.counts import bound_above, bound_below


def find_power(bound: float, hits: int, draws: int, tail: float) -> float:
    low, share = bound_below([hits], draws, tail), np.array([hits / draws])
    return float(find_powers(np.array([bound]), np.zeros(1), low, share, draws, tail)[0])


def test_bounds_are_those_of_clopper_and_pearson():
    for hits, trials in ((0, 10), (1, 10), (10, 10), (812, 1_000), (3, 100_000)):
        for tail in (0.025, 1e-5):
            interval = stats.binomtest(hits, trials).proportion_ci(1 - 2 * tail, "exact")
            assert float(bound_below(hits, trials, tail)) == pytest.approx(interval.low, rel=1e-9)
            assert float(bound_above(hits, trials, tail)) == pytest.approx(interval.high, rel=1e-9)


@pytest.mark.parametrize("swapped", [False, True])
def test_either_direction_is_tested(swapped: bool):
    """Only one word has an output that the other never has."""
    laws = np.array([[0.5, 0.5, 0.0], [0.45, 0.45, 0.1]])
    pair = WordPair(0, 1, 1.0)
    (finding,) = audit_pairs(LawSampler(laws, 0), [pair.swap() if swapped else pair], alpha=0.01, draws=2_000)
    assert finding.verdict is Verdict.REFUTED
    assert finding.observed is not None
    assert finding.observed > 1.0
    assert "the output 2" in finding.evidence


def test_what_is_observed_is_a_lower_bound_of_the_true_loss():
    for seed in range(20):
        pairs = [WordPair(0, 1, 0.5)]
        tests, _ = measure_pairs(LawSampler(COIN, seed), pairs, alpha=0.01, draws=2_000, rounds=1, naming=Naming())
        assert all(0.5 < test.loss <= math.log(3) for test in tests)
        assert all(test.is_refuted for test in tests)


def test_delta_is_taken_off():
    sampler = LawSampler(np.array([[0.9, 0.1], [1.0, 0.0]]), 0)
    verdicts = [
        audit_pairs(sampler, [WordPair(0, 1, 0.2, delta)], alpha=0.01, draws=4_000, rounds=1)[0].verdict
        for delta in (0.0, 0.05, 0.1)
    ]
    assert verdicts == [Verdict.REFUTED, Verdict.REFUTED, Verdict.NOT_REFUTED]


def test_a_p_value_refutes_where_the_bounds_do():
    """It is the p-value of the test alone, before the correction."""
    pairs = [WordPair(0, 1, float(claim)) for claim in np.linspace(0.9, 1.2, 40)]
    tail = 0.01 / (2 * len(pairs))
    sampler = LawSampler(COIN, 3)
    drawn = {word: sampler.draw(word, 20_000, 0) for word in (0, 1)}
    tests = measure_events(pairs, [OutputEvent(np.array([0]))] * len(pairs), drawn, tail)
    assert [test.is_refuted for test in tests] == [test.p_value < 2 * tail for test in tests]
    assert 5 < sum(test.is_refuted for test in tests) < 35
    assert np.all(np.diff([test.p_value for test in tests]) >= 0)


def test_power_says_what_would_have_been_refuted():
    """At the loss of the power about half of such tests refute, at a larger one nearly all, at the claim none."""
    draws, tail, share = 4_000, 1e-4, 0.5
    factor = find_power(1.0, int(share * draws), draws, tail)
    assert 1.05 < factor < 1.5
    rng = np.random.default_rng(0)

    def refutes(loss: float) -> float:
        drawn = {0: np.repeat([0, 1], [int(share * draws), draws - int(share * draws)])}
        for word in range(1, 401):
            drawn[word] = (rng.random(draws) >= share * math.exp(-loss)).astype(np.int64)
        pairs = [WordPair(0, word, 1.0) for word in range(1, 401)]
        tests = measure_events(pairs, [OutputEvent(np.array([0]))] * 400, drawn, tail)
        return float(np.mean([test.is_refuted for test in tests]))

    assert 0.42 < refutes(factor) < 0.6
    assert refutes(1 + 1.5 * (factor - 1)) > 0.95
    assert refutes(1.0) < 0.01


@pytest.mark.parametrize("draws", [100, 1_000, 100_000])
def test_there_is_no_power_above_the_logarithm_of_the_draws(draws: int):
    alpha = 0.01
    most = math.log(draws / math.log(2 / alpha))
    assert find_power(most, draws, draws, alpha / 2) == math.inf
    assert find_power(most - 0.2, draws, draws, alpha / 2) < math.inf
    (finding,) = audit_pairs(LawSampler(np.eye(2), 0), [WordPair(0, 1, most)], alpha=alpha, draws=draws, rounds=1)
    assert (finding.verdict, finding.power) == (Verdict.NO_POWER, math.inf)


def test_an_event_of_many_outputs_is_found():
    """No single output distinguishes the two at this claim, and all of one half together do."""
    size = 400
    laws = np.repeat([[1.6, 0.4], [0.4, 1.6]], size // 2, axis=1) / size
    rng = np.random.default_rng(0)
    likely, unlikely = (rng.choice(size, 8_000, p=law) for law in laws)
    event = choose_event(likely, unlikely, WordPair(0, 1, 1.0), [], 8_000, 1e-4)
    inside = np.isin(np.arange(size), event.outputs) != event.is_rest
    assert inside[: size // 2].sum() > 180
    assert inside[size // 2 :].sum() < 20
    (finding,) = audit_pairs(LawSampler(laws, 1), [WordPair(0, 1, 1.2)], alpha=0.01, draws=8_000, rounds=1)
    assert finding.verdict is Verdict.REFUTED
    (finding,) = audit_pairs(LawSampler(laws, 1), [WordPair(0, 1, math.log(4))], alpha=0.01, draws=8_000, rounds=1)
    assert finding.verdict is Verdict.NOT_REFUTED


def test_outputs_that_are_not_known_are_named():
    laws = np.array([[0.9, 0.1], [0.1, 0.9]])

    class Escaping(LawSampler):
        def draw(self, word: int, count: int, series: int) -> Any:
            drawn = super().draw(word, count, series)
            # Numbers that never come twice: no single one of them says anything.
            unknown = 1_000_000 * (word + 1) + 10_000 * series + np.arange(count)
            return np.where((drawn == 1) & (word == 0), unknown, 0)

    pairs = [WordPair(0, 1, 1.0)]
    (finding,) = audit_pairs(Escaping(laws, 0), pairs, alpha=0.01, draws=2_000, naming=Naming(known=range(2)))
    assert finding.verdict is Verdict.REFUTED
    assert "an output outside the known ones" in finding.evidence


def test_rounds_draw_more_until_something_is_refuted():
    @dataclass(frozen=True)
    class Counting(LawSampler):
        asked: list[tuple[int, int]] = field(default_factory=list)

        def draw(self, word: int, count: int, series: int) -> Any:
            self.asked.append((count, series))
            return super().draw(word, count, series)

    sound, broken = Counting(COIN, 0), Counting(np.eye(2), 0)
    audit_pairs(sound, [WordPair(0, 1, 2.0)], alpha=0.01, draws=100, rounds=3)
    audit_pairs(broken, [WordPair(0, 1, 1.0)], alpha=0.01, draws=100, rounds=3)
    assert set(sound.asked) == {(100 << number, 2 * number + phase) for number in range(3) for phase in (0, 1)}
    assert {count for count, _ in broken.asked} == {100}


def test_a_finding_sums_up_the_pairs_of_its_kind():
    pairs = [
        WordPair(0, 1, 2.0, kind="nearest"),
        WordPair(0, 1, 0.5, kind="random"),
        WordPair(1, 0, 2.0, kind="nearest"),
    ]
    found = audit_pairs(LawSampler(COIN, 0), pairs, alpha=0.01, draws=2_000)
    assert [finding.test for finding in found] == ["two-phase:nearest", "two-phase:random"]
    assert [finding.verdict for finding in found] == [Verdict.NOT_REFUTED, Verdict.REFUTED]
    assert [finding.claimed for finding in found] == [2.0, 0.5]
    assert "2 pairs" in found[0].claim
    assert "waab" in audit_pairs(
        LawSampler(COIN, 0), pairs, alpha=0.01, naming=Naming(show=["waaa", "waab"].__getitem__)
    )[1].evidence.replace("waaa", "waab")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"alpha": math.nan}, "alpha=nan"),
        ({"draws": 1}, "draws=1"),
        ({"rounds": 0}, "rounds=0"),
        ({"pairs": []}, "at least one pair"),
    ],
)
def test_bad_numbers_are_refused_before_anything_is_drawn(changed: dict[str, Any], message: str):
    class Silent(Sampler):
        def draw(self, word: int, count: int, series: int) -> Any:
            raise AssertionError

    given: dict[str, Any] = {"pairs": [WordPair(0, 1, 1.0)], "alpha": 0.01, **changed}
    with pytest.raises(ValueError, match=message):
        audit_pairs(Silent(), given.pop("pairs"), **given)
    for claim in ({"bound": math.nan}, {"bound": 1.0, "delta": 1.0}):
        with pytest.raises(ValueError, match="Expected"):
            WordPair(0, 1, **claim)


def test_pairs_are_nearest_farthest_random_and_symbols():
    places = np.array([0.0, 1.0, 1.5, 4.0, 9.0])
    counts = PairCounts(nearest=5, farthest=2, random=3, symbol=1)
    pairs = choose_pairs(
        np.arange(5, dtype=np.int32),
        lambda word, others: np.abs(places[others] - places[word]),
        lambda apart: min(2 * apart, 20.0),
        counts=counts,
        seed=0,
        delta=1e-9,
        symbols={"padding": 5},
    )
    assert len({frozenset((pair.first, pair.second)) for pair in pairs}) == len(pairs)
    nearest = {0: {1}, 1: {2}, 2: {1}, 3: {2}, 4: {3}}
    assert all(pair.second in nearest[pair.first] for pair in pairs if pair.kind == "nearest")
    assert all(pair.second in (0, 4) for pair in pairs if pair.kind == "farthest")
    assert [(pair.second, pair.bound) for pair in pairs if pair.kind == "padding"] == [(5, 20.0)]
    words = [pair for pair in pairs if pair.kind != "padding"]
    assert all(pair.bound == 2 * abs(places[pair.first] - places[pair.second]) for pair in words)
    assert {pair.delta for pair in pairs} == {1e-9}
