"""Positions for the labels of points in a picture, so that none covers another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

HEIGHT = 14.0
"""Of a line of text, in pixels."""
_CHARACTER = 7.2
# What separates two labels of one line.
_SPACE = 5.0
_GAPS = (9.0, 20.0, 34.0)
_RADIUS = 6.0
# The penalty of a label that lies across a line.
_CROSSED = 6.0


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two share a point inside."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: Box) -> bool:
        """Whether the other one lies inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


def estimate_width(text: str) -> float:
    """The width of a text of 12 pixels, in pixels, rather too large."""
    return _CHARACTER * len(text)


def place_labels(
    points: Sequence[tuple[float, float]],
    labels: Sequence[str],
    frame: Box,
    lines: Sequence[Box],
    blocked: Sequence[Box] = (),
    reach: int = len(_GAPS),
    first: Sequence[int] = (),
) -> tuple[Box | None, ...]:
    """A box for each label, beside its point and inside the frame; None for one that does not fit.

    Boxes never meet each other, a point, or what is ``blocked``. Of the positions left, each label takes a near one
    that crosses few of the ``lines``, such as error bars.

    Parameters
    ----------
    points
        the centres, in pixels.
    labels
        their texts.
    frame, lines, blocked
        the area of labels, what they avoid crossing, and what they never cover.
    reach
        how many distances from the point are tried, from 1 to 3.
    first
        the numbers of the points that come first. Of the others, those in a crowd do.
    """
    discs = [Box(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in points]
    crowd = [sum(math.dist(point, other) for other in points) for point in points]
    placed: dict[int, Box] = {}
    for number in sorted(range(len(points)), key=lambda number: (number not in first, crowd[number])):
        taken = [*blocked, *discs, *(_widen(box) for box in placed.values())]
        options = [
            (rank + _CROSSED * sum(box.meets(line) for line in lines), box)
            for rank, box in enumerate(_candidates(points[number], estimate_width(labels[number]), reach))
            if frame.holds(box) and not any(box.meets(other) for other in taken)
        ]
        if options:
            placed[number] = min(options, key=lambda option: option[0])[1]
    return tuple(placed.get(number) for number in range(len(points)))


def _widen(box: Box) -> Box:
    return Box(box.left - _SPACE, box.top, box.right + _SPACE, box.bottom)


def _candidates(point: tuple[float, float], width: float, reach: int) -> list[Box]:
    """Boxes around a point: right, left, above, below and the corners; near ones first."""
    x, y = point
    boxes = []
    for gap in _GAPS[:reach]:
        across, down = (x + gap, x - width / 2, x - gap - width), (y - HEIGHT / 2, y - gap - HEIGHT, y + gap)
        pairs = [(across[0], down[0]), (across[2], down[0]), (across[1], down[1]), (across[1], down[2])]
        pairs += [pair for pair in product((across[0], across[2]), down[1:]) if pair not in pairs]
        boxes += [Box(left, top, left + width, top + HEIGHT) for left, top in pairs]
    return boxes
