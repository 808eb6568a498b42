"""K_w is what its definition says, word by word, from laws and from draws."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from support.toys import build_mechanism, random_embedding
from wordveil.measures.calibration import statistics as module
from wordveil.measures.calibration.statistics import (
    WordHierarchy,
    count_block,
    measure_counts,
    measure_laws,
    measure_rows,
)
from wordveil.measures.recovery import require_law

SIZE, RUNS = 60, 40
EMBEDDING = random_embedding(SIZE, 3)
WORDS = np.arange(SIZE, dtype=np.int32)
ANIMALS = ["animal", "dog", "cat", "poodle", "blue"]
PAIRS = [("dog", "animal"), ("cat", "animal"), ("poodle", "animal"), ("poodle", "dog"), ("dog", "dog"), ("elf", "dog")]


def table(pairs: list[tuple[str, str]]) -> pa.Table:
    low, high = zip(*pairs, strict=True)
    return pa.table({"word": low, "hypernym": high, "count": [1] * len(pairs)})


def made_pairs(seed: int, count: int = 500) -> list[tuple[str, str]]:
    """Each pair leads from a higher row to a lower one; the last words are in none."""
    ends = np.random.default_rng(seed).integers(0, SIZE - 8, (count, 2))
    names = EMBEDDING.words.to_pylist()
    return [(names[max(pair)], names[min(pair)]) for pair in ends.tolist() if pair[0] != pair[1]]


def define(outputs: dict[int, float], pairs: set[tuple[int, int]]) -> float:
    """K_w by its definition, of outputs by how often they come. ``pairs``: a word and one above it."""
    known = {row for pair in pairs for row in pair}
    placed = {row: share for row, share in outputs.items() if row in known}
    counts = [share * sum((other, row) in pairs for other in placed) for row, share in placed.items()]
    return sum(counts) / sum(placed.values()) if placed else float("nan")


def numbered(pairs: list[tuple[str, str]]) -> set[tuple[int, int]]:
    place = {name: row for row, name in enumerate(EMBEDDING.words.to_pylist())}
    return {(place[low], place[high]) for low, high in pairs}


def test_outputs_below_the_one_that_comes_are_counted():
    hierarchy = WordHierarchy.of(pa.array(ANIMALS), table([*PAIRS, PAIRS[0]]))
    assert hierarchy.known.tolist() == [True, True, True, True, False]
    listed = [{"animal": 3, "dog": 1}, {"animal": 5}, {"animal": 1, "dog": 1, "poodle": 2}, {"blue": 1}]
    expected = [3 / 4, 0, (2 + 1 + 0) / 4, np.nan, 0]
    counts = [[outputs.get(word, 0) for word in ANIMALS] for outputs in (*listed, {"dog": 1, "blue": 9}, {})]
    found = hierarchy.count_below(csr_array(np.array(counts)))
    assert found == pytest.approx([*expected, np.nan], nan_ok=True)


@pytest.mark.parametrize("cells", [100, 10**6])
@pytest.mark.parametrize("threshold", [0.0, 0.004, 0.02])
@pytest.mark.parametrize("case", [("exponential", {"epsilon": 2.0, "neighbours": 12}), ("tree", {"sizes": [5]})])
def test_of_laws_and_draws_it_is_that_of_the_definition(case, threshold, cells, monkeypatch):
    monkeypatch.setattr(module, "OUTPUT_CELLS", cells)
    pairs = made_pairs(3)
    hierarchy, above = WordHierarchy.of(EMBEDDING.words, table(pairs)), numbered(pairs)
    name, settings = case
    mechanism = build_mechanism(EMBEDDING, {"epsilon": 4.0, **settings}, padding=True, mechanism=name)
    laws = np.stack([require_law(mechanism, word) for word in range(SIZE)])[:, :SIZE]
    expected = [define({row: law[row] for row in np.flatnonzero(law > threshold).tolist()}, above) for law in laws]
    assert threshold or np.nanmax(expected) > 1
    rows = measure_rows(lambda word: require_law(mechanism, word), WORDS, SIZE, RUNS, threshold, hierarchy)
    whole = measure_laws(mechanism.word_laws(), RUNS, threshold, hierarchy)
    assert rows.below == pytest.approx(expected, nan_ok=True)
    assert whole.below == pytest.approx(expected, nan_ok=True)
    some = np.arange(0, SIZE, 3, dtype=np.int32)
    counted = count_block(mechanism, some, RUNS)
    cuts = counted.offsets[1:-1]
    drawn = [
        define({row: count for row, count in zip(*part, strict=True) if row < SIZE and count > threshold * RUNS}, above)
        for part in zip(np.split(counted.ids, cuts), np.split(counted.counts, cuts), strict=True)
    ]
    found = measure_counts([counted.take(np.arange(len(some))[::-1].astype(np.int32))], some, SIZE, RUNS, threshold)
    assert found.below is None
    blocks = [counted.take(np.arange(5, dtype=np.int32)), counted.take(np.arange(5, len(some), dtype=np.int32))]
    found = measure_counts(blocks, some, SIZE, RUNS, threshold, hierarchy)
    assert found.below == pytest.approx(drawn, nan_ok=True)
