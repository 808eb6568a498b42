"""Statistics of words as arrays: from all words' laws, from one word's at a time, or from counts of draws.

``N_w`` is the probability that a word is drawn for itself (Feyisetan, Balle, Drake, Diethe 2020, "Privacy- and
Utility-Preserving Textual Analysis via Calibrated Multivariate Perturbations"). ``S_w`` is the number of different
outputs of 1,000 draws (Feyisetan, Diethe, Drake 2019, "Leveraging Hierarchical Representations for Preserving Privacy
and Utility in Text", section VI). Their largest and least entropies are here those of a word's outputs: Renyi's of
order 0 and of order infinity, in bits.

A law that is a common part and few entries (:class:`wordveil.mechanisms.laws.WordLaws`) is never written out. The
common part contributes equally to all words of an equal share, and each entry then adds its change.

``K_w`` is that of the same paper (:mod:`wordveil.measures.calibration.hierarchy`), over the outputs with a probability
above a threshold. ``inputs`` is a definition of this package: the number of words that have the output ``w`` with a
probability above it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array

from wordveil.arrays import Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.measures.calibration.drawing import WordCounts
from wordveil.measures.calibration.hierarchy import WordHierarchy, find_outputs
from wordveil.mechanisms.laws import WordLaws

RUNS = 1_000
"""Draws of one word, as Feyisetan, Diethe, Drake 2019 have them."""
# Entries that a thread reads together: eight arrays of them are some 250 MB.
_ENTRIES = 4_000_000
_CELLS = 1_000_000

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class WordValues:
    """Statistics of some words.

    ``words``: int32 ``(words,)``, ids of the words that were measured. ``stays``: float64 ``(words,)``, ``N_w`` as a
    share of the draws, from 0 to 1. ``distinct``: float64 ``(words,)``, ``S_w``, different outputs of the draws; on
    average where it is exact. ``possible``: float64 ``(words,)``, how many outputs have a positive probability, or
    came. ``likeliest``: float64 ``(words,)``, the probability of the likeliest output. ``outputs``: int32
    ``(outputs,)``, words whose ``inputs`` were counted. ``reaching``: int64 ``(outputs,)``, ``inputs``, how many of
    ``words`` have that output with a probability above the threshold. ``is_exact``: whether probabilities were known;
    else these are counts. ``below``: float64 ``(words,)``, ``K_w``, NaN where no output is in the hierarchy. None where
    there is no hierarchy.
    """

    words: Int32
    stays: Float64
    distinct: Float64
    possible: Float64
    likeliest: Float64
    outputs: Int32
    reaching: Int64
    is_exact: bool
    below: Float64 | None = None


def count_distinct(probabilities: Float64, runs: int) -> Float64:
    """Compute the probability that an output is drawn at least once in ``runs``, ``1 - (1 - p)^runs``.

    Returns float64 of the shape of ``probabilities``.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(runs * np.log1p(-np.minimum(probabilities, 1.0))))


def measure_laws(
    laws: WordLaws, runs: int, threshold: float, threads: int | None = None, hierarchy: WordHierarchy | None = None
) -> WordValues:
    """Measure all words from their laws, exact except for rounding, in time proportional to entries.

    ``runs``: draws of each word, for ``S_w``. ``threshold``: of ``K_w`` and ``inputs``. ``threads``: their number; None
    for the number of cores. It changes no figure. ``hierarchy``: of ``K_w``, if there is one.
    """
    size = len(laws.shares)
    base = _expect_common(laws, runs)
    bound = _divide(threshold, laws.common)

    def measure(span: tuple[int, int]) -> tuple[Float64, Float64, Float64, Float64, Int64]:
        return _measure_span(laws, span, runs, threshold, bound)

    parts = list(_map_threads(measure, _spans(laws), threads))
    stays, distinct, possible, likeliest = (np.concatenate([part[i] for part in parts]) for i in range(4))
    rising = np.sort(laws.shares)
    reaching = size - np.searchsorted(rising, bound, side="right") + sum(part[4] for part in parts)
    everything = np.arange(size, dtype=np.int32)
    below = None
    if hierarchy is not None:
        below = np.concatenate(list(_map_threads(hierarchy.count_below, find_outputs(laws, threshold), threads)))
    return WordValues(
        everything, stays, base + distinct, possible, likeliest, everything, reaching[:size], is_exact=True, below=below
    )


