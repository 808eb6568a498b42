"""Cuts of the words into nested clusters: by settings, public frequencies, classes, hypernyms and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from wordveil.arrays import Float64, Int32
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.inputs import Groups, Pairs, PublicInputs
from wordveil.mechanisms.tree.build import add_rarity, weigh_words
from wordveil.mechanisms.tree.settings import TreeSettings
from wordveil.mechanisms.tree.subtrees import choose_subtrees
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.clusters import build_hierarchy, build_partition, count_clusters
from wordveil.neighbours.hierarchy import Hierarchy

_NONE = np.empty(0, np.int32)


@dataclass(frozen=True)
class Cut:
    """Nested clusters.

    ``hierarchy``: the clusters. ``heads``: int32 ``(heads,)``, words that are to stand for their lowest clusters.
    ``notes``: sentences that describe the clusters.
    """

    hierarchy: Hierarchy
    heads: Int32
    notes: tuple[str, ...]

    @classmethod
    def make(
        cls,
        embedding: Embedding,
        settings: TreeSettings,
        frequencies: Float64,
        inputs: PublicInputs,
        work: BuildContext,
    ) -> Self:
        """Make the clusters of the settings. Raises :class:`BundleError` if there are too few words for them."""
        try:
            if settings.clusters:
                return cls._of_any_size(embedding, settings, frequencies, inputs, work)
            counts = count_clusters(embedding.size, settings.sizes)
        except ValueError as error:
            name = "clusters" if settings.clusters else "sizes"
            raise BundleError(
                f"mechanism.{name} = {list(getattr(settings, name))}, for {embedding.size:,} words: {error}"
            ) from None
        return cls(build_hierarchy(embedding.vectors, counts, work), _NONE, ())

    @classmethod
    def _of_any_size(
        cls,
        embedding: Embedding,
        settings: TreeSettings,
        frequencies: Float64,
        inputs: PublicInputs,
        work: BuildContext,
    ) -> Self:
        size, least = embedding.size, settings.least
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
    """Keep the pairs among ``words``, and number words by their place there."""
    place = np.full(size, -1, np.int32)
    place[words] = np.arange(len(words))
    low, high = place[pairs.words], place[pairs.others]
    kept = (low >= 0) & (high >= 0)
    return Pairs(low[kept], high[kept], pairs.similarities[kept])
