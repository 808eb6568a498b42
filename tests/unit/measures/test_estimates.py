"""Counts of drawn symbols become counts of what was drawn from: without bias, within intervals that hold."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wordveil.arrays import Float64, Int64
from wordveil.measures.estimates import Estimator, PairEstimator, PairSums, compare_shares, make_matrix
from wordveil.mechanisms.laws import SymbolLaw

SYMBOLS, RUNS = 17, 2_000
NUMBERS = np.arange(SYMBOLS)
SIZES = 1 + NUMBERS % 3


def respond(epsilon: float) -> SymbolLaw:
    return SymbolLaw.of_response(epsilon, SYMBOLS)


def pad(law: SymbolLaw, share: float = 0.04, stays: float = 0.8) -> SymbolLaw:
    """Let words of clusters of several sizes become padding with the probability ``share``."""
    return replace(law, sizes=SIZES, shares=law.shares * (1 - share), padding=stays)


def nest() -> SymbolLaw:
    """Make a law of three levels, whose shares differ between symbols."""
    middle = NUMBERS // 4
    shares = np.stack([0.6 - 0.01 * (NUMBERS % 5), np.full(SYMBOLS, 0.2), 0.2 + 0.01 * (NUMBERS % 5)], axis=1)
    return SymbolLaw(np.stack([NUMBERS, middle, np.zeros_like(NUMBERS)]), SIZES, shares, None)


LAWS = {
    "loss 4": respond(4.0),
    "loss 6": respond(6.0),
    "loss 8": respond(8.0),
    "padded": pad(respond(6.0)),
    "nested": nest(),
    "nested and padded": pad(nest()),
}


def draw(truth: Int64, law: SymbolLaw, runs: int, seed: int) -> Int64:
    """Draw the counts of the symbols of ``truth`` counts: int64 ``(runs, symbols)``."""
    rng, matrix = np.random.default_rng(seed), make_matrix(law)
    return np.sum([rng.multinomial(count, row, size=runs) for count, row in zip(truth, matrix, strict=True)], axis=0)


def make_truth(draws: int, law: SymbolLaw) -> Int64:
    """Counts that fall as in Zipf's law, three of them 0."""
    shares = 1 / np.arange(1, law.size + 1)
    shares[5:8] = 0
    truth = np.floor(draws * shares / shares.sum()).astype(np.int64)
    truth[0] += draws - truth.sum()
    return truth


