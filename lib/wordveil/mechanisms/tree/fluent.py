"""Choice of a member of each drawn cluster: the sequence that is likeliest under a bigram model of public text.

The choice depends on the drawn clusters and public counts alone, so it is post-processing.

The model's probability of a word ``b`` after ``a`` is (absolute discounting; Ney, Essen and Kneser, "On structuring
probabilistic dependences in stochastic language modelling", Computer Speech and Language 8, 1994)

    p(b | a) = max(c(a, b) - D, 0) / C(a) + g(a) p1(b),     g(a) = 1 - sum over b of max(c(a, b) - D, 0) / C(a),

with ``c(a, b)`` the count of the pair, 0 where it is not in the model, ``C(a)`` that of ``a``, and ``D`` =
:data:`wordveil.mechanisms.inputs.DISCOUNT`. After a word that the model does not know ``g`` is 1. What the model left
out, and ends of texts, are occurrences of ``a`` without a pair, so their share goes to ``g``. Words follow with
``p1(b) = (c(b) + 1) / sum over all words v of (c(v) + 1)``, so those that the model does not know have the smallest
share. For a pair that is not in the model, ``p(b | a) = g(a) p1(b)``: the form of a back-off (Katz, "Estimation of
probabilities from sparse data", IEEE Transactions on Acoustics, Speech, and Signal Processing 35, 1987). For each ``a``
the probabilities add up to 1.

The likeliest sequence is found by dynamic programming (Viterbi, "Error bounds for convolutional codes and an
asymptotically optimum decoding algorithm", IEEE Transactions on Information Theory 13, 1967). A pair in the model is
never less likely than its back-off, so each token needs only the best back-off of all predecessors and the pairs in the
model: as many steps as the cluster has members and pairs with the cluster before, plus a binary search for each member
of that.

Costs are whole numbers, ``-log2 p`` in steps of 1 / :data:`STEPS` bit, computed alike on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32, Int64, freeze
from wordveil.compiled import compiled, compiled_part, find_first_from
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.mechanisms.inputs import DISCOUNT, Bigrams

UInt16 = NDArray[np.uint16]

STEPS = 256
"""Steps of a cost to a bit. Rounding changes a probability by at most 0.14 %, and by 0.27 % without a pair."""
_LOG_STEPS = 8


class FluentArrays(NamedTuple):
    """Arrays of the model, as compiled code takes them. Positions are those of words in the order of the tree.

    ``starts``: int64 ``(clusters + 1,)``, cluster ``i`` has positions ``starts[i]`` up to ``starts[i + 1]``. ``first``:
    int64 ``(size + 2,)``, position ``i`` has pairs ``first[i]`` up to ``first[i + 1]``; row ``size`` is the beginning
    of a text. ``followers``: int32 ``(pairs,)``, positions, rising within a row. ``costs``: uint16 ``(pairs,)``.
    ``words``: uint16 ``(size,)``, a word's cost by its share alone. ``beyond``: uint16 ``(size + 1,)``, what a position
    adds to that for a pair outside the model.
    """

    starts: Int64
    first: Int64
    followers: Int32
    costs: UInt16
    words: UInt16
    beyond: UInt16


class FluentModel:
    """Bigram model over the positions of a tree, and the choice by it; see the module."""

    def __init__(self, arrays: FluentArrays) -> None:
        self._arrays = FluentArrays._make(freeze(array) for array in arrays)

    @classmethod
    def build(cls, bigrams: Bigrams, words: pa.StringArray, order: Int32, starts: Int64) -> FluentModel:
        """Build the model of ``bigrams`` over an embedding's ``words``. Other words are left out, with their pairs.

        ``order``: int32 ``(size,)``, the word at each position of the tree. ``starts``: int64 ``(clusters + 1,)``, the
        lowest clusters, none empty.
        """
        size = len(order)
        numbers = WordIndex(bigrams.words).numbers(words.take(pa.array(order)))
        known = np.flatnonzero(numbers >= 0)
        counts = np.zeros(size + 1)
        counts[known] = bigrams.counts[numbers[known]]
        counts[size] = bigrams.counts[0]
        shares = (counts[:size] + 1) / (counts[:size] + 1).sum()

        position_of = np.full(len(bigrams.words), -1, np.int32)
        position_of[numbers[known]] = known
        before = np.repeat(position_of, np.diff(bigrams.first))
        before[: bigrams.first[1]] = size
        after = position_of[bigrams.followers]
        used = np.flatnonzero((before >= 0) & (after >= 0))
        used = used[np.lexsort((after[used], before[used]))]
        before, after, pairs = before[used], after[used], bigrams.pair_counts[used].astype(np.float64)
        # Whole numbers and halves: sums are exact.
        totals = np.maximum(counts, np.bincount(before, pairs, size + 1))
        listed = np.maximum(pairs - DISCOUNT, 0.0)
        left = np.ones(size + 1)
        np.divide(totals - np.bincount(before, listed, size + 1), totals, out=left, where=totals > 0)

        single, beyond = _costs_of(shares), _costs_of(left)
        costs = np.minimum(
            _costs_of(listed / totals[before] + left[before] * shares[after]), beyond[before] + single[after]
        )
        return cls(
            FluentArrays(
                starts=np.asarray(starts, np.int64),
                first=np.searchsorted(before, np.arange(size + 2)).astype(np.int64),
                followers=after.astype(np.int32),
                costs=costs.astype(np.uint16),
                words=single.astype(np.uint16),
                beyond=beyond.astype(np.uint16),
            )
        )

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> FluentModel:
        """Make from :attr:`arrays`; other names are ignored."""
        return cls(FluentArrays(*(arrays[f"fluent_{name}"] for name in FluentArrays._fields)))

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for a bundle: those of :class:`FluentArrays`, prefixed with ``fluent_``."""
        return {f"fluent_{name}": array for name, array in self._arrays._asdict().items()}

    def choose(self, clusters: Int32, offsets: Int64) -> Int32:
        """Choose a member of each cluster so that each record is as likely as possible: int32 ``(tokens,)``, positions.

        Among equally likely sequences the one whose last word has the lowest position wins, then the one before it, and
        so on. Memory is that of one record: two bytes for each member of its clusters, four if a cluster has more than
        65,536.

        ``clusters``: int32 ``(tokens,)``; -1 for padding, which stays -1 and leaves no trace in the text. ``offsets``:
        int64 ``(records + 1,)``. Raises :class:`ValueError` if there is no such cluster.
        """
        sizes = np.diff(self._arrays.starts)
        if len(clusters) and not -1 <= clusters.min() <= clusters.max() < len(sizes):
            raise ValueError(f"clusters are numbered 0 to {len(sizes) - 1}, and -1 stands for padding.")
        members = np.concatenate([[0], np.cumsum(np.append(sizes, 0)[clusters])])
        longest = int(np.diff(members[offsets]).max(initial=0))
        widest = int(sizes.max(initial=0))
        back = np.empty(longest, np.uint16 if widest <= 2**16 else np.int32)
        out = np.full(len(clusters), -1, np.int32)
        choose_members(clusters, offsets, self._arrays, np.empty((2, max(widest, 1)), np.int64), back, out)
        return out


