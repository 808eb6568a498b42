"""Base classes and helpers of mechanisms that draw from a table, and the laws of all its words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from wordveil.arrays import Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import KeyedStream, max_positions
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.geometry.euclidean import round_up
from wordveil.geometry.spaces import Space
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, Mechanism, Settings, TokenBatch
from wordveil.mechanisms.laws import WordLaws
from wordveil.mechanisms.tables.table import (
    MAX_SCORE,
    NOBODY,
    AliasTable,
    Rows,
    TableArrays,
    build_table,
    certify,
    columns_of,
    list_outputs,
    listed_probabilities,
    probabilities,
    scores_of,
)
from wordveil.neighbours.blocks import BuildContext, TooManyEntriesError
from wordveil.neighbours.lists import NeighbourLists

MAX_ENTRIES = 50_000_000
"""Maximum number of entries of laws: each takes 12 bytes, and an attacker needs as much again."""
_WHOLE = 2.0**64


def laws_of_table(table: AliasTable, size: int) -> WordLaws | None:
    """Decode the laws of a table's first ``size`` rows, those of words, exact except for rounding to float64.

    A row's law is ``t`` for every output alike, and what its list and itself have beyond that; if all outputs are
    listed and ``t`` is 0, the least of them instead. Returns None if there are more than :data:`MAX_ENTRIES` entries.
    """
    outputs = int(table.outputs[0])
    longest = int(np.diff(table.starts[: size + 1]).max())
    room = np.empty(longest), np.empty(longest + 1, np.int32), np.empty(longest + 1)
    shares, lengths = np.empty(size), np.empty(size, np.int64)
    nothing = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
    _decode_rows(table.compiled, outputs, shares, lengths, *nothing, *room)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    entries = int(offsets[-1])
    if entries > MAX_ENTRIES:
        return None
    ids, extras = np.empty(entries, np.int32), np.empty(entries)
    _decode_rows(table.compiled, outputs, shares, lengths, offsets, ids, extras, *room)
    return WordLaws(np.full(outputs, 1 / outputs), shares, offsets, ids, extras)


@compiled
def _decode_rows(
    table: TableArrays,
    outputs: int,
    shares: Float64,
    lengths: Int64,
    offsets: Int64,
    ids: Int32,
    extras: Float64,
    share: Float64,
    listed: Int32,
    more: Float64,
) -> None:
    """Fill ``shares`` and ``lengths``, and the entries if there are ``offsets``. The last three arrays are buffers."""
    for row in range(len(shares)):
        count = list_outputs(table, row, share, listed, more)
        shares[row] = np.float64(table.alike[row]) / _WHOLE
        least = more[:count].min() if table.alike[row] == 0 and count == outputs else 0.0
        shares[row] += outputs * least
        length = 0
        for j in range(count):
            if more[j] > least:
                if len(offsets) > 0:
                    ids[offsets[row] + length], extras[offsets[row] + length] = listed[j], more[j] - least
                length += 1
        lengths[row] = length


# A row's column takes 12 bytes. Larger tables are refused, with the setting that makes them small.
MAX_COLUMNS = 2**31 // 12
# Rounding weights to whole numbers and distances to float64 may cost this much per token beyond the distance. A
# table that costs more is refused.
MAX_SLACK = 1e-3
_LEAST_EPSILON = 1e-9


class TableDraws(Mechanism[Settings]):
    """Mechanism that draws each token from its row of a table: words, then padding, then the unknown word."""

    def __init__(self, size: int, parameters: Mapping[str, Any], table: AliasTable) -> None:
        self._size = size
        self._parameters = dict(parameters)
        self._table = table

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:  # noqa: ARG003
        return cls(size, parameters, AliasTable.of(arrays))

    @property
    def max_tokens(self) -> int:
        return max_positions(1)

    @property
    def table(self) -> AliasTable:
        """Table that it draws from."""
        return self._table

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        words = KeyedStream(keys.noise, 1).record_words(batch.contexts, batch.offsets)
        return TokenBatch(self._table.draw(batch.ids, words), batch.offsets, batch.contexts)


class TableMechanism(TableDraws[Settings]):
    """Mechanism whose rows share a uniform law (:mod:`wordveil.mechanisms.tables.table`)."""

    def probabilities(self, symbol: int) -> Float64:
        return probabilities(self._table, symbol)

    def word_laws(self) -> WordLaws | None:
        return laws_of_table(self._table, self._size)

    def stay_probabilities(self, words: Int32) -> Float64:
        rows = ((word, *listed_probabilities(self._table, word)) for word in words.tolist())
        return np.array([np.exp(logs[ids == word]).sum() for word, ids, logs, _ in rows])

    def stays_at(self, epsilons: Sequence[float], words: Int32) -> Float64:
        # All scores are multiples of epsilon, so at another epsilon a law is a power of the table's, scaled to add up.
        ratios = np.array(epsilons) / self._parameters["epsilon"]
        stays = np.empty((len(ratios), len(words)))
        for column, word in enumerate(words.tolist()):
            ids, logs, other = listed_probabilities(self._table, word)
            unlisted = int(self._table.outputs[0]) - len(ids)
            top = logs.max()
            weights = np.exp(ratios[:, None] * (logs - top))
            totals = weights.sum(axis=1) + (unlisted * np.exp(ratios * (other - top)) if unlisted else 0.0)
            stays[:, column] = weights[:, ids == word].sum(axis=1) / totals
        return stays

    def at_epsilon(self, epsilon: float) -> Self:
        check_epsilon(epsilon)
        # All scores are multiples of epsilon, so they follow from the table itself.
        rows = scores_of(self._table, epsilon / self._parameters["epsilon"])
        return type(self)(self._size, {**self._parameters, "epsilon": epsilon}, build_table(rows))


def check_epsilon(epsilon: float) -> None:
    """Raise :class:`ValueError` unless epsilon is positive and finite."""
    if not _LEAST_EPSILON <= epsilon < math.inf:
        raise ValueError(f"Expected epsilon={epsilon} in [{_LEAST_EPSILON}, inf): finite and positive.")


def points_of(space: Space, embedding: Embedding, setting: str) -> Float64:
    """Return the points of the words. Raise :class:`BundleError`, which names ``setting``, if a vector has none."""
    try:
        return space.points(embedding.vectors)
    except ValueError as error:
        raise BundleError(f"{setting}: {error}") from None


def find_lists(
    space: Space, points: Float64, neighbours: int | None, gamma: float | None, work: BuildContext
) -> NeighbourLists:
    """Find the lists of the settings. Raise :class:`BundleError` if they do not fit, or exceed the vocabulary."""
    size = len(points)
    if neighbours is not None and neighbours > size:
        raise BundleError(
            f"mechanism.neighbours = {neighbours:,}: the embedding has {size:,} words. Give at most {size:,}, or leave "
            "it out: every word then has a weight of its own."
        )
    too_large = BundleError(
        f"mechanism.neighbours is not set: rows over all {size:,} words would take more than "
        f"{MAX_COLUMNS * 12 / 2**30:.0f} GiB. Set mechanism.neighbours, e.g. 256: the bound stays epsilon x d exactly, "
        "words further away are drawn uniformly."
    )
    if neighbours is None and gamma is None and size * int(columns_of(np.array([size - 1]))[0]) > MAX_COLUMNS:
        raise too_large
    try:
        return work.lists(space, points, neighbours, math.inf if gamma is None else gamma, MAX_COLUMNS)
    except TooManyEntriesError:
        raise too_large from None


def symbol_rows(lists: NeighbourLists, scale: float, farthest: float, *, padding: bool) -> Rows:
    """Make the rows of words, padding and unknown word from lists of scores.

    A word's scores are the ``distances`` and ``cut`` of ``lists``, at most ``farthest``, times ``scale``, at most
    :data:`MAX_SCORE`. The unknown word draws every output alike. Padding is in no word's list; it has itself at score 0
    and every other output at ``farthest``.
    """
    size = len(lists.cut)
    outputs = size + padding
    cap = min(scale * farthest, MAX_SCORE)
    cut = np.minimum(scale * lists.cut, cap)
    lengths = np.diff(lists.offsets)
    scores = scale * lists.distances
    np.minimum(scores, np.repeat(cut, lengths), out=scores)
    last = lists.offsets[-1]
    return Rows(
        offsets=np.concatenate([lists.offsets, [last + 1, last + 2]]),
        ids=np.concatenate([lists.ids, np.array([size if padding else 0, 0], np.int32)]),
        scores=np.concatenate([scores, [0.0, 0.0]]),
        cut=np.concatenate([cut, [cap if padding else 0.0, 0.0]]),
        own=np.append(np.arange(size + 1, dtype=np.int32), NOBODY)
        if padding
        else np.append(np.arange(size), [NOBODY] * 2).astype(np.int32),
        outputs=outputs,
    )


def build_certified(rows: Rows, rounding: float) -> tuple[AliasTable, float]:
    """Build the table of ``rows`` and its slack, which whole numbers add to a bound on the rows' loss.

    ``rounding``: the error bound of a score. Raises :class:`BundleError` if the weights do not fit.
    """
    table = build_table(rows)
    slack = 2 * certify(table, rows) + 4 * rounding
    check_slack(slack)
    return table, slack


def check_slack(slack: float) -> None:
    """Raise :class:`BundleError` if a table adds more to a token's loss than rounding may."""
    if not slack <= MAX_SLACK:
        raise BundleError(
            f"The table cannot be certified: its rounded numbers would add {slack:.3g} to each token's loss, more than "
            f"{MAX_SLACK:g}. Lower mechanism.epsilon, or mechanism.gamma."
        )


