"""Statistics of words as arrays: from all words' laws, from one word's at a time, or from counts of draws.

``N_w`` is the probability that a word is drawn for itself, ``S_w`` the number of different outputs of 1,000 draws, and
``K_w`` how many outputs of a word lie below the one that comes out (Feyisetan, Diethe, Drake 2019, section VI;
docs/figures.md says how ``K_w`` differs from theirs). Largest and least entropies are those of a word's outputs:
Renyi's of order 0 and of order infinity, in bits. ``inputs`` is a definition of this package: the number of words that
have the output ``w`` with a probability above the threshold.

A law that is a common part and few entries (:class:`wordveil.mechanisms.laws.WordLaws`) is never written out. The
common part contributes equally to all words of an equal share, and each entry then adds its change.

Draws are counted in blocks of words. Each word is a record of its own name, drawn with public keys: the counts do not
depend on the blocks or the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from wordveil.arrays import Bool, Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.embeddings.training.hypernyms import SHIPPED_PAIRS, read_pairs
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.measures.recovery import OtherLengthError, make_public_keys
from wordveil.measures.token_draws import as_records
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.laws import WordLaws
from wordveil.neighbours.blocks import start_threads

# So many draws are in memory at once for each thread: more would not be faster.
DRAWS_OF_BLOCK = 20_000
_KEYS = make_public_keys("calibrate")


@dataclass(frozen=True)
class WordCounts:
    """Counts of each output for some words.

    ``words``: int32 ``(words,)``, ids. ``offsets``: int64 ``(words + 1,)``; word ``i`` has the entries ``offsets[i]``
    up to ``offsets[i + 1]``. ``ids``: int32 ``(entries,)``, outputs, rising for each word. ``counts``: int32
    ``(entries,)``, at least 1.
    """

    words: Int32
    offsets: Int64
    ids: Int32
    counts: Int32

    def take(self, rows: Int32) -> WordCounts:
        """Select the words at ``rows``, int32 ``(count,)``, in that order."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return WordCounts(self.words[rows], offsets, self.ids[entries], self.counts[entries])

    @classmethod
    def join(cls, blocks: Sequence[WordCounts]) -> WordCounts:
        """Join the words of one or more blocks, by their ids."""
        words, ids, counts = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in ("words", "ids", "counts")
        )
        lengths = np.concatenate([np.diff(block.offsets) for block in blocks])
        whole = cls(words, np.concatenate([[0], np.cumsum(lengths)]), ids, counts)
        return whole.take(np.argsort(words).astype(np.int32))


def count_block(mechanism: Mechanism[Any], words: Int32, runs: int) -> WordCounts:
    """Draw each word ``runs`` times and count its outputs.

    ``mechanism``: draws each token by its word alone. ``words``: int32 ``(words,)``, ids, few enough for all draws to
    be in memory. Raises :class:`OtherLengthError` unless the mechanism draws one output for each token, and
    :class:`ValueError` if ``runs`` is 0, or so large that noise of a word would repeat.
    """
    if not 1 <= runs <= mechanism.max_tokens:
        raise ValueError(f"Expected runs={runs} in [1, {mechanism.max_tokens}].")
    names = [b"%d" % word for word in words.tolist()]
    batch = as_records(np.repeat(words, runs), np.arange(len(words) + 1) * runs, names, _KEYS)
    drawn = mechanism.draw(batch, _KEYS).ids
    if len(drawn) != len(words) * runs:
        raise OtherLengthError
    ordered = np.sort(drawn.reshape(len(words), runs), axis=1)
    begins = np.ones(ordered.shape, bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, ordered.size)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(begins.sum(axis=1))]).astype(np.int64)
    return WordCounts(words, offsets, ordered.ravel()[starts], counts)


