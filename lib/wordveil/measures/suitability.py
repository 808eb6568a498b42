"""Suitability of an embedding for a mechanism: help to choose gamma and epsilon, from public data alone.

It has distances of neighbours, the epsilons between which words begin and cease to change, words with digits, and the
share of a public text that the vocabulary covers. Words of a sample are measured, spread evenly over the vocabulary or
over its frequencies, or all words if that takes no longer. Draws are with a public key, as in
:mod:`wordveil.measures.recovery`: every build of a bundle finds the same figures. Distances of neighbours are from
float32 products, good to about three digits: for people who choose, and for no bound.

An attacker who takes each output for the word itself is right as often as words stay. The best attacker is right at
least as often, so that the share that stays is a lower bound on the recovery.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import logit

from wordveil.arrays import Float32, Float64, Int32
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.geometry.euclidean import round_up
from wordveil.geometry.spaces import SPACES
from wordveil.measures.recovery import OtherLengthError, draw_publicly, spread_by
from wordveil.measures.token_draws import spread_words
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.privacy.guarantees import WordGuarantee, uncap
from wordveil.privacy.recovery import round_figure
from wordveil.text.tokeniser import Tokeniser, fold_words, straighten_apostrophes

COSINE = "cosine"
"""Measure of nearness if no distance enters the price: the cosine of two vectors, 1 for the same direction."""
_BLOCK_BYTES = 32 * 2**20


def measure_neighbours(vectors: Float32, measure: str, words: Int32, rank: int) -> tuple[Float64, Float64]:
    """Measure the nearest neighbour and the ``rank``-th of words: float64 ``(words,)`` each, distances or cosines.

    ``vectors``: float32 ``(size, n)``; for ``hyperbolic`` in the open unit ball. ``measure``: the name of a metric of
    :data:`wordveil.geometry.spaces.SPACES`, or :data:`COSINE`. ``words``: int32 ``(words,)``. ``rank``: 1 for the
    nearest, up to ``size - 1``.
    """
    distances = measure_rows_of(vectors, measure)
    nearest, far = np.empty(len(words)), np.empty(len(words))
    step = max(1, _BLOCK_BYTES // (8 * len(vectors)))
    for start in range(0, len(words), step):
        block = slice(start, start + step)
        apart = distances(words[block])
        apart[np.arange(len(apart)), words[block]] = -np.inf  # the word itself comes first
        ordered = np.partition(apart, (1, rank), axis=1)
        nearest[block], far[block] = ordered[:, 1], ordered[:, rank]
    return (-nearest, -far) if measure == COSINE else (nearest, far)


def measure_rows_of(vectors: Float32, measure: str) -> Callable[[Int32], Float64]:
    """Return a function from words, int32 ``(words,)``, to distances from all, float64 ``(words, size)``.

    Cosines are negated. ``vectors``, ``measure``: as in :func:`measure_neighbours`.
    """
    if measure == "manhattan":
        points = vectors.astype(np.float64)
        return lambda words: np.stack([SPACES[measure].distances(points[word], points) for word in words])
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    if measure in (COSINE, "angular"):
        directions = vectors / np.sqrt(np.where(squares > 0, squares, 1.0))[:, None].astype(np.float32)

        def turn(words: Int32) -> Float64:
            cosines = np.clip((directions[words] @ directions.T).astype(np.float64), -1, 1)
            return -cosines if measure == COSINE else np.arccos(cosines)

        return turn

    def measure_rows(words: Int32) -> Float64:
        products = (vectors[words] @ vectors.T).astype(np.float64)
        gaps = np.maximum(squares[words][:, None] + squares - 2 * products, 0.0)
        if measure == "hyperbolic":
            return np.asarray(2 * np.arcsinh(np.sqrt(gaps / ((1 - squares[words])[:, None] * (1 - squares)))))
        return np.asarray(np.sqrt(gaps))

    return measure_rows


NEIGHBOUR = 256
"""Rank of the far neighbour whose distance is measured; the last one in smaller vocabularies."""
PUBLIC_TEXT = "300 English news articles of 2000 and 2001 (gensim's lee_background)"
_QUANTILES = (0.05, 0.5, 0.95)
_DISTANCES, _WORDS, _DIGIT_WORDS, _EXAMPLES = 128, 256, 200, 5
# Epsilons that are tried: of pure mechanisms, and how many between the first and the last.
_PURE, _STEPS = (0.5, 40.0), 24
# Shares of what can stay at all: between the first two an epsilon is worth looking at; beyond the others a value was
# hardly meant.
_LOW, _HIGH, _TOO_LOW, _TOO_HIGH = 0.1, 0.9, 0.02, 0.98
# What is far from the neighbours' distances, and from a usual share of covered words.
_FAR_GAMMA, _FEW_COVERED, _MORE_COVERED = 1.5, 0.8, 0.01


@dataclass(frozen=True)
class Spread:
    """Quantiles over words: 5%, the median and 95%."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Float64) -> Spread:
        """Compute those of values, float64 ``(words,)``."""
        return cls(*(round_figure(float(value)) for value in np.quantile(values, _QUANTILES)))


