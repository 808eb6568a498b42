"""Promises of shuffled tables: the least number of rows, and figures of others that are computed again."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from wordveil.privacy.shuffling import bound_epsilon
from wordveil.privacy.table import TablePrivacy, TableTerms

TERMS = TableTerms(local_epsilon=5.0, symbols=38, epsilon=0.5, delta=1e-8)


def test_terms_hold_from_their_least_rows_on():
    least = TERMS.find_least_rows()
    assert least is not None
    assert TERMS.holds_for(least)
    assert not TERMS.holds_for(least * 98 // 100)
    assert TERMS.measure(least).epsilon <= TERMS.epsilon


def test_terms_that_no_table_keeps_have_no_least_rows():
    assert replace(TERMS, epsilon=1e-7).find_least_rows() is None


@pytest.mark.parametrize("symbols", [38, None])
def test_measure_is_between_the_bound_and_the_local_loss(symbols: int | None):
    terms = replace(TERMS, symbols=symbols)
    found = terms.measure(100_000, groups=3, records=400_000)
    assert bound_epsilon(5.0, 100_000, 1e-8, symbols) <= found.epsilon < 0.3
    assert (found.rows, found.groups, found.records) == (100_000, 3, 400_000)
    assert terms.measure(2).epsilon == 5.0


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.2},
        {"epsilon": -1.0},
        {"local_epsilon": float("inf")},
        {"delta": 1e-12},
        {"delta": 2.0},
        {"rows": 50_000},
        {"rows": 0},
        {"groups": 5},
        {"symbols": None},
    ],
    ids=repr,
)
def test_figures_that_do_not_follow_are_not_true(change: dict[str, float]):
    found = TERMS.measure(100_000, groups=4, records=400_000)
    assert found.is_true()
    assert not replace(found, **change).is_true()


def test_a_table_s_figures_come_back_from_texts():
    found = TERMS.measure(100_000)
    assert TablePrivacy.from_dict({name: str(value) for name, value in asdict(found).items()}) == found
