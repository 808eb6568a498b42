"""What the staircase draws has the law that it says, and no two words are told apart by more than epsilon. Both tests
also reject a wrong parameter.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from support.toys import KEYS, build_artifact, counted_contexts, load_built, random_embedding, token_batch
from wordveil.mechanisms.staircase.mechanism import Staircase, StaircaseSettings

SIZE, DRAWS = 120, 400_000
SYMBOLS = {"common word": 0, "rare word": 119, "padding": 120, "unknown word": 121}
EPSILON = 4.0


@pytest.fixture(scope="module")
def mechanism() -> Staircase:
    embedding = random_embedding(SIZE, 5)
    built = build_artifact(Staircase, embedding, StaircaseSettings(epsilon=EPSILON), padding=True)
    made = load_built(Staircase, SIZE, built)
    assert isinstance(made, Staircase)
    return made


def counts(mechanism: Staircase, symbol: int) -> NDArray[np.int64]:
    drawn = mechanism.draw(token_batch([[symbol] * DRAWS], counted_contexts(1, series=symbol)), KEYS).ids
    return np.bincount(drawn, minlength=SIZE + 1)


@pytest.mark.parametrize("symbol", SYMBOLS.values(), ids=SYMBOLS)
def test_draws_have_the_law_that_it_says(mechanism: Staircase, symbol: int):
    found = counts(mechanism, symbol)
    assert stats.chisquare(found, mechanism.probabilities(symbol) * DRAWS).pvalue > 1e-6
    # Floors that are a little larger and a little less even have another law.
    changed = StaircaseSettings(epsilon=EPSILON, floor_mass=0.31, alpha=0.78)
    padded = build_artifact(Staircase, random_embedding(SIZE, 5), changed, padding=True)
    other = load_built(Staircase, SIZE, padded).probabilities(symbol)
    assert other is not None
    assert stats.chisquare(found, other * DRAWS).pvalue < 1e-6


def test_no_draws_tell_two_symbols_apart_by_more_than_epsilon(mechanism: Staircase):
    """For each output, by intervals that are all right but once in 10^6."""
    level = 1e-6 / (2 * len(SYMBOLS) * (SIZE + 1))
    found = np.array([counts(mechanism, symbol) for symbol in SYMBOLS.values()])
    low = np.nan_to_num(stats.beta.ppf(level, found, DRAWS - found + 1))
    high = stats.beta.ppf(1 - level, found + 1, DRAWS - found)
    shown = float(np.log(low.max(axis=0) / high.min(axis=0)).max())
    assert EPSILON - 1 < shown <= EPSILON
    # A mechanism that claimed an epsilon smaller by one would be found out.
    assert shown > math.log(math.exp(EPSILON) / math.e)
