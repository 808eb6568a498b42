"""Words drawn from nested clusters of equal size: a loss of 0 inside a cluster, and one loss for each level above.

The words are clustered by similarity into a public hierarchy: clusters of about ``s_1`` words, clusters of these, and
so on up to all words. A word becomes each member of its own cluster with one probability, each other member of the next
cluster with a smaller one, and so on:

    P(y | w) = A exp(-E_l),  where l is the level of the lowest cluster that holds both w and y.

Clusters of a level have equal sizes, so that ``A`` is the same for all words, and two words that meet at level ``j``
have a loss of exactly ``E_j``. Words of one lowest cluster have the same law, so that nobody can distinguish them.
Weights that fall with distance cost up to twice as much, since their totals differ between words; here they do not.
:mod:`wordveil.mechanisms.tree.levels` proves the losses, also where the number of words is no multiple and sizes differ
by one.

- The unknown word becomes all words alike. A law of ``N`` words gives the likeliest of them ``1 / N`` at least, and the
  least likely one ``1 / N`` at most, so that every word's law is within ``E`` of the uniform one.
- Padding is an output too. Every other symbol becomes padding with one probability ``m``, and padding stays with
  probability ``m exp(E)``, or else becomes all words alike.

Words stand in an order in which every cluster is a range (:mod:`wordveil.neighbours.clusters`). Of two random words of
64 bits the first chooses the level by whole numbers over ``2^64``, the likeliest first, and the second the position in
the range.

Members of a lowest cluster are equally likely whatever the input. So it is free which of them is written: ``member``,
the drawn one; ``representative``, the most frequent one; ``fluent``, those that make the likeliest text by public
counts of pairs of words. The choice depends on what was drawn and on public data alone, and costs nothing (Dwork and
Roth 2014, proposition 2.1).

Related work: hierarchically well-separated trees for location privacy, Tao et al. 2020; words drawn inside clusters,
with an infinite loss between them, Chen et al. 2023 (CusText); clusters drawn by distance, Awon et al. 2025 (CluSanT).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Lt, MinLen
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import KeyedStream, max_positions
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, Mechanism, MechanismArtifact, TokenBatch, pure_guarantee
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import WordLaws
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings, PureEpsilon
from wordveil.mechanisms.tables.mechanism import check_epsilon
from wordveil.mechanisms.tree.build import find_representatives, next_levels, rows_of, solve_nesting
from wordveil.mechanisms.tree.fluent import FluentModel
from wordveil.mechanisms.tree.laws import word_laws
from wordveil.mechanisms.tree.levels import round_loss
from wordveil.mechanisms.tree.table import TreeTable, arrange
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.clusters import build_hierarchy, count_clusters

Output = Literal["member", "representative", "fluent"]
_LEAST_LOSS = 1e-9
_DEFAULT_SIZES = (20,)


@dataclass(frozen=True, kw_only=True)
class TreeSettings(MechanismSettings):
    """Words drawn from nested clusters of equal size.

    Attributes
    ----------
    epsilon : float
        the largest loss of a token between any two words, near or far, in nats. It has no default.
    sizes : sequence of int
        about how many words a cluster has at each level, the lowest first, without the level of all words.
    losses : sequence of float
        the loss between words of one cluster, for each of ``sizes``; the first is 0. Empty: 0, for one size.
    output : "member", "representative" or "fluent"
        which word of the drawn lowest cluster is written: the drawn one, the most frequent, or those that make the
        likeliest text.
    ngrams : str or None
        the n-gram model for ``fluent``: ``demo``, or a path.
    pad_share : float or None
        the probability that padding stays padding. None: the largest that epsilon allows.
    """

    input_files: ClassVar[tuple[str, ...]] = ("ngrams",)

    epsilon: PureEpsilon
    sizes: Annotated[Sequence[Annotated[int, Ge(1)]], MinLen(1)] = _DEFAULT_SIZES
    losses: Sequence[Annotated[float, Ge(0)]] = ()
    output: Output = "representative"
    ngrams: str | None = None
    pad_share: Annotated[float, Ge(1e-6), Lt(1)] | None = None

    @classmethod
    def find_faults(cls, written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        sizes, losses = written.get("sizes", _DEFAULT_SIZES), written.get("losses", ())
        if _are_numbers(sizes):
            yield from _size_faults(sizes)
            if sizes and _are_numbers(losses):
                yield from _loss_faults(sizes, losses, written.get("epsilon"))
        fluent, ngrams = written.get("output") == "fluent", written.get("ngrams")
        if fluent and ngrams is None:
            yield "ngrams", "is required with output: fluent. Set it to demo, or to the path of an n-gram model."
        if not fluent and ngrams is not None:
            yield "ngrams", f"{ngrams} is used with output: fluent alone. Set that, or remove ngrams."

    def at_epsilon(self, epsilon: float) -> Self:
        # Losses of the levels keep their proportion, as in the mechanism's own at_epsilon.
        if not 0 < epsilon < np.inf:
            return replace(self, epsilon=epsilon)
        return replace(self, epsilon=epsilon, losses=tuple(_scale(self.losses, self.epsilon, epsilon)))

    @property
    def level_losses(self) -> list[float]:
        """The loss of each level, the level of all words included."""
        return [*(self.losses or [0.0]), self.epsilon]


def _scale(losses: Sequence[float], before: float, after: float) -> list[float]:
    """Losses in proportion to an epsilon: none above it by rounding, and none too small to be told from 0."""
    scaled = (min(loss * (after / before), after) for loss in losses)
    return [loss if loss >= _LEAST_LOSS else 0.0 for loss in scaled]


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )


def _size_faults(sizes: Sequence[int]) -> Iterator[tuple[str, str]]:
    if not sizes:
        yield "sizes", "is empty. Name one size at least, e.g. [20]."
    if any(not below < above for below, above in pairwise(sizes)):
        yield "sizes", f"{list(sizes)} must rise, since clusters lie inside larger ones. Put the smallest first."


def _loss_faults(sizes: Sequence[int], losses: Sequence[float], epsilon: Any) -> Iterator[tuple[str, str]]:
    shown = list(losses)
    if not losses and len(sizes) == 1:
        return
    if len(losses) != len(sizes):
        levels = ", ".join(["0.0", *(f"loss {level + 1}" for level in range(1, len(sizes)))])
        yield "losses", f"{shown} must have one loss for each of sizes, here {len(sizes)}. Write [{levels}]."
        return
    if losses[0] != 0:
        yield "losses", f"{shown} must begin with 0: words of a lowest cluster have the same law. Set the first to 0."
    if any(not below <= above for below, above in pairwise(losses)):
        yield "losses", f"{shown} must not fall: words of a larger cluster are less alike. Sort them."
    if any(0 < loss < _LEAST_LOSS for loss in losses):
        yield "losses", f"{shown} must each be 0, or at least {_LEAST_LOSS:g}. Set smaller ones to 0."
    if isinstance(epsilon, int | float) and not all(loss <= epsilon for loss in losses):
        yield "losses", f"{shown} must be at most epsilon = {epsilon:g}. Lower them, or raise epsilon."


class Tree(Mechanism[TreeSettings]):
    """See the module.

    Arrays: those of :class:`wordveil.mechanisms.tree.table.TreeTable`; ``bounds``, int32, the bounds of the clusters of
    each level but the last, level after level; with ``output: fluent`` also ``order``, int32 ``(size,)``, the word at
    each position, and those of the model, whose names begin with ``fluent_``.
    """

    name = "tree"
    sampler_version = 1
    settings_type = TreeSettings
    is_pure = True
    stays_fast = True

    def __init__(self, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._parameters = dict(parameters)
        self._arrays = dict(arrays)
        self._table = TreeTable.of(arrays)

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        chosen = TreeSettings
        return {
            "": Example(chosen(epsilon=4.0, sizes=(3,)), chosen(epsilon=6.85)),
            "levels": Example(
                chosen(epsilon=5.0, sizes=(1, 7, 50), losses=(0.0, 2.0, 3.5), output="member"),
                chosen(epsilon=9.0, sizes=(10, 300), losses=(0.0, 6.0), output="member", pad_share=0.5),
            ),
        }

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[TreeSettings]:
        if terms.metric == "hyperbolic":
            return ()
        # Not more than two thirds of the smallest vocabulary with so many neighbours.
        size = (
            _DEFAULT_SIZES[0] if terms.neighbours is None else min(_DEFAULT_SIZES[0], (terms.neighbours + 1) * 2 // 3)
        )
        return (TreeSettings(epsilon=1.0, sizes=(size,)),)

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: TreeSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,
    ) -> MechanismArtifact:
        check_epsilon(settings.epsilon)
        if settings.output == "fluent" and inputs.bigrams is None:
            raise BundleError(
                "mechanism.ngrams is not set, and mechanism.output = fluent needs it. Set it to demo, or to the path "
                "of an n-gram model; or set mechanism.output: representative."
            )
        size = embedding.size
        try:
            counts = count_clusters(size, settings.sizes)
        except ValueError as error:
            raise BundleError(f"mechanism.sizes = {list(settings.sizes)}, for {size:,} words: {error}") from None
        hierarchy = build_hierarchy(embedding.vectors, counts, work)
        work.progress("choosing and certifying the probabilities of levels")
        nesting, levels = solve_nesting(hierarchy.bounds, settings.level_losses, settings.pad_share, padding=padding)
        rows = rows_of(hierarchy)
        written = hierarchy.order
        if settings.output != "member":
            written = find_representatives(hierarchy, inputs.frequencies_of(size))
        table = arrange(nesting, levels, rows, np.append(written, [size] * padding).astype(np.int32))
        losses = table.certify()
        epsilon = round_loss(losses.largest)
        if not epsilon <= settings.epsilon:
            raise BundleError(
                f"mechanism.epsilon = {settings.epsilon:g}: the finished numbers lose {epsilon:g}, which is more. "
                "This is a fault of the build: report it."
            )
        arrays = {**table.arrays, "bounds": np.concatenate(hierarchy.bounds[:-1]).astype(np.int32)}
        if settings.output == "fluent":
            assert inputs.bigrams is not None
            model = FluentModel.build(inputs.bigrams, embedding.words, hierarchy.order, hierarchy.bounds[0])
            arrays |= {"order": hierarchy.order, **model.arrays}
        guarantee = pure_guarantee(embedding, settings.epsilon, epsilon, padding=padding)
        level_losses = [round_loss(losses.levels[level]) for level in next_levels(settings.level_losses)]
        parameters = {
            "epsilon": settings.epsilon,
            "losses": settings.level_losses,
            "level_losses": level_losses,
            "counts": counts,
            "output": settings.output,
            "padding": padding,
            "pad_share": settings.pad_share,
        }
        return MechanismArtifact(
            parameters, arrays, guarantee, notes=_notes(counts, size, level_losses, levels.pad_share)
        )

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:  # noqa: ARG003
        return cls(parameters, arrays)

    @property
    def max_tokens(self) -> int:
        return max_positions(1)

    @property
    def table(self) -> TreeTable:
        """The arrays that it draws from."""
        return self._table

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        words = KeyedStream(keys.noise, 1).record_words(batch.contexts, batch.offsets)
        return TokenBatch(self._table.draw(batch.ids, words), batch.offsets, batch.contexts)

    def render(self, batch: TokenBatch) -> TokenBatch:
        if self._parameters["output"] != "fluent":
            return batch
        padding = batch.ids == self._table.size
        clusters = np.where(padding, np.int32(-1), self._table.rows[batch.ids])
        positions = self._fluent.choose(clusters, batch.offsets)
        written = np.where(padding, batch.ids, self._arrays["order"][positions])
        return TokenBatch(written, batch.offsets, batch.contexts)

    @cached_property
    def _fluent(self) -> FluentModel:
        return FluentModel.of(self._arrays)

    def probabilities(self, symbol: int) -> Float64:
        table = self._table
        law = np.zeros(len(table.written))
        np.add.at(law, table.written, table.law(int(table.rows[symbol])))
        return law

    def word_laws(self) -> WordLaws | None:
        return word_laws(self._table, self._parameters["counts"][0])

    def stay_probabilities(self, words: Int32) -> Float64:
        needed, index = np.unique(self._table.rows[words], return_inverse=True)
        return _member_probabilities(self._table, needed)[index] * self._written_for(words)

    def stays_at(self, epsilons: Sequence[float], words: Int32) -> Float64:
        # Clusters of one size differ only in the last digits, so that one of each size is enough.
        sizes, index = np.unique(np.diff(self._bounds[0])[self._table.rows[words]], return_inverse=True)
        typical = np.array([np.argmax(np.diff(self._bounds[0]) == size) for size in sizes])
        rows = np.full((len(epsilons), len(words)), np.nan)
        for number, epsilon in enumerate(epsilons):
            with suppress(ValueError, BundleError):
                rows[number] = _member_probabilities(self.at_epsilon(epsilon).table, typical)[index]
        return rows * self._written_for(words)

    def _written_for(self, words: Int32) -> Float64:
        """For how many members of its own cluster each word is written: float64 ``(words,)``."""
        if self._parameters["output"] == "member":
            return np.ones(len(words))
        table, bounds = self._table, self._bounds[0]
        rows = table.rows[words]
        return np.where(table.written[bounds[rows]] == words, bounds[rows + 1] - bounds[rows], 0).astype(np.float64)

    @cached_property
    def _bounds(self) -> list[Int32]:
        """The bounds of the clusters of each level."""
        ends = np.cumsum([count + 1 for count in self._parameters["counts"][:-1]])
        return [*np.split(self._arrays["bounds"], ends[:-1]), np.array([0, self._table.size], np.int32)]

    def at_epsilon(self, epsilon: float) -> Self:
        check_epsilon(epsilon)
        losses = [*_scale(self._parameters["losses"][:-1], self._parameters["epsilon"], epsilon), epsilon]
        padding, pad_share = self._parameters["padding"], self._parameters["pad_share"]
        nesting, levels = solve_nesting(self._bounds, losses, pad_share, padding=padding, lower_pad_share=True)
        table = arrange(nesting, levels, self._table.rows, self._table.written)
        return type(self)({**self._parameters, "epsilon": epsilon, "losses": losses}, {**self._arrays, **table.arrays})


def _member_probabilities(table: TreeTable, rows: NDArray[Any]) -> Float64:
    """The probability of one member of a row's own cluster, for each row: float64 ``(rows,)``."""
    return np.array([float(table.mixture(row).probabilities[0]) for row in rows.tolist()])


def _notes(counts: Sequence[int], size: int, level_losses: Sequence[float], pad_share: float) -> tuple[str, ...]:
    *lower, (_, last) = zip(counts, level_losses, strict=True)
    steps = [f"{loss:.4g} in one cluster of {size / count:,.0f}" for count, loss in lower]
    notes = [f"Between two words a token loses at most {', '.join([*steps, f'{last:.4g} between any two'])}."]
    if pad_share:
        notes.append(f"Padding stays padding with a probability of {pad_share:.4g}.")
    return tuple(notes)
