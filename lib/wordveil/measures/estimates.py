"""Unbiased counts of what texts said, from counts of what was drawn for them, with intervals.

Draws by a known law are biased towards uniform. For counts ``x`` of drawn symbols, the estimate is ``x`` times the
inverse of the law (least squares; Warner 1965 for randomised response, in closed form for one level of clusters).
Texts are what they are: only draws are random, and they are independent, so that several draws of one text widen no
interval. If ``N`` of ``n`` had a symbol, its estimate has the mean ``N`` and the variance ``N v + (n - N) w``, where
``v`` is the variance that one of them adds, and ``w`` the mean of the others'. The interval has all ``N`` whose
estimate lies within ``z`` standard deviations of its mean (a score interval), which covers far better for few records
than a fixed width around the estimate. Far in the tails of rare events no normal law holds: intervals that hold
together, and what is more than noise, take Bernstein's inequality, which holds for any number of draws.

The unknown word becomes every position alike: its draws are spread over the estimates of all symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from wordveil.arrays import Bool, Float64, Int64
from wordveil.mechanisms.laws import SymbolLaw
from wordveil.scores.score import CONFIDENCE

MOST_NESTED = 4096
"""Largest number of symbols of a law that has to be inverted as a matrix."""
LEAST_TEXTS = 30
"""Smallest number of texts of which pairs are called more than chance."""
_LEAST_GAIN = 1e-6
_ALIKE = "its law is the same for several symbols as far as numbers can tell"


class Weights(NamedTuple):
    """Contribution of one draw to the estimate of each symbol, float64 ``(symbols,)``.

    ``own``: of a draw that came out as it. ``padding``: as padding. ``other``: as anything else.
    """

    own: Float64
    padding: Float64
    other: Float64


class _OneLevel:
    """Inverse of a law of one level: own symbol, any position, or padding."""

    def __init__(self, law: SymbolLaw) -> None:
        stay, moved = law.shares[0].tolist()
        pads = law.padding is not None
        if stay < _LEAST_GAIN or (pads and law.padding - (1 - stay - moved) < _LEAST_GAIN):
            raise ValueError(_ALIKE)
        even = law.sizes / law.sizes.sum()
        becomes_pad = 1 - stay - moved if pads else 0.0
        pad_stays = law.padding or 0.0
        gain = pad_stays - becomes_pad if pads else 1.0
        # An estimate of padding corrects for what it adds to words beyond what words do.
        excess = (moved - (1 - pad_stays)) / gain if pads else 0.0
        base = -(moved + excess * becomes_pad) * even / stay
        weights = [base + 1 / stay, base + excess * even / stay, base]
        own, other = stay + moved * even, moved * even
        variances = [
            (chance * weights[0] ** 2 + pad * weights[1] ** 2 + (1 - chance - pad) * weights[2] ** 2) - is_own
            for chance, pad, is_own in (
                (own, becomes_pad, 1),
                (other, becomes_pad, 0),
                ((1 - pad_stays) * even, pad_stays, 0),
            )
        ]
        if pads:
            ends = np.array([1 - becomes_pad, -becomes_pad]) / gain
            last = [ends[0], ends[0], ends[1]]
            weights = [np.append(values, end) for values, end in zip(weights, last, strict=True)]
            spread = [stays * ends[0] ** 2 + (1 - stays) * ends[1] ** 2 for stays in (pad_stays, becomes_pad)]
            # For padding itself all others are words.
            last = [spread[0] - 1, spread[1], 0.0]
            variances = [np.append(values, end) for values, end in zip(variances, last, strict=True)]
        self.weights = Weights(*weights)
        self._own, self._words, self._padding = variances
        self._pads = pads
        self.most, self.least = np.max(weights, axis=0), np.min(weights, axis=0)

    def solve(self, drawn: Float64) -> Float64:
        own, padding, other = self.weights
        totals = drawn.sum(axis=1, keepdims=True)
        pads = drawn[:, -1:] if self._pads else np.zeros_like(totals)
        found: Float64 = drawn * own + pads * padding + (totals - drawn - pads) * other
        if self._pads:
            found[:, -1:] = pads * own[-1] + (totals - pads) * other[-1]
        return found

    def find_variances(self, counts: Float64) -> tuple[Float64, Float64]:
        """Find the variance that one draw adds to the estimate: of a symbol itself, and the mean of all others'."""
        rest = np.broadcast_to(self._words, counts.shape)
        if self._pads:
            pads = counts[:, -1:]
            words = np.maximum(counts.sum(axis=1, keepdims=True) - pads - counts, 0)
            share = pads / np.maximum(pads + words, 1e-9)
            share[:, -1:] = 0
            rest = share * self._padding + (1 - share) * self._words
        return self._own, rest


