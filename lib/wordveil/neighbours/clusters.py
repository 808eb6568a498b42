"""Clusters of similar words, all of one size or of any, and clusters of clusters.

**Of one size**: balanced k-means over the directions of vectors. In each round words are given to the nearest centroid
that has room, the most similar pairs first. A centroid is the direction of its members' sum. Then pairs of words of
different clusters are swapped while that raises the objective, the sum of the cosines within clusters: for unit vectors
the squared lengths of the clusters' sums.

Clusters of clusters are made from the top: all words are split into clusters of equal size, each of these into the same
number of smaller ones, and so on. Sizes are equal to within one at every level. Proof: let ``a`` be a number of
clusters of sizes ``floor(N / a)`` and ``ceil(N / a)``, each split into ``b`` of sizes ``floor(n / b)`` and
``ceil(n / b)``. Then no size is below ``floor(floor(N / a) / b) = floor(N / (a b))``, nor above
``ceil(ceil(N / a) / b) = ceil(N / (a b))`` (Graham, Knuth, Patashnik, Concrete Mathematics, equation 3.11), and these
two differ by one at most. Clusters of one word each are the exception: their number need not be a multiple.

**Of any size**: weighted spherical k-means. A centroid is the direction of its members' weighted sum, so that clusters
are small where weight is. A cluster with too few words takes, in each round, those whose move costs least (the weight
of a word times what its cosine loses) from clusters that can spare them. Each class is cut by itself, into a number of
clusters in proportion to its weight. Clusters of clusters are those of centroids, of equal numbers of clusters, and may
mix classes.

The result is equal on every machine and for any number of threads: in the compiled loops all numbers are whole, and
lower ids win ties. Words and centroids have a length of at most 4,095, so that every partial sum of a product of two of
them is below 2^24, by Cauchy and Schwarz: float32 holds it exactly, in any order of addition. Sums of up to 2^28 words
keep their products below 2^53, and float64 holds those exactly. A centroid's length is one square root, one division
and one multiplication, each rounded as IEEE 754 says.

Sources: k-means with capacities as an assignment problem is Bradley, Bennett, Demiriz 2000, solved there as a flow of
least cost and by Malinen and Franti 2014 with the Hungarian algorithm; over directions it is spherical k-means (Dhillon
and Modha 2001). Here assignment is greedy, and exchanges (Kernighan and Lin 1970) repair it.
"""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, Int64
from wordveil.compiled import compiled, compiled_bounds, compiled_part
from wordveil.geometry.spaces import digest_points
from wordveil.neighbours.blocks import BuildContext, start_threads

LONGEST = 4095.0
"""Largest length of whole vectors: its square is below 2^24."""


@compiled
def whole_directions(rows: Float32 | Float64, out: Float32, length: float = LONGEST, nearest: bool = False) -> None:  # noqa: FBT001, FBT002 - compiled code takes no keywords
    """Bring each row to ``length`` and make its coordinates whole numbers; a row of zeros stays.

    Coordinates are cut, so that no row is longer than ``length``; or, with ``nearest``, rounded.
    """
    for row in range(len(rows)):
        square = 0.0
        for k in range(rows.shape[1]):
            square += np.float64(rows[row, k]) * np.float64(rows[row, k])
        scale = length / np.sqrt(square) if square > 0 else 0.0
        for k in range(rows.shape[1]):
            value = np.float64(rows[row, k]) * scale
            out[row, k] = np.float32(np.rint(value) if nearest else np.trunc(value))


@compiled
def best_columns(scores: Float32, ids: Int32, best: Float32) -> None:
    """Find each row's columns with the greatest scores, in falling order, ties by lower column.

    ``scores``: ``(rows, columns)``; ``ids``, ``best``: ``(rows, wanted)``, at most as many as columns.
    """
    width = ids.shape[1]
    for row in range(len(scores)):
        count = 0
        for column in range(scores.shape[1]):
            score = scores[row, column]
            if count < width:
                slot = count
                count += 1
            elif score > best[row, width - 1]:
                slot = width - 1
            else:
                continue
            while slot > 0 and best[row, slot - 1] < score:
                best[row, slot] = best[row, slot - 1]
                ids[row, slot] = ids[row, slot - 1]
                slot -= 1
            best[row, slot] = score
            ids[row, slot] = column


