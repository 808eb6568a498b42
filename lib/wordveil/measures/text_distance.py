"""Distance between two public texts for a mechanism, and the loss that it bounds.

Fernandes, Dras, McIver 2019, section 3 and Theorem 1: the Earth Mover's distance of texts whose ``N`` tokens have the
mass ``1/N`` each. Two bags have a loss of at most ``epsilon * N`` times that. A release in another form has the loss of
its composition. A mechanism without a metric counts any two different words as 1 apart.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.sparse.csgraph import maximum_flow

from wordveil.arrays import Float64, Int32, Int64
from wordveil.artifacts.bundle import Bundle
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import EmbeddingError, usage_error
from wordveil.geometry.spaces import SPACES
from wordveil.measures.losses import SymbolSpace, find_space
from wordveil.privacy.events import Composition, ReleaseTerms, price
from wordveil.privacy.guarantees import uncap
from wordveil.privacy.relations import Relation
from wordveil.records.sanitiser import RecordSettings, release_terms
from wordveil.text.codec import Codec, Encoded
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

_WHOLE = (Composition.TEXT, Composition.CORPUS)
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Move:
    """Mass that goes from a word of one text to a word of the other.

    ``tokens``: number of tokens of the first text that move; fractional if the texts have different numbers of tokens.
    ``distance``: in the guarantee's metric, at most its diameter. ``loss``: largest loss of a token between the words.
    """

    source: str
    target: str
    tokens: float
    distance: float
    loss: float


@dataclass(frozen=True)
class TextDistance:
    """Distance between two texts, and the largest loss between them.

    ``tokens``: tokens of each, padding included. ``epsilon``: loss of a token, per unit of distance. ``distance``: the
    Earth Mover's distance; None if one text has no tokens, or texts are drawn as a whole. ``bottleneck``: the least
    distance within which all mass can be moved; None unless tokens are sampled. ``moves``: pairs of words, equal ones
    included, most expensive first. ``bag_bound``: ``epsilon * N * distance``, with the slack of the tokens that move:
    the loss between both bags. None if tokens are sampled, if their numbers differ, or without a distance.
    ``epsilon_bound``: the loss between both texts under this configuration; None if nothing bounds it, for the reason
    ``unbounded``. ``delta``: the probability by which an output may be likelier than the bounds allow.
    """

    texts: tuple[str, str]
    metric: str
    composition: str
    tokens: tuple[int, int]
    epsilon: float
    distance: float | None
    bottleneck: float | None
    moves: tuple[Move, ...]
    bag_bound: float | None
    epsilon_bound: float | None
    unbounded: str
    delta: float

    @property
    def factor(self) -> float | None:
        """Largest ratio of an output's probabilities for the two texts; None if unbounded, or too large for a float."""
        bound = self.epsilon_bound
        return None if bound is None or bound > _LARGEST_EXPONENT else math.exp(bound)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "factor": self.factor}


def measure_distance(
    bundle: Bundle,
    policy: TextPolicy,
    texts: tuple[str, str],
    embedding: Embedding | None = None,
    model: NgramModel | None = None,
) -> TextDistance:
    """Measure how far apart two public texts are, as a run with this policy and bundle would draw them.

    ``embedding``: that of the bundle, required if the bundle has no points. ``model``: the policy's n-gram model.
    Raises :class:`wordveil.errors.ConfigError` for a text that a run would refuse, and :class:`EmbeddingError` if the
    distances of words are not known.
    """
    terms = release_terms(RecordSettings("preview", "", policy, (), max_records=bundle.count_preview(2)), bundle)
    encoded = Codec(policy, bundle.lexicon, model, bundle.lists).encode(pa.array(texts, pa.string()))
    for option, text, reason in zip(("--text", "--against"), texts, encoded.refused, strict=True):
        if reason is not None:
            raise usage_error(option, text[:80], f"a run would refuse it: {reason}. Give another sentence.")
    first, second = np.split(encoded.ids, encoded.offsets[1:-1])
    if terms.composition == Composition.SAMPLED:  # an empty text is sampled as the unknown word
        unknown = np.array([bundle.vocabulary.unknown], np.int32)
        first, second = (tokens if len(tokens) else unknown for tokens in (first, second))
    counts, unbounded = (len(first), len(second)), _find_unbounded(encoded, terms)
    whole = price(terms, max(counts))
    distance, bottleneck, bag_bound, bound = None, None, None, whole.epsilon_bound
    moves: tuple[Move, ...] = ()
    if terms.composition in _WHOLE:
        if terms.composition == Composition.TEXT and np.array_equal(first, second):
            bound = 0.0
    else:
        words = _Words.of(first, second, _open_space(bundle, embedding))
        distance, moves = words.move_mass()
        if terms.composition == Composition.SAMPLED:
            bottleneck = words.find_bottleneck(words.costs)
            bound = (policy.n_max or 0) * words.find_bottleneck(words.losses)
        elif not unbounded:
            bag_bound = sum(move.tokens * move.loss for move in moves)
            is_bag = terms.composition == Composition.BAG
            bound = bag_bound if is_bag else words.add_losses(first, second, _leads(encoded))
    return TextDistance(
        texts=texts,
        metric=terms.guarantee.metric.name,
        composition=str(terms.composition),
        tokens=counts,
        epsilon=terms.guarantee.epsilon,
        distance=distance,
        bottleneck=bottleneck,
        moves=moves,
        bag_bound=bag_bound,
        epsilon_bound=None if unbounded else bound,
        unbounded=unbounded,
        delta=whole.delta,
    )


