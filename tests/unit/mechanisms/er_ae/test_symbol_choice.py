"""One symbol is chosen by the law that the proof is about, at no more loss than is certified, whatever the row."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from reference.symbol_laws import softmax_rr_law, two_set_law
from wordveil.mechanisms.er_ae.symbol_choice import STEPS, SymbolChoice, draw_columns, make_coins

TOP = 2**64 - 1
EPSILON, COLUMNS, SETS = 3.0, 6, 3
# Rows that a network may give, or an adversary: sure of one symbol, indifferent, ties, zeros, a spike over dust.
ROWS = {
    "falling": [60, 30, 20, 10, 5, 1],
    "sure": [0, 0, 7, 0, 0, 0],
    "flat": [2**31] * 6,
    "ties": [9, 9, 9, 0, 0, 1],
    "two": [0, 5, 0, 0, 3, 0],
    "spike": [1, 1, 1, 2**31, 1, 1],
    "nothing": [0] * 6,
}
EACH_ROW = pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
EACH_CHOICE = pytest.mark.parametrize("candidates", [0, 1, SETS])
DRAWS = 50_000


def softmax(row: list[int]) -> NDArray[np.float64]:
    weights = np.array(row, np.float64)
    return np.full(len(row), 1 / len(row)) if not weights.any() else weights / weights.sum()


def law(row: list[int], candidates: int, epsilon: float = EPSILON) -> NDArray[np.float64]:
    share = softmax(row)
    return two_set_law(share, candidates, epsilon) if candidates else softmax_rr_law(share, epsilon)


def count_draws(row: list[int], candidates: int, epsilon: float = EPSILON) -> NDArray[np.int64]:
    choice = SymbolChoice(make_coins(epsilon), len(row), candidates)
    weights = np.array([row, row], np.uint32)
    words = np.random.default_rng(0).integers(0, TOP, (2 * choice.blocks, DRAWS), np.uint64, endpoint=True)
    drawn = choice.draw(weights, np.arange(DRAWS) % 2, words)
    return np.bincount(drawn, minlength=len(row))


def likelihood(counts: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    return float(stats.chisquare(counts, expected * counts.sum()).pvalue)


@EACH_CHOICE
@EACH_ROW
def test_draws_follow_the_law(row: list[int], candidates: int) -> None:
    assert likelihood(count_draws(row, candidates), law(row, candidates)) > 1e-5


@EACH_CHOICE
@pytest.mark.parametrize("wrong", [0.8, 1.25])
def test_draws_of_another_epsilon_are_told(candidates: int, wrong: float) -> None:
    assert likelihood(count_draws(ROWS["sure"], candidates, EPSILON * wrong), law(ROWS["sure"], candidates)) < 1e-9


@pytest.mark.parametrize("wrong", [0, 1, 2, 4])
def test_draws_of_another_number_of_candidates_are_told(wrong: int) -> None:
    assert likelihood(count_draws(ROWS["falling"], wrong), law(ROWS["falling"], SETS)) < 1e-9


# The bound.


@EACH_CHOICE
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 12.0])
def test_certificate_is_the_largest_loss_of_two_rows(candidates: int, epsilon: float) -> None:
    certified = SymbolChoice(make_coins(epsilon), COLUMNS, candidates).certify()
    random = np.random.default_rng(5).dirichlet(np.full(COLUMNS, 0.1), 20)
    rows = [*map(softmax, ROWS.values()), *np.eye(COLUMNS), *random]
    laws = [two_set_law(row, candidates, epsilon) if candidates else softmax_rr_law(row, epsilon) for row in rows]
    logs = np.log(np.array(laws))
    largest = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert largest <= certified + 1e-12
    assert largest == pytest.approx(certified, abs=1e-10)
    assert certified == pytest.approx(epsilon / 2 + math.log(COLUMNS - 1), abs=1e-10)
    at_full_size = SymbolChoice(make_coins(epsilon), 20_002, candidates).certify()
    assert -1e-10 <= at_full_size - (epsilon / 2 + math.log(20_001)) <= 1e-9


@EACH_CHOICE
def test_the_certificate_is_of_the_coins_and_not_of_a_formula(candidates: int) -> None:
    """A coin that always falls on what was drawn leaves no floor, and the certificate says what that costs."""
    sound = SymbolChoice(make_coins(EPSILON), COLUMNS, candidates)
    floorless = SymbolChoice(np.full(STEPS + 1, TOP, np.uint64), COLUMNS, candidates)
    assert floorless.certify() > sound.certify() + 40
    assert SymbolChoice(make_coins(2 * EPSILON), COLUMNS, candidates).certify() > sound.certify() + 1.4
    assert likelihood(count_draws(ROWS["sure"], candidates, 60.0), law(ROWS["sure"], candidates)) < 1e-9


def test_any_epsilon_leaves_both_sides_of_a_coin() -> None:
    for epsilon in (1e-9, 1e-3, 50.0, 89.0, 1000.0):
        coins = make_coins(epsilon)
        assert len(coins) == STEPS + 1
        assert coins[0] >= 1
        assert (np.diff(coins.astype(object)) >= 0).all()
        assert all(int(low) + int(high) == 2**64 for low, high in zip(coins, coins[::-1], strict=True))
        assert math.log(int(coins[-1]) / int(coins[0])) <= epsilon / 2 + 1e-12
        assert SymbolChoice(coins, 20_002).certify() <= 65 * math.log(2) + math.log(20_001)


@pytest.mark.parametrize(("columns", "candidates"), [(1, 0), (6, 5), (6, 6), (6, -1), (2**31, 0)])
def test_a_complement_has_two_columns(columns: int, candidates: int) -> None:
    with pytest.raises(ValueError, match="columns"):
        SymbolChoice(make_coins(1.0), columns, candidates)
    with pytest.raises(ValueError, match="coins"):
        SymbolChoice(make_coins(1.0)[1:], 6, 0)
    for epsilon in (0.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon"):
            make_coins(epsilon)


# Whole numbers.


def test_a_column_has_the_words_of_its_weight() -> None:
    """The first and the last word of each column, found by division of whole numbers."""
    row = np.array([3, 0, 5, 2**31, 0, 1, 7], np.uint32)
    ends = [0, *itertools.accumulate(row.tolist())]
    found = np.empty(1, np.int64)
    for column in np.flatnonzero(row).tolist():
        first, last = (-(-end * 2**64 // ends[-1]) for end in (ends[column], ends[column + 1]))
        for word in (first, last - 1):
            assert draw_columns(row, np.array([word], np.uint64), found) == ends[-1]
            assert found[0] == column


def test_a_coin_falls_by_its_threshold() -> None:
    coins = make_coins(EPSILON)
    edge = int(coins[-1])
    weights, rows = np.array([[0, 0, 1, 0]], np.uint32), np.zeros(4, np.int64)
    uniform = [0, 0, TOP, TOP]  # the first and the last of what may be chosen
    coin = [edge - 1, edge, edge, edge - 1]
    for candidates in (0, 1):
        choice = SymbolChoice(coins, 4, candidates)
        words = np.zeros((2 * choice.blocks, 4), np.uint64)
        words[1], words[2] = coin, uniform
        assert choice.draw(weights, rows, words).tolist() == [2, 0, 3, 2]
