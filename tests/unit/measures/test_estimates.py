"""Counts of drawn symbols become counts of what was drawn from: without bias, within intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.arrays import Int64
from wordveil.measures.estimates import Response, compare_shares, estimate_counts, find_least_count

SYMBOLS, RUNS = 17, 2_000


def draw(truth: Int64, response: Response, runs: int, seed: int) -> Int64:
    """Draw the counts of the symbols of records with ``truth`` counts: int64 ``(runs, symbols)``."""
    rng, size = np.random.default_rng(seed), len(truth)
    drawn = np.zeros((runs, size), np.int64)
    for symbol, count in enumerate(truth.tolist()):
        law = np.full(size, response.other)
        law[symbol] = response.own
        drawn += rng.multinomial(count, law, size=runs)
    return drawn


def make_truth(records: int) -> Int64:
    """Counts that fall as in Zipf's law, some of them 0."""
    shares = 1 / np.arange(1, SYMBOLS + 1)
    shares[-3:] = 0
    truth = np.floor(records * shares / shares.sum()).astype(np.int64)
    truth[0] += records - truth.sum()
    return truth


@pytest.mark.parametrize("records", [100, 10_000, 1_000_000])
@pytest.mark.parametrize("epsilon", [4.0, 6.0, 8.0])
def test_estimates_have_no_bias_and_intervals_cover(records: int, epsilon: float):
    truth, response = make_truth(records), Response.of(epsilon, SYMBOLS)
    found = estimate_counts(draw(truth, response, RUNS, seed=int(epsilon)), response)
    deviation = found.counts.std(axis=0) / np.sqrt(RUNS)
    assert (np.abs(found.counts.mean(axis=0) - truth) < 4.5 * deviation + 1e-9).all()
    covered = (found.low <= truth) & (truth <= found.high)
    assert 0.93 < covered.mean() < 0.985
    assert (covered.mean(axis=0) > 0.88).all()
    naive = np.abs(draw(truth, response, 1, seed=9)[0] - truth).sum()
    if records >= 10_000 and epsilon == 4.0:
        assert np.abs(found.counts[0] - truth).sum() < naive / 5
        wrong = estimate_counts(draw(truth, response, RUNS, seed=1), Response.of(epsilon + 0.5, SYMBOLS))
        assert ((wrong.low <= truth) & (truth <= wrong.high)).mean() < 0.9


def test_simultaneous_intervals_hold_together():
    truth, response = make_truth(10_000), Response.of(4.0, SYMBOLS)
    found = estimate_counts(draw(truth, response, RUNS, seed=5), response, together=SYMBOLS)
    assert ((found.low <= truth) & (truth <= found.high)).all(axis=1).mean() > 0.94


def test_estimates_of_a_group_add_up_to_its_records():
    drawn = np.array([[5, 0, 7], [0, 0, 0], [1, 0, 0]])
    found = estimate_counts(drawn, Response.of(2.0, 3))
    assert found.counts.sum(axis=1) == pytest.approx([12, 0, 1])
    assert (found.low >= 0).all()
    assert (found.high <= drawn.sum(axis=1, keepdims=True)).all()


@pytest.mark.parametrize(("epsilon", "symbols"), [(0.0, 3), (2.0, 1), (float("inf"), 3)])
def test_response_without_a_law_is_refused(epsilon: float, symbols: int):
    with pytest.raises(ValueError, match="Expected at least 2 symbols"):
        Response.of(epsilon, symbols)


def test_a_least_count_stands_out_in_half_of_the_tables():
    response, records = Response.of(6.0, 101), 10_000
    least = find_least_count(response, 101, records)
    assert least == 20
    truth = np.full(101, 100)
    truth[[0, 1]] = least, 0
    truth[2] += records - truth.sum()
    counts = estimate_counts(draw(truth, response, RUNS, seed=3), response).counts
    assert (counts[:, 1] >= least).mean() < 0.01
    assert 0.4 < (counts[:, 0] >= least).mean() < 0.6


def test_changes_that_are_more_than_noise_are_told_from_others():
    response, records = Response.of(4.0, SYMBOLS), 20_000
    first = make_truth(records)
    second = first.copy()
    second[[1, 5]] += 600, -600
    before, after = draw(first, response, RUNS, seed=1), draw(second, response, RUNS, seed=2)
    found = compare_shares(before, after, response)
    truth = (second - first) / records
    covered = (found.low <= truth) & (truth <= found.high)
    assert 0.93 < covered.mean() < 0.97
    real = truth != 0
    told = found.are_real
    assert told[:, real].mean() > 0.95
    assert (told[:, ~real].sum() / told.sum()) < 0.07
    none = compare_shares(before, draw(first, response, RUNS, seed=3), response)
    assert none.are_real.mean() < 0.001