@compiled
def assign_in_turn(turns: Int64, ids: Int32, labels: Int32, room: Int64) -> None:
    """Give each word the first cluster with room, by turns: turn ``t`` is entry ``t`` of ``ids``, ``(words, wanted)``.

    Changes ``labels`` and ``room``; a word that gets none keeps its label of -1.
    """
    width = ids.shape[1]
    for turn in turns:
        word = turn // width
        cluster = ids[word, turn % width]
        if labels[word] < 0 and room[cluster] > 0:
            labels[word] = cluster
            room[cluster] -= 1


@compiled
def sum_members(words: Float32, weights: Int64, labels: Int32, sums: Float64) -> None:
    """Add each word, times its weight, to the sum of its cluster. ``sums``: float64 ``(clusters, n)``."""
    for word in range(len(words)):
        cluster, weight = labels[word], np.float64(weights[word])
        for k in range(words.shape[1]):
            sums[cluster, k] += weight * np.float64(words[word, k])


@compiled_bounds
def _product(left: Float64, right: Float32) -> float:
    """Compute the inner product of whole vectors, exact in any order."""
    total = 0.0
    for k in range(len(left)):
        total += left[k] * np.float64(right[k])
    return total


@compiled
def swap_words(
    words: Float32, nearest: Int32, labels: Int32, sums: Float64, starts: Int64, order: Int32, position_of: Int32
) -> int:
    """Swap pairs of words of two clusters if that brings the clusters' words together; return how many.

    Each word in turn makes its best swap with a member of one of the clusters ``nearest``, int32 ``(words, clusters)``,
    if their members are nearer to it than its own cluster's. Members of cluster ``c`` are ``order[starts[c]:starts[c +
    1]]``, and ``position_of`` is the inverse of ``order``. Changes ``labels``, ``sums``, ``order`` and ``position_of``.

    With ``S`` the sums of clusters ``a`` and ``b``, swapping ``w`` of ``a`` for ``v`` of ``b`` raises
    ``|S_a|^2 + |S_b|^2``, the sum of all products within the clusters, by twice

        (S_b - S_a).w + |w|^2  +  (S_a - S_b - 2 w).v + |v|^2.
    """
    n = words.shape[1]
    difference = np.empty(n)
    swaps = 0
    for word in range(len(words)):
        own = labels[word]
        square = 0.0
        for k in range(n):
            square += np.float64(words[word, k]) * np.float64(words[word, k])
        there = _product(sums[own], words[word]) - square
        most, partner = 0.0, -1
        for j in range(nearest.shape[1]):
            other = nearest[word, j]
            closer = _product(sums[other], words[word]) - there
            if other == own or closer <= 0:
                continue
            for k in range(n):
                difference[k] = sums[own, k] - sums[other, k] - 2.0 * np.float64(words[word, k])
            for member in order[starts[other] : starts[other + 1]]:
                gain = closer + _gain(difference, words[member])
                if gain > most:
                    most, partner = gain, member
        if partner >= 0:
            _swap(word, partner, words, labels, sums, order, position_of)
            swaps += 1
    return swaps


@compiled_bounds
def _gain(difference: Float64, word: Float32) -> float:
    """Compute ``(d + v).v``, a member's part of a gain, exact in any order."""
    total = 0.0
    for k in range(len(difference)):
        total += (difference[k] + np.float64(word[k])) * np.float64(word[k])
    return total


@compiled_part
def _swap(
    word: int, partner: int, words: Float32, labels: Int32, sums: Float64, order: Int32, position_of: Int32
) -> None:
    own, other = labels[word], labels[partner]
    for k in range(words.shape[1]):
        change = np.float64(words[partner, k]) - np.float64(words[word, k])
        sums[own, k] += change
        sums[other, k] -= change
    here, there = position_of[word], position_of[partner]
    order[here], order[there] = partner, word
    position_of[word], position_of[partner] = there, here
    labels[word], labels[partner] = other, own


