"""Lists of the most similar words of every word, each as long as the masses of its words need.

A word's list has its partners first, then the other words by falling cosine, until the masses of the word and of its
list add up to a budget. Whole numbers decide everything, for equal lists on every machine and any number of threads:
directions are rounded to whole coordinates and to lengths under 4096, so that every partial sum of a product of two is
under 2^24 and float32 products are exact in any order (Cauchy and Schwarz). Rounding moves a cosine by about 1e-4. The
lower word wins a tie.

Beyond :data:`MAX_EXACT` words, or on request, Annoy's trees propose the words of a list, twice as many each time until
their masses suffice, and exact products order them. The proposals may depend on the processor, but not on the number of
threads. They suit mechanisms whose guarantee does not depend on how near a list's words are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordveil.arrays import Bool, Float32, Float64, Int32, Int64, UInt64
from wordveil.compiled import compiled
from wordveil.neighbours.annoy import grow_trees
from wordveil.neighbours.blocks import BuildContext, TooManyEntriesError, start_threads
from wordveil.neighbours.clusters import whole_directions

# Products of two directions are whole numbers from -2^24 to 2^24.
MAX_PRODUCT = 2**24
# Less than any product: words that come after all others; words that are left out.
LAST = -(2**25)
_EXCLUDED = -(2**26)
# Products are counted in bins of 2^15, from the excluded ones in bin 0 up.
_SHIFT = 15
_BINS = ((MAX_PRODUCT - _EXCLUDED) >> _SHIFT) + 1


@compiled
def measure_rows(
    scores: Float32,
    own: Int64,
    masses: UInt64,
    budget: np.uint64,
    starts: Int64,
    partners: Int32,
    limit: Float32,
    room: Int64,
) -> None:
    """Find which scores may be in the list of each row, and how long it is at most.

    ``scores``: float32 ``(rows, words)``, whole numbers, in which the row's own word and its partners are struck out.
    ``own``: int64 ``(rows,)``; row ``r`` has the ``partners`` from ``starts[r]`` up to ``starts[r + 1]``. The masses of
    a list and its own word add up to ``budget`` if there are enough words.
    """
    mass, count = np.zeros(_BINS, np.uint64), np.zeros(_BINS, np.int64)
    for row in range(len(scores)):
        values = scores[row]
        values[own[row]] = _EXCLUDED
        left = budget - min(budget, masses[own[row]])
        for j in range(starts[row], starts[row + 1]):
            values[partners[j]] = _EXCLUDED
            left -= min(left, masses[partners[j]])
        room[row] = starts[row + 1] - starts[row]
        limit[row] = np.inf
        if left == 0:
            continue
        mass[:] = 0
        count[:] = 0
        for word in range(len(values)):
            bin_ = (np.int64(values[word]) - _EXCLUDED) >> _SHIFT
            mass[bin_] += masses[word]
            count[bin_] += 1
        bin_ = np.int64(_BINS - 1)
        room[row] += count[bin_]
        while bin_ > 1 and mass[bin_] < left:
            left -= mass[bin_]
            bin_ -= 1
            room[row] += count[bin_]
        limit[row] = (bin_ << _SHIFT) + _EXCLUDED


@compiled
def take_rows(
    scores: Float32,
    own: Int64,
    masses: UInt64,
    budget: np.uint64,
    starts: Int64,
    partners: Int32,
    limit: Float32,
    offsets: Int64,
    ids: Int32,
    lengths: Int64,
) -> None:
    """Write the list of each row until the budget is used up.

    Partners come first in their order, then words by falling score, the lower number first among equals, without the
    own word. ``scores`` and ``limit``: from :func:`measure_rows`. Row ``r`` writes from ``ids[offsets[r]]`` on.
    """
    for row in range(len(scores)):
        values = scores[row]
        slot = offsets[row]
        left = budget - min(budget, masses[own[row]])
        for j in range(starts[row], starts[row + 1]):
            if left == 0:
                break
            ids[slot] = partners[j]
            slot += 1
            left -= min(left, masses[partners[j]])
        if left > 0:
            keys = np.empty(offsets[row + 1] - offsets[row], np.int64)
            count = 0
            for word in range(len(values)):
                if values[word] >= limit[row]:
                    keys[count] = ((MAX_PRODUCT - np.int64(values[word])) << 32) | word
                    count += 1
            for key in np.sort(keys[:count]):
                if left == 0:
                    break
                word = key & 0xFFFFFFFF
                ids[slot] = word
                slot += 1
                left -= min(left, masses[word])
        lengths[row] = slot - offsets[row]


@compiled
def copy_lists(rows: Int64, list_offsets: Int64, listed: Int32, offsets: Int64, ids: Int32) -> None:
    """Copy list ``j`` of ``listed`` to the beginning of the list of word ``rows[j]``."""
    for j in range(len(rows)):
        length = list_offsets[j + 1] - list_offsets[j]
        for k in range(length):
            ids[offsets[rows[j]] + k] = listed[list_offsets[j] + k]


# Above this many words a search that may choose takes Annoy.
MAX_EXACT = 100_000
# Bytes of one block's scores; as many blocks are at work as there are cores.
_BLOCK_BYTES = 64 * 2**20
MAX_ROWS = 1024
_TREES = 20
# Lists whose recall is measured.
_SAMPLE = 200


@dataclass(frozen=True)
class Partners:
    """Words that come first in the lists of others, in order.

    ``starts``: int64 ``(words + 1,)``; word ``w`` has the entries ``starts[w]`` up to ``starts[w + 1]`` of ``ids``,
    int32, all different and none of them ``w``.
    """

    starts: Int64
    ids: Int32

    @classmethod
    def none(cls, words: int) -> Partners:
        """Make for words without partners."""
        return cls(np.zeros(words + 1, np.int64), np.empty(0, np.int32))

    @classmethod
    def of(cls, words: Int32, others: Int32, similarities: Float64, count: int) -> Partners:
        """Sort partners by falling similarity, then by lower word; duplicate pairs keep the greater similarity.

        ``words``, ``others``, ``similarities``: one entry a pair, never of a word with itself.
        """
        order = np.lexsort((others, -similarities, words))
        order = order[words[order] != others[order]]
        pairs = words[order].astype(np.int64) * count + others[order]
        _, first = np.unique(pairs, return_index=True)
        first_pairs = order[np.sort(first)]
        return cls(np.searchsorted(words[first_pairs], np.arange(count + 1)), others[first_pairs].astype(np.int32))

    def take(self, words: Int64) -> tuple[Int64, Int32]:
        """Select starts and ids of the partners of ``words`` alone."""
        lengths = np.diff(self.starts)[words]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[words] - starts[:-1], lengths)
        return starts, self.ids[entries]


@dataclass(frozen=True)
class SimilarLists:
    """Lists of all words.

    ``offsets``: int64 ``(words + 1,)``. ``ids``: int32 ``(entries,)``, partners, then words by falling similarity;
    never the word itself. ``recall``: share of the true lists' words that a sample has; 1.0 if exact. ``sampled``:
    number of lists measured; 0 if exact.
    """

    offsets: Int64
    ids: Int32
    recall: float = 1.0
    sampled: int = 0


@dataclass(frozen=True)
class SimilarTask:
    """Task of finding lists of similar words.

    ``vectors``: float32 ``(words, n)``, no row of zeros, whose cosines are similarities. ``other``: float32
    ``(words, m)`` of another embedding, whose cosines replace those for the words that it has, ``known``, bool
    ``(words,)``; other words are last in their lists. ``masses``: uint64 ``(words,)``, with sum at most 2^64.
    ``budget``: what masses have to add up to, under 2^64. ``partners``: words that come first. ``classes``: int32
    ``(words,)``: lists stay inside their word's class; or None. ``search``: ``exact``, ``annoy``, or ``auto``: Annoy
    for classes of more than :data:`MAX_EXACT` words.
    """

    vectors: Float32
    masses: UInt64
    budget: int
    partners: Partners
    other: Float32 | None = None
    known: Bool | None = None
    classes: Int32 | None = None
    search: str = "auto"

    @property
    def size(self) -> int:
        """Number of words."""
        return len(self.masses)


def round_directions(vectors: Float32) -> Float32:
    """Round directions to whole numbers, float32 ``(count, n)``, of lengths under 4096. Rows of zeros stay."""
    length = 4095.0 - np.sqrt(vectors.shape[1]) / 2
    directions = np.empty(vectors.shape, np.float32)
    whole_directions(np.ascontiguousarray(vectors, np.float32), directions, float(length), True)
    return directions


def find_similar(task: SimilarTask, work: BuildContext, measure: Callable[[Int64], int], most: int) -> SimilarLists:
    """Find the lists of all words.

    ``measure``, ``most``: what lists of these lengths take, int64 ``(lists,)``, and how much they may take. Raises
    :class:`TooManyEntriesError` if they take more, and :class:`PlatformError` if Annoy is needed and not installed.
    """
    work.progress("finding the similar words of every word")
    parts, taken, done = [], 0, 0
    lengths, recalls = np.zeros(task.size, np.int64), []
    work.steps(0, task.size)
    for lists in _compute(_jobs(task, work)):
        parts.append(lists)
        counts = np.diff(lists.offsets)
        lengths[lists.rows] = counts
        recalls.append(lists.recall)
        taken += measure(counts)
        done += len(counts)
        if taken > most:
            raise TooManyEntriesError(f"over {most:,}")
        work.steps(done, task.size)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.empty(offsets[-1], np.int32)
    for number, lists in enumerate(parts):
        copy_lists(lists.rows, lists.offsets, lists.ids, offsets, ids)
        parts[number] = _NONE
    hits, words, sampled = np.sum(recalls, axis=0).tolist()
    return SimilarLists(offsets, ids, hits / words if words else 1.0, sampled)


@dataclass(frozen=True)
class _Part:
    """Lists of some words. ``recall``: words of true lists that they have, of how many, in how many lists."""

    rows: Int64
    offsets: Int64
    ids: Int32
    recall: tuple[int, int, int] = (0, 0, 0)


_NONE = _Part(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32))
_Job = Callable[[], _Part]


def _compute(jobs: Iterator[_Job]) -> Iterator[_Part]:
    """Run the jobs on all cores and yield results in order. Only a few run at a time, so that parts do not pile up."""
    cores = len(os.sched_getaffinity(0))
    with start_threads(cores) as pool:
        waiting = []
        for job in jobs:
            waiting.append(pool.submit(job))
            if len(waiting) > 2 * cores:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


@dataclass(frozen=True)
class _WordClass:
    """Group of words among which lists are found: those of a class. Numbers are slots in it.

    ``members``: int64, the words, rising. ``directions``: rounded. ``last``: those that come last.
    """

    members: Int64
    directions: Float32
    last: Int64
    masses: UInt64
    budget: np.uint64
    partners: Partners

    def search_exactly(self, rows: Int64) -> _Part:
        """Find the lists of the words in these slots, over all words of the group."""
        scores = self.directions[rows] @ self.directions.T
        scores[:, self.last] = LAST
        starts, partners = self.partners.take(rows)
        offsets, ids = _take(scores, rows, self.masses, self.budget, starts, partners)
        return _Part(self.members[rows], offsets, self.members[ids].astype(np.int32))

    def search_trees(self, trees: Any, searchable: Int64, first: int, rows: Int64) -> _Part:
        """Find the lists among the proposals of Annoy's ``trees`` over the words in the slots ``searchable``.

        ``first``: how many words they propose at first.
        """
        common = np.argsort(-self.masses.astype(np.float64), kind="stable")
        index_in_trees = np.full(len(self.members), -1)
        index_in_trees[searchable] = np.arange(len(searchable))
        lists = []
        for row in rows.tolist():
            starts, partners = self.partners.take(np.array([row]))
            near, asked = np.empty(0, np.int64), first
            while True:
                near = searchable[trees.get_nns_by_item(int(index_in_trees[row]), min(asked, len(searchable)))]
                near = np.unique(np.concatenate([near, partners, [row]]))
                if self.masses[near].sum() >= self.budget or asked >= len(searchable):
                    break
                asked *= 2
            if self.masses[near].sum() < self.budget:
                near = np.sort(_fill_up(near, common, self.masses, self.budget))
            scores = self.directions[[row]] @ self.directions[near].T
            scores[0, ~np.isin(near, searchable)] = LAST
            own, columns = np.searchsorted(near, [row]), np.searchsorted(near, partners).astype(np.int32)
            _, ids = _take(scores, own, self.masses[near], self.budget, starts, columns)
            lists.append(self.members[near[ids]].astype(np.int32))
        return _Part(self.members[rows], np.cumsum([0, *map(len, lists)]), np.concatenate(lists))


def _take(
    scores: Float32, own: Int64, masses: UInt64, budget: np.uint64, starts: Int64, partners: Int32
) -> tuple[Int64, Int32]:
    """Select offsets and ids of the lists of these rows of scores."""
    limit, room, lengths = np.empty(len(own), np.float32), np.empty(len(own), np.int64), np.empty(len(own), np.int64)
    measure_rows(scores, own, masses, budget, starts, partners, limit, room)
    begins = np.concatenate([[0], np.cumsum(room)])
    ids = np.empty(begins[-1], np.int32)
    take_rows(scores, own, masses, budget, starts, partners, limit, begins, ids, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    out = np.empty(offsets[-1], np.int32)
    if len(own) == 1:
        return offsets, ids[: offsets[-1]]
    for row, length in enumerate(lengths.tolist()):
        out[offsets[row] : offsets[row + 1]] = ids[begins[row] : begins[row] + length]
    return offsets, out


def _fill_up(near: Int64, common: Int64, masses: UInt64, budget: np.uint64) -> Int64:
    """Append to ``near`` as many of the most frequent other words as the budget needs."""
    others = common[~np.isin(common, near)]
    # All masses may add up to 2^64, which is 0 here: where the last word is needed, all are.
    reached = masses[near].sum() + np.cumsum(masses[others[:-1]])
    return np.concatenate([near, others[: np.searchsorted(reached, budget) + 1]])


def _jobs(task: SimilarTask, work: BuildContext) -> Iterator[_Job]:
    """Yield the jobs: blocks of rows, class by class, and in each class first the words that ``other`` has."""
    partners = _partners_inside(task)
    for members, slots in _members(task):
        inside = Partners.none(len(members))
        if len(partners.ids):
            starts, ids = partners.take(members)
            inside = Partners(starts, slots[ids])
        for vectors, rows, last in _views(task, members):
            if not len(rows):
                continue
            group = _WordClass(
                members, round_directions(vectors), last, task.masses[members], np.uint64(task.budget), inside
            )
            annoy = task.search == "annoy" or (task.search == "auto" and len(members) > MAX_EXACT)
            yield from (_tree_jobs if annoy else _exact_jobs)(group, rows, work)


def _exact_jobs(group: _WordClass, rows: Int64, work: BuildContext) -> Iterator[_Job]:  # noqa: ARG001 - as its sibling
    step = max(1, min(MAX_ROWS, _BLOCK_BYTES // (4 * len(group.members))))
    for start in range(0, len(rows), step):
        yield lambda part=rows[start : start + step]: group.search_exactly(part)  # type: ignore[misc]


def _tree_jobs(group: _WordClass, rows: Int64, work: BuildContext) -> Iterator[_Job]:
    searchable = np.setdiff1d(np.arange(len(group.members)), group.last)
    work.progress(f"building Annoy's trees over {len(searchable):,} words")
    trees = grow_trees(group.directions[searchable], _TREES)
    share = float(group.budget) / max(math.fsum(group.masses.tolist()), 1.0)
    first = int(min(len(searchable), 2 * share * len(searchable) + 16))
    sample = np.unique(rows[np.linspace(0, len(rows) - 1, min(_SAMPLE, len(rows))).astype(np.int64)])
    chosen = set(sample.tolist())

    def search(part: Int64) -> _Part:
        lists = group.search_trees(trees, searchable, first, part)
        slots = [slot for slot, row in enumerate(part.tolist()) if row in chosen]
        hits = words = 0
        for slot in slots:
            true = group.search_exactly(part[slot : slot + 1]).ids
            hits += len(np.intersect1d(true, lists.ids[lists.offsets[slot] : lists.offsets[slot + 1]]))
            words += len(true)
        return _Part(lists.rows, lists.offsets, lists.ids, (hits, words, len(slots)))

    for start in range(0, len(rows), MAX_ROWS):
        yield lambda part=rows[start : start + MAX_ROWS]: search(part)  # type: ignore[misc]


def _members(task: SimilarTask) -> Iterator[tuple[Int64, Int32]]:
    """Yield the words of each class, rising, and the slot of every word in its class."""
    if task.classes is None:
        every = np.arange(task.size)
        yield every, every.astype(np.int32)
        return
    order = np.argsort(task.classes, kind="stable")
    edges = np.flatnonzero(np.diff(task.classes[order], prepend=-1))
    slots = np.empty(task.size, np.int32)
    groups = np.split(order, edges[1:])
    for members in groups:
        slots[members] = np.arange(len(members))
    for members in groups:
        yield members, slots


def _partners_inside(task: SimilarTask) -> Partners:
    """Select the partners of a word's own class."""
    if task.classes is None or not len(task.partners.ids):
        return task.partners
    words = np.repeat(np.arange(task.size), np.diff(task.partners.starts))
    same = task.classes[words] == task.classes[task.partners.ids]
    return Partners(np.searchsorted(words[same], np.arange(task.size + 1)), task.partners.ids[same])


def _views(task: SimilarTask, members: Int64) -> Iterator[tuple[Float32, Int64, Int64]]:
    """Yield vectors of the members, the slots of words whose lists they decide, and those of words that come last."""
    if task.other is None or task.known is None:
        yield task.vectors[members], np.arange(len(members)), np.empty(0, np.int64)
        return
    is_known = task.known[members]
    yield task.other[members], np.flatnonzero(is_known), np.flatnonzero(~is_known)
    yield task.vectors[members], np.flatnonzero(~is_known), np.empty(0, np.int64)