class _Nested:
    """Inverse of a law of nested levels, as a matrix."""

    weights: Weights | None = None

    def __init__(self, law: SymbolLaw) -> None:
        if law.size > MOST_NESTED:
            raise ValueError(
                f"its {law.size:,} symbols in nested levels are more than {MOST_NESTED:,}, whose law can be inverted"
            )
        matrix = make_matrix(law)
        try:
            self._inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            self._inverse = np.full_like(matrix, np.inf)
        # Rows of the law add up to 1, so that this bounds the error of counts relative to the number of draws.
        residual = np.abs(matrix @ self._inverse - np.eye(law.size)).sum(axis=1).max()
        if not residual < 1e-6:
            raise ValueError(_ALIKE)
        self.most, self.least = self._inverse.max(axis=0), self._inverse.min(axis=0)
        self._spread = matrix @ self._inverse**2 - np.eye(law.size)

    def solve(self, drawn: Float64) -> Float64:
        return np.asarray(drawn @ self._inverse)

    def find_variances(self, counts: Float64) -> tuple[Float64, Float64]:
        own = self._spread.diagonal()
        others = counts.sum(axis=1, keepdims=True) - counts
        rest = (counts @ self._spread - counts * own) / np.maximum(others, 1e-9)
        return own, np.maximum(rest, 0.0)


def make_matrix(law: SymbolLaw) -> Float64:
    """Make the probability of each output for each input: float64 ``(symbols, symbols)``, rows that add up to 1."""
    count, pads = len(law.sizes), law.padding is not None
    matrix = np.zeros((count + pads, count + pads))
    for cluster, shares in zip(law.clusters, law.shares.T, strict=True):
        sizes = np.bincount(cluster, law.sizes)
        matrix[:count, :count] += (cluster[:, None] == cluster) * (shares / sizes[cluster])[:, None] * law.sizes
    if law.padding is not None:
        matrix[:count, -1] = 1 - law.shares.sum(axis=1)
        matrix[-1, :count] = (1 - law.padding) * law.sizes / law.sizes.sum()
        matrix[-1, -1] = law.padding
    return matrix


@dataclass(frozen=True)
class Estimates:
    """Estimated counts of symbols, float64 ``(groups, symbols)``, and the ends of an interval of each.

    ``counts`` add up to the draws of a group, and may be negative. ``low``, ``high``: within 0 and these draws.
    """

    counts: Float64
    low: Float64
    high: Float64


class Estimator:
    """Estimator of counts of symbols, from counts of what was drawn by a law.

    Raises :class:`ValueError`, with the end of a sentence about the law, for one that cannot be inverted.
    """

    def __init__(self, law: SymbolLaw) -> None:
        is_single = len(law.clusters) == 2 and bool((law.shares == law.shares[0]).all())
        self._inverse = _OneLevel(law) if is_single else _Nested(law)
        self.law = law

    @property
    def weights(self) -> Weights | None:
        """Contribution of a draw to each estimate; None for nested levels, where every symbol has its own."""
        return self._inverse.weights

    @property
    def widest(self) -> Float64:
        """Most that a draw moves each estimate away from its mean: float64 ``(symbols,)``."""
        widest: Float64 = np.maximum(self._inverse.most, 1 - self._inverse.least)
        return widest

    def estimate(self, drawn: Int64, *, together: int = 1) -> Estimates:
        """Estimate how often each symbol was drawn for.

        ``drawn``: int64 ``(groups, symbols)``, how many draws of each group came out as each symbol. ``together``: the
        number of intervals that all hold with a probability of 95% (Bonferroni, Bernstein); 1: each by itself.
        """
        draws = drawn.sum(axis=1, keepdims=True).astype(np.float64)
        found = self._inverse.solve(drawn.astype(np.float64))
        own, rest = self._inverse.find_variances(np.clip(found, 0, draws))
        if together > 1:
            # All N whose distance t from the estimate has t^2 <= 2 L (N own + (draws - N) rest + t most / 3).
            level = math.log(2 * together / (1 - CONFIDENCE))
            constant = 2 * level * np.maximum(found * own + (draws - found) * rest, 0)
            below = level * (rest - own + self._inverse.most / 3)
            above = level * (own - rest + (1 - self._inverse.least) / 3)
            low, high = (
                np.clip(found + sign * (slope + np.sqrt(slope**2 + constant)), 0.0, draws)
                for sign, slope in ((-1, below), (1, above))
            )
            return Estimates(found, low, high)
        z2 = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) ** 2
        # All N with (found - N)^2 <= z^2 (N own + (draws - N) rest).
        middle = found + z2 * (own - rest) / 2
        spread = np.sqrt(np.maximum(middle**2 - (found**2 - z2 * draws * rest), 0.0))
        low, high = (np.clip(end, 0.0, draws) for end in (middle - spread, middle + spread))
        return Estimates(found, low, high)

    def find_shares(self, drawn: Int64) -> tuple[Float64, Float64]:
        """Estimate the share of each symbol in each group, and its variance: float64 ``(groups, symbols)``."""
        draws = np.maximum(drawn.sum(axis=1, keepdims=True), 1).astype(np.float64)
        found = self._inverse.solve(drawn.astype(np.float64))
        had = np.clip(found, 0, draws)
        own, rest = self._inverse.find_variances(had)
        return found / draws, (had * own + (draws - had) * rest) / draws**2

    def find_least_count(self, draws: int) -> int:
        """Find the count of a usual symbol from which its estimate stands out from none in half of all tables.

        An estimate of none lies below it, for all symbols together, with a probability of 95% (Bonferroni).
        """
        level = math.log(2 * self.law.size / (1 - CONFIDENCE))
        even = np.append(self.law.sizes / self.law.sizes.sum(), [0.0] * (self.law.padding is not None))
        _, rest = self._inverse.find_variances(even[None, :] * draws)
        slope = level * float(np.median(self._inverse.most)) / 3
        return math.ceil(slope + math.sqrt(slope**2 + 2 * level * draws * float(np.median(rest))))


