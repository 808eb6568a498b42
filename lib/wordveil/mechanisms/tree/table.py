"""Arrays of nested clusters: arranged for drawing, decoded, certified; and the laws of all words, for attackers.

Each position of an order holds a word, or a lowest cluster. A symbol's row is that of its lowest cluster, of padding,
or of the unknown word: a list of ranges of positions, and a kind, whose thresholds decide which range a random word
chooses: the first whose threshold is above it, or else the last. Padding's position is after the others. The mechanism
assigns an output to each position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32, Int64, UInt64
from wordveil.compiled import compiled, find_first_from
from wordveil.mechanisms.laws import SymbolLaw, WordLaws
from wordveil.mechanisms.tree.levels import WHOLE, Levels, Losses, Mixture, certify_levels


class TreeArrays(NamedTuple):
    """Arrays that decide draws, as compiled code takes them."""

    rows: Int32
    kinds: Int32
    ranges: Int32
    thresholds: UInt64
    written: Int32


# Frozen: golden outputs; raise sampler_version.
@compiled
def draw_positions(symbols: Int32, words: UInt64, tree: TreeArrays, out: Int32) -> None:
    """Draw one output for each symbol. ``words``: uint64 ``(count, 2)`` of random bits.

    The first word chooses the range, without a branch for the likeliest, which no processor could predict. The second
    chooses the position ``floor(B s / 2^64)``, from two products of 32 bits, since ranges are shorter than 2^31.
    Positions are unsigned, so that none counts from the end.
    """
    rows, kinds, ranges, thresholds, written = tree
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    for token in range(len(symbols)):
        row = np.uint32(rows[symbols[token]])
        kind = np.uint32(kinds[row])
        choice, word = words[token, 0], words[token, 1]
        turn = np.uint32(choice >= thresholds[kind, 0])
        for j in range(1, thresholds.shape[1]):
            if choice < thresholds[kind, j]:
                break
            turn += np.uint32(1)
        start, size = np.uint64(ranges[row, turn, 0]), np.uint64(ranges[row, turn, 1])
        low = (word & low_half) * size
        out[token] = written[start + (((word >> half) * size + (low >> half)) >> half)]


# Frozen: golden outputs; raise sampler_version.
@compiled
def draw_members(clusters: Int32, words: UInt64, bounds: Int64, order: Int32, edges: UInt64, out: Int32) -> None:
    """Draw a member of each cluster; for cluster -1, ``out`` stays. ``words``: uint64 ``(count,)`` of random bits.

    The first of a cluster's members whose edge is not below the random word is drawn, or else the last.
    """
    for token in range(len(clusters)):
        cluster = clusters[token]
        if cluster >= 0:
            last = bounds[cluster + 1] - 1
            out[token] = order[find_first_from(words[token], bounds[cluster], last, edges)]


_OTHERS = 2  # rows of symbols that are no words


@dataclass(frozen=True)
class Nesting:
    """Nested clusters of every lowest cluster.

    ``ranges``: int64 ``(clusters, levels, 2)``, first position and size, lowest level first. ``shapes``: the distinct
    chains of sizes. ``kinds``: int64 ``(clusters,)``, the shape of each lowest cluster.
    """

    ranges: Int64
    shapes: list[tuple[int, ...]]
    kinds: Int64

    @classmethod
    def of(cls, bounds: Sequence[NDArray[Any]]) -> Self:
        """Make from the bounds of the lowest clusters, then those of each level that matters, which may be the same."""
        first, levels = bounds[0][:-1], []
        for edges in bounds[1:]:
            cluster = np.searchsorted(edges, first, side="right") - 1
            levels.append(np.stack([edges[cluster], edges[cluster + 1] - edges[cluster]], axis=1))
        ranges = np.stack(levels, axis=1).astype(np.int64)
        shapes, kinds = np.unique(ranges[:, :, 1], axis=0, return_inverse=True)
        return cls(ranges, [tuple(shape) for shape in shapes.tolist()], kinds.ravel())


@dataclass(frozen=True)
class TreeTable:
    """Arrays of a tree, which workers map into memory. Rows are lowest clusters, then padding, then the unknown word.

    ``rows``: int32 ``(size + 2,)``, the row of each symbol. ``kinds``: int32 ``(clusters + 2,)``. ``ranges``: int32
    ``(clusters + 2, ranges, 2)``, first position and size, in the order of choice. ``thresholds``: uint64
    ``(kinds, ranges - 1)``, not falling. ``written``: int32 ``(positions,)``, or ``(positions + 1,)`` with padding: the
    output at each position.
    """

    rows: Int32
    kinds: Int32
    ranges: Int32
    thresholds: UInt64
    written: Int32

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for a bundle."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make from what :attr:`arrays` returned; other names are ignored."""
        return cls(**{name: arrays[name] for name in cls.__dataclass_fields__})

    @property
    def size(self) -> int:
        """Number of words."""
        return len(self.rows) - _OTHERS

    @property
    def positions(self) -> int:
        """Number of positions without that of padding: the unknown word draws from all."""
        return int(self.ranges[-1, -1, 1])

    @property
    def pads(self) -> bool:
        """True if padding is an output."""
        return len(self.written) > self.positions

    def number_symbols(self) -> tuple[SymbolLaw, Int32, Int32]:
        """Find numbers for the lowest clusters whose laws differ.

        Returns the law of draws among them; the symbol of each row of a word's cluster, int32 ``(clusters,)``; and of
        each position, int32 ``(positions,)``.
        """
        clusters, levels = len(self.kinds) - _OTHERS, self._levels
        starts, first, of_row = np.unique(self.ranges[:clusters, levels[0], 0], return_index=True, return_inverse=True)
        ranges = self.ranges[first][:, levels]
        numbers = [np.unique(ranges[:, level, 0], return_inverse=True)[1].ravel() for level in range(len(levels))]
        shares = [[self.numbers(row)[level] / WHOLE for level in levels] for row in first.tolist()]
        padding = self.mixture(clusters).pad / WHOLE if self.pads else None
        law = SymbolLaw(np.stack(numbers), ranges[:, 0, 1].astype(np.int64), np.array(shares), padding)
        of_position = np.searchsorted(starts, np.arange(self.positions), side="right") - 1
        return law, of_row.ravel().astype(np.int32), of_position.astype(np.int32)

    def draw(self, symbols: Int32, words: UInt64) -> Int32:
        """Draw one output for each symbol, int32 ``(count,)``. ``words``: uint64 ``(count, 2)`` of random bits."""
        drawn = np.empty(len(symbols), np.int32)
        tree = TreeArrays(self.rows, self.kinds, self.ranges, self.thresholds, self.written)
        draw_positions(symbols, words, tree, drawn)
        return drawn

    def numbers(self, row: int) -> list[int]:
        """Compute the share of each range of a row, of 2^64."""
        edges = [0, *map(int, self.thresholds[self.kinds[row]]), WHOLE]
        return [after - before for before, after in pairwise(edges)]

    def mixture(self, row: int) -> Mixture:
        """Compute the mixture of a row, level after level. Padding and the unknown word have one set: all positions."""
        ranges, numbers = self.ranges[row].tolist(), self.numbers(row)
        words = sum(number for (start, _), number in zip(ranges, numbers, strict=True) if start < self.positions)
        if row >= len(self.kinds) - _OTHERS:
            return Mixture((self.positions,), (words,), WHOLE - words)
        levels = self._levels
        return Mixture(
            tuple(ranges[level][1] for level in levels), tuple(numbers[level] for level in levels), WHOLE - words
        )

    @cached_property
    def _levels(self) -> list[int]:
        """Indices of a row's ranges except padding, the lowest level first, which has the most clusters.

        Sizes cannot order them: a cluster of one position may lie in another of one position.
        """
        starts = self.ranges[: len(self.kinds) - _OTHERS, :, 0]
        counts = {index: len(np.unique(starts[:, index])) for index in range(starts.shape[1])}
        return sorted(
            (index for index in counts if starts[0, index] < self.positions), key=lambda index: -counts[index]
        )

    def law(self, row: int) -> Float64:
        """Compute the probability of each position: float64 ``(positions,)``, or ``(positions + 1,)`` with padding."""
        law = np.zeros(len(self.written))
        for (start, size), number in zip(self.ranges[row].tolist(), self.numbers(row), strict=True):
            law[start : start + size] += number / WHOLE / size
        return law

    def certify(self) -> Losses:
        """Compute the losses from the arrays alone.

        Raises :class:`ValueError` if ranges are no nested clusters, or thresholds fall.
        """
        clusters = len(self.kinds) - _OTHERS
        ranges = self.ranges[:clusters].astype(np.int64)
        levels = np.array(self._levels)
        # The proof of `levels` needs nested clusters: an output outside the lowest common cluster of two words is then
        # at the same level of both. What a draw does depends on the row's kind and ranges alone, so that rows with
        # equal kinds and sizes have equal losses, and one of each chain stands for all.
        self._check(ranges, levels)
        chains = np.concatenate([self.kinds[:clusters, None], ranges[:, levels, 1]], axis=1)
        _, first = np.unique(chains, axis=0, return_index=True)
        others = [clusters + 1, *([clusters] if self.pads else [])]
        return certify_levels([self.mixture(row) for row in first.tolist()], [self.mixture(row) for row in others])

    def _check(self, ranges: Int64, levels: Int64) -> None:
        """Raise :class:`ValueError` unless ranges are nested and thresholds consistent.

        The ranges of each level divide all positions and lie inside those of the next level, thresholds do not fall,
        rows of one lowest range are of one kind, and the others draw from all.
        """
        starts, sizes = ranges[:, levels, 0], ranges[:, levels, 1]
        ends = starts + sizes
        sound = bool((self.thresholds[:, 1:] >= self.thresholds[:, :-1]).all())
        sound &= bool((starts[:, 1:] <= starts[:, :-1]).all() and (ends[:, 1:] >= ends[:, :-1]).all())
        for level in range(len(levels)):
            cut = np.unique(np.stack([starts[:, level], ends[:, level]], axis=1), axis=0)
            sound &= bool(cut[0, 0] == 0 and cut[-1, 1] == self.positions and (cut[1:, 0] == cut[:-1, 1]).all())
        others = self.ranges[len(ranges) :].reshape(-1, 2).tolist()
        sound &= all(span in ([0, self.positions], [self.positions, 1]) for span in others)
        lowest = np.unique(np.stack([starts[:, 0], self.kinds[: len(ranges)]], axis=1), axis=0)
        sound &= len(lowest) == len(np.unique(starts[:, 0]))
        if not sound:
            raise ValueError("ranges are not nested clusters with rising thresholds")


