"""Draws against what is claimed of them: bounds of a probability (Clopper and Pearson 1934), and a test of a law."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats


def least_chance(hits: Any, draws: int, alpha: float) -> Any:
    """Compute a lower bound, which is wrong with probability ``alpha``; 0 after no hit."""
    return np.nan_to_num(stats.beta.ppf(alpha, hits, draws - np.asarray(hits) + 1))


def most_chance(hits: Any, draws: int, alpha: float) -> Any:
    """Compute an upper bound, which is wrong with probability ``alpha``; 1 after hits alone."""
    return np.nan_to_num(stats.beta.ppf(1 - alpha, np.asarray(hits) + 1, draws - np.asarray(hits)), nan=1.0)


def p_value(counts: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """Test by chi-square that counts come from a law; 0 where an output is counted that has no probability."""
    possible = law > 0
    if counts[~possible].any():
        return 0.0
    return float(stats.chisquare(counts[possible], law[possible] / law[possible].sum() * counts.sum()).pvalue)
