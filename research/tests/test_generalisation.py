"""The benchmark of generalisation: its figures are those of the laws."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from wordveil.embeddings.embedding import check_embedding
from wordveil.measures.calibration.statistics import WordHierarchy

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
WORDS = ["animal", "dog", "cat", "poodle", "blue", "red"]
PAIRS = [("dog", "animal"), ("cat", "animal"), ("poodle", "dog"), ("poodle", "animal")]


@pytest.fixture
def generalisation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("generalisation")


@pytest.fixture
def hierarchy() -> WordHierarchy:
    low, high = zip(*PAIRS, strict=True)
    return WordHierarchy.of(pa.array(WORDS), pa.table({"word": low, "hypernym": high}))


def test_pairs_lead_to_hypernyms_specific_first(generalisation, hierarchy):
    assert generalisation.make_pairs(hierarchy, "") is None
    for kind, similarities in (("alike", [1, 1, 1, 1]), ("specific first", [1 / 3, 1 / 3, 1 / 3, 1])):
        found = generalisation.make_pairs(hierarchy, kind)
        named = {(WORDS[low], WORDS[high]) for low, high in zip(found.words, found.others, strict=True)}
        assert named == set(PAIRS)
        assert sorted(found.similarities) == pytest.approx(sorted(similarities))
    found = generalisation.make_pairs(hierarchy, "specific first")
    best = {WORDS[found.others[place]] for place in np.flatnonzero(found.similarities == 1)}
    assert best == {"dog"}


def test_figures_are_those_of_the_law(generalisation, hierarchy):
    vectors = np.random.default_rng(2).standard_normal((len(WORDS), 3))
    flat, ball = (check_embedding(WORDS, rows, "made") for rows in (vectors, vectors / 9))
    chance = generalisation.measure(generalisation.Row("random", "random"), flat, hierarchy)
    # Of dog, cat and poodle one word of six stays; dog and cat have one hypernym, and poodle two.
    assert chance["stays"] == pytest.approx(1 / 6)
    assert chance["hypernyms"] == pytest.approx((4 / 3) / 5)
    # Below animal lie three words of six, below dog one: each pair as likely as the others.
    assert chance["below_hypernym"] == pytest.approx((3 * 3 + 1) / 4 / 6)
    assert (chance["loss"], chance["words"], chance["drawn"]) == (0, 3, False)
    settings = {"epsilon": 1.5, "alpha": 0.0, "floor_mass": 0.5}
    plain, paired = (
        generalisation.measure(generalisation.Row("s", "staircase", settings, pairs=kind), flat, hierarchy)
        for kind in ("", "specific first")
    )
    assert paired["hypernyms"] > plain["hypernyms"]
    cut = {"epsilon": 4.0, "clusters": (3,), "least": 2, "output": "hypernym", "pairs": "demo"}
    tree = generalisation.measure(generalisation.Row("t", "tree", cut, pairs="alike"), flat, hierarchy)
    # Poodle becomes dog, cat becomes animal, and dog stays, unless another cluster is drawn.
    assert tree["hypernyms"] > 0.9 * math.exp(4) / (math.exp(4) + 2)
    assert len(tree["example"].split()) == len(generalisation.SENTENCE.split())
    noisy = generalisation.Row("noise", "hyperbolic-fdd", {"epsilon": 1.0})
    drawn = generalisation.measure(noisy, ball, hierarchy)
    assert drawn["drawn"]
    assert 0 < drawn["stays"] < 1
