"""Cuts of the words into nested clusters: by settings, public frequencies, classes, hypernyms and groups.

**Subtrees** of a hierarchy of words are clusters of a hypernym and words below it. Hypernyms are chosen one after
another, from the top. Each takes itself and the words of its class below it, so that a word is in the cluster of the
most specific chosen hypernym above it (the one with the fewest words below it), and a chosen hypernym is in its own.
Words below none are left over for other clusters.

The heaviest cluster is split next, by the hypernym that splits it most evenly by weight while every cluster keeps
enough words; for words without a chosen hypernym, by the one that takes most. The number of hypernyms follows the
weight of the words that have any, and is lower if words do not suffice. Only public data enter, and any such clusters
keep the guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from wordveil.arrays import Int32, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.inputs import Groups, Pairs, PublicInputs
from wordveil.mechanisms.tree.build import add_rarity, weigh_words
from wordveil.mechanisms.tree.settings import TreeSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.clusters import ClusterHierarchy, build_hierarchy, build_partition, count_clusters


@dataclass(frozen=True)
class Subtrees:
    """Chosen hypernyms and their words.

    ``labels``: int32 ``(size,)``, the cluster of each word, -1 for words left over. ``hypernyms``: int32 ``(chosen,)``,
    the word written for each cluster. ``clusters``: their number, those of the words left over included.
    """

    labels: Int32
    hypernyms: Int32
    clusters: int


def choose_subtrees(pairs: Pairs, weights: Int64, classes: Int32 | None, counts: Sequence[int], least: int) -> Subtrees:
    """Choose hypernyms for at most ``counts[0]`` clusters of at least ``least`` words.

    ``pairs``: a word and one of its hypernyms, all up to the root; similarities do not count. ``weights``: int64
    ``(size,)``, positive. ``classes``: int32 ``(size,)``; a cluster has one class. ``counts``: clusters of each level,
    the lowest first; fewer lowest ones if words do not suffice. Raises :class:`ValueError` if no hypernym can be
    chosen.
    """
    clusters, *further = counts
    classes = np.zeros(len(weights), np.int32) if classes is None else classes
    kinds = np.unique(classes, return_inverse=True)[1].astype(np.int32)
    below = _Below.of(pairs, kinds)
    share = round(clusters * int(weights[below.reached].sum()) / int(weights.sum()))
    rests = int(kinds.max()) + 1
    labels, chosen = _split(below, weights, kinds, least, min(share, clusters - rests))
    if not chosen:
        raise ValueError(
            f"mechanism.pairs has no hypernym with {least:,} words of its class, or there are too few clusters for "
            "one. Lower least, raise clusters, or name a file of all hypernyms up to the root."
        )
    room = int((np.bincount(kinds[labels < rests], minlength=1) // least).sum())
    count = len(chosen) + min(clusters - len(chosen), room)
    if further and count <= further[0]:
        raise ValueError(f"words suffice for {count:,} lowest clusters. Lower least, or the numbers of further levels.")
    return Subtrees(np.maximum(labels - rests, -1), below.hypernyms[chosen], count)


@dataclass(frozen=True)
class _Below:
    """Hypernyms, the most specific first, with the words that each may take: itself, and those of its class below it.

    ``hypernyms``: int32 ``(hypernyms,)``, ties by lower id. ``turns``, ``words``: int64 ``(pairs,)``, the place of a
    hypernym and a word, sorted. ``starts``: int64 ``(hypernyms + 1,)``, the first pair of each.
    """

    hypernyms: Int32
    turns: Int64
    words: Int64
    starts: Int64

    @classmethod
    def of(cls, pairs: Pairs, kinds: Int32) -> Self:
        ends = np.unique(np.stack([pairs.others, pairs.words]), axis=1)
        found, place, counts = np.unique(ends[0], return_inverse=True, return_counts=True)
        order = np.lexsort((found, counts))
        turn_of = np.empty(len(found), np.int64)
        turn_of[order] = np.arange(len(found))
        is_own = kinds[ends[0]] == kinds[ends[1]]
        each = np.stack([turn_of[place][is_own], ends[1][is_own]])
        turns, words = np.unique(np.hstack([each, np.stack([turn_of, found])]), axis=1)
        starts = np.searchsorted(turns, np.arange(len(found) + 1))
        return cls(found[order].astype(np.int32), turns, words.astype(np.int64), starts)

    @property
    def reached(self) -> Int64:
        """Words of hypernyms that may take more than themselves."""
        several = np.flatnonzero(np.diff(self.starts) > 1)
        return np.unique(self.words[np.isin(self.turns, several)])


def _split(below: _Below, weights: Int64, kinds: Int32, least: int, most: int) -> tuple[Int32, list[int]]:
    """Assign a cluster to each word, the ``kinds`` left over first, and list the others' turns, at most ``most``."""
    chosen: list[int] = []
    labels = kinds.copy()
    rests = int(kinds.max()) + 1
    last = len(below.hypernyms)  # comes after the turns of all hypernyms
    turn_of_cluster, is_open = [last] * rests, [True] * rests
    of_word = np.full(len(weights), last)
    counted = np.zeros(len(weights))
    counted[below.reached] = weights[below.reached]
    while len(chosen) < most and any(is_open):
        heavy = np.bincount(labels, counted, len(is_open))
        cluster = int(np.argmax(np.where(is_open, heavy, -1.0)))
        pairs = slice(0, below.starts[turn_of_cluster[cluster]])
        inside = np.where(labels == cluster, counted, 0.0)
        taken = np.bincount(below.turns[pairs], inside[below.words[pairs]])
        gains = taken if cluster < rests else np.minimum(taken, heavy[cluster] - taken)
        for turn in np.argsort(-gains, kind="stable")[: np.count_nonzero(gains > 0)].tolist():
            words = below.words[below.starts[turn] : below.starts[turn + 1]]
            words = words[of_word[words] > turn]
            if _may_take(below, turn, words, labels, chosen, least, rests):
                labels[words], of_word[words] = len(is_open), turn
                turn_of_cluster.append(turn)
                is_open.append(True)
                chosen.append(turn)
                break
        else:
            is_open[cluster] = False
    return labels, chosen


