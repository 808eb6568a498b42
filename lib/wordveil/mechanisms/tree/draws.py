"""Draws from nested clusters by the arrays of a tree, whatever its positions stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32, Int64, freeze
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import KeyedStream, max_positions
from wordveil.errors import BundleError
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, Mechanism, Settings, TokenBatch
from wordveil.mechanisms.laws import DrawnSymbols, WordLaws
from wordveil.mechanisms.tables.mechanism import check_epsilon
from wordveil.mechanisms.tree.build import count_lowest, solve_nesting
from wordveil.mechanisms.tree.settings import scale_losses
from wordveil.mechanisms.tree.table import Members, TreeTable, arrange, draw_members, word_laws, write_law


class ClusterDraws(Mechanism[Settings]):
    """Base of mechanisms that draw from the arrays of a :class:`wordveil.mechanisms.tree.table.TreeTable`.

    Further arrays: ``bounds``, int32, of the clusters of each level except the last. With ``member`` of ``clusters``:
    ``order``, int32 ``(size,)``, the words by cluster, and ``edges``
    (:meth:`wordveil.mechanisms.tree.build.Outputs.share_members`).
    """

    sampler_version = 1
    is_pure = True
    stays_fast = True
    has_symbols = True

    def __init__(self, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._parameters = dict(parameters)
        self._arrays = {name: freeze(array) for name, array in arrays.items()}
        self._table = TreeTable.of(self._arrays)

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:  # noqa: ARG003
        return cls(parameters, arrays)

    @property
    def max_tokens(self) -> int:
        return max_positions(self._blocks)

    @property
    def _blocks(self) -> int:
        """Number of random blocks of a token: one more to draw a member of a cluster."""
        return 2 if self._members else 1

    @property
    def table(self) -> TreeTable:
        """Arrays that it draws from."""
        return self._table

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        stream = KeyedStream(keys.noise, self._blocks)
        if self._members is None:
            words = stream.record_words(batch.contexts, batch.offsets)
            return TokenBatch(self._table.draw(batch.ids, words), batch.offsets, batch.contexts)
        lengths = np.diff(batch.offsets)
        positions = np.arange(len(batch.ids)) - np.repeat(batch.offsets[:-1], lengths)
        bits = stream.words(np.repeat(batch.contexts, lengths, axis=0), positions)
        drawn = self._table.draw(batch.ids, np.ascontiguousarray(bits[:2].T))
        order, bounds, _ = self._members
        choices = np.ascontiguousarray(bits[2])
        clusters = np.where(drawn == self._table.size, np.int32(-1), self._table.rows[drawn])  # -1: padding
        draw_members(clusters, choices, bounds, order, self._arrays["edges"], drawn)
        return TokenBatch(drawn, batch.offsets, batch.contexts)

    @cached_property
    def _members(self) -> Members | None:
        """Members to draw from, or None unless positions are clusters and a member is written."""
        if "edges" not in self._arrays:
            return None
        bounds = self._arrays.get("starts", self._bounds[0]).astype(np.int64)
        ends = self._arrays["edges"].astype(np.float64) + 1
        ends[bounds[1:] - 1] = 2.0**64
        starts = np.roll(ends, 1)
        starts[bounds[:-1]] = 0
        return Members(self._arrays["order"], bounds, (ends - starts) / 2.0**64)

    @cached_property
    def symbols(self) -> DrawnSymbols:
        table, members = self._table, self._members
        law, of_row, of_position = table.number_symbols()
        written = np.full(table.size + table.pads, -1, np.int32)
        if members is None:
            written[table.written[: table.positions]] = of_position
        else:
            written[members.order] = np.repeat(of_position, np.diff(members.bounds))
        if table.pads:
            written[-1] = law.size - 1
        return DrawnSymbols(law, of_row[table.rows[: table.size]], written)

    def probabilities(self, symbol: int) -> Float64:
        table = self._table
        positions = table.law(int(table.rows[symbol]))
        law = np.zeros(table.size + table.pads)
        law[table.size :] = positions[table.positions :]
        ids, shares = write_law(table, 0, positions[: table.positions], self._members)
        law[ids] = shares
        return law

    def drawn_alike(self, word: int) -> Int32 | None:
        rows = self._table.rows[: self._table.size]
        return np.flatnonzero(rows == rows[word]).astype(np.int32)

    def word_laws(self) -> WordLaws | None:
        return word_laws(self._table, self._parameters["counts"][0], self._members)

    def stay_probabilities(self, words: Int32) -> Float64:
        needed, index = np.unique(self._table.rows[words], return_inverse=True)
        stays = _position_probabilities(self._table, needed)[index] * self._written_for(words)
        return self._stays_elsewhere(words, stays)

    def stays_at(self, epsilons: Sequence[float], words: Int32) -> Float64:
        kinds, index = np.unique(self._table.kinds[self._table.rows[words]], return_inverse=True)
        typical = np.array([np.argmax(self._table.kinds == kind) for kind in kinds])
        rows = np.full((len(epsilons), len(words)), np.nan)
        for number, epsilon in enumerate(epsilons):
            with suppress(ValueError, BundleError):
                changed = self.at_epsilon(epsilon)
                stays = _position_probabilities(changed.table, typical)[index] * self._written_for(words)
                rows[number] = changed._stays_elsewhere(words, stays)  # noqa: SLF001 - its own
        return rows

    def _stays_elsewhere(self, words: Int32, stays: Float64) -> Float64:
        """Correct the probabilities that words stay, for words that stand for the cluster of others."""
        table = self._table
        written = table.written[: table.positions] if self._members is None else self._members.order
        away = np.intersect1d(words, written[self._home_clusters() != table.rows[written]])
        for word in away.tolist():
            stays[words == word] = self.probabilities(word)[word]
        return stays

    def _written_for(self, words: Int32) -> Float64:
        """Count each word's positions in its own cluster, or its share of one: float64 ``(words,)``."""
        table, members = self._table, self._members
        written = table.written[: table.positions] if members is None else members.order
        shares = np.ones(len(written)) if members is None else members.shares
        own_shares = np.where(self._home_clusters() == table.rows[written], shares, 0.0)
        return np.asarray(np.bincount(written, own_shares, table.size)[words])

    def _home_clusters(self) -> Int64:
        """Find the lowest cluster of each position, or of each word of :attr:`_members`."""
        bounds = self._positions[0] if self._members is None else self._members.bounds
        return np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))

    @cached_property
    def _bounds(self) -> list[Int32]:
        """Bounds of the clusters of each level."""
        ends = np.cumsum([count + 1 for count in self._parameters["counts"][:-1]])
        return [*np.split(self._arrays["bounds"], ends[:-1]), np.array([0, self._table.size], np.int32)]

    @cached_property
    def _positions(self) -> Sequence[NDArray[Any]]:
        """Bounds of the clusters of each level in positions, which are words or lowest clusters."""
        return self._bounds if self._table.positions == self._table.size else count_lowest(self._bounds)

    def at_epsilon(self, epsilon: float) -> Self:
        check_epsilon(epsilon)
        losses = [*scale_losses(self._parameters["losses"][:-1], self._parameters["epsilon"], epsilon), epsilon]
        padding, pad_share = self._parameters["padding"], self._parameters["pad_share"]
        nesting, levels = solve_nesting(self._positions, losses, pad_share, padding=padding, lower_pad_share=True)
        table = arrange(nesting, levels, self._table.rows, self._table.written)
        return type(self)({**self._parameters, "epsilon": epsilon, "losses": losses}, {**self._arrays, **table.arrays})


def _position_probabilities(table: TreeTable, rows: NDArray[Any]) -> Float64:
    """Compute the probability of one position of a row's own lowest cluster, for each row: float64 ``(rows,)``."""
    return np.array([float(table.mixture(row).probabilities[0]) for row in rows.tolist()])
