"""Exponential mechanism over a vocabulary: whole, truncated, and with lists of neighbours.

McSherry and Talwar 2007, for the score ``-d(w, x)``: a word ``w`` becomes ``x`` with probability ``exp(-beta s(w, x)) /
Z(w)``. Truncated (TEM: Carvalho, Vasiloudis, Feyisetan 2021): ``s = min(d, gamma)``. With lists of the ``k`` nearest
words: ``s = min(d, r(w))``, where ``r(w)`` is the distance of the nearest word that is not in the list of ``w``; with
both, the smallest of the three. Each score is 1-Lipschitz, so ``beta = epsilon / 2`` makes it ``epsilon d``-private
(docs/proofs/exponential.md). The lists must be exact: a word that a list misses has the weight of a far one.

The unknown word and padding are points at distance ``gamma`` (without it, the embedding's diameter) from every word and
from each other. The unknown word draws every output alike. Padding is an output, outside every word's list.

``tight``: the largest beta in [epsilon/2, epsilon], by bisection, for which every pair's loss is under ``epsilon d``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from annotated_types import Gt

from wordveil.arrays import Float64
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.euclidean import round_up
from wordveil.geometry.spaces import SPACES, Space, digest_points
from wordveil.mechanisms.base import Mechanism, MechanismArtifact
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import Evidence, ShownEpsilon
from wordveil.mechanisms.settings import (
    ComparisonTerms,
    Example,
    MechanismSettings,
    MetricName,
    Neighbours,
    TableEpsilon,
)
from wordveil.mechanisms.tables.mechanism import (
    TableMechanism,
    build_certified,
    check_epsilon,
    check_slack,
    find_lists,
    largest_loss,
    points_of,
    symbol_rows,
)
from wordveil.mechanisms.tables.table import MAX_SCORE, AliasTable, probabilities
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.lists import NeighbourLists
from wordveil.privacy.guarantees import CAPPED, Metric, WordGuarantee

# Scores above 40 ln 2 are capped (:data:`wordveil.mechanisms.tables.table.MAX_SCORE`), so that log odds stop growing.
_STEEPEST = 27.0


def show_odds(
    mechanism: Mechanism[Any], evidence: Evidence, rate: Callable[[float], float] = float
) -> ShownEpsilon | None:
    """Measure the epsilon by which log odds fall by ``epsilon / 2`` per unit of the score.

    Compares words with their nearest ones. If ``tight`` chose the slope, the result lies between that and epsilon.
    Returns None if there is no distance or slope to measure. ``mechanism``: has :meth:`probabilities`. ``rate``: the
    score of a distance.
    """
    slopes = [_slope_at(mechanism, evidence, word, rate) for word in evidence.words.tolist()]
    slopes_found = [slope for slope in slopes if slope is not None]
    if not slopes_found:
        return None
    slope = float(np.median(slopes_found))
    return ShownEpsilon(slope if evidence.settings.get("tight") else 2 * slope, 2 * slope, "the log odds of the table")


def _slope_at(mechanism: Mechanism[Any], evidence: Evidence, word: int, rate: Callable[[float], float]) -> float | None:
    """Measure the slope from a word to its nearest neighbour. Return None if they coincide or are too far apart."""
    apart, law = evidence.distances(word).copy(), mechanism.probabilities(word)
    apart[word] = math.inf
    other = int(np.argmin(apart))
    if law is None or not 0 < apart[other] < math.inf or not law[other] > 0:
        return None
    fall, score = math.log(law[word] / law[other]), rate(min(float(apart[other]), evidence.cap))
    return fall / score if score > 0 and 0 < fall < _STEEPEST else None


# Up to this many words the loss of every pair is computed from the table: 600^3 logarithms' differences take a second.
_EXHAUSTIVE = 600
_TIGHT_STEPS = 12
# Pairs of words that a step of the bisection measures at most: some seconds in 300 dimensions.
_MOST_MEASURED = 10_000_000
# Bound on the error of float64 in the logarithms that the bisection compares.
_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class ExponentialSettings(MechanismSettings):
    """Words drawn with weights that fall with their distance.

    Attributes
    ----------
    epsilon : float
        the loss of a token, per unit of the metric's distance. It has no default.
    metric : MetricName
        the distance of two words.
    gamma : float or None
        distances beyond it count as it: the truncated exponential mechanism. None: no distance is cut.
    neighbours : int or None
        words beyond this many nearest ones are drawn alike. None: each word has an individual weight.
    tight : bool
        whether to search for the largest weight of a distance that keeps epsilon, instead of taking epsilon / 2.
    """

    epsilon: TableEpsilon
    metric: MetricName = "euclidean"
    gamma: Annotated[float, Gt(0)] | None = None
    neighbours: Neighbours | None = None
    tight: bool = False

    @property
    def terms(self) -> ComparisonTerms:
        return ComparisonTerms(self.metric, self.neighbours, self.gamma)


class Exponential(TableMechanism[ExponentialSettings]):
    """Exponential mechanism; see the module. Arrays: those of :class:`wordveil.mechanisms.tables.table.AliasTable`."""

    name = "exponential"
    sampler_version = 1
    settings_type = ExponentialSettings

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        chosen = ExponentialSettings
        return {
            "": Example(chosen(epsilon=3.0, neighbours=20), chosen(epsilon=6.0, neighbours=64)),
            "whole": Example(chosen(epsilon=3.0), chosen(epsilon=6.0, gamma=2.5)),
            "truncated": Example(
                chosen(epsilon=3.0, gamma=4.0, metric="manhattan"),
                chosen(epsilon=6.0, gamma=4.5, neighbours=64, tight=True),
            ),
            "hyperbolic": Example(
                chosen(epsilon=3.0, metric="hyperbolic", gamma=3.0),
                chosen(epsilon=4.0, metric="hyperbolic", neighbours=64),
            ),
        }

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[ExponentialSettings]:
        plain = ExponentialSettings(epsilon=1.0, metric=terms.metric, neighbours=terms.neighbours)
        return (plain, replace(plain, gamma=terms.gamma))

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: ExponentialSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,  # noqa: ARG003
    ) -> MechanismArtifact:
        epsilon = settings.epsilon
        check_epsilon(epsilon)
        space = SPACES[settings.metric]
        gamma, neighbours = settings.gamma, settings.neighbours
        points = points_of(space, embedding, f"mechanism.metric = {space.name}")
        lists = find_lists(space, points, neighbours, gamma, work)
        # Bounds all distances, rounded up so that a product's last bits do not move the bound.
        farthest = gamma or round_up(lists.farthest * (1 + 1e-4), 3) or 1.0
        work.progress("weighing words")
        beta = tight_beta(space, points, lists, epsilon, farthest, padding=padding) if settings.tight else epsilon / 2
        rows = symbol_rows(lists, beta, farthest, padding=padding)
        work.progress("arranging and certifying the table")
        table, slack = build_certified(rows, beta * space.error(points))
        slack += 2 * _TOLERANCE if settings.tight else 0.0
        if embedding.size <= _EXHAUSTIVE:
            work.progress("checking every pair of words")
            slack = round_up(excess(table, space, points, epsilon, farthest, padding=padding), 6)
            # What distances err by, and logarithms: these by less than half of the tolerance.
            slack += max(_TOLERANCE, 2 * epsilon * space.error(points))
            check_slack(slack)
        label = f"{space.name} {points.shape} {farthest} {padding}"
        guarantee = WordGuarantee(
            metric=Metric(space.name + (CAPPED if gamma else ""), digest_points(label, points)),
            nominal_epsilon=epsilon,
            epsilon=epsilon,
            diameter=farthest,
            slack=slack,
            largest=largest_loss(table, embedding.size, padding=padding),
        )
        parameters = {"epsilon": epsilon, "beta": beta, "most": farthest, "padding": padding, "metric": space.name}
        return MechanismArtifact(parameters, table.arrays, guarantee)

    def shown_epsilon(self, evidence: Evidence) -> ShownEpsilon | None:
        return None if evidence.loss is None else show_odds(self, evidence)


def log_totals(lists: NeighbourLists, beta: float, farthest: float, outputs: int) -> Float64:
    """Compute ``ln Z`` of each word."""
    lengths = np.diff(lists.offsets)
    cut = np.minimum(beta * np.minimum(lists.cut, farthest), MAX_SCORE)
    weights = np.exp(-np.minimum(beta * lists.distances, np.repeat(cut, lengths)))
    return np.asarray(np.log(np.add.reduceat(weights, lists.offsets[:-1]) + (outputs - lengths) * np.exp(-cut)))


def tight_beta(
    space: Space, points: Float64, lists: NeighbourLists, epsilon: float, farthest: float, *, padding: bool
) -> float:
    """Find the largest beta that the bisection proves valid for ``epsilon``; see the module."""
    low, high = epsilon / 2, epsilon
    for _ in range(_TIGHT_STEPS):
        middle = (low + high) / 2
        totals = log_totals(lists, middle, farthest, len(points) + padding)
        if _symbols_valid(lists, totals, middle, epsilon, farthest, padding=padding) and _words_valid(
            space, points, lists, totals, middle, epsilon, farthest
        ):
            low = middle
        else:
            high = middle
    return low


def _symbols_valid(
    lists: NeighbourLists, totals: Float64, beta: float, epsilon: float, farthest: float, *, padding: bool
) -> bool:
    """Return whether the losses between words, unknown word and padding are under ``epsilon * farthest``."""
    outputs = len(totals) + padding
    far = np.minimum(beta * np.minimum(lists.cut, farthest), MAX_SCORE)  # a word's score of what is not in its list
    alike = math.log(outputs)
    losses = [alike - totals.min(), (totals + far).max() - alike]
    if padding:
        cap = min(beta * farthest, MAX_SCORE)
        total = math.log(1.0 + len(totals) * math.exp(-cap))
        # Between padding and a word they are greatest at padding itself and at the word itself.
        losses += [(totals + far).max() - total, cap + total - totals.min(), alike - total, cap + total - alike]
    return bool(max(losses) <= epsilon * farthest + _TOLERANCE)


def _words_valid(
    space: Space, points: Float64, lists: NeighbourLists, totals: Float64, beta: float, epsilon: float, farthest: float
) -> bool:
    """Return whether ``|ln Z(v) - ln Z(w)| <= (epsilon - beta) d(w, v)`` for all words.

    Checks each pair in a list. Two words that are in neither list are at least both their ``cut`` apart, so only pairs
    whose totals differ by more than that allows are measured; if these are too many, returns False.
    """
    spare = epsilon - beta
    row = np.repeat(np.arange(len(totals)), np.diff(lists.offsets))
    listed = np.abs(totals[lists.ids] - totals[row])
    if (listed > spare * np.minimum(lists.distances, farthest) + _TOLERANCE).any():
        return False
    # A pair (w, v), w with the larger total, is to be measured iff total w > upper v and lower w > total v.
    reach = spare * np.minimum(lists.cut, farthest) + _TOLERANCE
    upper, lower = totals + reach, totals - reach
    order = np.argsort(upper, kind="stable")
    counts = np.searchsorted(upper[order], totals, "left")
    measured = 0
    for word in np.flatnonzero(counts):
        others = order[: counts[word]]
        others = others[totals[others] < lower[word]]
        measured += len(others)
        if measured > _MOST_MEASURED:
            return False
        apart = np.minimum(space.distances(points[word], points[others]), farthest)
        if (totals[word] - totals[others] > spare * apart + _TOLERANCE).any():
            return False
    return True


def excess(
    table: AliasTable, space: Space, points: Float64, epsilon: float, farthest: float, *, padding: bool
) -> float:
    """Compute the largest ``loss(w, v) - epsilon d(w, v)`` over all pairs of symbols, from whole numbers."""
    size = len(points)
    symbols = [symbol for symbol in range(size + 2) if padding or symbol != size]
    with np.errstate(divide="ignore"):
        logs = np.log(np.stack([probabilities(table, symbol) for symbol in symbols]))
    largest = -math.inf
    for row, symbol in enumerate(symbols):
        apart: Float64 = np.full(len(symbols), farthest)
        if symbol < size:
            apart[:size] = np.minimum(space.distances(points[symbol], points), farthest)
        apart[row] = 0.0
        # An output that never occurs shows nothing; one that another symbol never has shows everything.
        possible = logs[row] > -math.inf
        losses = (logs[row, possible] - logs[:, possible]).max(axis=1)
        largest = max(largest, float((losses - epsilon * apart).max()))
    return largest