@dataclass(frozen=True)
class Changes:
    """Changes of the shares of symbols between two groups of draws, ``(pairs, symbols)``.

    ``differences``: later less earlier, float64. ``low``, ``high``: an interval of each. ``are_real``: bool, the
    changes that are more than noise, of which a share is false discoveries.
    """

    differences: Float64
    low: Float64
    high: Float64
    are_real: Bool


def compare_shares(before: Int64, after: Int64, estimator: Estimator) -> Changes:
    """Estimate how the share of each symbol changed, from drawn counts of both groups: int64 ``(pairs, symbols)``.

    The false discovery rate of ``are_real`` over all pairs and symbols is 5% (Benjamini, Hochberg 1995), by the chance
    of a difference that Bernstein's inequality bounds. The texts of a group are those that it has, and no sample: only
    the draws are noise. Each group must have draws.
    """
    (first, noise), (second, more_noise) = map(estimator.find_shares, (before, after))
    draws = np.minimum(before.sum(axis=1), after.sum(axis=1))[:, None]
    return _find_changes(second - first, noise + more_noise, estimator.widest / np.maximum(draws, 1))


def _find_changes(differences: Float64, variances: Float64, widest: Float64 | float) -> Changes:
    """Find the differences that are more than noise. ``widest``: what one draw can move a difference by."""
    from scipy.stats import false_discovery_control, norm  # takes a second to load

    deviations, distances = np.sqrt(variances), np.abs(differences)
    with np.errstate(invalid="ignore", divide="ignore"):
        exponents = distances**2 / (2 * (variances + widest * distances / 3))
    chances = np.minimum(2 * np.exp(-np.nan_to_num(exponents)), 1.0)
    false = false_discovery_control(chances, axis=None) if chances.size else chances
    width = norm.isf((1 - CONFIDENCE) / 2) * deviations
    are_real = false.reshape(differences.shape) <= 1 - CONFIDENCE
    return Changes(differences, differences - width, differences + width, are_real)


class PairSums(NamedTuple):
    """Sums over texts for pairs of symbols, float64 ``(pairs,)``; ``texts``: their number.

    ``together``: estimated number of pairs of draws of one text. ``deviations``, ``squares``: of each text's part in
    how far this is from chance.
    """

    texts: int
    together: Float64
    deviations: Float64
    squares: Float64


def _count_words(
    weights: Weights,
    padding: int | None,
    squares: Float64 | float,
    products: Float64 | float,
    pad_squares: Float64 | float,
    draws: Float64 | float,
    pads: Float64 | float,
) -> tuple[Float64 | float, Float64 | float]:
    """Estimate the number of draws that are no padding, and of pairs of them in one text.

    From the number of ``draws`` of each text, of ``pads``, drawn padding, and their squares and products; or from sums
    of these over texts.
    """
    # The contribution of a draw to the number of words: of one that came out as padding, and of others.
    at_pad, elsewhere = (1.0, 1.0) if padding is None else (1 - weights.own[-1], 1 - weights.other[-1])
    step = at_pad - elsewhere
    alone = elsewhere**2 * draws + (at_pad**2 - elsewhere**2) * pads
    pairs = elsewhere**2 * squares + 2 * elsewhere * step * products + step**2 * pad_squares - alone
    return elsewhere * draws + step * pads, pairs