def split_words(words: Int32, runs: int) -> Sequence[Int32]:
    """Split words, int32 ``(words,)``, into blocks whose draws fit into memory."""
    step = max(1, DRAWS_OF_BLOCK // runs)
    return [words[start : start + step] for start in range(0, len(words), step)]


def count_words(load: Callable[[], Mechanism[Any]], words: Int32, runs: int) -> Iterator[WordCounts]:
    """Count ``runs`` draws of each of ``words``, int32 ``(words,)``, on threads, each with a mechanism of its own.

    Raises the errors of :func:`count_block`.
    """
    threads = len(os.sched_getaffinity(0))
    idle: SimpleQueue[Mechanism[Any]] = SimpleQueue()
    for _ in range(threads):
        idle.put(load())

    def count(block: Int32) -> WordCounts:
        mechanism = idle.get()
        try:
            return count_block(mechanism, block, runs)
        finally:
            idle.put(mechanism)

    with start_threads(threads) as pool:
        yield from pool.map(count, split_words(words, runs))


OUTPUT_CELLS = 4_000_000


@dataclass(frozen=True)
class WordHierarchy:
    """Hierarchy of the words of a vocabulary.

    ``below``: int32 ``(size, size)``, 1 if the word of the column lies below that of the row. ``known``: bool
    ``(size,)``, the words that lie below or above another.
    """

    below: csr_array
    known: Bool

    @classmethod
    def of(cls, words: pa.StringArray, pairs: pa.Table) -> Self:
        """Make from the columns ``word`` and ``hypernym``, without transitive pairs or words outside ``words``."""
        index, size = WordIndex(words), len(words)
        ends = [index.numbers(pairs[name].combine_chunks()) for name in ("word", "hypernym")]
        is_listed = (ends[0] >= 0) & (ends[1] >= 0) & (ends[0] != ends[1])
        low, high = ends[0][is_listed], ends[1][is_listed]
        below = csr_array((np.ones(len(low), np.int32), (high, low)), shape=(size, size))
        below.data[:] = 1  # a pair that comes twice was added up
        is_placed = np.zeros(size, np.bool_)
        is_placed[low] = is_placed[high] = True
        return cls(below, is_placed)

    @classmethod
    def shipped(cls, words: pa.StringArray) -> Self:
        """Make from the package's pairs."""
        return cls.of(words, read_pairs(SHIPPED_PAIRS))

    def count_below(self, outputs: csr_array) -> Float64:
        """Compute ``K_w`` of words, float64 ``(words,)``; NaN for a word without an output of the hierarchy.

        ``outputs``: ``(words, size)``, positive counts or probabilities.
        """
        placed = outputs.multiply(self.known[None, :]).tocsr()
        placed.eliminate_zeros()
        came = csr_array((np.ones(placed.nnz, np.int32), placed.indices, placed.indptr), shape=placed.shape)
        counts = (came @ self.below.T).multiply(placed)
        with np.errstate(invalid="ignore"):
            return np.asarray(counts.sum(axis=1) / placed.sum(axis=1))


def find_outputs(laws: WordLaws, threshold: float) -> Iterator[csr_array]:
    """Yield probabilities of words above ``threshold``, for consecutive words, float64 ``(words, size)`` each."""
    size = len(laws.shares)
    is_common = laws.common[:size] > threshold
    common = np.flatnonzero(is_common)
    first = 0
    while first < size:
        step = max(1, OUTPUT_CELLS // (len(common) + int(np.diff(laws.offsets).max()) + 1))
        last = min(first + step, size)
        entries = slice(laws.offsets[first], laws.offsets[last])
        owners, ids = np.repeat(np.arange(last - first), np.diff(laws.offsets[first : last + 1])), laws.ids[entries]
        is_word = ids < size
        owners, ids, extras = owners[is_word], ids[is_word], laws.extras[entries][is_word]
        # The common part is added to outputs where it alone may exceed the threshold, and elsewhere to entries.
        extras = extras + np.where(is_common[ids], 0.0, laws.shares[first + owners] * laws.common[ids])
        shared = laws.shares[first:last, None] * laws.common[common]
        entry_words = np.concatenate([owners, np.repeat(np.arange(last - first), len(common))])
        columns = np.concatenate([ids, np.tile(common, last - first)])
        found = csr_array(
            (np.concatenate([extras, shared.ravel()]), (entry_words, columns)), shape=(last - first, size)
        )
        found.sum_duplicates()
        found.data[found.data <= threshold] = 0
        found.eliminate_zeros()
        yield found
        first = last


RUNS = 1_000
"""Draws of one word, as in Feyisetan, Diethe, Drake 2019."""
# Entries that a thread reads together: eight arrays of them are some 250 MB.
SPAN_ENTRIES = 4_000_000
COMMON_CELLS = 1_000_000

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class WordValues:
    """Statistics of some words.

    ``words``: int32 ``(words,)``, ids. ``stays``: float64 ``(words,)``, ``N_w`` as a share of the draws, from 0 to 1.
    ``distinct``: float64 ``(words,)``, ``S_w``, an expectation if exact. ``possible``: float64 ``(words,)``, number of
    outputs with a positive probability, or drawn. ``likeliest``: float64 ``(words,)``, the probability of the likeliest
    output. ``outputs``: int32 ``(outputs,)``, words whose ``inputs`` were counted. ``reaching``: int64 ``(outputs,)``,
    their ``inputs`` among ``words``. ``is_exact``: from known probabilities instead of counts. ``below``: float64
    ``(words,)``, ``K_w``, NaN for a word without an output of the hierarchy; None without a hierarchy.
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
    """Compute the probability of at least one draw in ``runs``, ``1 - (1 - p)^runs``: float64 of the input's shape."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(runs * np.log1p(-np.minimum(probabilities, 1.0))))


def measure_laws(laws: WordLaws, runs: int, threshold: float, hierarchy: WordHierarchy | None = None) -> WordValues:
    """Measure all words from their laws, exact except for rounding, in time proportional to entries.

    ``runs``: draws of each word, for ``S_w``. ``threshold``: for ``K_w`` and ``inputs``. ``hierarchy``: for
    ``K_w``.
    """
    size = len(laws.shares)
    base = _expect_common(laws, runs)
    bound = _divide(threshold, laws.common)

    def measure(span: tuple[int, int]) -> tuple[Float64, Float64, Float64, Float64, Int64]:
        return _measure_span(laws, span, runs, threshold, bound)

    parts = list(_map_threads(measure, _spans(laws)))
    stays, distinct, possible, likeliest = (np.concatenate([part[i] for part in parts]) for i in range(4))
    rising = np.sort(laws.shares)
    reaching = size - np.searchsorted(rising, bound, side="right") + sum(part[4] for part in parts)
    everything = np.arange(size, dtype=np.int32)
    below = None
    if hierarchy is not None:
        below = np.concatenate(list(_map_threads(hierarchy.count_below, find_outputs(laws, threshold))))
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
    step = max(1, COMMON_CELLS // len(levels))
    expected = [
        count_distinct(shares[start : start + step, None] * levels, runs) @ counts
        for start in range(0, len(shares), step)
    ]
    return np.asarray(np.concatenate(expected)[level])


def _spans(laws: WordLaws) -> Iterator[tuple[int, int]]:
    """Yield spans of consecutive words with a bounded number of entries: first and last, exclusive."""
    first, size = 0, len(laws.shares)
    while first < size:
        last = int(np.searchsorted(laws.offsets, laws.offsets[first] + SPAN_ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), size)
        yield first, last
        first = last


def _measure_span(
    laws: WordLaws, span: tuple[int, int], runs: int, threshold: float, bound: Float64
) -> tuple[Float64, Float64, Float64, Float64, Int64]:
    """Measure ``N_w``, entries' part of ``S_w``, possible outputs, and the likeliest one's probability, of a span.

    Each is float64 ``(span,)``. Also returns their contribution to ``inputs``, int64 ``(outputs,)``.
    """
    first, last = span
    count, outputs = last - first, len(laws.common)
    entries = slice(laws.offsets[first], laws.offsets[last])
    ids, owners = laws.ids[entries], np.repeat(np.arange(count), np.diff(laws.offsets[first : last + 1]))
    shares = laws.shares[first:last]
    shared = shares[owners] * laws.common[ids]
    full = np.minimum(shared + laws.extras[entries], 1.0)
    stays = shares * laws.common[first:last]
    itself = ids == owners + first
    stays[owners[itself]] = full[itself]
    gains = count_distinct(full, runs) - count_distinct(shared, runs)
    more = np.bincount(owners, gains, count).astype(np.float64)
    alone = np.bincount(owners[shared == 0], minlength=count)  # outputs that come from entries alone
    possible = (np.where(shares > 0, np.count_nonzero(laws.common), 0) + alone).astype(np.float64)
    likeliest = shares * laws.common.max()
    begins = laws.offsets[first:last]
    listing = begins < laws.offsets[first + 1 : last + 1]
    if listing.any():
        tops = np.maximum.reduceat(full, begins[listing] - laws.offsets[first])
        likeliest[listing] = np.maximum(likeliest[listing], tops)
    reached = (full > threshold) & ~(shares[owners] > bound[ids])
    return (stays, more, possible, np.asarray(likeliest), np.bincount(ids[reached], minlength=outputs).astype(np.int64))


def measure_rows(
    law_of: Callable[[int], Float64],
    words: Int32,
    size: int,
    runs: int,
    threshold: float,
    hierarchy: WordHierarchy | None = None,
) -> WordValues:
    """Measure words, int32 ``(words,)``, from the law of one at a time, exact except for rounding.

    Time is proportional to words times outputs. ``law_of``: returns the law of a word, float64 ``(outputs,)``; several
    threads call it at once. ``size``: words of the vocabulary. Other parameters: as in :func:`measure_laws`.
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

    parts = list(_map_threads(measure, np.array_split(words, max(1, len(words) // 64))))
    stays, distinct, possible, likeliest = np.concatenate([part[0] for part in parts]).T
    reaching = np.sum([part[1] for part in parts], axis=0)
    outputs = np.arange(size, dtype=np.int32)
    below = None if hierarchy is None else np.concatenate([part[2] for part in parts])
    return WordValues(words, stays, distinct, possible, likeliest, outputs, reaching, is_exact=True, below=below)


@compiled
def _summarise_row(law: Float64, runs: int) -> tuple[float, float, float]:
    """Compute ``S_w``, the number of possible outputs, and the probability of the likeliest."""
    distinct, possible, likeliest, last, term = 0.0, 0.0, 0.0, 0.0, 0.0
    for p in law:
        if p > 0:
            if p != last:  # most outputs of a row are alike
                last, term = p, 1.0 if p >= 1 else -np.expm1(runs * np.log1p(-p))
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
    """Measure words, int32 ``(words,)``, rising, from counts of ``runs`` draws of each.

    ``blocks``: their counts, in any order. ``inputs`` counts only ``words`` that gave the output in more than the share
    ``threshold`` of their draws; ``K_w`` counts outputs drawn that often. ``size``: words of the vocabulary.
    ``hierarchy``: for ``K_w``.
    """
    stays, distinct, likeliest = np.zeros(len(words)), np.zeros(len(words)), np.zeros(len(words))
    reaching = np.zeros(size + 1, np.int64)  # padding may come too
    below = None if hierarchy is None else np.empty(len(words))
    for block in blocks:
        row = np.searchsorted(words, block.words)
        lengths = np.diff(block.offsets)
        owners = np.repeat(row, lengths)
        itself = block.ids == words[owners]
        stays[owners[itself]] = block.counts[itself] / runs
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


def _map_threads(measure: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Apply ``measure`` to each item on threads, and yield the results in order."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(measure, items)
