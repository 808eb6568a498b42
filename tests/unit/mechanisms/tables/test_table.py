"""Tables hold the probabilities that their whole numbers say, exactly, and draws follow those numbers bit by bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.exact_tables import TOTAL, law_of
from support.toys import build_mechanism, law_of_word, random_embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.tables import mechanism as module
from wordveil.mechanisms.tables.table import (
    MAX_SCORE,
    NOBODY,
    AliasTable,
    Rows,
    build_table,
    certify,
    probabilities,
    scores_of,
)

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


def random_rows(count: int, outputs: int, *, reach: float = 20.0) -> Rows:
    """Lists of any length, some of which are complete, some without a symbol of their own, some with all scores at the
    cut.
    """
    rng = np.random.default_rng(0)
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


def exact_law(table: AliasTable, row: int) -> list[float]:
    return [count / TOTAL for count in law_of(table.arrays, row)]


def intended(rows: Rows, row: int) -> list[float]:
    part = slice(rows.offsets[row], rows.offsets[row + 1])
    weights = np.full(rows.outputs, math.exp(-rows.cut[row]))
    weights[rows.ids[part]] = np.exp(-rows.scores[part])
    return (weights / weights.sum()).tolist()


@pytest.mark.parametrize("outputs", [1, 2, 3, 17, 64, 300])
def test_a_row_is_the_intended_law(outputs: int):
    rows = random_rows(60, outputs)
    table = build_table(rows)
    for row in range(60):
        law = exact_law(table, row)
        assert law == pytest.approx(intended(rows, row), rel=1e-7)
        assert probabilities(table, row).tolist() == pytest.approx(law, rel=1e-12)
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
    row = 6  # a list that is not complete, with a symbol of its own
    place = int(table.starts[row]) if name == "alias" else row
    changed = getattr(table, name).copy()
    changed[place] ^= np.uint64(2**60)
    assert certify(AliasTable(**{**table.arrays, name: changed}), rows) > 1e-4
    if name == "alike":
        changed[place] = 0
        assert certify(AliasTable(**{**table.arrays, name: changed}), rows) == math.inf


def test_certify_too_small_weights_is_infinite():
    rows = rows_of([([0, 1], [0.0, 60.0], 60.0, 0)], 3)
    assert certify(build_table(rows), rows) == math.inf


def test_symbol_missing_in_its_list_is_drawn_like_others():
    """Where many words stand in one place the nearest of a word may all be others."""
    rows = rows_of([([0, 1], [0.0, 0.0], 0.0, 2), ([1, 3], [0.0, 0.5], 0.5, 2)], 4)
    table = build_table(rows)
    assert certify(table, rows) < 1e-9
    assert probabilities(table, 0).tolist() == pytest.approx([0.25] * 4)


def test_scores_come_back_from_the_table():
    rows = random_rows(30, 40, reach=8.0)
    for ratio in (1.0, 2.0):
        again = build_table(scores_of(build_table(rows), ratio))
        for row in range(30):
            wanted = np.array(intended(rows, row)) ** ratio
            assert probabilities(again, row) == pytest.approx(wanted / wanted.sum(), rel=1e-6)
    assert (scores_of(build_table(rows), 100.0).cut <= MAX_SCORE).all()


SIZE = 40
EMBEDDING = random_embedding(SIZE, 3)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 2.0, "neighbours": 9},
        {"epsilon": 60.0},
        {"epsilon": 2.0, "neighbours": 9, "gamma": 1.5, "tight": True},
        {"epsilon": 1e-6, "neighbours": 5},
        {"epsilon": 3.0, "neighbours": 1},
        {"epsilon": 1e-9, "gamma": 1e-9},
    ],
    ids=str,
)
def test_laws_of_all_words_are_those_of_the_rows(
    settings: dict[str, float], padding: bool, monkeypatch: pytest.MonkeyPatch
):
    mechanism = build_mechanism(EMBEDDING, settings, padding=padding, mechanism="exponential")
    laws = mechanism.word_laws()
    assert laws is not None
    assert laws.common.sum() == pytest.approx(1, abs=1e-12)
    assert (laws.extras > 0).all()
    for word in range(SIZE):
        law = mechanism.probabilities(word)
        assert law_of_word(laws, word) == pytest.approx(law, rel=1e-12, abs=1e-18)
        assert law.sum() == pytest.approx(1, abs=1e-12)
    monkeypatch.setattr(module, "MAX_ENTRIES", len(laws.ids) - 1)
    assert mechanism.word_laws() is None, "they would be too large"


def test_lists_of_more_words_than_there_are_are_refused():
    settings = {"epsilon": 2.0, "neighbours": SIZE}
    assert build_mechanism(EMBEDDING, settings, padding=False, mechanism="exponential")
    settings["neighbours"] += 1
    with pytest.raises(BundleError, match=r"mechanism.neighbours = 41: the embedding has 40 words. Give at most 40"):
        build_mechanism(EMBEDDING, settings, padding=False, mechanism="exponential")
