"""An attacker's confusions of labels, as a map of shaded cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordveil.arrays import Int64
from wordveil.report.picture import estimate_width, shorten
from wordveil.scores.evaluation import Confusion

MOST_LABELS = 30
"""How many labels a map shows."""
_MOST_PAIRS = 5
_LARGE, _SMALL = 20, 15
_MANY = 15
OTHERS = "all others"
REFUSED = "no guess"


@dataclass(frozen=True)
class Shade:
    """Cell of a map: its corner in pixels, its strength from 0 to 1, and its text."""

    x: float
    y: float
    strength: float
    text: str


@dataclass(frozen=True)
class Heatmap:
    """Map of confusions.

    ``rows``, ``columns``: names; columns are numbers of rows, and the last may be :data:`OTHERS` and :data:`REFUSED`.
    ``shades``: the cells that are not empty. ``size``, ``left``, ``top``, ``width``, ``height``: in pixels: of a cell,
    the corner of the first cell, and the whole. ``left_out``: how many labels are merged into :data:`OTHERS`.
    ``pairs``: sentences about the labels that were most often confused. ``hit_rate``: the share of texts on the
    diagonal, of all labels.
    """

    confusion: Confusion
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shades: tuple[Shade, ...]
    size: int
    left: float
    top: float
    width: float
    height: float
    left_out: int
    pairs: tuple[str, ...]
    hit_rate: float


def draw_heatmap(confusion: Confusion) -> Heatmap:
    """Draw a confusion for at most :data:`MOST_LABELS` labels: those with the most texts, the first among equals.

    The strength of a cell is its share of its row. Guesses of labels that are not shown share a column.
    """
    counts = np.array(confusion.counts, np.int64).reshape(len(confusion.names), -1)
    labels = len(confusion.names)
    chosen = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_LABELS])
    shown = counts[np.ix_(chosen, chosen)]
    names = [confusion.names[label] for label in chosen]
    columns = [str(number) for number in range(1, len(names) + 1)]
    for name, extra in (
        (OTHERS, counts[chosen, :labels].sum(axis=1) - shown.sum(axis=1)[: len(chosen)]),
        (REFUSED, counts[chosen, labels:].sum(axis=1)),
    ):
        if extra.any():
            shown, columns = np.column_stack([shown, extra]), [*columns, name]
    size = _LARGE if len(names) <= _MANY else _SMALL
    rows = [f"{number} {shorten(name)}" for number, name in enumerate(names, 1)]
    left = 8 + max(map(estimate_width, rows), default=0)
    top = 22.0 if columns[-1:] == [str(len(names))] else 8 + max(estimate_width(name) for name in columns)
    return Heatmap(
        confusion,
        tuple(rows),
        tuple(columns),
        _shade(shown, names, [*names, *columns[len(names) :]], (left, top), size),
        size,
        left,
        top,
        left + size * len(columns) + 2,
        top + size * len(rows) + 2,
        labels - len(names),
        _describe_pairs(counts, confusion.names),
        float(np.trace(counts[:, :labels]) / max(1, counts.sum())),
    )


def _shade(
    counts: Int64, names: list[str], guesses: list[str], corner: tuple[float, float], size: int
) -> tuple[Shade, ...]:
    totals = counts.sum(axis=1)
    return tuple(
        Shade(
            corner[0] + size * column,
            corner[1] + size * row,
            round(float(counts[row, column] / totals[row]), 3),
            f"{names[row]} taken for {guesses[column]}: {counts[row, column]:,} of {totals[row]:,}",
        )
        for row, column in np.argwhere(counts).tolist()
    )


def _describe_pairs(counts: Int64, names: tuple[str, ...]) -> tuple[str, ...]:
    wrong = counts[:, : len(names)] * ~np.eye(len(names), dtype=bool)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    pairs = [divmod(cell, len(names)) for cell in order.tolist()]
    return tuple(
        f"{names[true]} taken for {names[guess]}: {wrong[true, guess]:,} of {counts[true].sum():,}"
        for true, guess in pairs
        if wrong[true, guess]
    )
