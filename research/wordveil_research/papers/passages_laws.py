"""Laws over the subjects of passages other than randomised response, and centres from other starts of k-means.

*Nested*: subjects lie in groups, with a loss inside a group and another one between groups, as in `tree`. *Lists*: each
subject has a list of the nearest centres, itself first, of which each is ``e^loss`` as likely as every other symbol, as
in `staircase` with equal floors. In both the symbol after the last subject is that of texts without a known word.
"""

from __future__ import annotations

import math

import numpy as np

from wordveil.arrays import Float32, Float64, Int32, Int64
from wordveil.mechanisms.inputs import PublicPassages
from wordveil.mechanisms.passages.encoder import SumEncoder, find_nearest
from wordveil.mechanisms.tree.build import solve_nesting
from wordveil.mechanisms.tree.table import arrange
from wordveil.neighbours.clusters import LONGEST, split_by_weight, split_levels, whole_directions


def group_centres(centres: Float32, groups: int) -> tuple[Int32, Int64]:
    """Group similar centres: their order, int32 ``(subjects,)``, and the bounds of groups in it."""
    hierarchy = split_levels(centres, [len(centres), groups, 1], map, lambda *_: None)
    return hierarchy.order, hierarchy.bounds[1]


def nest_law(order: Int32, bounds: Int64, inner: float, loss: float) -> Float64:
    """Compute the law of nested subjects by certified whole numbers: float64 ``(subjects + 1, subjects + 1)``.

    ``inner``: the loss between subjects of one group.
    """
    count = len(order)
    positions = np.arange(count + 1, dtype=np.int32)
    edges = [positions, bounds, positions[[0, -1]]]
    nesting, levels = solve_nesting(edges, [0.0, inner, loss], None, padding=True)
    table = arrange(nesting, levels, np.arange(count + 2, dtype=np.int32), positions)
    laws = np.array([table.law(row) for row in range(count + 1)])
    places = np.append(np.argsort(order), count)
    return laws[np.ix_(places, places)]


def list_nearest(centres: Float32, listed: int) -> Int64:
    """List the nearest centres of each, itself first: int64 ``(subjects, listed)``."""
    nearness = centres @ centres.T
    np.fill_diagonal(nearness, np.inf)
    return np.argsort(-nearness, axis=1, kind="stable")[:, :listed]


def list_law(nearest: Int64, loss: float) -> Float64:
    """Compute the law of lists: float64 ``(subjects + 1, subjects + 1)``. ``nearest``: as :func:`list_nearest`."""
    count, listed = nearest.shape
    ratio = math.exp(loss)
    total = listed * ratio + count + 1 - listed
    laws = np.full((count + 1, count + 1), 1 / total)
    np.put_along_axis(laws[:count], nearest, ratio / total, axis=1)
    # An empty text stays as often as a subject, or else becomes any subject.
    laws[count] = (1 - ratio / total) / count
    laws[count, count] = ratio / total
    return laws


def draw_symbols(laws: Float64, symbols: Int32, seed: int) -> Int32:
    """Draw a symbol for each, by its row of ``laws``."""
    uniform = np.random.default_rng(seed).random(len(symbols))
    drawn = (laws.cumsum(axis=1)[symbols] < uniform[:, None]).sum(axis=1)
    return np.minimum(drawn, len(laws) - 1).astype(np.int32)


def start_again(encoder: SumEncoder, passages: PublicPassages, start: int) -> tuple[SumEncoder, float]:
    """Cluster passages from other first centres, and return how near a passage is to its centre: the mean cosine.

    ``start``: shuffles the passages, which decides the first centres; 0: the encoder's own centres.
    """
    points, known = encoder.locate(passages.ids, passages.offsets)
    points = points[(known > 0) & points.any(axis=1)]
    directions, centres = np.empty(points.shape, np.float32), encoder.centres
    whole_directions(points, directions)
    if start:
        shuffled = np.random.default_rng(start).permutation(directions)
        _, centres = split_by_weight(shuffled, np.ones(len(shuffled), np.int64), len(centres), 1)
    nearness = find_nearest(directions, centres)[1].mean(dtype=np.float64) / LONGEST**2
    return SumEncoder(encoder.vectors, centres, encoder.widths), float(nearness)