def largest_loss(table: AliasTable, size: int, *, padding: bool) -> float:
    """Bound the loss between any two symbols from the table's whole numbers; rounded up."""
    outputs = size + padding
    used = np.array([symbol for symbol in range(size + 2) if padding or symbol != size])
    greatest, smallest, tail = np.full(outputs, -np.inf), np.full(outputs, np.inf), np.empty(len(used))
    for rank, symbol in enumerate(used.tolist()):
        ids, logs, tail[rank] = listed_probabilities(table, symbol)
        greatest[ids] = np.maximum(greatest[ids], logs)
        smallest[ids] = np.minimum(smallest[ids], logs)
    order = np.argsort(tail, kind="stable")
    for rank, output in _unlisted(table, used[order[::-1]], outputs):
        greatest[output] = np.maximum(greatest[output], tail[order[::-1]][rank])
    for rank, output in _unlisted(table, used[order], outputs):
        smallest[output] = np.minimum(smallest[output], tail[order][rank])
    # The rank among all outputs is uniform to within 2^-64.
    return round_up(float((greatest - smallest).max()) * (1 + 1e-12) + 1e-9, 9)


def _unlisted(table: AliasTable, symbols: Int64, outputs: int) -> Iterator[tuple[int, Int64]]:
    """Find each output's first symbol that does not list it, as (rank, outputs) pairs; none if all list it."""
    waiting = np.arange(outputs)
    for rank, symbol in enumerate(symbols.tolist()):
        ids, _, _ = listed_probabilities(table, symbol)
        listed = np.isin(waiting, ids)
        yield rank, waiting[~listed]
        waiting = waiting[listed]
        if not len(waiting):
            return