@dataclass(frozen=True)
class ClusterHierarchy:
    """Order of words in which every cluster of every level is a range.

    ``order``: int32 ``(size,)``, the words, rising within a lowest cluster. ``bounds``: int64 ``(clusters + 1,)`` for
    each level, the lowest first: cluster ``c`` has the slots ``bounds[c]`` up to ``bounds[c + 1]``. The last level is
    one cluster.
    """

    order: Int32
    bounds: tuple[Int64, ...]

    def save(self, path: Path) -> None:
        """Write it into a file that appears only when complete."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{os.getpid()}-{path.name}")
        with draft.open("wb") as file:
            np.savez(file, self.order, *self.bounds)
        draft.rename(path)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read what :meth:`save` wrote, or return None if the file is missing or damaged."""
        try:
            with np.load(path) as file:
                order, *bounds = (file[f"arr_{number}"] for number in range(len(file.files)))
                return cls(order, tuple(bounds))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None


# Increment it when the same vectors may lead to other clusters: kept ones of older versions are then not used.
_VERSION = 1
_ROUNDS = 8
_WEIGHTED_ROUNDS = 30
HEAVIEST = 2**16
"""Largest weight of a word."""
_SWAP_ROUNDS, _SWAP_PASSES = 3, 4
# A pass that swaps fewer than one word in this many is the last of its round, a round that begins so the last of all.
_WORTHWHILE = 500
# The nearest centroids of a word that are kept: those that it is given in turn, and those that it may be swapped to.
_NEAREST = 16
# Words whose products with all centroids are held at a time, and small clusters whose products with all words are.
_ROWS, _TOGETHER = 512, 32
# Multiplications of one round's products. More words and clusters are first split into groups of clusters.
MOST_PRODUCTS = 400_000_000_000
# Multiplications of one pass of swaps where each word tries one other cluster. Beyond it clusters are so large
# that there is little to repair: of 1,000 words each, swaps raise the mean cosine by less than 0.001.
MOST_SWAPS = 20_000_000_000

Call = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def count_clusters(size: int, sizes: Iterable[int]) -> list[int]:
    """Count each level's clusters for clusters of about ``sizes`` words, the lowest first, one of all words last.

    Raises :class:`ValueError` if a cluster would have fewer than two parts: each of the sizes must be at most two
    thirds of the next one, and of ``size``.
    """
    counts = [1]
    for wanted in sorted(sizes, reverse=True):
        parts = round(size / counts[-1] / wanted) if wanted < size else 0
        if parts < 2:
            largest = math.floor(size / counts[-1] / 1.5)
            raise ValueError(
                f"Expected a size of at most {largest}, two thirds of the next one or of all words, not {wanted}."
                if largest
                else f"Expected more words than {size} in the clusters that {wanted} is to cut, or fewer sizes."
            )
        counts.append(size if wanted == 1 else counts[-1] * parts)
    return counts[::-1]


def build_hierarchy(vectors: Float32, counts: list[int], work: BuildContext) -> ClusterHierarchy:
    """Cluster words into levels of clusters, equally on every machine.

    ``vectors``: float32 ``(size, n)``, of any length except 0. ``counts``: clusters of each level, the lowest first,
    each below ``size`` and a multiple of the next; the last is 1, and the first may be ``size``.
    """
    return _keep(
        f"{_VERSION} {counts}", vectors, work, lambda words, call: split_levels(words, counts, call, work.steps)
    )


