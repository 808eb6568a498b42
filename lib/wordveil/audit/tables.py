"""Tests of computed losses and draws against the claims of a mechanism with exact probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

from wordveil.arrays import Int32
from wordveil.audit.two_phase import Pair
from wordveil.measures.exact_loss import Loss, find_loss
from wordveil.measures.posterior import require_law
from wordveil.mechanisms.base import Mechanism

ROUNDING = 1e-9
"""By how much a computed loss may exceed a claim: laws are float64, and certificates are rounded up."""


def find_excess(mechanism: Mechanism[Any], pairs: Iterable[Pair]) -> tuple[Loss, float] | None:
    """Find the loss and the bound of the pair of symbols whose loss exceeds its bound most. None without pairs."""
    losses = [(find_loss(mechanism, pair.first, pair.second), pair.bound) for pair in pairs]
    return max(losses, key=lambda row: row[0].nats - row[1], default=None)


def find_deviation(
    mechanism: Mechanism[Any], words: Int32, drawn: NDArray[np.integer[Any]], seed: int
) -> tuple[float, float]:
    """Measure how far draws are from the probabilities that the mechanism states.

    Each draw becomes a number that is uniform in [0, 1] if and only if it follows its law: outputs are sorted by
    falling probability, and a draw becomes a random point of its output's range (Rosenblatt 1952, randomised for laws
    that are not continuous). All numbers are compared with the uniform law by Kolmogorov and Smirnov.

    ``mechanism``: one that knows its probabilities. ``words``: int32 ``(words,)``. ``drawn``: int ``(words, draws)``,
    what each became. ``seed``: of the random points.

    Returns
    -------
    tuple of float
        the largest distance of the two distribution functions, from 0 to 1, and its p-value; ``(1.0, 0.0)`` where a law
        rules an output out.
    """
    uniform = np.random.default_rng(seed).random(drawn.shape)
    points = np.empty(drawn.shape)
    for row, word in enumerate(words.tolist()):
        law = require_law(mechanism, word)
        order = np.argsort(-law, kind="stable")
        below = np.empty(len(law))
        below[order] = np.concatenate([[0.0], np.cumsum(law[order])[:-1]])
        if (drawn[row] >= len(law)).any() or not law[drawn[row]].all():
            return 1.0, 0.0
        points[row] = below[drawn[row]] + uniform[row] * law[drawn[row]]
    test = kstest(np.minimum(points.ravel(), 1.0), "uniform")
    return float(test.statistic), float(test.pvalue)


def exceeds(loss: float, claim: float) -> bool:
    """Return whether a computed loss exceeds a claim by more than rounding."""
    return not loss <= claim + ROUNDING * max(1.0, abs(claim)) or math.isnan(claim)
