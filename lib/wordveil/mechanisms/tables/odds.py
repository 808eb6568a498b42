"""Slope of a table's log odds: the epsilon that an exponential mechanism is seen to draw with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import Evidence, ShownEpsilon

# Scores above 40 ln 2 are capped (:data:`wordveil.mechanisms.tables.table.MAX_SCORE`), so that log odds stop growing.
_STEEPEST = 27.0


def show_odds(
    mechanism: Mechanism[Any], evidence: Evidence, rate: Callable[[float], float] = float
) -> ShownEpsilon | None:
    """Measure the epsilon by which log odds fall by ``epsilon / 2`` per unit of the score. It compares words with their
    nearest ones.

    If ``tight`` chose the slope, it lies between that and epsilon. None if no distance is known, or no slope can be
    measured. ``mechanism``: knows its probabilities. ``rate``: the score of a distance.
    """
    slopes = [_slope_at(mechanism, evidence, word, rate) for word in evidence.words.tolist()]
    known = [slope for slope in slopes if slope is not None]
    if not known:
        return None
    slope = float(np.median(known))
    return ShownEpsilon(slope if evidence.settings.get("tight") else 2 * slope, 2 * slope, "the log odds of the table")


def _slope_at(mechanism: Mechanism[Any], evidence: Evidence, word: int, rate: Callable[[float], float]) -> float | None:
    """Measure the slope from a word to its nearest neighbour. None if both have one point, or the neighbour is too
    far.
    """
    apart, law = evidence.distances(word).copy(), mechanism.probabilities(word)
    apart[word] = math.inf
    other = int(np.argmin(apart))
    if law is None or not 0 < apart[other] < math.inf or not law[other] > 0:
        return None
    fall, score = math.log(law[word] / law[other]), rate(min(float(apart[other]), evidence.cap))
    return fall / score if score > 0 and 0 < fall < _STEEPEST else None