def build_partition(
    vectors: Float32,
    weights: Int64,
    counts: list[int],
    least: int,
    work: BuildContext,
    classes: Int32 | None = None,
    settled: Int32 | None = None,
) -> ClusterHierarchy:
    """Cluster words into ``counts[0]`` clusters of any size, and these into levels, equally on every machine.

    ``vectors``: float32 ``(size, n)``, of any length except 0. ``weights``: int64 ``(size,)``, 1 to :data:`HEAVIEST`.
    ``counts``: clusters of each level, the lowest first, falling to 1; those above the lowest each a multiple of the
    next. ``least``: the smallest number of words of a cluster. ``classes``: int32 ``(size,)``, from 0; a lowest cluster
    has one class. ``settled``: int32 ``(size,)``, clusters given in advance, from 0 without gaps, or -1. Raises
    :class:`ValueError` if a class has, or all classes have, too few words.
    """
    if (needed := counts[0] * least) > len(vectors):
        raise ValueError(f"{counts[0]:,} clusters of {least:,} words or more need {needed:,} words.")
    classes = np.zeros(len(vectors), np.int32) if classes is None else classes
    given = np.full(len(vectors), -1, np.int32) if settled is None else settled
    first = int(given.max()) + 1
    free = np.flatnonzero(given < 0)
    kind_of = np.unique(classes[free], return_inverse=True)[1].astype(np.int32)
    shares = share_clusters(counts[0] - first, weights[free], kind_of, least) if len(free) else np.zeros(0, np.int64)

    def split(words: Float32, call: Call) -> ClusterHierarchy:
        labels, centroids = given.copy(), np.empty((counts[0], words.shape[1]), np.float32)
        taken = given >= 0
        centroids[:first] = _centroids(sum_clusters(words[taken], given[taken], first, weights[taken]))
        for class_number, (start, stop) in enumerate(pairwise((first + np.cumsum([0, *shares])).tolist())):
            members = free[kind_of == class_number]
            inner, centroids[start:stop] = split_by_weight(words[members], weights[members], stop - start, least, call)
            labels[members] = start + inner
        levels = split_levels(centroids, counts, call, work.steps)
        rank = np.empty(counts[0], np.int64)
        rank[levels.order] = np.arange(counts[0])
        ranks = rank[labels]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(ranks, minlength=counts[0]))])
        order = np.argsort(ranks, kind="stable").astype(np.int32)
        return ClusterHierarchy(order, (bounds, *(bounds[edges] for edges in levels.bounds[1:])))

    parts = weights.tobytes() + classes.tobytes() + (b"" if settled is None else settled.tobytes())
    digest = hashlib.sha256(parts).hexdigest()
    return _keep(f"{_VERSION} {counts} {least} {digest}", vectors, work, split)


def share_clusters(clusters: int, weights: Int64, classes: Int32, least: int) -> Int64:
    """Compute the number of clusters of each class: int64 ``(classes,)``, with sum ``clusters``.

    Each has one. Every further one goes to the class whose clusters weigh most (Jefferson's method), while a cluster
    still has ``least`` words. Raises :class:`ValueError` if there are too few clusters, or words of a class.
    """
    heavy = np.bincount(classes, weights)
    most = np.bincount(classes) // least
    if len(most) > clusters or most.min() == 0 or most.sum() < clusters:
        raise ValueError(
            f"{clusters:,} clusters of {least:,} words or more cannot be cut from {len(most):,} classes, of "
            f"{np.bincount(classes).min():,} words at least. Join small classes, or change the number of clusters."
        )
    shares = np.ones(len(most), np.int64)
    for _ in range(clusters - len(most)):
        shares[np.argmax(np.where(shares < most, heavy / (shares + 1), -1.0))] += 1
    return shares


def _keep(
    identity: str, vectors: Float32, work: BuildContext, split: Callable[[Float32, Call], ClusterHierarchy]
) -> ClusterHierarchy:
    """Apply ``split`` to whole directions on all cores, or read its kept result of equal ``identity``."""
    digest = digest_points(f"{identity} {vectors.shape}", vectors, "<f4")[:32]
    directory = work.kept / f"clusters-{digest}" if work.kept else None
    if directory:
        work.used.append(directory)
        if (stored := ClusterHierarchy.read(directory / "hierarchy.npz")) is not None:
            return stored
    work.progress("clustering words")
    words = np.empty(vectors.shape, np.float32)
    whole_directions(vectors, words)
    with start_threads(len(os.sched_getaffinity(0))) as pool:
        hierarchy = split(words, pool.map)
    if directory:
        hierarchy.save(directory / "hierarchy.npz")
    return hierarchy


