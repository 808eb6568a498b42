r"""Words replaced by similar ones at a pure bound: each output has a floor, each word a list of outputs far above it.

Such laws of two levels are optimal for local privacy (Kairouz, Oh, Viswanath 2014).
:mod:`wordveil.mechanisms.staircase.floor_tables` defines the law; docs/proofs/staircase.md has the proofs. The bound
does not depend on the lists: they need not be exact or symmetric, nor similarity a distance.

**Floors** are proportional to the public frequency of a word to the power ``alpha``, and add up to ``floor_mass``. With
``alpha: 0`` they are equal, and so are the lists' lengths. With more, every list has the same public mass: short lists
of common words, long lists of rare ones. ``floor_mass: null`` takes ``e^(-E/4)``, for which there are floors at every
E.

**Similarity** is the cosine of the embedding or of another one (``similarity``), in whole numbers
(:mod:`wordveil.neighbours.similar`). Words that the other one lacks keep the embedding's own order in their lists, and
are last in the lists of the others. ``pairs``: the partners of a word come before what cosines say. ``classes``: lists
stay in the class of their word. A class whose floors are less than a list may hold leaves the rest to all other
outputs: its words then cannot be distinguished at all.

**Padding** is outside every word's list, and has a floor of its own. The unknown word draws from the floors alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Le, Lt

from wordveil.arrays import Float64, Int32, UInt64
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import round_up
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, MechanismArtifact, pure_guarantee
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import Evidence, ShownEpsilon, WordLaws
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings, PureEpsilon
from wordveil.mechanisms.staircase.floor_tables import (
    UNITS,
    WHOLE,
    Floors,
    PaddingRow,
    build_floor_table,
    certify_floors,
    decode,
    find_budget,
    least_mass,
    lists_of,
    masses_of,
    reduce_epsilon,
    share_masses,
)
from wordveil.mechanisms.tables.mechanism import MAX_COLUMNS, TableDraws, check_epsilon
from wordveil.mechanisms.tables.table import columns_of
from wordveil.neighbours.blocks import BuildContext, TooManyEntriesError
from wordveil.neighbours.similar import Partners, SimilarLists, SimilarTask, find_similar

# Lists that hold more than this part of the floors, or of the vocabulary, leave little of a text.
_LARGE_MASS, _LARGE_LIST = 0.1, 0.5
_LEAST_FLOOR_MASS = 1e-18
# Entries of all words' laws that are decoded at once, 12 bytes each.
_MAX_ENTRIES = 2**26
# Lists of about so many words, at equal floors, say something of a text without showing each of its words.
_USEFUL_LISTS = (512, 4)


@dataclass(frozen=True, kw_only=True)
class StaircaseSettings(MechanismSettings):
    """Words drawn from lists of similar words, above floors that all words have in common.

    Attributes
    ----------
    epsilon : float
        the largest loss of a token between any two words, near or far, in nats. It has no default.
    alpha : float
        exponent of the public frequencies that floors are proportional to; 0: floors are equal.
    floor_mass : float or None
        sum of the floors: how often a word becomes any word. None: ``exp(-epsilon / 4)``.
    similarity : str or None
        path of another public embedding, whose cosines say which words are similar.
    pairs : str or None
        path of a TSV (word, word, similarity), or ``demo``, the package's pairs of hypernyms: partners, which come
        first in a word's list.
    classes : str or None
        path of a TSV (word, class): lists stay inside a word's class.
    search : {"auto", "exact", "annoy"}
        how similar words are found; ``auto``: exactly up to 100,000 words.
    pad_share : float or None
        the share of padding that comes back. None: the largest possible.
    """

    input_files: ClassVar[tuple[str, ...]] = ("similarity", "pairs", "classes")

    epsilon: PureEpsilon
    alpha: Annotated[float, Ge(0), Le(4)] = 0.75
    floor_mass: Annotated[float, Ge(_LEAST_FLOOR_MASS), Lt(1)] | None = 0.3
    similarity: str | None = None
    pairs: str | None = None
    classes: str | None = None
    search: Literal["auto", "exact", "annoy"] = "auto"
    pad_share: Annotated[float, Ge(1e-6), Lt(1)] | None = None


class Staircase(TableDraws[StaircaseSettings]):
    """Staircase mechanism; see the module. Arrays: an :class:`~wordveil.mechanisms.tables.table.AliasTable`; the common
    law is the last row.
    """

    name = "staircase"
    sampler_version = 1
    settings_type = StaircaseSettings
    is_pure = True
    stays_fast = True

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        chosen = StaircaseSettings
        return {
            "": Example(chosen(epsilon=5.0), chosen(epsilon=8.0)),
            "uniform": Example(chosen(epsilon=5.0, alpha=0.0), chosen(epsilon=8.0, alpha=0.0, floor_mass=0.1)),
            "following": Example(
                chosen(epsilon=4.0, floor_mass=None), chosen(epsilon=10.0, floor_mass=None, pad_share=0.5)
            ),
        }

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[StaircaseSettings]:  # noqa: ARG003 - beside any
        return (StaircaseSettings(epsilon=6.0, floor_mass=None),)

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: StaircaseSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,
    ) -> MechanismArtifact:
        epsilon, size = settings.epsilon, embedding.size
        check_epsilon(epsilon)
        for name in settings.input_files:
            if (path := getattr(settings, name)) is not None and getattr(inputs, name) is None:
                raise BundleError(f"mechanism.{name} = {path}: it was not read. Give its content as inputs.{name}.")
        floors, pad_row = make_floors(settings, inputs.frequencies_of(size), padding=padding)
        task = _task_of(embedding, settings, inputs, floors)
        lists = _find_lists(task, settings, work)
        work.progress("arranging and certifying the table")
        table = build_floor_table(floors, lists.offsets, lists.ids, pad_row)
        loss = certify_floors(table, padding=padding)
        if not loss <= epsilon:
            raise BundleError(
                f"mechanism.epsilon = {epsilon:g}: rounding to whole numbers makes the loss {loss:.10g}. Raise "
                "mechanism.epsilon or mechanism.floor_mass a little."
            )
        # A loss that rounding alone keeps under epsilon is stated as epsilon.
        stated = epsilon if loss > epsilon * (1 - 1e-6) else loss
        guarantee = pure_guarantee(embedding, epsilon, stated, padding=padding)
        parameters = {
            "epsilon": epsilon,
            "floor_mass": settings.floor_mass,
            "padding": padding,
            "search": "annoy" if lists.sampled else "exact",
            "search_recall": lists.recall,
        }
        return MechanismArtifact(parameters, table.arrays, guarantee, tuple(_notes(task, lists)))

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:
        mechanism = super().load(size, parameters, arrays, files)
        mechanism.search = parameters["search"]
        mechanism.search_recall = parameters["search_recall"]
        return mechanism

    def shown_epsilon(self, evidence: Evidence) -> ShownEpsilon | None:
        measured = super().shown_epsilon(evidence)
        # Lists that stay in small classes may use less than the whole loss.
        return replace(measured, high=math.inf) if measured and evidence.settings.get("classes") else measured

    @cached_property
    def _masses(self) -> UInt64:
        """Common law's whole numbers, decoded once."""
        return masses_of(self._table)

    def probabilities(self, symbol: int) -> Float64:
        _, ids, extras = decode(self._table, np.array([symbol]))
        law = self._masses / UNITS * (int(self._table.alike[symbol]) / WHOLE)
        np.add.at(law, ids, extras)
        return law

    def word_laws(self) -> WordLaws | None:
        table, size = self._table, self._size
        if table.starts[size] + size > _MAX_ENTRIES:
            return None
        return WordLaws(self._masses / UNITS, table.alike[:size] / UNITS, *decode(table, np.arange(size)))

    def stay_probabilities(self, words: Int32) -> Float64:
        law = self._masses[words] / UNITS
        return np.asarray(law * (self._table.alike[words] / UNITS) + self._table.itself[words] / UNITS)

    def stays_at(self, epsilons: Sequence[float], words: Int32) -> Float64:
        # A word is the first of its list, so its probability follows from its floor alone.
        floors = self._masses[: self._size] / np.sum(self._masses[: self._size], dtype=np.float64)
        rows = []
        for epsilon in epsilons:
            common, held = self._list_share(epsilon)
            pad = held if self._parameters["padding"] else 0.0
            floor = common * (1 - pad) * floors[words]
            stays = np.minimum(math.exp(min(epsilon, 700.0)) * floor, floor + 1 - common)
            rows.append(stays if held + pad < 1 else np.full(len(words), np.nan))
        return np.array(rows)

    def useful_epsilons(self) -> tuple[float, float]:
        # A word becomes one of its list equally often at every epsilon; its list gets shorter.
        tried = np.geomspace(0.5, 40, 200)
        lengths = [self._size * self._list_share(epsilon)[1] for epsilon in tried.tolist()]
        low, high = np.interp(-np.log(_USEFUL_LISTS), -np.log(lengths), tried).tolist()
        return low, high

    def _list_share(self, epsilon: float) -> tuple[float, float]:
        """Compute the sum of the floors at another epsilon, and a list's part of it."""
        common = _common_of(epsilon, self._parameters["floor_mass"]) / WHOLE
        return common, (1 / common - 1) / math.expm1(min(epsilon, 700.0))

    def at_epsilon(self, epsilon: float) -> Self | None:
        """Return what a build at ``epsilon`` would make, for epsilons above the build's own.

        Lists get shorter as epsilon rises, so this build has them. Padding's floor depends on epsilon, so padded texts
        get None.
        """
        check_epsilon(epsilon)
        if epsilon < self._parameters["epsilon"] or self._parameters["padding"]:
            return None
        common = _common_of(epsilon, self._parameters["floor_mass"])
        floors = Floors(self._masses, common, find_budget(epsilon, common))
        table = build_floor_table(floors, *lists_of(self._table), None)
        changed = type(self)(self._size, {**self._parameters, "epsilon": epsilon}, table)
        changed.search, changed.search_recall = self.search, self.search_recall
        return changed


