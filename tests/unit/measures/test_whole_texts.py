"""Previews of mechanisms that read whole texts draw what a run would draw: texts that are cut and filled column by
column, as records of their own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from support import toys
from wordveil.measures.recovery import measure_recovery
from wordveil.measures.text_lengths import forecast_lengths
from wordveil.measures.token_draws import choose_records, draw_texts, fit_texts
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.text.policy import TextPolicy

EMBEDDING = toys.random_embedding(40, 8, seed=3)
PAD = EMBEDDING.size


def generator(epsilon: float = 60.0) -> Mechanism[Any]:
    return toys.build_mechanism(EMBEDDING, {"epsilon": epsilon, "model": "g"}, padding=True, mechanism="er-ae")


def test_texts_are_cut_and_filled_column_by_column() -> None:
    ids = np.array([1, 2, 3, 4, 5, 6, 7], np.int32)
    columns = np.array([[3, 1], [0, 0], [1, 2]])
    fitted, offsets = fit_texts(ids, columns, np.array([2, 2]), 9)
    assert fitted.tolist() == [1, 2, 4, 9, 9, 9, 9, 9, 5, 9, 6, 7]
    assert offsets.tolist() == [0, 4, 8, 12]
    whole, offsets = fit_texts(ids, columns, np.array([0, 0]), 9)
    assert (whole.tolist(), offsets.tolist()) == (ids.tolist(), [0, 4, 4, 7])


def test_records_are_chosen_whole_and_spread() -> None:
    ids = np.arange(20, dtype=np.int32)
    columns = np.full((10, 1), 2)
    some, counts = choose_records(ids, columns, 3)
    assert (some.tolist(), len(counts)) == ([0, 1, 8, 9, 18, 19], 3)
    every, counts = choose_records(ids, columns, 99)
    assert (every.tolist(), len(counts)) == (ids.tolist(), 10)
    none, counts = choose_records(ids[:0], columns[:0], 3)
    assert (len(none), len(counts)) == (0, 0)


def test_records_are_drawn_apart_from_each_other() -> None:
    """The repeating generator begins with a text's first word, so that at a large epsilon each record shows its own."""
    ids = np.arange(20, dtype=np.int32)
    drawn, speed = draw_texts(generator(), ids, np.arange(6) * 4, math.inf)
    assert len(drawn) == 20
    assert speed > 0
    assert (drawn[::4] == ids[::4]).sum() >= 4
    first, _ = draw_texts(generator(), ids, np.array([0, 0, 4, 20]), 0.0)
    assert len(first) >= 4  # at least one batch, though there is no time


def test_forecasts_count_words_of_whole_texts() -> None:
    """The repeating generator ends an empty text at once, and goes on with the words of any other. The keys are new in
    each run, so the bounds lie far outside of what 20 texts of 12 places vary by: 0.05 and 0.4 words.
    """
    empty, ten, hundred = forecast_lengths(TextPolicy(length="pad", n_max=12), generator(), PAD)
    assert empty.draws == ten.draws
    assert 0 <= empty.mean < 1
    assert 10.5 < ten.mean <= 12
    assert 10.5 < hundred.mean <= 12


def test_no_figure_is_shown_of_single_words() -> None:
    assert measure_recovery(generator(), rank_frequencies(PAD)) is None