def arrange(nesting: Nesting, levels: Levels, rows: Int32, written: Int32) -> TreeTable:
    """Arrange the numbers of ``levels`` for drawing: the likeliest range of most clusters first."""
    size = int(nesting.ranges[0, -1, 1])
    pads = len(written) > size
    common = levels.words[int(np.bincount(nesting.kinds).argmax())]
    numbers = [*common.numbers, *([common.pad] if pads else [])]
    turns = sorted(range(len(numbers)), key=lambda level: (-numbers[level], level))
    clusters = len(nesting.kinds)
    ranges = np.empty((clusters + _OTHERS, len(turns), 2), np.int32)
    ranges[clusters:] = [0, size]
    if pads:
        ranges[clusters:, 0] = [size, 1]
    for index, turn in enumerate(turns):
        ranges[:clusters, index] = nesting.ranges[:, turn] if turn < nesting.ranges.shape[1] else [size, 1]
    thresholds = [
        [*accumulate([*mixture.numbers, mixture.pad][turn] for turn in turns[:-1])] for mixture in levels.words
    ]
    thresholds += [[mixture.pad] * (len(turns) - 1) for mixture in (levels.padding, levels.unknown)]
    kinds = np.append(nesting.kinds, [len(levels.words), len(levels.words) + 1]).astype(np.int32)
    return TreeTable(rows, kinds, ranges, np.array(thresholds, np.uint64), written)


