"""Repetitions put together."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from wordveil.scores.score import Group, Score
from wordveil_research.papers.repeats import find_score, merge_repeats

ONE = Score("row", Group.ATTACK, "authors", "koppel", "adaptive", "accuracy", 0.5, 0.4, 0.6, 0.1, 100, "What it is.")


def with_value(value: float | None, half: float = 0.1) -> Score:
    ends = (None, None) if value is None else (value - half, value + half)
    return replace(ONE, value=value, low=ends[0], high=ends[1])


def test_the_interval_has_a_part_for_texts_and_a_part_for_draws():
    values = [0.50, 0.54, 0.46]
    (found,) = merge_repeats([[with_value(value)] for value in values])
    draws = stats.t.ppf(0.975, 2) * 0.04 / math.sqrt(3)
    assert found.value == pytest.approx(0.5)
    assert found.high == pytest.approx(0.5 + math.hypot(0.1, draws))
    assert found.low == pytest.approx(0.5 - math.hypot(0.1, draws))
    assert found.note == "mean of 3 draws"


def test_equal_draws_leave_the_interval_of_the_texts():
    (found,) = merge_repeats([[ONE], [ONE]])
    assert (found.low, found.high) == (pytest.approx(0.4), pytest.approx(0.6))


def test_interval_of_shares_alone_within_0_and_1():
    shares = [[with_value(0.05, 0.04)], [with_value(0.95, 0.04)]]
    (found,) = merge_repeats(shares)
    assert (found.low, found.high) == (0.0, 1.0)
    (found,) = merge_repeats([[replace(score, figure="change") for score in one] for one in shares])
    assert found.high is not None
    assert found.high > 1


def test_what_is_measured_once_stays_as_it_is():
    assert merge_repeats([[ONE]]) == [ONE]


def test_means_infinite_stay_infinite_missing_left_out():
    endless = replace(ONE, value=math.inf, low=None, high=None)
    assert merge_repeats([[endless], [endless]])[0].value == math.inf
    (found,) = merge_repeats([[with_value(None)], [with_value(0.3)], [with_value(0.5)]])
    assert found.value == pytest.approx(0.4)
    (found,) = merge_repeats([[with_value(None)], [with_value(None)]])
    assert found.value is None


def test_rows_tasks_and_variants_are_kept_apart():
    others = [replace(ONE, subject="other"), replace(ONE, variant="static"), replace(ONE, task="50 authors")]
    found = merge_repeats([[ONE, *others], [ONE]])
    assert len(found) == 4
    assert find_score(found, "row", variant="static") == others[1]
    assert find_score(found, "nobody") is None
