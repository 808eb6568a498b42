"""Meaning of one epsilon for a vocabulary: statistics of words, their recovery, and how far they move.

All figures describe draws for single words of the public vocabulary, with public keys: they reveal nothing about a
release, and are equal in every run. The written text may reveal less
(:meth:`wordveil.mechanisms.base.Mechanism.render`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from wordveil.arrays import Float64, Int32, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.spaces import SPACES
from wordveil.measures.calibration import figures
from wordveil.measures.calibration.statistics import (
    RUNS,
    WordCounts,
    WordHierarchy,
    WordValues,
    count_words,
    measure_counts,
    measure_laws,
    measure_rows,
)
from wordveil.measures.losses import find_loss
from wordveil.measures.recovery import DENSE, measure_recovery, require_law
from wordveil.measures.search import Candidate, Matcher, make_candidate
from wordveil.measures.token_draws import spread_words
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.guarantees import WordGuarantee


@dataclass(frozen=True)
class Subject:
    """Mechanism over one public vocabulary, with a free epsilon. A search begins with that of ``settings``.

    Raises :class:`BundleError` if the mechanism has no epsilon, or reads the words around a word.
    """

    mechanism: str
    settings: MechanismSettings
    embedding: Embedding
    inputs: PublicInputs = NO_INPUTS
    padding: bool = False
    work: BuildContext = field(default_factory=BuildContext)

    def __post_init__(self) -> None:
        if self.kind.draws_texts:
            raise BundleError(
                f"mechanism.name = {self.mechanism}: it draws a whole text, and words have no epsilon. A text keeps its"
                " subject with probability e^epsilon / (e^epsilon + clusters): choose about e^epsilon / 4 clusters, and"
                " look at `wordveil plan --text`."
            )
        if self.kind.reads_context:
            raise BundleError(
                f"mechanism.name = {self.mechanism}: it draws each word by the words around it. What becomes of a "
                "single word says nothing about a text, so that no epsilon can be chosen by it. Sanitise a public text "
                "at several epsilons, and compare what wordveil evaluate measures."
            )
        if not self.settings.has_epsilon():
            raise BundleError(
                f"mechanism.name = {self.mechanism}: there is no epsilon to choose. Name another mechanism."
            )

    @property
    def kind(self) -> type[Mechanism[Any]]:
        return MECHANISMS[self.mechanism]

    @property
    def least_epsilon(self) -> float:
        """Epsilon below which the mechanism does not exist; 0 if it exists at each."""
        return self.matcher.least_epsilon(self.candidate)

    @cached_property
    def frequencies(self) -> Float64:
        """Frequency of each word in public text: float64 ``(size,)``; they add up to 1."""
        return self.inputs.frequencies_of(self.embedding.size)

    @cached_property
    def matcher(self) -> Matcher:
        """Matcher that builds the mechanism."""
        return Matcher(self.embedding, self.inputs, self.work, padding=self.padding)

    @cached_property
    def candidate(self) -> Candidate:
        """Candidate that the matcher builds."""
        return make_candidate(self.mechanism, self.settings)

    def build(self, epsilon: float) -> BuiltSubject:
        """Build the mechanism at an epsilon. Raises :class:`BundleError` or :class:`ValueError` if there is none."""
        return BuiltSubject(self, epsilon, self.matcher.build(self.candidate, epsilon))


@dataclass(frozen=True)
class BuiltSubject:
    """Mechanism built at one epsilon, and its content of a bundle."""

    subject: Subject
    epsilon: float
    artifact: MechanismArtifact

    @property
    def guarantee(self) -> WordGuarantee:
        return self.artifact.guarantee

    def load(self) -> Mechanism[Any]:
        """Load another copy, ready to draw: two threads must not share one."""
        return self.subject.matcher.load(self.subject.candidate, self.artifact)

    @cached_property
    def mechanism(self) -> Mechanism[Any]:
        """Copy of the mechanism, ready to draw."""
        return self.load()


NEIGHBOUR_WORDS = 200
"""Number of words whose nearest neighbours are measured, evenly spread over the vocabulary."""
BOUND = "a bound: the loss of the noisy point, before the nearest word is taken"

Pairs = tuple[Int64, Int64, Float64]


def find_neighbours(embedding: Embedding, metric: str) -> Pairs:
    """Find the nearest neighbour of some words, int64 ``(words,)`` each, and their distances, float64 ``(words,)``.

    ``embedding``: at least two words. ``metric``: a name of :data:`wordveil.geometry.spaces.SPACES`.
    """
    points, distances = SPACES[metric].points(embedding.vectors), SPACES[metric].distances
    words = spread_words(len(points), NEIGHBOUR_WORDS).astype(np.int64)
    nearest, least = np.empty(len(words), np.int64), np.empty(len(words))
    for row, word in enumerate(words.tolist()):
        apart = distances(points[word], points)
        apart[word] = np.inf
        nearest[row] = int(np.argmin(apart))
        least[row] = apart[nearest[row]]
    return words, nearest, least


def measure_loss(mechanism: Mechanism[Any], guarantee: WordGuarantee, pairs: Pairs) -> tuple[float, str]:
    """Measure the median loss over pairs of words, in nats, with a remark, which is empty if it is exact.

    Without known probabilities it is the bound of ``guarantee``, and ``pairs`` (:func:`find_neighbours`) are in its
    metric.
    """
    words, neighbours, distances = pairs
    if mechanism.probabilities(0) is None:
        return float(np.median([guarantee.bound(distance) for distance in distances.tolist()])), BOUND
    both = zip(words.tolist(), neighbours.tolist(), strict=True)
    return float(np.median([find_loss(mechanism, *pair).nats for pair in both])), ""


WORDS = 10_000
THRESHOLD = 0.001
"""Threshold of ``K_w`` and ``inputs``: the probability of an output that 1,000 draws give once on average."""
TEXT_WORDS = 100
"""Number of words of the text for which utility is bounded."""
PADDING = "(padding)"
"""Text for padding among a word's likely outputs."""
_EXAMPLES, _OUTPUTS, _FIRST_EXAMPLE = 12, 5, 10
_PROBABILITIES = (0.5, 0.95)