@dataclass(frozen=True)
class EpsilonFigures:
    """Effect of one epsilon on words.

    ``epsilon``: as configured, per unit of the mechanism's metric. ``stays``: estimated share of words that stay
    themselves; each word counts once. An attacker recovers at least about as many if all words are equally likely.
    ``recovered``: estimated lower bound on the recovery from running text, with knowledge of word frequencies.
    """

    epsilon: float
    stays: float
    recovered: float


@dataclass(frozen=True)
class DigitWords:
    """Words with a digit: number, examples, and the share that stays at the configured epsilon, if measured."""

    words: int
    examples: tuple[str, ...]
    stays: float | None


@dataclass(frozen=True)
class Suitability:
    """Suitability of an embedding for a mechanism.

    ``measure``: name of a metric, or :data:`COSINE`, in which ``nearest`` and ``far`` are distances or cosines of the
    nearest and of the ``neighbour``-th word, over ``sampled`` words. ``gamma``: a value to begin with, the median
    distance of the far neighbour; None if no distance enters the price. ``epsilon``: the lowest and the highest useful
    epsilon: a tenth, and nine tenths, of the words stay that stay at a very large one; or those that the mechanism
    names. None if that needs other builds. ``epsilons``: figures for rising epsilons, including the configured one.
    ``text``, ``text_words``, ``covered``: a public text, its number of words, and the share of them in the vocabulary;
    None and 0 without a text on this machine. ``warnings``: sentences about unfit configured values.
    """

    measure: str
    sampled: int
    nearest: Spread
    far: Spread
    neighbour: int
    gamma: float | None
    epsilon: tuple[float, float] | None
    epsilons: tuple[EpsilonFigures, ...]
    digits: DigitWords
    text: str | None
    text_words: int
    covered: float | None
    warnings: tuple[str, ...]


def measure_suitability(
    mechanism: Mechanism[Any],
    embedding: Embedding,
    settings: MechanismSettings,
    guarantee: WordGuarantee,
    frequencies: Float64,
) -> Suitability:
    """Measure how well an embedding suits a mechanism that was built from it, with these settings.

    Figures have six digits, epsilons two. There are no epsilons if the mechanism does not draw one output for each
    word, or reads the words around it: single words do not represent a text. ``frequencies``: float64 ``(size,)``, the
    public frequency of each word; adds up to 1.
    """
    name = uncap(guarantee.metric.name)
    measure = COSINE if mechanism.is_pure or name not in SPACES else name
    rank = min(NEIGHBOUR, embedding.size - 1)
    nearest, far = measure_neighbours(embedding.vectors, measure, spread_words(embedding.size, _DISTANCES), rank)
    near = Spread.of(nearest), Spread.of(far)
    gamma = None if measure == COSINE else round_up(float(np.median(far)), 2)
    tried = _Tried(mechanism, settings, frequencies, _grid(mechanism, measure, *near, embedding.dimension))
    digits = tried.measure_digits(embedding.words)
    covered, exact, words = measure_coverage(embedding.words)
    return Suitability(
        measure=measure,
        sampled=len(nearest),
        nearest=near[0],
        far=near[1],
        neighbour=rank,
        gamma=gamma,
        epsilon=tried.useful,
        epsilons=tried.figures,
        digits=digits,
        text=PUBLIC_TEXT if words else None,
        text_words=words,
        covered=covered,
        warnings=(*_warn_of_gamma(settings, near, rank, gamma), *tried.warnings, *warn_of_coverage(covered, exact)),
    )