def _may_take(below: _Below, turn: int, words: Int64, labels: Int32, chosen: list[int], least: int, rests: int) -> bool:
    """Return whether a hypernym takes enough words and leaves enough in each cluster.

    It must take itself and no chosen hypernym, as could happen if pairs form a cycle. It may take all words left over.
    """
    if len(words) < least or below.hypernyms[turn] not in words or np.isin(below.hypernyms[chosen], words).any():
        return False
    touched, counts = np.unique(labels[words], return_counts=True)
    remaining = np.bincount(labels, minlength=int(touched.max()) + 1)[touched] - counts
    return bool(((remaining >= least) | ((remaining == 0) & (touched < rests))).all())


_NONE = np.empty(0, np.int32)


@dataclass(frozen=True)
class Cut:
    """Nested clusters.

    ``heads``: int32 ``(heads,)``, words that are to represent their lowest clusters. ``notes``: sentences for users.
    """

    hierarchy: ClusterHierarchy
    heads: Int32
    notes: tuple[str, ...]

    @classmethod
    def make(cls, embedding: Embedding, settings: TreeSettings, inputs: PublicInputs, work: BuildContext) -> Self:
        """Make the clusters of the settings. Raises :class:`BundleError` if there are too few words for them."""
        try:
            if settings.clusters:
                return cls._of_any_size(embedding, settings, inputs, work)
            counts = count_clusters(embedding.size, settings.sizes)
        except ValueError as error:
            name = "clusters" if settings.clusters else "sizes"
            raise BundleError(
                f"mechanism.{name} = {list(getattr(settings, name))}, for {embedding.size:,} words: {error}"
            ) from None
        return cls(build_hierarchy(embedding.vectors, counts, work), _NONE, ())

    @classmethod
    def _of_any_size(
        cls, embedding: Embedding, settings: TreeSettings, inputs: PublicInputs, work: BuildContext
    ) -> Self:
        size, least = embedding.size, settings.least
        frequencies = inputs.frequencies_of(size)
        points = add_rarity(embedding.vectors, frequencies, settings.rarity)
        weights = weigh_words(frequencies, settings.weight)
        counts, apart = [*settings.clusters, 1], inputs.classes if settings.classes else None
        settled, heads, notes = np.full(size, -1, np.int32), _NONE, []
        if settings.merge and inputs.groups is not None:
            groups = join_small(inputs.groups, least)
            settled, heads = groups.labels.copy(), groups.names[groups.names >= 0]
        first = int(settled.max(initial=-1)) + 1
        if settings.output == "hypernym" and inputs.pairs is not None:
            free = np.flatnonzero(settled < 0).astype(np.int32)
            kinds = None if apart is None else apart[free]
            pairs = _pairs_among(inputs.pairs, free, size)
            chosen = choose_subtrees(
                pairs, weights[free], kinds, [settings.clusters[0] - first, *settings.clusters[1:]], least
            )
            is_below = chosen.labels >= 0
            settled[free[is_below]] = first + chosen.labels[is_below]
            heads = np.append(heads, free[chosen.hypernyms]).astype(np.int32)
            counts[0] = first + chosen.clusters
            notes.append(
                f"{len(chosen.hypernyms):,} of {counts[0]:,} clusters are a hypernym and words below it, "
                f"{is_below.sum() / size:.0%} of all words. Of the others the most frequent word is written."
            )
        fixed = settled if (settled >= 0).any() else None
        return cls(build_partition(points, weights, counts, least, work, apart, fixed), heads, tuple(notes))


def join_small(groups: Groups, least: int) -> Groups:
    """Join the two smallest groups, under the larger one's name, until each has ``least`` words.

    Raises :class:`BundleError` if all words together are fewer.
    """
    labels, names = groups.labels.copy(), groups.names.copy()
    while True:
        sizes = np.bincount(labels[labels >= 0], minlength=len(names))
        there = np.flatnonzero(sizes)
        order = there[np.argsort(sizes[there], kind="stable")]
        if sizes[order[0]] >= least:
            break
        if len(order) == 1:
            raise BundleError(
                f"mechanism.merge: the embedding has {sizes[order[0]]:,} of the words, and mechanism.least = {least}. "
                "Lower least, name a longer list, or remove merge."
            )
        labels[labels == order[0]] = order[1]
    labels[labels >= 0] = np.searchsorted(there, labels[labels >= 0])
    return Groups(labels, names[there])


def _pairs_among(pairs: Pairs, words: Int32, size: int) -> Pairs:
    """Keep the pairs among ``words``, numbered by their place there."""
    place = np.full(size, -1, np.int32)
    place[words] = np.arange(len(words))
    low, high = place[pairs.words], place[pairs.others]
    has_both = (low >= 0) & (high >= 0)
    return Pairs(low[has_both], high[has_both], pairs.similarities[has_both])
