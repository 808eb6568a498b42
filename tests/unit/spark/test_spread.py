"""A sample gives each record the same chance, and takes exactly as many as were asked for."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from wordveil.spark.plan.sample import choose_records, spread_records

UNEVEN = {"a": 1, "b": 500, "c": 3, "d": 120, "e": 1, "f": 1, "g": 2000, "h": 74}
SEEDS = 3000


@pytest.mark.parametrize("counts", [UNEVEN, {"a": 10}, {"a": 0, "b": 9}, {f"f{n:04d}": 1 for n in range(900)}, {}])
def test_spread_takes_as_many_as_asked_and_never_beyond_a_file(counts: dict[str, int]):
    for rows, seed in product((1, 7, 33, 500, 899, 2700, 5000), range(20)):
        taken = spread_records(counts, rows, seed)
        assert sum(taken.values()) == min(rows, sum(counts.values()))
        assert all(0 < number <= counts[name] for name, number in taken.items())
        assert list(taken) == sorted(taken)


def shares(counts: dict[str, int], rows: int) -> dict[str, float]:
    """The mean over many seeds of the share of each file's records that is taken."""
    sums = dict.fromkeys(counts, 0)
    for seed in range(SEEDS):
        for name, number in spread_records(counts, rows, seed).items():
            sums[name] += number
    return {name: sums[name] / (SEEDS * counts[name]) for name in counts}


@pytest.mark.parametrize("rows", [5, 40, 1600])
def test_each_record_has_the_same_chance(rows: int):
    """Within five deviations of ``SEEDS`` draws; as many of each file would miss by far."""
    chance = rows / sum(UNEVEN.values())
    deviation = (chance * (1 - chance) / SEEDS) ** 0.5
    for name, share in shares(UNEVEN, rows).items():
        assert abs(share - chance) < 5 * deviation, name
    a_file = rows / len(UNEVEN)
    assert any(abs(a_file / count - chance) > 5 * deviation for count in UNEVEN.values())


def test_choice_keeps_the_wanted_of_each_file_with_equal_chance():
    files = ["a"] * 9 + ["b"] * 4 + ["c"]
    hits = np.zeros(len(files))
    for seed in range(SEEDS):
        kept = choose_records(files, {"a": 3, "b": 2, "c": 5}, seed)
        assert kept == sorted(kept)
        assert [files[place] for place in kept] == ["a"] * 3 + ["b"] * 2 + ["c"]
        hits[kept] += 1
    assert np.abs(hits / SEEDS - np.array([3 / 9] * 9 + [2 / 4] * 4 + [1.0])).max() < 5 * 0.5 / SEEDS**0.5
    assert choose_records([], {"a": 3}, 1) == []