def _costs_of(shares: Float64) -> Int64:
    """Compute ``-log2`` of shares above 0 and up to 1, in steps: int64, rounded.

    Squaring a number of 1 to 2 doubles its logarithm, whose next binary digit is whether the square reaches 2: whole
    numbers of 32 bits suffice.
    """
    fraction, exponent = np.frexp(shares)  # share = fraction * 2^exponent, 1/2 <= fraction < 1
    scaled = (fraction * 2.0**32).astype(np.uint64)  # of 2^31 to 2^32: 1 to 2
    logarithm = np.zeros(len(shares), np.int64)
    for _ in range(_LOG_STEPS + 1):
        scaled = (scaled * scaled) >> np.uint64(31)
        digit = scaled >> np.uint64(32)
        scaled >>= digit
        logarithm = 2 * logarithm + digit.astype(np.int64)
    return np.asarray(np.maximum((1 - exponent.astype(np.int64)) * STEPS - (logarithm + 1) // 2, 0))


@compiled_part
def _follow_by_share(spent: Int64, beyond: UInt16, words: UInt16, cost: Int64, back: Any) -> Any:
    """Compute the costs of a cluster's members by their shares alone, after the best member before, and the largest."""
    via, least = 0, spent[0] + beyond[0]
    for member in range(1, len(spent)):
        total = spent[member] + beyond[member]
        if total < least:
            via, least = member, total
    most = least
    for member in range(len(words)):
        cost[member] = least + words[member]
        back[member] = via
        most = max(most, cost[member])
    return most


@compiled_part
def _follow_by_pairs(spent: Int64, row: Any, low: Any, most: Any, model: FluentArrays, cost: Int64, back: Any) -> None:
    """Lower the costs of members from position ``low`` on by pairs in the model; ties go to the lower position.

    ``spent``: of the positions before, from ``row`` on. ``most``: the largest cost.
    """
    for member in range(len(spent)):
        if spent[member] > most:  # none of its pairs does
            continue
        end = model.first[row + member + 1]
        entry = find_first_from(low, model.first[row + member], end, model.followers)
        while entry < end and model.followers[entry] < low + len(cost):
            follower = model.followers[entry] - low
            total = spent[member] + model.costs[entry]
            if total < cost[follower] or (total == cost[follower] and member < back[follower]):
                cost[follower] = total
                back[follower] = member
            entry += 1


@compiled
def choose_members(clusters: Int32, offsets: Int64, model: FluentArrays, cost: Int64, back: Any, out: Int32) -> None:
    """Choose members as :meth:`FluentModel.choose` does.

    Buffers: ``cost``, int64 ``(2, members)``, for the widest cluster; ``back``, for a record's members. ``out`` is -1
    for padding.
    """
    starts = model.starts
    for record in range(len(offsets) - 1):
        row, count, now, filled = len(model.words), 1, 0, 0  # the beginning of a text, which costs nothing
        cost[0, 0] = 0
        for token in range(offsets[record], offsets[record + 1]):
            cluster = clusters[token]
            if cluster >= 0:
                low, high = starts[cluster], starts[cluster + 1]
                spent, into = cost[now, :count], cost[1 - now, : high - low]
                via = back[filled : filled + high - low]
                most = _follow_by_share(spent, model.beyond[row : row + count], model.words[low:high], into, via)
                _follow_by_pairs(spent, row, low, most, model, into, via)
                row, count, now, filled = low, high - low, 1 - now, filled + high - low
        member = np.argmin(cost[now, :count])
        for token in range(offsets[record + 1] - 1, offsets[record] - 1, -1):
            cluster = clusters[token]
            if cluster >= 0:
                filled -= starts[cluster + 1] - starts[cluster]
                out[token] = starts[cluster] + member
                member = np.int64(back[filled + member])