def split_levels(words: Float32, counts: list[int], call: Call, steps: Callable[[int, int], None]) -> ClusterHierarchy:
    """Split words, whole directions, into nested clusters, level by level from the top.

    ``call``: maps a function over values, in any order or at once.
    """
    size = len(words)
    order, bounds = np.arange(size, dtype=np.int32), [np.array([0, size])]
    for above, below in pairwise(counts[::-1]):
        spans = [*pairwise(bounds[0].tolist())]
        sizes = [_even_sizes(stop - start, stop - start if below == size else below // above) for start, stop in spans]
        if len(spans) == 1:
            labels = [split_evenly(words, sizes[0], call)]
        else:  # every cluster on a core of its own
            parts = [(words[order[start:stop]], inner) for (start, stop), inner in zip(spans, sizes, strict=True)]
            labels = [*call(lambda part: split_evenly(*part), parts)]
        # Stable, and words rise inside each cluster above, so that they rise inside the new ones too.
        orders = [start + np.argsort(label, kind="stable") for (start, _), label in zip(spans, labels, strict=True)]
        order = order[np.concatenate(orders)]
        bounds.insert(0, np.concatenate([[0], np.cumsum(np.concatenate(sizes))]))
        steps(len(bounds) - 1, len(counts) - 1)
    return ClusterHierarchy(order, tuple(bounds))


def _even_sizes(size: int, parts: int) -> Int64:
    """Compute sizes of parts that differ by at most one, larger ones first: int64 ``(parts,)``."""
    return size // parts + (np.arange(parts) < size % parts)


def split_evenly(words: Float32, sizes: Int64, call: Call = map) -> Int32:
    """Split words into clusters of given sizes: int32 ``(count,)``, the cluster of each word.

    ``words``: float32 ``(count, n)``, from :func:`whole_directions`. ``sizes``: int64 ``(clusters,)``, with sum
    ``count``. ``call``: like :func:`map`, in any order or at once.
    """
    count, clusters = len(words), len(sizes)
    if clusters == count:
        return np.arange(count, dtype=np.int32)
    if clusters == 1:
        return np.zeros(count, np.int32)
    groups = min(-(-count * clusters * words.shape[1] // MOST_PRODUCTS), clusters // 2)
    if groups <= 1:
        return _improve(words, sizes, _cluster(words, sizes, call), call)
    edges = np.arange(groups + 1) * clusters // groups
    outer = split_evenly(words, np.add.reduceat(sizes, edges[:-1]), call)
    labels = np.empty(count, np.int32)
    for group, (start, stop) in enumerate(pairwise(edges.tolist())):
        members = np.flatnonzero(outer == group)
        labels[members] = start + split_evenly(words[members], sizes[start:stop], call)
    return labels


def split_by_weight(
    words: Float32, weights: Int64, clusters: int, least: int, call: Call = map
) -> tuple[Int32, Float32]:
    """Split words into clusters of any size.

    Returns the cluster of each word, int32 ``(count,)``, and centroids, float32 ``(clusters, n)``, whole directions.
    ``words``: as for :func:`split_evenly`. ``weights``: int64 ``(count,)``, 1 to :data:`HEAVIEST`. ``least``: the
    smallest number of words of a cluster, at most ``count / clusters``.
    """
    # The first centroids are spread evenly over the weight.
    total = np.cumsum(weights)
    seeds = np.searchsorted(total, (2 * np.arange(clusters) + 1) * int(total[-1]) // (2 * clusters), side="right")
    centroids = words[_distinct(seeds, len(words))]
    labels = np.full(len(words), -1, np.int32)
    for _ in range(_WEIGHTED_ROUNDS):
        ids, scores = _nearest(words, centroids, call)
        before, labels = labels, ids[:, 0].copy()
        fill_small(words, weights, centroids, labels, scores[:, 0], least)
        centroids = _centroids(sum_clusters(words, labels, clusters, weights))
        if (labels == before).all():
            break
    return labels, centroids


def _distinct(seeds: Int64, count: int) -> Int64:
    """Choose rising numbers below ``count``, each as near to ``seeds`` as those before it allow."""
    spaced = np.maximum.accumulate(seeds - np.arange(len(seeds))) + np.arange(len(seeds))
    return np.minimum(spaced, count - len(seeds) + np.arange(len(seeds)))


def fill_small(words: Float32, weights: Int64, centroids: Float32, labels: Int32, scores: Float32, least: int) -> None:
    """Bring each cluster to ``least`` words, the smallest first, by changing ``labels``.

    ``scores``: the products of words with the centroids of their clusters.
    """
    sizes = np.bincount(labels, minlength=len(centroids))
    own = scores.astype(np.float64)
    settled = np.zeros(len(words), np.bool_)
    small = [cluster for cluster in np.argsort(sizes, kind="stable").tolist() if sizes[cluster] < least]
    columns = (words @ centroids[small[first : first + _TOGETHER]].T for first in range(0, len(small), _TOGETHER))
    for cluster, products in zip(small, (column for block in columns for column in block.T), strict=True):
        settled[labels == cluster] = True
        here = products.astype(np.float64)
        costs = (own - here) * weights
        while sizes[cluster] < least:
            free = np.flatnonzero(~settled & (sizes[labels] > least))
            missing = least - sizes[cluster]
            cheap = free[costs[free] <= np.partition(costs[free], missing - 1)[missing - 1]]
            turns = cheap[np.argsort(costs[cheap], kind="stable")]
            for word in turns[:missing].tolist():
                if sizes[labels[word]] > least:
                    sizes[labels[word]] -= 1
                    sizes[cluster] += 1
                    labels[word], own[word], settled[word] = cluster, here[word], True


def _cluster(words: Float32, sizes: Int64, call: Call) -> Int32:
    """Run rounds of assignment, from words spread evenly over the ids as the first centroids."""
    centroids = words[np.arange(len(sizes)) * len(words) // len(sizes)]
    for _ in range(_ROUNDS):
        labels = assign_evenly(words, centroids, sizes, call)
        centroids = _centroids(sum_clusters(words, labels, len(sizes)))
    return labels


def assign_evenly(words: Float32, centroids: Float32, sizes: Int64, call: Call) -> Int32:
    """Give each word the nearest centroid with room, the most similar pairs first.

    Only the nearest few centroids of each word take part at a time, then those with room for words that got none. Each
    step settles its most similar pair at least.
    """
    labels, room = np.full(len(words), -1, np.int32), sizes.copy()
    waiting = np.arange(len(words))
    while len(waiting):
        free = np.flatnonzero(room > 0)
        here = words if len(waiting) == len(words) else words[waiting]
        ids, scores = _nearest(here, centroids[free], call)
        turns = np.argsort(-scores.ravel(), kind="stable")
        given, left = np.full(len(waiting), -1, np.int32), room[free]
        assign_in_turn(turns, ids, given, left)
        room[free] = left
        settled = given >= 0
        labels[waiting[settled]] = free[given[settled]]
        waiting = waiting[~settled]
    return labels


def _nearest(words: Float32, centroids: Float32, call: Call) -> tuple[Int32, Float32]:
    """Find the nearest centroids of each word, in order, and the products: ``(count, nearest)`` each."""
    width = min(_NEAREST, len(centroids))
    ids, scores = np.empty((len(words), width), np.int32), np.empty((len(words), width), np.float32)
    columns = np.ascontiguousarray(centroids.T)

    def find(start: int) -> None:
        block = slice(start, start + _ROWS)
        best_columns(words[block] @ columns, ids[block], scores[block])

    for _ in call(find, range(0, len(words), _ROWS)):
        pass
    return ids, scores


def sum_clusters(words: Float32, labels: Int32, clusters: int, weights: Int64 | None = None) -> Float64:
    """Compute the weighted sum of each cluster's words; equal weights by default."""
    # A coordinate is below 2^12 and a weight at most 2^16: sums of 2^25 words are exact.
    sums = np.zeros((clusters, words.shape[1]))
    sum_members(words, np.ones(len(words), np.int64) if weights is None else weights, labels, sums)
    return sums


def _centroids(sums: Float64) -> Float32:
    """Compute the directions of sums, as whole numbers."""
    centroids = np.empty(sums.shape, np.float32)
    whole_directions(sums, centroids)
    return centroids


def _improve(words: Float32, sizes: Int64, labels: Int32, call: Call) -> Int32:
    """Swap words while that raises the sum of the cosines within clusters."""
    if len(words) * int(sizes.max()) * words.shape[1] > MOST_SWAPS:
        return labels
    starts = np.concatenate([[0], np.cumsum(sizes)])
    order = np.argsort(labels, kind="stable").astype(np.int32)
    rank_of = np.empty_like(order)
    rank_of[order] = np.arange(len(order), dtype=np.int32)
    sums = sum_clusters(words, labels, len(sizes))
    for _ in range(_SWAP_ROUNDS):
        nearest, _ = _nearest(words, _centroids(sums), call)
        passes = 0
        while passes < _SWAP_PASSES:
            passes += 1
            if swap_words(words, nearest, labels, sums, starts, order, rank_of) * _WORTHWHILE < len(words):
                break
        if passes == 1:
            break
    return labels