@dataclass(frozen=True)
class WordPlan:
    """Plan for measuring words.

    ``words``: number of words to draw, evenly spread over the vocabulary. All are measured if the mechanism has
    probabilities and they are not too many. ``runs``: draws of each word, also for an exact ``S_w``. ``threshold``: of
    ``K_w`` and ``inputs``, from 0 to less than 1. Raises :class:`ValueError` if a number is out of range.
    """

    words: int = WORDS
    runs: int = RUNS
    threshold: float = THRESHOLD

    def __post_init__(self) -> None:
        for name in ("words", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"Expected {name}={getattr(self, name)} of at least 1.")
        if not 0 <= self.threshold < 1:
            raise ValueError(f"Expected threshold={self.threshold} in [0, 1).")


def measure_meaning(
    built: BuiltSubject, plan: WordPlan, hierarchy: WordHierarchy | None = None
) -> figures.EpsilonMeaning:
    """Measure an epsilon of a built mechanism: exactly if it has probabilities, otherwise by counts of draws.

    ``hierarchy``: for ``K_w``. Raises :class:`OtherLengthError` unless the mechanism draws one output for each word.
    """
    values, moves = measure_words(built, plan, hierarchy)
    recovery = measure_recovery(built.mechanism, built.subject.frequencies)
    guarantee = built.guarantee
    pairs = find_neighbours(built.subject.embedding, figures.choose_metric(guarantee.metric.name))
    return figures.EpsilonMeaning(
        epsilon=built.epsilon,
        pure_epsilon=guarantee.pure,
        delta=guarantee.delta,
        nearest_loss=measure_loss(built.mechanism, guarantee, pairs)[0],
        share_kept=float(values.stays.mean()),
        share_in_cluster=_find_share_in_cluster(built.mechanism),
        words=(
            *figures.summarise_values(values, built.subject.embedding.words, plan.runs, plan.threshold),
            *figures.summarise_moves(moves, built.subject.embedding.words, is_exact=values.is_exact),
        ),
        recovery=None if recovery is None else recovery.to_dict(),
        utility=bound_utility(built.mechanism, built.epsilon),
        examples=tuple(_list_examples(built, plan)),
    )


def _find_share_in_cluster(mechanism: Mechanism[Any]) -> float | None:
    """Compute the share of words that stay in their cluster, by the law; None unless one word is written for each."""
    symbols = mechanism.symbols
    if symbols is None or not symbols.has_representatives:
        return None
    return float(symbols.law.stay_probabilities()[symbols.read].mean())