def _common_of(epsilon: float, floor_mass: float | None) -> int:
    """Compute ``M`` in units of 2^-64."""
    if floor_mass is not None:
        return min(max(round(floor_mass * WHOLE), 1), WHOLE - 1)
    with localcontext(prec=60):
        return min(max(int((-Decimal(epsilon) / 4).exp() * WHOLE), round(_LEAST_FLOOR_MASS * WHOLE)), WHOLE - 1)


def make_floors(
    settings: StaircaseSettings, frequencies: Float64, *, padding: bool
) -> tuple[Floors, PaddingRow | None]:
    """Compute the floors of all outputs, and padding's row.

    ``frequencies``: float64 ``(size,)``, positive. Raises :class:`BundleError` if ``pad_share`` is too large, or lists
    would hold every word.
    """
    common = _common_of(settings.epsilon, settings.floor_mass)
    budget = find_budget(settings.epsilon, common)
    outputs = len(frequencies) + padding
    pad_row = _padding_row(settings, common, budget, outputs) if padding else None
    rest = WHOLE - (pad_row.mass if pad_row else 0)
    if rest <= budget:
        raise BundleError(_explain_small(settings, common, pad_row))
    masses = share_masses(frequencies, settings.alpha, rest)
    if pad_row:
        masses = np.append(masses, np.uint64(pad_row.mass))
    return Floors(masses, common, budget), pad_row