# Entries take 12 bytes.
_MAX_ENTRIES = 50_000_000


class Members(NamedTuple):
    """Members of clusters, for trees whose positions are clusters and which draw a member of the drawn one.

    ``order``: int32 ``(size,)``, the words; cluster ``c`` has ``order[bounds[c]:bounds[c + 1]]``. ``bounds``: int64
    ``(clusters + 1,)``. ``shares``: float64 ``(size,)``, the probability of each within its cluster.
    """

    order: Int32
    bounds: Int64
    shares: Float64


def write_law(table: TreeTable, start: int, law: Float64, members: Members | None) -> tuple[Int32, Float64]:
    """Compute the outputs of positions from ``start`` on, each once, and their probabilities, from ``law``."""
    stop = start + len(law)
    if members is None:
        # Equal outputs stand at consecutive positions.
        first = np.flatnonzero(np.diff(table.written[start:stop], prepend=-1))
        return table.written[start:stop][first], np.add.reduceat(law, first) if len(first) else law
    span = slice(members.bounds[start], members.bounds[stop])
    return members.order[span], np.repeat(law, np.diff(members.bounds[start : stop + 1])) * members.shares[span]


def word_laws(table: TreeTable, clusters: int, members: Members | None) -> WordLaws | None:
    """Compute the laws of all words: a common part, and extras in each word's clusters.

    If a cluster's words are all written alike, the common law is 0 for its other words. Returns None for more than 50
    million extras. ``clusters``: the number of lowest clusters, the first rows of ``table``.
    """
    size, positions = table.size, table.positions
    words = table.rows[:size]
    shares = np.array([_share_of_all(table, row) for row in range(clusters)])
    outer = [_outer_range(table, row) for row in range(clusters)]
    if members is None:
        first_output = np.concatenate([[0], np.cumsum(np.diff(table.written[:positions], prepend=-1) != 0)])
    else:
        first_output = members.bounds
    lengths = np.array([first_output[start + count] - first_output[start] for start, count in outer])
    if int(lengths[words].sum()) > _MAX_ENTRIES:
        return None
    # Padding is common as far as the words that share most have it; others have a rest of it beyond.
    pad = table.mixture(0).pad / WHOLE
    ratio = pad / shares.max()
    rests = np.where(shares < shares.max(), pad - ratio * shares, 0.0)
    parts = [
        _extras(table, row, span, rest, members) for row, (span, rest) in enumerate(zip(outer, rests, strict=True))
    ]
    ids, everywhere = write_law(table, 0, np.full(positions, 1 / positions), members)
    common = np.bincount(ids, everywhere, size + table.pads) / (1 + ratio)
    if table.pads:
        common[size] = ratio / (1 + ratio)
    lengths = np.array([len(ids) for ids, _ in parts])
    first = np.concatenate([[0], np.cumsum(lengths)])
    offsets = np.concatenate([[0], np.cumsum(lengths[words])])
    entries = np.repeat(first[words] - offsets[:-1], lengths[words]) + np.arange(offsets[-1])
    ids, extras = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return WordLaws(common, shares[words] * (1 + ratio), offsets, ids[entries], extras[entries])


