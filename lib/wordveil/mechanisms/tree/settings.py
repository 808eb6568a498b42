"""The settings of nested clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Le, Lt, MinLen

from wordveil.mechanisms.inputs import ANY, ORDINARY
from wordveil.mechanisms.settings import MechanismSettings, PureEpsilon

Output = Literal["member", "representative", "hypernym"]
_LEAST_LOSS = 1e-9
DEFAULT_SIZES = (20,)


@dataclass(frozen=True, kw_only=True)
class TreeSettings(MechanismSettings):
    """Words drawn from nested clusters.

    Attributes
    ----------
    epsilon : float
        the largest loss of a token between any two words, near or far, in nats. It has no default.
    sizes : sequence of int
        approximate number of words of a cluster at each level, the lowest first, without the level of all words:
        clusters of a level are of equal size.
    clusters : sequence of int
        instead of ``sizes``: the number of clusters of each level, at least 2, the lowest first, without the level of
        all words. The lowest have any sizes; those of further levels hold equally many of them, to within one.
    least : int
        with ``clusters``: the least number of words of a lowest cluster.
    weight : float
        with ``clusters``: exponent of the public frequency by which a word counts when words are clustered. A larger
        value makes clusters of frequent words smaller.
    rarity : float
        with ``clusters``: how much the public frequency of words counts beside their similarity. A larger value makes a
        cluster's words more alike in frequency, so that fewer words are recovered.
    classes : str or None
        with ``clusters``: a TSV file of word, class; or ``stop-words:en``, for English stop-words as a class of their
        own. Words of different classes share no lowest cluster, except those that ``merge`` joins.
    merge : str or None
        with ``clusters``: words that must be indistinguishable, a cluster for each group: ``sensitive``, the package's
        English words of special categories; or a TSV file of word, group. A group of fewer words than ``least`` is
        joined with another. The word that names a group stands for it.
    written : str or None
        which words may be written: ``ordinary``, no name of the package's lists, and of an English embedding ordinary
        words alone; ``any``; or a file of one word a line. None: ``ordinary`` with ``clusters``, ``any`` with
        ``sizes``. What may not be written is replaced by the word that stands for its cluster, and for a cluster
        without any other the nearest word that stands for none.
    losses : sequence of float
        the loss between words of one cluster, for each of ``sizes`` or ``clusters``; the first is 0. Empty: 0, for one
        level.
    output : "member", "representative" or "hypernym"
        which word of the drawn lowest cluster is written: the drawn one, or with ``clusters`` one drawn by public
        frequency; the most frequent; or with ``clusters``, then subtrees of ``pairs`` for words with hypernyms, the
        hypernym.
    pairs : str or None
        for ``hypernym``: ``demo``, the package's pairs of hypernyms, or a TSV file of word, hypernym, similarity with
        all hypernyms of a word up to the root. Similarities do not count here.
    pad_share : float or None
        the probability that padding stays padding. None: the largest that epsilon allows.
    """

    input_files: ClassVar[tuple[str, ...]] = ("classes", "merge", "written", "pairs")

    epsilon: PureEpsilon
    sizes: Annotated[Sequence[Annotated[int, Ge(1)]], MinLen(1)] = DEFAULT_SIZES
    clusters: Sequence[Annotated[int, Ge(1)]] = ()  # _level_faults says why one is none
    least: Annotated[int, Ge(1)] = 20
    weight: Annotated[float, Ge(0), Le(2)] = 0.5
    rarity: Annotated[float, Ge(0), Le(4)] = 0.25
    classes: str | None = None
    merge: str | None = None
    written: str | None = None
    losses: Sequence[Annotated[float, Ge(0)]] = ()
    output: Output = "representative"
    pairs: str | None = None
    pad_share: Annotated[float, Ge(1e-6), Lt(1)] | None = None

    @classmethod
    def find_faults(cls, written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        sizes, clusters = written.get("sizes", DEFAULT_SIZES), written.get("clusters", ())
        if _are_numbers(sizes) and _are_numbers(clusters):
            yield from _level_faults(sizes, clusters)
            levels = clusters or sizes
            if levels and _are_numbers(losses := written.get("losses", ())):
                name = "clusters" if clusters else "sizes"
                yield from _loss_faults(name, len(levels), losses, written.get("epsilon"))
        for name in ("classes", "merge"):
            if not clusters and (value := written.get(name)) is not None:
                yield name, f"{value} is used with clusters alone. Set these, or remove {name}."
        if not clusters and written.get("output") == "hypernym":
            yield "clusters", "is required with output: hypernym. Set it to the number of clusters, e.g. [500]."
        is_needed, pairs = written.get("output") == "hypernym", written.get("pairs")
        if is_needed and pairs is None:
            what = "a TSV file of word, hypernym, similarity"
            yield "pairs", f"is required with output: hypernym. Set it to demo, or to the path of {what}."
        if not is_needed and pairs is not None:
            yield "pairs", f"{pairs} is used with output: hypernym alone. Set that, or remove pairs."

    def at_epsilon(self, epsilon: float) -> Self:
        # Losses of the levels keep their proportion, as in the mechanism's own at_epsilon.
        if not 0 < epsilon < np.inf:
            return replace(self, epsilon=epsilon)
        return replace(self, epsilon=epsilon, losses=tuple(scale_losses(self.losses, self.epsilon, epsilon)))

    def recipe(self) -> dict[str, Any]:
        # Unused settings do not distinguish bundles.
        unused = {"sizes"} if self.clusters else {"clusters", "least", "weight", "rarity", "classes", "merge"}
        unused |= set() if self.output == "hypernym" else {"pairs"}
        unused |= set() if "written" in self.files else {"written"}
        return {name: value for name, value in {**super().recipe(), **self.files}.items() if name not in unused}

    @property
    def files(self) -> dict[str, str]:
        written = self.written or (ORDINARY if self.clusters else ANY)
        return {name: value for name, value in {**super().files, "written": written}.items() if value != ANY}

    @property
    def level_losses(self) -> list[float]:
        """Loss of each level, the level of all words included."""
        return [*(self.losses or [0.0]), self.epsilon]


def scale_losses(losses: Sequence[float], before: float, after: float) -> list[float]:
    """Scale losses in proportion to an epsilon: none above it by rounding, tiny ones to 0."""
    scaled = (min(loss * (after / before), after) for loss in losses)
    return [loss if loss >= _LEAST_LOSS else 0.0 for loss in scaled]


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def _level_faults(sizes: Sequence[int], clusters: Sequence[int]) -> Iterator[tuple[str, str]]:
    if not sizes:
        yield "sizes", "is empty. Name one size at least, e.g. [20]."
    if any(not below < above for below, above in pairwise(sizes)):
        yield "sizes", f"{list(sizes)} must rise, since clusters lie inside larger ones. Put the smallest first."
    if clusters and tuple(sizes) != DEFAULT_SIZES:
        yield "clusters", f"{list(clusters)} stand in place of sizes = {list(sizes)}. Remove one of the two."
    if 1 in clusters:
        yield (
            "clusters",
            (
                f"{list(clusters)}: one cluster holds all words and tells nothing of any. Leave the 1 out; the level "
                "of all words is always there."
            ),
        )
    elif any(not below > above for below, above in pairwise(clusters)):
        yield "clusters", f"{list(clusters)} must fall, since clusters lie inside larger ones. Put the largest first."
    elif any(below % above for below, above in pairwise(clusters[1:])):
        yield "clusters", f"{list(clusters)}: each after the first must be a multiple of the next one."


def _loss_faults(name: str, levels: int, losses: Sequence[float], epsilon: Any) -> Iterator[tuple[str, str]]:
    given = list(losses)
    if not losses and levels == 1:
        return
    if len(losses) != levels:
        template = ", ".join(["0.0", *(f"loss {level + 1}" for level in range(1, levels))])
        yield "losses", f"{given} must have one loss for each of {name}, here {levels}. Write [{template}]."
        return
    if losses[0] != 0:
        yield "losses", f"{given} must begin with 0: words of a lowest cluster have the same law. Set the first to 0."
    if any(not below <= above for below, above in pairwise(losses)):
        yield "losses", f"{given} must not fall: words of a larger cluster are less alike. Sort them."
    if any(0 < loss < _LEAST_LOSS for loss in losses):
        yield "losses", f"{given} must each be 0, or at least {_LEAST_LOSS:g}. Set smaller ones to 0."
    if isinstance(epsilon, int | float) and not all(loss <= epsilon for loss in losses):
        yield "losses", f"{given} must be at most epsilon = {epsilon:g}. Lower them, or raise epsilon."