def _divide(threshold: float, common: Float64) -> Float64:
    """Compute the share above which a word reaches an output by the common law alone; infinite if none does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(common > 0, threshold / common, np.inf)


def _expect_common(laws: WordLaws, runs: int) -> Float64:
    """Compute what ``S_w`` would be if no word had entries: float64 ``(size,)``."""
    shares, level = np.unique(laws.shares, return_inverse=True)
    levels, counts = np.unique(laws.common, return_counts=True)
    step = max(1, _CELLS // len(levels))
    rows = [
        count_distinct(shares[start : start + step, None] * levels, runs) @ counts
        for start in range(0, len(shares), step)
    ]
    return np.asarray(np.concatenate(rows)[level])


def _spans(laws: WordLaws) -> Iterator[tuple[int, int]]:
    """Yield spans of consecutive words that have not too many entries together: first and last, exclusive."""
    first, size = 0, len(laws.shares)
    while first < size:
        last = int(np.searchsorted(laws.offsets, laws.offsets[first] + _ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), size)
        yield first, last
        first = last


def _measure_span(
    laws: WordLaws, span: tuple[int, int], runs: int, threshold: float, bound: Float64
) -> tuple[Float64, Float64, Float64, Float64, Int64]:
    """Measure the words of a span: ``N_w``, entries' part of ``S_w``, possible outputs, the likeliest one's
    probability.

    Each is float64 ``(span,)``. Also returns what their entries add to ``inputs``, int64 ``(outputs,)``.
    """
    first, last = span
    count, outputs = last - first, len(laws.common)
    entries = slice(laws.offsets[first], laws.offsets[last])
    ids, own = laws.ids[entries], np.repeat(np.arange(count), np.diff(laws.offsets[first : last + 1]))
    shares = laws.shares[first:last]
    shared = shares[own] * laws.common[ids]
    full = np.minimum(shared + laws.extras[entries], 1.0)
    stays = shares * laws.common[first:last]
    itself = ids == own + first
    stays[own[itself]] = full[itself]
    gains = count_distinct(full, runs) - count_distinct(shared, runs)
    more = np.bincount(own, gains, count).astype(np.float64)
    alone = np.bincount(own[shared == 0], minlength=count)  # outputs that come from entries alone
    possible = (np.where(shares > 0, np.count_nonzero(laws.common), 0) + alone).astype(np.float64)
    likeliest = shares * laws.common.max()
    begins = laws.offsets[first:last]
    listing = begins < laws.offsets[first + 1 : last + 1]
    if listing.any():
        tops = np.maximum.reduceat(full, begins[listing] - laws.offsets[first])
        likeliest[listing] = np.maximum(likeliest[listing], tops)
    reached = (full > threshold) & ~(shares[own] > bound[ids])
    return (stays, more, possible, np.asarray(likeliest), np.bincount(ids[reached], minlength=outputs).astype(np.int64))


def measure_rows(
    law_of: Callable[[int], Float64],
    words: Int32,
    size: int,
    runs: int,
    threshold: float,
    threads: int | None = None,
    hierarchy: WordHierarchy | None = None,
) -> WordValues:
    """Measure words, int32 ``(words,)``, from the law of one at a time, exact except for rounding.

    Time is proportional to words times outputs. ``law_of``: the law of a word, float64 ``(outputs,)``; threads call it
    side by side. ``size``: words of the vocabulary. The others: as in :func:`measure_laws`.
    """

    def measure(part: Int32) -> tuple[Float64, Int64, Float64]:
        values, reached, likely = np.empty((len(part), 4)), np.zeros(size, np.int64), []
        for row, word in enumerate(part.tolist()):
            law = law_of(word)
            values[row] = (law[word], *_summarise_row(law, runs))
            is_likely = law[:size] > threshold
            reached += is_likely
            likely.append(np.where(is_likely, law[:size], 0.0))
        below = hierarchy.count_below(csr_array(np.stack(likely))) if hierarchy else np.empty(0)
        return values, reached, below

    parts = list(_map_threads(measure, np.array_split(words, max(1, len(words) // 64)), threads))
    stays, distinct, possible, likeliest = np.concatenate([part[0] for part in parts]).T
    reaching = np.sum([part[1] for part in parts], axis=0)
    outputs = np.arange(size, dtype=np.int32)
    below = None if hierarchy is None else np.concatenate([part[2] for part in parts])
    return WordValues(words, stays, distinct, possible, likeliest, outputs, reaching, is_exact=True, below=below)


@compiled
def _summarise_row(law: Float64, runs: int) -> tuple[float, float, float]:
    """Compute ``S_w``, the number of possible outputs, and the probability of the likeliest."""
    distinct, possible, likeliest, before, term = 0.0, 0.0, 0.0, 0.0, 0.0
    for p in law:
        if p > 0:
            if p != before:  # most outputs of a row are alike
                before, term = p, 1.0 if p >= 1 else -np.expm1(runs * np.log1p(-p))
            distinct += term
            possible += 1
            likeliest = max(likeliest, p)
    return distinct, possible, likeliest


def measure_counts(
    blocks: Iterable[WordCounts],
    words: Int32,
    size: int,
    runs: int,
    threshold: float,
    hierarchy: WordHierarchy | None = None,
) -> WordValues:
    """Measure words from counts of their draws.

    ``inputs`` covers ``words`` alone: the number of them that gave the output in more than the share ``threshold`` of
    their draws. ``K_w`` is over all outputs drawn that often. ``blocks``: the counts of all ``words``, in any order.
    ``words``: int32 ``(words,)``, rising. ``size``: words of the vocabulary. ``runs``: draws of each word.
    ``hierarchy``: of ``K_w``, if there is one.
    """
    stays, distinct, likeliest = np.zeros(len(words)), np.zeros(len(words)), np.zeros(len(words))
    reaching = np.zeros(size + 1, np.int64)  # padding may come too
    below = None if hierarchy is None else np.empty(len(words))
    for block in blocks:
        row = np.searchsorted(words, block.words)
        lengths = np.diff(block.offsets)
        own = np.repeat(row, lengths)
        itself = block.ids == words[own]
        stays[own[itself]] = block.counts[itself] / runs
        distinct[row] = lengths
        likeliest[row] = np.maximum.reduceat(block.counts, block.offsets[:-1]) / runs
        likely = block.counts > threshold * runs
        reaching += np.bincount(block.ids[likely], minlength=size + 1)
        if below is not None and hierarchy is not None:
            likely &= block.ids < size
            ends = np.concatenate([[0], np.cumsum(likely)])[block.offsets]
            came = (block.counts[likely], block.ids[likely], ends)
            below[row] = hierarchy.count_below(csr_array(came, shape=(len(row), size)))
    return WordValues(words, stays, distinct, distinct, likeliest, words, reaching[words], is_exact=False, below=below)


def _map_threads(measure: Callable[[_Item], _Result], items: Iterable[_Item], threads: int | None) -> Iterator[_Result]:
    """Apply ``measure`` to each item on threads, and yield the results in order."""
    with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(measure, items)
