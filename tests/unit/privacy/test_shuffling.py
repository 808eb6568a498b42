"""The bound of a shuffled table against the exact divergence of its counts, by brute force over all other records."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.special import gammaln

from wordveil.mechanisms.tree.levels import WHOLE, solve_levels
from wordveil.privacy import shuffling
from wordveil.privacy.shuffling import bound_delta, bound_epsilon, closed_form

RATIOS = (Fraction(1), Fraction(5, 4), Fraction(2))
# Delta 1e-8: the figures of Theorem 3.1 are known from elsewhere.
CLOSED = {(100_000, 5): 0.86, (1_000_000, 6): 0.54, (1_000_000, 8): 1.09, (10_000, 2): 0.56, (10_000_000, 4): 0.077}


def response(grown, symbols):
    """Make the table of randomised response: a row of probabilities for each symbol."""
    return [
        [(grown if row == column else 1) / (grown + symbols - 1) for column in range(symbols)] for row in range(symbols)
    ]


def add_row(law, row):
    """Count one more row: ``law`` over the counts of all symbols but the last."""
    counted = np.zeros([size + 1 for size in law.shape], dtype=law.dtype)
    for symbol, chance in enumerate(row):
        counted[tuple(slice(axis == symbol, size + (axis == symbol)) for axis, size in enumerate(law.shape))] += (
            law * chance
        )
    return counted


def find_largest(table, rows, ratio):
    """Compute the largest exact delta: all pairs of values, and all values of the other records."""
    table, zero = np.array(table), table[0][0] * 0
    start = np.full((1,) * (table.shape[1] - 1), zero + 1)
    largest = zero
    for others in combinations_with_replacement(range(len(table)), rows - 1):
        shuffled = reduce(add_row, table[list(others)], start)
        laws = [add_row(shuffled, row) for row in table]
        largest = max(largest, *(np.maximum(one - ratio * other, zero).sum() for one, other in permutations(laws, 2)))
    return largest


def compute_blanket(grown, symbols, rows, ratio):
    """Compute the delta against an attacker who is told which other rows are true, as it is defined."""
    other = 1 / (grown + symbols - 1)
    chance, total = symbols * other, 0
    for size in range(1, rows + 1):
        weight = math.comb(rows - 1, size - 1) * chance ** (size - 1) * (1 - chance) ** (rows - size)
        for one, two in product(range(size + 1), repeat=2):
            if one + two <= size:
                ways = math.comb(size, one) * math.comb(size - one, two) * (symbols - 2) ** (size - one - two)
                lead = (grown - 1) * (one - ratio * two) + size * (1 - ratio)
                total += weight * chance / size * max(lead, 0) * ways / symbols**size
    return total


@pytest.mark.parametrize("symbols", [2, 3, 4])
@pytest.mark.parametrize("grown", [3, 8])
def test_delta_of_few_rows_covers_brute_force(grown, symbols):
    for rows, ratio in product((1, 2, 5, 8 if symbols == 4 else 12), RATIOS):
        exact = find_largest(np.array(response(float(grown), symbols)), rows, float(ratio))
        delta = bound_delta(math.log(grown), rows, math.log(ratio), symbols)
        told = float(compute_blanket(Fraction(grown), symbols, rows, ratio))
        assert exact <= delta == pytest.approx(told, rel=5e-8)
        assert symbols == 2 or delta == pytest.approx(exact, rel=0.3)


@pytest.mark.parametrize(("rows", "symbols"), [(6, 2), (5, 3), (3, 4)])
def test_delta_covers_exact_fractions_to_the_last_digit(rows, symbols):
    for ratio in RATIOS:
        grown = Fraction(3)
        delta = Fraction(bound_delta(math.log(grown), rows, math.log(ratio), symbols))
        told = compute_blanket(grown, symbols, rows, ratio)
        assert find_largest(response(grown, symbols), rows, ratio) <= told < delta < told * (1 + Fraction(1, 10**7))


@pytest.mark.parametrize(("symbols", "grown"), [(2, 8), (4, 2), (5, 20), (12, 2)])
def test_delta_of_coarse_blocks_covers_the_exact_one(monkeypatch, symbols, grown):
    for blocks, nodes, ratio in product((1, 2, 5), (2, 3), (1, 1.02, 1.1, 1.4, 1.9)):
        for name, value in {"MAX_BLOCKS": blocks, "NODES": nodes, "GROUPS": 1}.items():
            monkeypatch.setattr(shuffling, name, value)
        exact = compute_blanket(grown, symbols, 30, ratio)
        assert exact <= bound_delta(math.log(grown), 30, math.log(ratio), symbols)


def test_delta_of_too_many_rows_or_symbols_is_refuted():
    """Brute force refutes a bound for 40% more rows, for a symbol too many, and for half a percent less loss."""
    for symbols, ratio in product((2, 3, 4), RATIOS):
        exact = find_largest(np.array(response(3.0, symbols)), 5, float(ratio))
        assert bound_delta(math.log(3), 7, math.log(ratio), symbols) < exact
        assert bound_delta(math.log(3), 5, math.log(ratio), symbols + 1) < exact
    assert bound_delta(math.log(3) * 0.995, 5, 0.0, 3) < find_largest(np.array(response(3.0, 3)), 5, 1.0)


def make_subsets():
    """Draw one of the pairs of four symbols, more likely one with the own symbol."""
    pairs = [(one, two) for one in range(4) for two in range(one)]
    return np.array([[3.0 if value in pair else 1.0 for pair in pairs] for value in range(4)]) / 12


RANDOMISERS = {
    "two columns": np.kron(response(math.sqrt(3), 2), response(math.sqrt(3), 2)),
    "subsets": make_subsets(),
    "a line": np.array([[9, 3, 1], [3, 7, 3], [1, 3, 9]]) / 13,
    # Two values share an output that a third one draws more rarely: more rows in doubt, but fewer that hide them.
    "shared often": np.array([[3, 1, 9, 4], [1, 3, 9, 4], [1, 1, 3, 12]]) / 17,
    "shared seldom": np.array([[9, 3, 3, 4], [3, 9, 3, 4], [3, 3, 1, 12]]) / 19,
    "binary": np.array(response(3.0, 2)),
}


@pytest.mark.parametrize("name", RANDOMISERS)
def test_delta_of_any_randomiser_covers_brute_force(name):
    table = RANDOMISERS[name]
    loss = float(np.log(table.max(axis=0) / table.min(axis=0)).max())
    for rows, ratio in product((1, 2, 4, 7), RATIOS):
        assert find_largest(table, rows, float(ratio)) <= bound_delta(loss, rows, math.log(ratio))
    assert np.allclose(table.sum(axis=1), 1)


def compute_exact(loss, symbols, rows, epsilon):
    """Compute the delta of many rows of randomised response where all other records have one further symbol."""
    other = 1 / (math.exp(loss) + symbols - 1)
    mean = rows * other
    counts = np.arange(max(0, int(mean - 10 * math.sqrt(mean)) - 20), int(mean + 10 * math.sqrt(mean)) + 60)
    one, two = np.meshgrid(counts, counts, indexing="ij")
    log = gammaln(rows) - gammaln(one + 1) - gammaln(two + 1) - gammaln(rows - one - two)
    law = np.exp(log + (one + two) * math.log(other) + (rows - 1 - one - two) * math.log1p(-2 * other))
    own, rest = math.exp(loss) * other, (symbols - 2) * other
    padded = np.pad(law, ((1, 1), (1, 1)))
    first, second, third = padded[:-2, 1:-1], padded[1:-1, :-2], padded[1:-1, 1:-1]
    likely, unlikely = own * first + other * second + rest * third, other * first + own * second + rest * third
    return float(np.maximum(likely - math.exp(epsilon) * unlikely, 0).sum())


@pytest.mark.parametrize(("loss", "symbols", "rows"), [(1, 3, 8_000), (3, 3, 1_000), (3, 10, 3_000)])
def test_epsilon_of_many_rows_is_tight(loss, symbols, rows):
    """Blocks and nodes are in use here: within half a percent of what some attacker reaches."""
    for delta in (1e-4, 1e-8):
        epsilon = bound_epsilon(loss, rows, delta, symbols)
        assert (
            compute_exact(loss, symbols, rows, epsilon) <= delta < compute_exact(loss, symbols, rows, epsilon * 0.995)
        )


@pytest.mark.parametrize("symbols", [None, 40])
def test_bound_falls_with_rows_and_delta_and_rises_with_loss(symbols):
    by_rows = [bound_epsilon(4, rows, 1e-8, symbols) for rows in (1, 1_000, 10_000, 10**6, 10**8)]
    by_delta = [bound_epsilon(4, 30_000, delta, symbols) for delta in (1e-30, 1e-12, 1e-8, 1e-4, 0.5)]
    by_loss = [bound_epsilon(loss, 30_000, 1e-8, symbols) for loss in (40.0, 29.9, 8, 4, 1, 1e-9, 0.0)]
    deltas = [bound_delta(4, 30_000, epsilon, symbols) for epsilon in (0, 0.1, 0.5, 1, 2, 3.9, 4, 5)]
    for falling in (by_rows, by_delta, by_loss, deltas):
        assert falling == sorted(falling, reverse=True)
    assert by_rows[0] == by_delta[0] == 4
    assert by_delta[-1] == 0
    assert (by_loss[0], by_loss[-1], deltas[-2]) == (40.0, 0, 0)
    assert by_rows[1] > 30 * by_rows[-1]


@pytest.mark.parametrize(("loss", "subjects"), [(1, 3), (6, 100), (8, 5_000)])
def test_tables_of_passages_are_a_response_drawn_again(loss, subjects):
    """So the bound for randomised response holds for their whole numbers, with the ranks of subjects too."""
    levels = solve_levels([(1, subjects)], [0.0, float(loss)], padding=True)
    own, other = levels.words[0].probabilities
    back, rank = Fraction(levels.padding.numbers[0], subjects * WHOLE), Fraction(1, WHOLE)
    empty, stays = (Fraction(law.pad, WHOLE) for law in (levels.words[0], levels.padding))
    subject = (min(other, back) - rank) / (own + (subjects - 1) * other + back + (subjects + 1) * rank)
    share = min(subject, min(empty, stays) / (subjects * empty + stays))
    assert 1 / share - subjects <= Fraction(math.exp(loss)) * (1 + Fraction(1, 10**15))


def test_bound_of_too_many_symbols_is_that_of_any_randomiser():
    assert bound_epsilon(3, 10_000, 1e-8, 10**15) == bound_epsilon(3, 10_000, 1e-8)


def test_bound_of_a_huge_table_is_that_of_a_smaller_one(monkeypatch):
    monkeypatch.setattr(shuffling, "MAX_ROWS", 10_000)
    assert bound_delta(4, 10**15, 0.3) == bound_delta(4, 10_000, 0.3) > bound_delta(4, 9_999, 0.3) * 0.99


def test_delta_at_a_bound_epsilon_is_met():
    for loss, symbols, rows in product((0.5, 6), (None, 100), (5_000, 10**6)):
        epsilon = bound_epsilon(loss, rows, 1e-8, symbols)
        assert bound_delta(loss, rows, epsilon, symbols) <= 1e-8 < bound_delta(loss, rows, epsilon * 0.998, symbols)
        assert epsilon == float(f"{epsilon:.4g}") <= loss


def test_closed_form_agrees_with_the_paper_and_is_beaten():
    for (rows, loss), value in CLOSED.items():
        known = closed_form(loss, rows, 1e-8)
        assert known == pytest.approx(value, abs=0.006)
        assert bound_epsilon(loss, rows, 1e-8) < known / 2
    assert closed_form(4, 10_000, 1e-8) is None
    assert bound_epsilon(4, 10_000, 1e-8) < 0.6


def test_bound_epsilon_takes_the_closed_form_if_smaller(monkeypatch):
    monkeypatch.setattr(shuffling, "closed_form", lambda *_: 0.01)
    assert bound_epsilon(4, 100_000, 1e-8) == 0.01


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: bound_epsilon(-1, 10, 1e-8), "local_epsilon .* -1"),
        (lambda: bound_epsilon(math.nan, 10, 1e-8), "local_epsilon .* nan"),
        (lambda: bound_epsilon(1, 0, 1e-8), "rows .* 0"),
        (lambda: bound_epsilon(1, True, 1e-8), "rows .* True"),
        (lambda: bound_epsilon(1, 10, 0), "delta .* 0"),
        (lambda: bound_epsilon(1, 10, 1.0), "delta .* 1.0"),
        (lambda: bound_epsilon(1, 10, 1e-8, 1), "symbols .* 1"),
        (lambda: bound_delta(1, 10, -0.5), "epsilon .* -0.5"),
        (lambda: closed_form(1, 10, 2), "delta .* 2"),
    ],
)
def test_bound_of_values_out_of_range_is_refused(call, named):
    with pytest.raises(ValueError, match=named):
        call()