@pytest.mark.parametrize("draws", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_estimates_have_no_bias_and_intervals_cover(draws: int, law: SymbolLaw):
    truth = make_truth(draws, law)
    found = Estimator(law).estimate(draw(truth, law, RUNS, seed=draws))
    deviation = found.counts.std(axis=0) / np.sqrt(RUNS)
    assert (np.abs(found.counts.mean(axis=0) - truth) < 4.5 * deviation + 1e-9).all()
    covered = (found.low <= truth) & (truth <= found.high)
    assert 0.93 < covered.mean() < 0.985
    assert (covered.mean(axis=0) > 0.88).all()


def test_estimates_err_less_than_drawn_counts_and_need_the_law():
    truth, law = make_truth(10_000, respond(4.0)), respond(4.0)
    drawn = draw(truth, law, RUNS, seed=9)
    assert np.abs(Estimator(law).estimate(drawn).counts[0] - truth).sum() < np.abs(drawn[0] - truth).sum() / 5
    wrong = Estimator(respond(4.5)).estimate(drawn)
    assert ((wrong.low <= truth) & (truth <= wrong.high)).mean() < 0.9


@pytest.mark.parametrize("name", ["loss 4", "padded", "nested and padded"])
def test_simultaneous_intervals_hold_together(name: str):
    law = LAWS[name]
    truth = make_truth(10_000, law)
    found = Estimator(law).estimate(draw(truth, law, RUNS, seed=5), together=law.size)
    assert ((found.low <= truth) & (truth <= found.high)).all(axis=1).mean() > 0.94


@pytest.mark.parametrize("draws", [20, 200, 2_000, 100_000])
@pytest.mark.parametrize("epsilon", [4.0, 8.0])
def test_simultaneous_intervals_hold_far_in_the_tails(draws: int, epsilon: float):
    """A stray draw of a rare symbol does not stand out, however few draws there are."""
    law = SymbolLaw.of_response(epsilon, 101)
    truth = make_truth(draws, law)
    found = Estimator(law).estimate(draw(truth, law, 400, seed=draws), together=101)
    assert ((found.low <= truth + 1e-6) & (truth - 1e-6 <= found.high)).all(axis=1).mean() > 0.95
    assert (found.low[:, truth == 0] > 0).any(axis=1).mean() < 0.03


@pytest.mark.parametrize("draws", [20, 200, 10_000])
def test_equal_texts_have_hardly_ever_a_change(draws: int):
    law = SymbolLaw.of_response(8.0, 101)
    truth = make_truth(draws, law)
    before, after = (draw(truth, law, 400, seed=seed) for seed in (1, 2))
    tables = zip(before[:, None], after[:, None], strict=True)
    assert np.mean([compare_shares(*pair, Estimator(law)).are_real.any() for pair in tables]) < 0.05


def test_pairs_of_few_texts_are_not_told_from_chance():
    law = LAWS["loss 6"]
    for count, is_told in ((20, False), (60, True)):
        texts = [np.array([0, 1] * 4)] * count
        texts += [np.arange(2, 10)] * count
        values, offsets = draw_texts(texts[: 2 * count], law, np.random.default_rng(1))
        half = slice(0, None) if is_told else slice(count - 10, count + 11)
        offsets = offsets[half]
        pairs = make_pairs(law, values[offsets[0] : offsets[-1]], offsets - offsets[0])
        *_, found = pairs.compare(pairs.sum_up(values[offsets[0] : offsets[-1]], offsets - offsets[0]))
        assert bool(found.are_real[0]) == is_told


def test_intervals_hold_for_many_words_of_one_text():
    """Draws of one text are independent: fifty texts that each repeat one word are as certain as any others."""
    law, repeated = respond(4.0), 200
    truth = np.zeros(SYMBOLS, np.int64)
    truth[:5] = 10 * repeated
    found = Estimator(law).estimate(draw(truth, law, RUNS, seed=8))
    assert 0.93 < ((found.low <= truth) & (truth <= found.high)).mean() < 0.97


def test_estimates_of_a_group_add_up_to_its_draws():
    for law in LAWS.values():
        drawn = np.zeros((3, law.size), np.int64)
        drawn[0, [0, 2]], drawn[2, 0] = [5, 7], 1
        found = Estimator(law).estimate(drawn)
        assert found.counts.sum(axis=1) == pytest.approx([12, 0, 1])
        assert (found.low >= 0).all()
        assert (found.high <= drawn.sum(axis=1, keepdims=True)).all()


@pytest.mark.parametrize(("epsilon", "symbols"), [(0.0, 3), (2.0, 1), (float("inf"), 3)])
def test_response_without_a_law_is_refused(epsilon: float, symbols: int):
    with pytest.raises(ValueError, match="Expected at least 2 symbols"):
        SymbolLaw.of_response(epsilon, symbols)


def test_law_that_cannot_be_inverted_is_refused():
    alike = replace(nest(), shares=np.tile([0.0, 0.5, 0.5], (SYMBOLS, 1)))
    with pytest.raises(ValueError, match="same for several symbols"):
        Estimator(alike)
    for response in (replace(respond(4.0), shares=np.tile([0.0, 1.0], (SYMBOLS, 1))), pad(respond(4.0), 0.5, 0.5)):
        with pytest.raises(ValueError, match="same for several symbols"):
            Estimator(response)
    many = np.arange(5_000)
    large = SymbolLaw(np.stack([many, many // 2, 0 * many]), many + 1, np.tile([0.5, 0.2, 0.3], (5_000, 1)), None)
    with pytest.raises(ValueError, match="5,000 symbols in nested levels"):
        Estimator(large)


def test_laws_return_from_json():
    for law in LAWS.values():
        values = json.loads(json.dumps(law.to_dict()), parse_float=str)
        assert make_matrix(SymbolLaw.from_dict(values)) == pytest.approx(make_matrix(law))


@pytest.mark.parametrize(
    "change",
    [
        {"symbols": 3},
        {"shares": [["0.9", "0.2"]]},
        {"padding": "0.5", "shares": 3},
        {"padding": "nan"},
        {"padding": "7"},
        {"sizes": [0] * SYMBOLS},
        {"sizes": [3]},
        {"kinds": [-1] * SYMBOLS},
    ],
)
def test_damaged_laws_are_refused(change: dict[str, Any]):
    values = {**nest().to_dict(), **change}
    with pytest.raises(ValueError, match="Expected"):
        SymbolLaw.from_dict(values)


def test_a_least_count_stands_out_in_half_of_the_tables():
    law, draws = SymbolLaw.of_response(6.0, 101), 10_000
    least = Estimator(law).find_least_count(draws)
    assert least == 27
    truth = np.full(101, 100)
    truth[[0, 1]] = least, 0
    truth[2] += draws - truth.sum()
    counts = Estimator(law).estimate(draw(truth, law, RUNS, seed=3)).counts
    assert (counts[:, 1] >= least).mean() < 0.01
    assert 0.4 < (counts[:, 0] >= least).mean() < 0.6


@pytest.mark.parametrize("name", ["loss 4", "padded"])
def test_changes_that_are_more_than_noise_are_told_from_others(name: str):
    law, draws = LAWS[name], 20_000
    estimator, first = Estimator(law), make_truth(draws, law)
    second = first.copy()
    second[[1, 4]] += 600, -600
    before, after = draw(first, law, RUNS, seed=1), draw(second, law, RUNS, seed=2)
    found = compare_shares(before, after, estimator)
    truth = (second - first) / draws
    assert 0.93 < ((found.low <= truth) & (truth <= found.high)).mean() < 0.97
    real = truth != 0
    told = found.are_real
    assert told[:, real].mean() > 0.95
    assert (told[:, ~real].sum() / told.sum()) < 0.07
    assert compare_shares(before, draw(first, law, RUNS, seed=3), estimator).are_real.mean() < 0.001


def draw_texts(texts: list[Int64], law: SymbolLaw, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Draw each text's symbols: values and offsets."""
    edges = np.cumsum(make_matrix(law), axis=1)
    values = np.concatenate(texts)
    drawn = (rng.random(len(values))[:, None] > edges[values]).sum(axis=1)
    return np.minimum(drawn, law.size - 1), np.concatenate([[0], np.cumsum([len(text) for text in texts])])


def make_pairs(law: SymbolLaw, values: Int64, offsets: Int64) -> PairEstimator:
    """Prepare pairs of the first four symbols, with what one pass over the texts counts."""
    estimator, lengths = Estimator(law), np.diff(offsets)
    pads = np.add.reduceat(values == law.size - 1, offsets[:-1]) if law.padding is not None else 0 * lengths
    sums = [lengths @ lengths, lengths @ pads, pads @ pads, lengths.sum(), pads.sum()]
    counts = estimator.estimate(np.bincount(values, minlength=law.size)[None, :]).counts[0]
    return PairEstimator.of(estimator, range(4), counts, sums)


@pytest.mark.parametrize("name", ["loss 6", "padded"])
def test_pairs_are_counted_without_bias_and_told_from_chance(name: str):
    """Symbols 0 and 1 stand together in a fifth of the texts; all others by chance."""
    law, rng, count, width = LAWS[name], np.random.default_rng(4), 600, 8
    texts = []
    for _ in range(count):
        words = rng.integers(0, SYMBOLS, rng.integers(1, width + 1))
        if rng.random() < 0.2:
            words = np.concatenate([words, [0, 1]])
        texts.append(np.pad(words, (0, 10 - len(words)), constant_values=SYMBOLS) if law.padding else words)
    drawn_for = np.stack([np.bincount(text, minlength=SYMBOLS + 1)[:SYMBOLS] for text in texts])
    truth = (drawn_for.T @ drawn_for)[np.triu_indices(4, 1)]
    estimates, intervals, found = [], [], None
    for _ in range(300):
        values, offsets = draw_texts(texts, law, rng)
        pairs = make_pairs(law, values, offsets)
        halves = [(0, count // 2), (count // 2, count)]
        parts = [
            pairs.sum_up(values[offsets[start] : offsets[stop]], offsets[start : stop + 1] - offsets[start])
            for start, stop in halves
        ]
        together, expected, found = pairs.compare(PairSums(*(sum(both) for both in zip(*parts, strict=True))))
        estimates.append(together)
        intervals.append((expected, found.low, found.high, found.are_real))
    deviation = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - truth) < 4 * deviation).all()
    lengths = drawn_for.sum(axis=1)
    marginal = drawn_for.sum(axis=0)
    chance: Float64 = (
        np.array([marginal[a] * marginal[b] for a, b in zip(*np.triu_indices(4, 1), strict=True)])
        / lengths.sum() ** 2
        * (lengths @ (lengths - 1))
    )
    differences = truth - chance
    low, high = (np.array([row[place] for row in intervals]) for place in (1, 2))
    covered = ((low <= differences) & (differences <= high)).mean(axis=0)
    assert (covered > 0.93).all()
    told = np.array([row[3] for row in intervals]).mean(axis=0)
    assert told[0] > 0.95
    assert (told[1:] < 0.3).all()
