"""Tables hold the probabilities that their whole numbers say, exactly, and draws follow those numbers bit by bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from wordveil.mechanisms.tables.table import (
    MAX_SCORE,
    NOBODY,
    AliasTable,
    Rows,
    build_table,
    certify,
    columns_of,
    probabilities,
    scores_of,
)

WHOLE = 2**64
List = tuple[list[int], list[float], float, int]


def rows_of(lists: list[List], outputs: int) -> Rows:
    """Rows of (ids, scores, cut, own)."""
    lengths = [len(ids) for ids, _, _, _ in lists]
    return Rows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.array([i for ids, _, _, _ in lists for i in ids], np.int32),
        np.array([s for _, scores, _, _ in lists for s in scores], np.float64),
        np.array([cut for _, _, cut, _ in lists]),
        np.array([own for _, _, _, own in lists], np.int32),
        outputs,
    )


def random_rows(count: int, outputs: int, *, seed: int = 0, reach: float = 20.0) -> Rows:
    """Lists of any length, some of which are complete, some without a symbol of their own, some with all scores at the
    cut.
    """
    rng = np.random.default_rng(seed)
    lists: list[List] = []
    for number in range(count):
        length = outputs if number % 7 == 0 else int(rng.integers(1, outputs + 1))
        cut = 0.0 if number % 11 == 0 else float(rng.uniform(0, reach))
        ids = sorted(rng.choice(outputs, length, replace=False).tolist())
        scores = np.minimum(rng.uniform(0, reach, length), cut)
        own = int(rng.integers(length))
        scores[own] = 0.0
        lists.append((ids, scores.tolist(), cut, NOBODY if number % 5 == 0 else ids[own]))
    return rows_of(lists, outputs)


def columns(table: AliasTable, row: int) -> list[tuple[int, int, int]]:
    """(output, threshold, other output) of each column."""
    start, stop = int(table.starts[row]), int(table.starts[row + 1])
    count = stop - start
    bits = count.bit_length() - 1
    ids = table.ids[start:stop].tolist()
    entries = [int(entry) for entry in table.alias[start:stop]]
    return [(ids[j], entry >> bits if bits else 0, ids[entry & (count - 1)]) for j, entry in enumerate(entries)]


def exact_law(table: AliasTable, row: int) -> list[Fraction]:
    """The law in whole numbers of Python."""
    outputs, found = int(table.outputs[0]), columns(table, row)
    law = [Fraction(int(table.alike[row]), WHOLE * outputs)] * outputs
    law[int(table.own[row])] += Fraction(int(table.itself[row]), WHOLE)
    listed = Fraction(WHOLE - int(table.alike[row]) - int(table.itself[row]), WHOLE)
    for output, own, other in found:
        width = Fraction(1, len(found))
        if own:
            law[output] += listed * Fraction(own, WHOLE)
        law[other] += listed * (width - Fraction(own, WHOLE))
    return law


def intended(rows: Rows, row: int) -> list[float]:
    part = slice(rows.offsets[row], rows.offsets[row + 1])
    weights = np.full(rows.outputs, math.exp(-rows.cut[row]))
    weights[rows.ids[part]] = np.exp(-rows.scores[part])
    return (weights / weights.sum()).tolist()


@pytest.mark.parametrize("outputs", [1, 2, 3, 17, 64, 300])
def test_a_row_is_the_intended_law_and_adds_up_exactly(outputs: int):
    rows = random_rows(60, outputs)
    table = build_table(rows)
    for row in range(60):
        law = exact_law(table, row)
        assert sum(law) == 1
        assert [float(p) for p in law] == pytest.approx(intended(rows, row), rel=1e-7)
        assert probabilities(table, row).tolist() == pytest.approx([float(p) for p in law], rel=1e-12)
    assert certify(table, rows) < 1e-6


def test_certify_is_the_largest_gap():
    rows = random_rows(60, 40, reach=27.0)
    table = build_table(rows)
    gaps = [
        abs(math.log(found) - math.log(wanted))
        for row in range(60)
        for found, wanted in zip(exact_law(table, row), intended(rows, row), strict=True)
    ]
    assert max(gaps) <= certify(table, rows) <= max(gaps) + 1e-11
    assert max(gaps) > 1e-13


@pytest.mark.parametrize("name", ["alias", "alike", "itself"])
def test_certify_sees_every_change(name: str):
    rows = random_rows(40, 50)
    table = build_table(rows)
    assert certify(table, rows) < 1e-6
    row = 6  # a list that is not complete, with a symbol of its own
    place = int(table.starts[row]) if name == "alias" else row
    changed = getattr(table, name).copy()
    changed[place] ^= np.uint64(2**60)
    assert certify(AliasTable(**{**table.arrays, name: changed}), rows) > 1e-4
    if name == "alike":
        changed[place] = 0
        assert certify(AliasTable(**{**table.arrays, name: changed}), rows) == math.inf


def test_weights_too_small_for_whole_numbers_are_told():
    rows = rows_of([([0, 1], [0.0, 60.0], 60.0, 0)], 3)
    assert certify(build_table(rows), rows) == math.inf


def test_symbol_missing_in_its_list_is_drawn_like_others():
    """Where many words stand in one place the nearest of a word may all be others."""
    rows = rows_of([([0, 1], [0.0, 0.0], 0.0, 2), ([1, 3], [0.0, 0.5], 0.5, 2)], 4)
    table = build_table(rows)
    assert certify(table, rows) < 1e-9
    assert probabilities(table, 0).tolist() == pytest.approx([0.25] * 4)


def drawn(table: AliasTable, row: int, pairs: list[tuple[int, int]]) -> list[int]:
    return table.draw(np.full(len(pairs), row, np.int32), np.array(pairs, np.uint64)).tolist()


@pytest.mark.parametrize("row", range(24))
def test_draws_change_exactly_at_the_thresholds(row: int):
    """The three laws, each output of the first, and each column's two outputs, by the random words at the edges."""
    outputs = 37
    table = build_table(random_rows(24, outputs, seed=3))
    alike, itself = int(table.alike[row]), int(table.itself[row])
    if alike:
        for output in range(outputs):
            least, most = -(-output * WHOLE // outputs), -(-(output + 1) * WHOLE // outputs) - 1
            assert drawn(table, row, [(0, least), (alike - 1, most)]) == [output, output]
    if itself:
        assert drawn(table, row, [(alike, 0), (alike + itself - 1, WHOLE - 1)]) == [table.own[row]] * 2
    if alike + itself == WHOLE:
        return
    found = columns(table, row)
    width = WHOLE // len(found)
    for column, (output, own, other) in enumerate(found):
        edges = [(0, own > 0), (own - 1, True), (own, False), (width - 1, False)]
        for left, stays in ((left, stays) for left, stays in edges if 0 <= left < width):
            for choice in (alike + itself, WHOLE - 1):
                assert drawn(table, row, [(choice, column * width + left)]) == [output if stays else other]


def test_many_tokens_are_drawn_like_each_alone():
    table = build_table(random_rows(30, 64, seed=5))
    rng = np.random.default_rng(0)
    symbols = rng.integers(0, 30, 2000).astype(np.int32)
    words = rng.integers(0, 2**64, (2000, 2), np.uint64, endpoint=False)
    whole = table.draw(symbols, words)
    assert [int(table.draw(symbols[i : i + 1], words[i : i + 1])[0]) for i in range(2000)] == whole.tolist()


def test_scores_come_back_from_the_table():
    rows = random_rows(30, 40, reach=8.0)
    for ratio in (1.0, 2.0):
        again = build_table(scores_of(build_table(rows), ratio))
        for row in range(30):
            wanted = np.array(intended(rows, row)) ** ratio
            assert probabilities(again, row) == pytest.approx(wanted / wanted.sum(), rel=1e-6)
    assert (scores_of(build_table(rows), 100.0).cut <= MAX_SCORE).all()


def test_columns_are_the_next_power_of_two():
    assert columns_of(np.array([0, 1, 2, 3, 4, 5, 255, 256, 257])).tolist() == [1, 1, 2, 4, 4, 8, 256, 256, 512]
