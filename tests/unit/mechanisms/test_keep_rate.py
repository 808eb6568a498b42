"""The keep-rate counts words, each place once, and neither padding nor unknown words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from support.toys import KEYS, build_mechanism, random_embedding, token_batch
from wordveil.mechanisms.keep_rate import KeepRate, count_kept_words, measure_keep_rate

SIZE = 4
PAD, UNKNOWN = SIZE, SIZE + 1


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_words_are_the_denominator():
    assert measure_keep_rate(ids(0, 1, 1, 3), ids(0, 1, 2, 0), SIZE) == KeepRate(2, 4)
    assert measure_keep_rate(ids(0, 1, 1, 3), ids(0, 1, 2, 0), SIZE).rate == 0.5


def test_padding_and_unknown_words_are_in_neither_number():
    assert measure_keep_rate(ids(PAD, 0, UNKNOWN, 2), ids(PAD, 0, UNKNOWN, PAD), SIZE) == KeepRate(1, 2)


def test_without_words_there_is_no_rate():
    for before in (ids(), ids(PAD, UNKNOWN)):
        assert measure_keep_rate(before, before, SIZE) == KeepRate(0, 0)
        assert measure_keep_rate(before, before, SIZE).rate is None


def test_other_integers_are_taken():
    assert measure_keep_rate(np.arange(SIZE), ids(0, 1, 2, 0), SIZE) == KeepRate(3, 4)


@pytest.mark.parametrize("drawn", [ids(0), ids(0, 1, 2), np.zeros((2, 1), np.int32)])
def test_arrays_of_other_shapes_are_refused(drawn):
    with pytest.raises(ValueError, match="one shape"):
        measure_keep_rate(ids(0, 1), drawn, SIZE)


def test_records_are_counted_apart_and_add_up_to_the_whole():
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, SIZE + 2, (2, 500)).astype(np.int32)
    offsets = np.array([0, 0, 100, 101, 500])
    counts = count_kept_words(before, after, offsets, SIZE)
    expected = [
        sum(b == a and b < SIZE for b, a in zip(before[i:j].tolist(), after[i:j].tolist(), strict=True))
        for i, j in pairwise(offsets.tolist())
    ]
    assert counts.tolist() == expected
    assert measure_keep_rate(before, after, SIZE).kept == sum(expected)


def test_of_draws_it_is_the_share_of_equal_ids():
    mechanism = build_mechanism(random_embedding(60, 4), {"epsilon": 4.0}, padding=False)
    batch = token_batch([list(range(60)) * 20])
    drawn = mechanism.draw(batch, KEYS).ids
    rate = measure_keep_rate(batch.ids, drawn, 60).rate
    assert rate == float(np.mean(drawn == batch.ids))
    assert 0 < rate < 1