def _share_of_all(table: TreeTable, row: int) -> float:
    """Compute the probability with which a row draws from all positions."""
    spans = zip(table.ranges[row].tolist(), table.numbers(row), strict=True)
    return sum(number for span, number in spans if span == [0, table.positions]) / WHOLE


def _outer_range(table: TreeTable, row: int) -> tuple[int, int]:
    """Find the largest range that is not all positions: first position and size."""
    most = table.positions
    inside = [(size, start) for start, size in table.ranges[row].tolist() if start < most and size < most]
    size, start = max(inside, default=(0, 0))
    return start, size


def _extras(
    table: TreeTable, row: int, span: tuple[int, int], rest: float, members: Members | None
) -> tuple[Int32, Float64]:
    """Compute what a row's words have beyond the common law at the positions ``span``: outputs, and their
    probabilities.

    ``rest``: padding's probability beyond the common law.
    """
    start, size = span
    law = np.zeros(size)
    for (first, count), number in zip(table.ranges[row].tolist(), table.numbers(row), strict=True):
        if first < table.positions and count < table.positions:
            law[first - start : first - start + count] += number / WHOLE / count
    ids, extras = write_law(table, start, law, members)
    if rest > 0:
        ids, extras = np.append(ids, np.int32(table.size)), np.append(extras, rest)
    return ids, extras