def _grid(mechanism: Mechanism[Any], measure: str, nearest: Spread, far: Spread, dimension: int) -> Float64:
    """Compute epsilons from one at which hardly a word stays to one at which hardly a word changes."""
    first, last = _PURE
    if measure != COSINE:
        # Weights of a distance need some multiple of 1 / distance; noise on vectors also the root of the dimension.
        first, last = 0.5 / (far.median or 1.0), 20 * math.sqrt(dimension) / (nearest.median or far.median or 1.0)
    first = max(first, mechanism.min_epsilon(dimension))
    return np.geomspace(first, max(last, 2 * first), _STEPS)


class _Tried:
    """Effects of a mechanism on words at its own epsilon and at those of a grid."""

    def __init__(
        self, mechanism: Mechanism[Any], settings: MechanismSettings, frequencies: Float64, grid: Float64
    ) -> None:
        self._mechanism = mechanism
        self._settings = settings
        self._prior = frequencies
        self._grid = grid
        if mechanism.stays_fast:
            self._words = self._running = np.arange(len(frequencies), dtype=np.int32)
            self._weights = frequencies
            return
        self._words, self._weights = spread_words(len(frequencies), _WORDS), np.ones(_WORDS)
        self._running = spread_by(frequencies, _WORDS)

    @cached_property
    def _shares(self) -> Float64 | None:
        """Share of words that stay at each epsilon of the grid, which rises; None if that is not known."""
        if (stays := self._stays(self._grid.tolist(), self._words)) is None:
            return None
        shares = stays.mean(axis=1)
        first = np.nan_to_num(shares)  # without such a mechanism nothing stays
        return np.maximum.accumulate(first) if first.max() > 0 else None

    @cached_property
    def useful(self) -> tuple[float, float] | None:
        """Useful epsilons of the mechanism, or those at which :data:`_LOW` and :data:`_HIGH` of what can stay stays."""
        if (epsilons := self._mechanism.useful_epsilons()) is not None:
            return _shorten(epsilons[0]), _shorten(epsilons[1])
        if self._shares is None:
            return None
        reached = self._shares / self._shares[-1]
        if reached[0] >= _HIGH:  # as in a space so wide that the least epsilon keeps nearly every word
            return None
        # Between two epsilons the odds grow about as exponential functions do.
        odds = logit(np.clip(reached, 1e-9, 1 - 1e-9))
        low, high = np.interp(logit([_LOW, _HIGH]), odds, self._grid).tolist()
        return _shorten(low), _shorten(high)

    @cached_property
    def figures(self) -> tuple[EpsilonFigures, ...]:
        """Effects of the configured epsilon, and of others from one end of the useful ones to the other."""
        if not self._settings.has_epsilon():
            return ()
        words, own = np.concatenate([self._words, self._running]), self._settings.nominal_epsilon
        ends = self.useful or ()
        epsilons = sorted({own, *ends, *([_shorten(math.sqrt(math.prod(ends)))] if ends else [])})
        rows = self._stays(epsilons, words)
        if rows is None:  # it does not know itself at another epsilon
            stays = self._stays_here(words)
            epsilons, rows = [own], np.full((1, 1), np.nan) if stays is None else stays[None]
        return tuple(
            self._summarise(epsilon, stays)
            for epsilon, stays in zip(epsilons, rows, strict=True)
            if not np.isnan(stays).any()
        )

    def _summarise(self, epsilon: float, stays: Float64) -> EpsilonFigures:
        words, running = np.split(stays, [len(self._words)])
        recovered = float(np.average(running, weights=self._weights))
        # An attacker who never looks always names the most frequent word.
        recovered = max(recovered, float(self._prior.max()))
        return EpsilonFigures(epsilon, round_figure(float(words.mean())), round_figure(recovered))

    def _stays_here(self, words: Int32) -> Float64 | None:
        if self._mechanism.reads_context:
            return None
        stays = self._mechanism.stay_probabilities(words)
        return stays if stays is not None else self._draw(self._mechanism, words)

    def _stays(self, epsilons: Sequence[float], words: Int32) -> Float64 | None:
        """Measure whether words stay, or how probably: float64 ``(epsilons, words)``; NaN without such a mechanism."""
        if self._mechanism.reads_context:
            return None
        stays = self._mechanism.stays_at(epsilons, words)
        if stays is not None:
            return stays
        return self._mechanism.measure_at(epsilons, len(words), lambda changed: self._draw(changed, words))

    @staticmethod
    def _draw(mechanism: Mechanism[Any], words: Int32) -> Float64 | None:
        try:
            return np.asarray(draw_publicly(mechanism, words, "suitability") == words, np.float64)
        except OtherLengthError:
            return None

    def measure_digits(self, words: pa.StringArray) -> DigitWords:
        """Measure words with a digit, and the share of them that stays at the configured epsilon."""
        ids = np.flatnonzero(pc.match_substring_regex(words, r"\p{N}").to_numpy(zero_copy_only=False)).astype(np.int32)
        if not len(ids):
            return DigitWords(0, (), None)
        chosen = ids[spread_words(len(ids), _DIGIT_WORDS)]
        stays = self._stays_here(chosen)
        examples = words.take(pa.array(ids[:_EXAMPLES])).to_pylist()
        return DigitWords(len(ids), tuple(examples), None if stays is None else round_figure(float(np.mean(stays))))

    @property
    def warnings(self) -> Iterator[str]:
        """Warnings if the configured epsilon is far from those at which words begin and cease to change."""
        epsilon = self._settings.nominal_epsilon
        shares = [figures.stays for figures in self.figures if figures.epsilon == epsilon]
        if self._mechanism.useful_epsilons() is not None or self.useful is None or self._shares is None or not shares:
            return
        reached, (low, high) = shares[0] / float(self._shares[-1]), self.useful
        begin = (
            f"mechanism.epsilon = {epsilon:g}: {100 * shares[0]:.2g}% of the words of this embedding stay themselves"
        )
        if epsilon < low and reached < _TOO_LOW:
            yield f"{begin}, so that nearly nothing of a text is left. Look at epsilons from {low:g} to {high:g}."
        if epsilon > high and reached > _TOO_HIGH:
            yield f"{begin}, nearly all that can: less epsilon hides more. Look at epsilons from {low:g} to {high:g}."