@dataclass(frozen=True)
class PairEstimator:
    """Estimator of how often two symbols stand in one text, and whether more often than by chance.

    Of a text with draws ``i``, the product of both symbols' estimates, without ``i = i``, is an unbiased estimate of
    the number of its pairs. By chance the pairs of all texts, as many as they have, would be of two symbols in
    proportion to the counts of both. Texts of few and of many words may differ in many other ways, so that the variance
    is that between texts (sandwich), which is not below that of the draws.

    ``symbols``: int64 ``(chosen,)``, whose pairs are counted. ``weights``: of the estimator. ``padding``: the number of
    the symbol of padding, or None. ``counts``: float64 ``(chosen,)``, estimates of these symbols. ``words``, ``pairs``:
    the estimated number of draws that are no padding, and of pairs of them in one text.
    """

    symbols: Int64
    weights: Weights
    padding: int | None
    counts: Float64
    words: float
    pairs: float

    @classmethod
    def of(
        cls, estimator: Estimator, symbols: Sequence[int], counts: Float64, lengths: Sequence[float]
    ) -> PairEstimator:
        """Make from an estimator with :attr:`Estimator.weights`.

        ``counts``: float64 ``(all symbols,)``, of the whole table. ``lengths``: sums over texts of their squared number
        of draws, of its product with their draws of padding, and of the squared number of these, of all draws, and of
        padding's.
        """
        weights = estimator.weights
        assert weights is not None
        padding = estimator.law.size - 1 if estimator.law.padding is not None else None
        words, pairs = _count_words(weights, padding, *lengths)
        chosen = np.array(symbols, np.int64)
        return cls(chosen, weights, padding, counts[chosen], float(words), float(pairs))

    @cached_property
    def ends(self) -> tuple[Int64, Int64]:
        """Places among the chosen symbols of both symbols of each pair."""
        first, second = np.triu_indices(len(self.symbols), 1)
        return first, second

    def sum_up(self, values: Int64, offsets: Int64) -> PairSums:
        """Sum over texts, whose draws are ``values``, int64 ``(draws,)``, by ``offsets``, int64 ``(texts + 1,)``."""
        texts, chosen = len(offsets) - 1, len(self.symbols)
        owner = np.repeat(np.arange(texts), np.diff(offsets))
        place = np.full(max(int(values.max(initial=0)), int(self.symbols.max(initial=0))) + 1, -1)
        place[self.symbols] = np.arange(chosen)
        found = place[values]
        is_chosen = found >= 0
        cells = owner[is_chosen] * chosen + found[is_chosen]
        drawn = np.bincount(cells, minlength=texts * chosen).reshape(texts, chosen).astype(np.float64)
        draws = np.diff(offsets).astype(np.float64)[:, None]
        pads = np.zeros_like(draws)
        if self.padding is not None:
            pads = np.bincount(owner[values == self.padding], minlength=texts).astype(np.float64)[:, None]
        own, padding, other = (values[self.symbols] for values in self.weights)
        parts = drawn * own + pads * padding + (draws - drawn - pads) * other
        a, b = self.ends
        gain = own - other
        shared = drawn[:, a] * (gain[a] * other[b]) + drawn[:, b] * (gain[b] * other[a])
        shared += pads * (padding[a] * padding[b] - other[a] * other[b]) + draws * (other[a] * other[b])
        together = parts[:, a] * parts[:, b] - shared
        words, pairs = _count_words(self.weights, self.padding, draws**2, draws * pads, pads**2, draws, pads)
        counts, total = self.counts, self.words
        by_chance = counts[a] * counts[b] / total**2
        slope = self.pairs / total**2
        deviations = together - by_chance * pairs + 2 * self.pairs / total * by_chance * words
        deviations -= slope * (counts[b] * parts[:, a] + counts[a] * parts[:, b])
        return PairSums(texts, together.sum(axis=0), deviations.sum(axis=0), (deviations**2).sum(axis=0))

    def compare(self, sums: PairSums) -> tuple[Float64, Float64, Changes]:
        """Compare pairs with chance: their estimated number, that by chance, and the difference of both."""
        a, b = self.ends
        expected = self.counts[a] * self.counts[b] / self.words**2 * self.pairs
        variances = np.maximum(sums.squares - sums.deviations**2 / max(sums.texts, 1), 0.0)
        changes = _find_changes(sums.together - expected, variances, 0.0)
        if sums.texts < LEAST_TEXTS:  # their variance is hardly known
            changes = replace(changes, are_real=np.zeros_like(changes.are_real))
        return sums.together, expected, changes