def measure_words(
    built: BuiltSubject, plan: WordPlan, hierarchy: WordHierarchy | None = None
) -> tuple[WordValues, figures.Moves]:
    """Measure words and how far they move; parameters are those of :func:`measure_meaning`."""
    mechanism, embedding = built.mechanism, built.subject.embedding
    size, metric = embedding.size, figures.choose_metric(built.guarantee.metric.name)
    if (laws := mechanism.word_laws()) is not None:
        values = measure_laws(laws, plan.runs, plan.threshold, hierarchy)
    elif mechanism.probabilities(0) is not None:
        words = spread_words(size, size if size * size <= DENSE else min(plan.words, size))
        law_of = partial(require_law, mechanism)
        values = measure_rows(law_of, words, size, plan.runs, plan.threshold, hierarchy)
    else:
        return _draw_words(built, metric, plan, hierarchy)
    moved = spread_words(size, min(plan.words, figures.MOVED_WORDS))
    return values, figures.measure_moves(embedding, metric, _rows_of(mechanism, moved))


def _rows_of(mechanism: Mechanism[Any], words: Int32) -> Iterator[tuple[Int32, Float64]]:
    for block in figures.split_rows(words):
        yield block, np.stack([require_law(mechanism, word) for word in block.tolist()])


def _draw_words(
    built: BuiltSubject, metric: str, plan: WordPlan, hierarchy: WordHierarchy | None
) -> tuple[WordValues, figures.Moves]:
    embedding = built.subject.embedding
    words = spread_words(embedding.size, plan.words)
    chosen = words[spread_words(len(words), figures.MOVED_WORDS)]
    drawn_blocks: list[WordCounts] = []

    def keep(blocks: Iterator[WordCounts]) -> Iterator[WordCounts]:
        for block in blocks:
            drawn_blocks.append(block.take(np.flatnonzero(np.isin(block.words, chosen)).astype(np.int32)))
            yield block

    blocks = keep(count_words(built.load, words, plan.runs))
    values = measure_counts(blocks, words, embedding.size, plan.runs, plan.threshold, hierarchy)
    return values, figures.measure_moves(
        embedding, metric, figures.spread_counts([WordCounts.join(drawn_blocks)], embedding.size)
    )


def bound_utility(mechanism: Mechanism[Any], epsilon: float, text_words: int = TEXT_WORDS) -> dict[str, float]:
    """Bound the distance between a text and its output: Fernandes, Dras, McIver 2019, theorem 3, corrected.

    The lengths of the noise of ``N`` words add up to ``T`` of the law Gamma(nN, 1 / epsilon), and the distance between
    a text and its noisy points is at most ``T / N`` (docs/proofs/bag-utility.md; the theorem as printed has the law of
    one word's noise). Words are at most twice as far.

    Returns ``text_words`` (``N``), ``noise_dimension`` (``n``), and distances that are not exceeded with 50% and 95%:
    ``points_50``, ``points_95``, ``words_50``, ``words_95``. Empty unless the mechanism adds noise in a Euclidean
    space.
    """
    if (dimension := mechanism.noise_dimension) is None:
        return {}
    bound = {"text_words": float(text_words), "noise_dimension": float(dimension)}
    for probability in _PROBABILITIES:
        radius = float(gammaincinv(dimension * text_words, probability)) / (epsilon * text_words)
        bound |= {f"points_{probability * 100:.0f}": radius, f"words_{probability * 100:.0f}": 2 * radius}
    return bound


def choose_examples(frequencies: Float64) -> Int32:
    """Choose a few words, int32, from frequent to rare, whose ranks grow in equal proportions."""
    size = len(frequencies)
    ranks = np.unique(np.geomspace(min(_FIRST_EXAMPLE, size), size, _EXAMPLES).astype(np.int64)) - 1
    return np.argsort(-frequencies, kind="stable")[ranks].astype(np.int32)


def _list_examples(built: BuiltSubject, plan: WordPlan) -> Iterator[figures.LikelyOutputs]:
    chosen, names = choose_examples(built.subject.frequencies), built.subject.embedding.words
    is_exact = built.mechanism.probabilities(0) is not None
    laws = (
        _rows_of(built.mechanism, chosen)
        if is_exact
        else figures.spread_counts(count_words(built.load, chosen, plan.runs), len(names))
    )
    name: Callable[[int], str] = lambda output: names[output].as_py() if output < len(names) else PADDING  # noqa: E731
    for words, weights in laws:
        shares = weights / weights.sum(axis=1, keepdims=True)
        for word, law in zip(words.tolist(), shares, strict=True):
            likely = np.argsort(-law, kind="stable")[:_OUTPUTS]
            outputs = tuple((name(output), float(law[output])) for output in likely.tolist() if law[output] > 0)
            yield figures.LikelyOutputs(name(word), outputs, is_exact)