def _shorten(epsilon: float) -> float:
    return float(f"{epsilon:.2g}")


def measure_coverage(vocabulary: pa.StringArray) -> tuple[float | None, float | None, int]:
    """Measure the share of words of :data:`PUBLIC_TEXT` that a vocabulary has, in lower case and as written.

    Also returns the number of those words. None, None and 0 if the text is not on this machine.
    """
    package = importlib.util.find_spec("gensim")
    folder = Path((package.submodule_search_locations or [""])[0]) if package else Path()
    file = folder / "test" / "test_data" / "lee_background.cor"
    if not file.is_file():
        return None, None, 0
    cutter = Tokeniser()
    texts = pa.array([line for line in file.read_text("utf-8").splitlines() if line.strip()], pa.string())
    words = cutter.cut_words(cutter.normalise(texts)).words
    vocabulary_words = Vocabulary(vocabulary)
    folded, exact = (
        float(np.mean(vocabulary_words.lookup(form(words)) != vocabulary_words.unknown))
        for form in (fold_words, straighten_apostrophes)
    )
    return round_figure(folded), round_figure(exact), len(words)


def _warn_of_gamma(
    settings: MechanismSettings, near: tuple[Spread, Spread], rank: int, suggested: float | None
) -> Iterator[str]:
    gamma, (nearest, far) = settings.terms.gamma, near
    if gamma is None or suggested is None:
        return
    if gamma > _FAR_GAMMA * far.median:
        yield (
            f"mechanism.gamma = {gamma:g}: half of the words have {rank} words nearer than {far.median:.3g}, so that "
            f"unrelated words cost more than they need. Begin with {suggested:g}."
        )
    if gamma < nearest.median:
        yield (
            f"mechanism.gamma = {gamma:g}: half of the words have no other word nearer than {nearest.median:.3g}, so "
            f"that near words are drawn no more often than any. Begin with {suggested:g}."
        )


def warn_of_coverage(covered: float | None, exact: float | None) -> Iterator[str]:
    """Warn if a vocabulary has few words of a public text, or many more as they are written. None: not measured."""
    if covered is None or exact is None:
        return
    if exact > covered + _MORE_COVERED:
        yield (
            f"the vocabulary has {exact:.0%} of the words of an English text as they are written, and {covered:.0%} in "
            "lower case, in which the default policy looks them up: set text.case: exact."
        )
    elif covered < _FEW_COVERED:
        yield (
            f"the vocabulary has {covered:.0%} of the words of an English text. If your texts are English, take an "
            "embedding of more words."
        )
