"""The laws of a choice of one symbol (:mod:`wordveil.mechanisms.er_ae.symbol_choice`) in real numbers."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from wordveil.arrays import Float64


def softmax_rr_law(row: Float64, epsilon: float) -> Float64:
    """The law of a choice by ``softmax-rr`` in real numbers: float64 ``(s,)``.

    ``row``: float64 ``(s,)``, the softmax, which adds up to 1.
    """
    keep = _sigma(epsilon / 2)
    return np.asarray(row * keep + (1 - row) * (1 - keep) / (len(row) - 1))


def two_set_law(row: Float64, candidates: int, epsilon: float) -> Float64:
    """The law of a choice by ``two-set`` in real numbers, by looking at each set that may be drawn: float64 ``(s,)``.

    The distinct columns of ``k`` draws are the set ``S`` with probability ``sum over T in S of (-1)^(|S| - |T|)
    P(T)^k``. For a few columns: there are about ``s^k`` sets.

    ``row``: float64 ``(s,)``, the softmax, which adds up to 1. ``candidates``: ``k``.
    """
    size, law = len(row), np.zeros(len(row))
    for items in range(1, candidates + 1):
        for chosen in combinations(np.flatnonzero(row).tolist(), items):
            inside = np.zeros(size, bool)
            inside[list(chosen)] = True
            held = float(row[inside].sum())
            coin = _sigma(epsilon / 2 * (held / items - (1 - held) / (size - items)))
            drawn = _chance_of_set(row[inside], candidates)
            law += drawn * np.where(inside, coin / items, (1 - coin) / (size - items))
    return law


def _chance_of_set(shares: Float64, draws: int) -> float:
    """The probability that ``draws`` draws give these columns and no others, by inclusion and exclusion."""
    count = len(shares)
    return math.fsum(
        (-1) ** (count - part) * math.fsum(some) ** draws
        for part in range(1, count + 1)
        for some in combinations(shares.tolist(), part)
    )


def _sigma(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else 1 - _sigma(-value)
