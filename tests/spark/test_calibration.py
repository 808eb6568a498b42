"""Words that executors draw have the counts that they have on one machine, however the work is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.repository import NEEDS_ANNOY
from support.toys import random_embedding
from wordveil.measures.calibration.drawing import ThreadedCounter, WordCounts
from wordveil.measures.calibration.meaning import WordPlan, measure_meaning
from wordveil.measures.calibration.subjects import BuiltSubject, Subject
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.spark.builds.calibration import count_on_executors

WORDS = np.arange(0, 120, 3, dtype=np.int32)


def built_of(epsilon: float = 4.0, **settings: Any) -> BuiltSubject:
    made = MECHANISMS["laplace"].settings_type(epsilon=epsilon, **settings)  # type: ignore[call-arg]
    return Subject("laplace", made, random_embedding(120, 4, seed=3), padding=True).build(epsilon)


def join(blocks: Any) -> WordCounts:
    return WordCounts.join(list(blocks))


@pytest.mark.parametrize(
    ("how", "settings"),
    [
        ("auto", {}),
        ("archive", {}),
        pytest.param("auto", {"search": "annoy", "n_trees": 2, "search_k": 9}, marks=NEEDS_ANNOY),
    ],
)
def test_counts_are_the_same(spark, monkeypatch: pytest.MonkeyPatch, how: str, settings: dict[str, Any]):
    built = built_of(**settings)
    here = join(ThreadedCounter(built.load, 1)(WORDS, 300))
    # Blocks of other sizes on the executors.
    monkeypatch.setattr("wordveil.measures.calibration.drawing._DRAWS_OF_BLOCK", 2_100)
    there = join(count_on_executors(lambda: spark, how)(built)(WORDS, 300))
    for name in ("words", "offsets", "ids", "counts"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
    other = join(count_on_executors(lambda: spark, how)(built_of(5.0, **settings))(WORDS, 300))
    assert not np.array_equal(other.counts, here.counts)


def test_the_meaning_is_the_same(spark):
    built, plan = built_of(), WordPlan(words=60, runs=50)
    assert measure_meaning(built, plan, count_on_executors(lambda: spark)(built)) == measure_meaning(built, plan)
