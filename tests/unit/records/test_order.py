"""Samples are i.i.d. and uniform, orders are uniform; neither depends on the words or the batch. Keys are fixed."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2

from support.toys import ragged, unravel
from wordveil.crypto.keys import Secret
from wordveil.records.codec import draw_order, sample

KEY = Secret(bytes(range(10, 42)))
OTHER_KEY = Secret(bytes(range(11, 43)))
UNKNOWN = 99


def contexts(count, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (count, 12), np.uint8)


def shuffle(ids, offsets, rows, key):
    return ids[draw_order(offsets, rows, key)]


def fits(counts, weights=None):
    """Tell whether counts agree with weights (equal by default): chi-square between its one-in-10^4 quantiles."""
    counts = np.asarray(counts, float)
    expected = counts.sum() * (np.full(len(counts), 1 / len(counts)) if weights is None else np.asarray(weights, float))
    statistic = ((counts - expected) ** 2 / expected).sum()
    low, high = chi2.ppf([1e-4, 1 - 1e-4], len(counts) - 1)
    return low < statistic < high


def test_the_statistic_can_reject():
    assert fits([1010, 990, 1020, 980])
    assert not fits([1150, 850, 1020, 980])
    assert not fits([1000, 1000, 1000, 1000] * 10)


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_sampled_positions_are_uniform(length):
    ids, offsets = ragged([list(range(length))] * 4000)
    drawn, drawn_offsets = sample(ids, offsets, contexts(4000), KEY, 5, UNKNOWN)
    assert drawn_offsets.tolist() == list(range(0, 20_001, 5))
    counts = np.bincount(drawn, minlength=length)
    assert len(counts) == length
    assert length == 1 or fits(counts)


def test_samples_are_independent_and_follow_frequencies():
    drawn, _ = sample(*ragged([[0, 1, 2]] * 9000), contexts(9000), KEY, 2, UNKNOWN)
    assert fits(np.bincount(drawn[::2] * 3 + drawn[1::2], minlength=9))
    drawn, _ = sample(*ragged([[0, 1, 0, 0]] * 4000), contexts(4000), KEY, 5, UNKNOWN)
    assert fits(np.bincount(drawn), [3 / 4, 1 / 4])
    assert not fits(np.bincount(drawn), [1 / 2, 1 / 2])


def test_empty_records_sample_the_unknown_word():
    ids, offsets = ragged([[], [5], [], [6, 6], []])
    drawn, drawn_offsets = sample(ids, offsets, contexts(5), KEY, 3, UNKNOWN)
    assert unravel(drawn, drawn_offsets) == [[UNKNOWN] * 3, [5] * 3, [UNKNOWN] * 3, [6] * 3, [UNKNOWN] * 3]
    assert drawn.dtype == np.int32


LISTS = [[1, 2, 3, 4], [], [5], [6, 6, 7], list(range(50))]


@pytest.mark.parametrize("draw", [lambda *data: sample(*data, 6, UNKNOWN), lambda *data: (shuffle(*data), data[1])])
def test_a_draw_depends_on_key_and_context_alone(draw):
    rows = contexts(len(LISTS))
    together = unravel(*draw(*ragged(LISTS), rows, KEY))
    alone = [draw(*ragged([part]), rows[row : row + 1], KEY)[0].tolist() for row, part in enumerate(LISTS)]
    assert together == alone
    assert together[4] != unravel(*draw(*ragged(LISTS), rows, OTHER_KEY))[4]
    first, second = unravel(*draw(*ragged([LISTS[4]] * 2), contexts(2), KEY))
    assert first != second


def test_shuffling_permutes_each_record_within_itself():
    lists = [list(range(start, start + start % 9)) for start in range(0, 900, 3)]
    ids, offsets = ragged(lists)
    shuffled = unravel(shuffle(ids, offsets, contexts(len(lists)), KEY), offsets)
    assert [sorted(part) for part in shuffled] == lists
    assert sum(part != sorted(part) for part in shuffled) > 150


@pytest.mark.parametrize("length", [2, 3, 4])
def test_orders_are_uniform(length):
    orders = list(itertools.permutations(range(length)))
    count = 500 * len(orders)
    ids, offsets = ragged([list(range(length))] * count)
    seen = Counter(map(tuple, unravel(shuffle(ids, offsets, contexts(count), KEY), offsets)))
    assert set(seen) == set(orders)
    assert fits([seen[order] for order in orders])


def test_the_order_is_independent_of_the_ids():
    rows = contexts(200)
    ids, offsets = ragged([list(range(10))] * 200)
    order = shuffle(ids, offsets, rows, KEY)
    names = np.random.default_rng(3).permutation(1000)[:10].astype(np.int32)
    assert (shuffle(names[ids], offsets, rows, KEY) == names[order]).all()