def _padding_row(settings: StaircaseSettings, common: int, budget: int, outputs: int) -> PaddingRow:
    """Compute padding's floor and share; see :mod:`wordveil.mechanisms.staircase.floor_tables`."""
    least, floor_mass = least_mass(outputs), common / WHOLE
    # For the largest share padding's floor is just more than a list may hold.
    full = min(max(budget + 1, least), WHOLE - 1)
    largest = 1 - floor_mass + floor_mass * (full / WHOLE)
    if settings.pad_share is None:
        return PaddingRow(largest, full)
    if settings.pad_share > largest:
        raise BundleError(
            f"mechanism.pad_share = {settings.pad_share:g}: at most {math.floor(largest * 1e6) / 1e6:g} of padding can "
            f"come back at mechanism.epsilon = {settings.epsilon:g} and mechanism.floor_mass = {floor_mass:.3g}. Lower "
            "mechanism.pad_share or mechanism.floor_mass, or leave mechanism.pad_share out."
        )
    with localcontext(prec=60):
        # The floor m = r e^-E, in units of M / 2^64, and slightly more.
        floor = Decimal(settings.pad_share) * (-reduce_epsilon(settings.epsilon)).exp() * WHOLE
        mass = math.ceil(floor * WHOLE / common)
    return PaddingRow(settings.pad_share, min(max(mass, least), full))


