"""Pairs of a bundle's symbols to test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wordveil.audit.samplers import PairCounts, choose_pairs
from wordveil.audit.two_phase import Pair
from wordveil.measures.symbols import SymbolSpace


def choose_symbol_pairs(space: SymbolSpace, counts: PairCounts, seed: int) -> list[Pair]:
    """Choose pairs of words, of words with the unknown word and with padding, and of these two.

    ``counts``: how many of each kind; without known distances random pairs replace the nearest, and none are farthest.
    ``seed``: of the choice of words.
    """
    if space.space is None:
        counts = replace(counts, nearest=0, farthest=0, random=counts.random + counts.nearest)
    guarantee = space.guarantee
    pairs = choose_pairs(
        np.arange(space.size, dtype=np.int32),
        lambda word, others: space.distances(word)[others],
        guarantee.bound,
        counts=counts,
        seed=seed,
        delta=guarantee.delta,
        symbols=dict(zip(("unknown", "padding"), space.others, strict=False)),
    )
    both = [Pair(space.size + 1, space.size, 0.0, guarantee.delta, "padding")] if space.padding else []
    # If noise is added, the unknown word and padding have points too.
    return [replace(pair, bound=guarantee.bound(_distance(space, pair))) for pair in (*pairs, *both)]


def _distance(space: SymbolSpace, pair: Pair) -> float:
    return float(space.distances(pair.first)[pair.second])
