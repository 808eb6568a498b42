"""The keep-rate counts words, each place once, and neither padding nor unknown words."""

from __future__ import annotations

import numpy as np
import pytest

from wordveil.mechanisms.keep_rate import KeepRate, count_kept_words, measure_keep_rate

SIZE = 4
PAD, UNKNOWN = SIZE, SIZE + 1


@pytest.mark.parametrize(
    ("before", "drawn", "rate"),
    [
        ([0, 1, 1, 3], [0, 1, 2, 0], KeepRate(2, 4)),
        ([PAD, 0, UNKNOWN, 2], [PAD, 0, UNKNOWN, PAD], KeepRate(1, 2)),
        ([], [], KeepRate(0, 0)),
        ([PAD, UNKNOWN], [PAD, UNKNOWN], KeepRate(0, 0)),
    ],
)
def test_words_alone_are_counted(before: list[int], drawn: list[int], rate: KeepRate):
    for kind in (np.int32, np.int64):
        found = measure_keep_rate(np.array(before, kind), np.array(drawn, np.int32), SIZE)
        assert found == rate
        assert found.rate == (rate.kept / rate.words if rate.words else None)


@pytest.mark.parametrize("drawn", [[0], [0, 1, 2], [[0], [1]]])
def test_arrays_of_other_shapes_are_refused(drawn):
    with pytest.raises(ValueError, match="one shape"):
        measure_keep_rate(np.array([0, 1], np.int32), np.array(drawn, np.int32), SIZE)


def test_records_are_counted_apart_and_add_up_to_the_whole():
    before, after = np.array([0, 1, PAD, 2, 3, 3], np.int32), np.array([0, 2, PAD, 2, 3, 1], np.int32)
    assert count_kept_words(before, after, np.array([0, 0, 3, 4, 6]), SIZE).tolist() == [0, 1, 1, 1]
    assert measure_keep_rate(before, after, SIZE).kept == 3