def _explain_small(settings: StaircaseSettings, common: int, pad_row: PaddingRow | None) -> str:
    """Explain why no such lists exist, and from which epsilon or floor mass on they do."""
    epsilon, floor_mass = settings.epsilon, common / WHOLE
    why = (
        f"mechanism.epsilon = {epsilon:g}, mechanism.floor_mass = {floor_mass:.4g}: every word's list would hold all "
        "words, so that nothing of a text would be left. Raise "
    )
    if settings.floor_mass is None:
        return why + "mechanism.epsilon."
    ratio = math.exp(min(epsilon, 700.0))
    if pad_row is None:
        from_epsilon, from_mass = -math.log(floor_mass), 1 / ratio
    elif settings.pad_share is None:
        from_epsilon, from_mass = math.log(2 / floor_mass - 1), 2 / (ratio + 1)
    else:  # M > m_PAD + B, where m_PAD = r / e^E
        share = pad_row.share
        root = math.sqrt((1 + share) ** 2 - 4 * floor_mass * share)
        from_epsilon = math.log((1 + share + root) / (2 * floor_mass))
        from_mass = ((1 + share) * ratio - share) / ratio**2
    return why + (
        f"mechanism.epsilon above {round_up(from_epsilon, 4):g}, or mechanism.floor_mass above "
        f"{round_up(from_mass, 4):g}."
    )


def _task_of(embedding: Embedding, settings: StaircaseSettings, inputs: PublicInputs, floors: Floors) -> SimilarTask:
    """Make the task for the lists that the settings ask for.

    Raises :class:`BundleError` if no word is in the other embedding.
    """
    size = embedding.size
    partners, other, is_present = Partners.none(size), None, None
    if inputs.pairs is not None:
        partners = Partners.of(inputs.pairs.words, inputs.pairs.others, inputs.pairs.similarities, size)
    if inputs.similarity is not None:
        numbers = WordIndex(inputs.similarity.words).numbers(embedding.words)
        is_present = numbers >= 0
        if not is_present.any():
            raise BundleError(
                f"mechanism.similarity = {settings.similarity}: it has none of the embedding's words. Name an "
                "embedding of the same language and spelling, or leave the setting out."
            )
        other = np.zeros((size, inputs.similarity.dimension), np.float32)
        other[is_present] = inputs.similarity.vectors[numbers[is_present]]
    if inputs.classes is not None and inputs.classes.shape != (size,):
        raise ValueError(f"Expected classes of shape ({size},), got {inputs.classes.shape}.")
    return SimilarTask(
        embedding.vectors,
        floors.masses[:size],
        floors.budget,
        partners,
        other,
        is_present,
        inputs.classes,
        settings.search,
    )


def _find_lists(task: SimilarTask, settings: StaircaseSettings, work: BuildContext) -> SimilarLists:
    """Find the lists. Raises :class:`BundleError` if they would take too much memory."""
    try:
        return find_similar(task, work, lambda lengths: int(columns_of(lengths).sum()), MAX_COLUMNS)
    except TooManyEntriesError:
        raise BundleError(
            f"mechanism.epsilon = {settings.epsilon:g}: the lists of all {task.size:,} words would take more than "
            f"{MAX_COLUMNS * 12 / 2**30:.0f} GiB, since each holds {task.budget / WHOLE:.2g} of the floors. Raise "
            "mechanism.epsilon or mechanism.floor_mass, or take an embedding of fewer words."
        ) from None


def _notes(task: SimilarTask, lists: SimilarLists) -> Iterator[str]:
    """List remarks on the lists for users."""
    if task.known is not None and not task.known.all():
        yield (
            f"{int((~task.known).sum()):,} of {task.size:,} words are not in the embedding of mechanism.similarity: "
            "the mechanism's own embedding orders their lists, and they come last in the lists of other words"
        )
    held, median = task.budget / WHOLE, int(np.median(np.diff(lists.offsets))) + 1
    if held > _LARGE_MASS or median > _LARGE_LIST * task.size:
        yield (
            f"each list holds {held:.1%} of the floors, {median:,} of {task.size:,} words in the median: a word "
            "becomes nearly any word, and little of a text is left. Raise mechanism.epsilon or mechanism.floor_mass"
        )
    if task.classes is not None:
        order = np.argsort(task.classes, kind="stable")
        edges = np.flatnonzero(np.diff(task.classes[order], prepend=-1))
        small = np.add.reduceat(task.masses[order], edges) < np.uint64(task.budget)
        words = np.diff(np.append(edges, task.size))[small]
        if len(words):
            yield (
                f"{int(words.sum()):,} words are in {len(words):,} classes with fewer or rarer words than a list may "
                "hold: the words of such a class are all drawn alike, and what is left of their probability goes to "
                "all words. Join such classes to others, or raise mechanism.epsilon"
            )
    if lists.sampled:
        yield (
            f"Annoy's trees find {lists.recall:.1%} of the words that exact lists have, measured on {lists.sampled:,} "
            "lists. The bound does not depend on it. mechanism.search: exact finds all"
        )