def _find_unbounded(encoded: Encoded, terms: ReleaseTerms) -> str:
    """Explain why nothing bounds the loss between both texts: empty if they are related as the guarantee demands."""
    if terms.relation == Relation.ANY_TEXT:
        return ""
    for data, offsets in encoded.shown_content:
        if data[offsets[0] : offsets[1]] != data[offsets[1] : offsets[2]]:
            return f"they differ in what this configuration shows: {', '.join(terms.exposes)}"
    if len(set(np.diff(encoded.offsets).tolist())) > 1:
        return "they have different numbers of tokens, which this configuration shows"
    return ""


def _leads(encoded: Encoded) -> Int64 | slice:
    """Return the positions of the first text that are drawn: all, or the first of each distinct word."""
    if encoded.pattern is None:
        return slice(None)
    firsts = encoded.pattern.firsts[: encoded.offsets[1]]
    return np.flatnonzero(firsts == np.arange(len(firsts)))


def _open_space(bundle: Bundle, embedding: Embedding | None) -> SymbolSpace:
    space = find_space(bundle, embedding)
    if space.space is None and uncap(bundle.guarantee.metric.name) in SPACES:
        raise EmbeddingError(
            "the bundle stores no word vectors and the embedding is not at hand, so nobody knows how far apart words "
            "are. Put the embedding where mechanism.embedding names it."
        )
    return space


@dataclass(frozen=True)
class _Words:
    """Distinct words of two texts, int32 ``(n,)`` and ``(m,)``, and the number of tokens of each.

    ``costs``: their distances, at most the diameter, float64 ``(n, m)``. ``losses``: losses of a token between them.
    """

    ids: tuple[Int32, Int32]
    counts: tuple[Int64, Int64]
    costs: Float64
    losses: Float64
    space: SymbolSpace

    @classmethod
    def of(cls, first: Int32, second: Int32, space: SymbolSpace) -> Self:
        """Make from the tokens of the texts."""
        (ids, counts), (others, other_counts) = (np.unique(tokens, return_counts=True) for tokens in (first, second))
        costs = np.zeros((len(ids), len(others)))
        for row, symbol in enumerate(ids.tolist()):
            costs[row] = np.minimum(space.distances(symbol)[others], space.guarantee.diameter)
        losses = np.array([space.guarantee.bound(cost) for cost in costs.ravel()]).reshape(costs.shape)
        losses[ids[:, None] == others] = 0.0
        return cls((ids, others), (counts, other_counts), costs, losses, space)

    def move_mass(self) -> tuple[float | None, tuple[Move, ...]]:
        """Compute the Earth Mover's distance and its flow; None and no moves if only one text has words."""
        counts, others = self.counts
        n, m = self.costs.shape
        if not n * m:
            return (None if n + m else 0.0), ()
        # Whole masses, equal in sum, have a flow in whole numbers: so few digits are lost.
        supply_sums = kron(eye_array(n), np.ones((1, m)))
        demand_sums = kron(np.ones((1, n)), eye_array(m))
        masses = np.concatenate([counts * others.sum(), others * counts.sum()]).astype(np.float64)
        sums = vstack([supply_sums, demand_sums]).tocsr()
        # The stubs know dense matrices alone.
        found = linprog(self.costs.ravel(), A_eq=sums, b_eq=masses, method="highs-ds")  # type: ignore[call-overload]
        flow = np.rint(found.x).reshape(n, m) / others.sum()
        tokens = zip(*np.nonzero(flow), strict=True)
        moves = [
            Move(*self._name(i, j), *(float(part[i, j]) for part in (flow, self.costs, self.losses))) for i, j in tokens
        ]
        moves.sort(key=lambda move: -move.tokens * move.distance)
        return sum(move.tokens * move.distance for move in moves) / int(counts.sum()), tuple(moves)

    def find_bottleneck(self, costs: Float64) -> float:
        """Find the least cost within which all mass can be moved."""
        counts, others = self.counts
        n, m = costs.shape
        supply, demand = counts * others.sum(), others * counts.sum()
        levels = np.unique(costs)
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            graph = np.zeros((n + m + 2, n + m + 2), np.int32)
            graph[0, 1 : n + 1], graph[n + 1 : -1, -1] = supply, demand
            graph[1 : n + 1, n + 1 : -1] = np.where(costs <= levels[middle], np.minimum.outer(supply, demand), 0)
            fits = maximum_flow(csr_array(graph), 0, n + m + 1).flow_value == supply.sum()
            low, high = (low, middle) if fits else (middle + 1, high)
        return float(levels[low])

    def add_losses(self, first: Int32, second: Int32, drawn: Int64 | slice) -> float:
        """Add the losses of the ``drawn`` positions of texts with these tokens, position by position."""
        rows, columns = np.searchsorted(self.ids[0], first[drawn]), np.searchsorted(self.ids[1], second[drawn])
        return float(self.losses[rows, columns].sum())

    def _name(self, row: int, column: int) -> tuple[str, str]:
        return self.space.spell(self.ids[0][row]), self.space.spell(self.ids[1][column])
