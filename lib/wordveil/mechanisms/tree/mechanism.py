"""Words drawn from nested clusters: a loss of 0 inside a cluster, and one loss for each level above.

The words are clustered by similarity into a public hierarchy, up to all words. *Positions* are drawn: words, or lowest
clusters.

    P(y | w) = A exp(-E_l),  where l is the level of the lowest cluster that holds both w and y.

Words of one lowest cluster have one law and are indistinguishable; two words that meet at level ``j`` have a loss of
about ``E_j`` (docs/proofs/tree.md). Weights that fall with distance cost up to twice as much, since their totals differ
between words.

- ``sizes``: clusters of a level are of equal size, and positions are words.
- ``clusters``: the lowest clusters are of any sizes, and positions are these. With one level this is randomised
  response over the clusters (Warner 1965; Kairouz, Oh and Viswanath 2014), however many words each has.

The unknown word becomes all positions alike. Padding is an output too: every other symbol becomes padding with one
probability ``m``, and padding stays with probability ``m exp(E)``, or else becomes all positions alike.

Positions are in an order in which every cluster is a range (:mod:`wordveil.neighbours.clusters`). Of two random words
of 64 bits the first chooses the level, the likeliest first, and the second the position in the range.

Any word of the drawn lowest cluster may be written: ``member``, the drawn one, or one that is drawn by public
frequency; ``representative``, the most frequent one; ``hypernym``, the one above the others, where clusters are
subtrees (:mod:`wordveil.mechanisms.tree.cuts`). The choice depends on the drawn cluster, further random bits and public
data alone, and costs nothing.

Related work: hierarchically well-separated trees for location privacy, Tao et al. 2020; words drawn inside clusters,
with an infinite loss between them, Chen et al. 2023 (CusText); clusters drawn by distance, Awon et al. 2025 (CluSanT);
randomised response over groups of labels, BRR (arXiv 2504.20926) and BlockRR (2026).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, MechanismArtifact, pure_guarantee
from wordveil.mechanisms.inputs import NO_INPUTS, Pairs, PublicInputs
from wordveil.mechanisms.settings import ComparisonTerms, Example
from wordveil.mechanisms.tables.mechanism import check_epsilon
from wordveil.mechanisms.tree.build import Outputs, certify_table, count_lowest, next_levels, rows_of, solve_nesting
from wordveil.mechanisms.tree.cuts import Cut
from wordveil.mechanisms.tree.draws import ClusterDraws
from wordveil.mechanisms.tree.levels import round_loss
from wordveil.mechanisms.tree.settings import DEFAULT_SIZES, Output, TreeSettings
from wordveil.mechanisms.tree.table import arrange
from wordveil.neighbours.blocks import BuildContext


class Tree(ClusterDraws[TreeSettings]):
    """Tree mechanism; see the module."""

    name = "tree"
    settings_type = TreeSettings

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        chosen = TreeSettings
        return {
            "": Example(chosen(epsilon=4.0, sizes=(3,)), chosen(epsilon=6.85), inputs=_example_inputs),
            "levels": Example(
                chosen(epsilon=5.0, sizes=(1, 7, 50), losses=(0.0, 2.0, 3.5), output="member"),
                chosen(epsilon=9.0, sizes=(10, 300), losses=(0.0, 6.0), output="member", pad_share=0.5),
            ),
            "clusters": Example(
                chosen(epsilon=4.0, clusters=(100,), least=1),
                chosen(epsilon=8.0, clusters=(480, 40), least=5, losses=(0.0, 5.0), output="member"),
            ),
            "hypernyms": Example(
                chosen(epsilon=4.0, clusters=(120,), least=1, output="hypernym", pairs="demo"),
                chosen(epsilon=8.0, clusters=(300, 30), least=5, losses=(0.0, 5.0), output="hypernym", pairs="demo"),
                inputs=_example_inputs,
            ),
        }

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[TreeSettings]:
        if terms.metric == "hyperbolic":
            return ()
        # Not more than two thirds of the smallest vocabulary with so many neighbours.
        size = DEFAULT_SIZES[0] if terms.neighbours is None else min(DEFAULT_SIZES[0], (terms.neighbours + 1) * 2 // 3)
        return (TreeSettings(epsilon=1.0, sizes=(size,)),)

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:
        if (output := parameters["output"]) not in get_args(Output):
            raise BundleError(
                f"the bundle was built with mechanism.output = {output}, which this version does not offer. Set "
                "another output and build again, or use the mechanism passages."
            )
        return super().load(size, parameters, arrays, files)

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
        if settings.output == "hypernym" and inputs.pairs is None:
            raise BundleError(
                "mechanism.pairs is not set, and mechanism.output = hypernym needs it. Set it to demo, or to the path "
                "of a file of word, hypernym, similarity; or set mechanism.output: representative."
            )
        size, frequencies = embedding.size, inputs.frequencies_of(embedding.size)
        cut = Cut.make(embedding, settings, inputs, work)
        hierarchy, writable = cut.hierarchy, inputs.writable if "written" in settings.files else None
        try:
            outputs = Outputs.choose(hierarchy, frequencies, embedding.vectors, writable, cut.heads)
        except ValueError as error:
            raise BundleError(
                f"mechanism.written = {settings.files['written']}: {error} Name a longer list, or set written: any."
            ) from None
        work.progress("choosing and certifying the probabilities of levels")
        by_cluster = bool(settings.clusters)
        bounds = count_lowest(hierarchy.bounds) if by_cluster else hierarchy.bounds
        nesting, levels = solve_nesting(bounds, settings.level_losses, settings.pad_share, padding=padding)
        rows = rows_of(hierarchy)
        if settings.output == "member" and not by_cluster:
            written = outputs.write_members(hierarchy)
        else:
            written = outputs.representatives
            if settings.output == "member":
                # Any word of the drawn cluster, to be replaced by a drawn member.
                written = np.where(
                    rows[written] == np.arange(len(written)), written, hierarchy.order[hierarchy.bounds[0][:-1]]
                )
            written = written if by_cluster else np.repeat(written, np.diff(hierarchy.bounds[0]))
        table = arrange(nesting, levels, rows, np.append(written, [size] * padding).astype(np.int32))
        losses, epsilon = certify_table(table, settings.epsilon)
        arrays = {**table.arrays, "bounds": np.concatenate(hierarchy.bounds[:-1]).astype(np.int32)}
        if settings.output == "member" and by_cluster:
            arrays |= {"order": outputs.order, "edges": outputs.share_members(frequencies)}
            if len(outputs.order) < size:
                arrays["starts"] = outputs.starts
        guarantee = pure_guarantee(embedding, settings.epsilon, epsilon, padding=padding)
        level_losses = [round_loss(losses.levels[level]) for level in next_levels(settings.level_losses)]
        parameters = {
            "epsilon": settings.epsilon,
            "losses": settings.level_losses,
            "level_losses": level_losses,
            "counts": [len(edges) - 1 for edges in hierarchy.bounds],
            "output": settings.output,
            "padding": padding,
            "pad_share": settings.pad_share,
        }
        notes = (*_notes(hierarchy.bounds, level_losses, levels.pad_share), *cut.notes)
        return MechanismArtifact(parameters, arrays, guarantee, notes=notes)


def _example_inputs(embedding: Embedding) -> PublicInputs:
    """Make pairs of hypernyms for three quarters of the words: the words of a fifth, a 25th, ... of the rank."""
    words = np.arange(3 * embedding.size // 4, dtype=np.int32)
    pairs = np.hstack([[words, words // 5**level] for level in range(1, 7)])
    low, high = np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)
    return PublicInputs(pairs=Pairs(low, high, np.ones(len(low))))


def _notes(bounds: Sequence[NDArray[Any]], level_losses: Sequence[float], pad_share: float) -> tuple[str, ...]:
    *lower, last = level_losses
    steps = []
    for loss, edges in zip(lower, bounds, strict=False):
        sizes = np.diff(edges)
        middle = float(np.median(sizes))
        size_range = f"{middle:,.0f}" if sizes.max() - sizes.min() <= 1 else f"{sizes.min():,} to {sizes.max():,}"
        steps.append(f"{loss:.4g} in one cluster of {size_range} words")
    notes = [f"Between two words a token loses at most {', '.join([*steps, f'{last:.4g} between any two'])}."]
    sizes = np.diff(bounds[0])
    if sizes.max() - sizes.min() > 1:
        notes.append(f"A word is hidden among {sizes.min():,} words at least, {np.median(sizes):,.0f} in the middle.")
    if pad_share:
        notes.append(f"Padding stays padding with a probability of {pad_share:.4g}.")
    return tuple(notes)
