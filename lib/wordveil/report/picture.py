"""Picture of a frontier: lines, points and separate labels in pixels, for a wide and for a narrow screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from wordveil.report.frontier import Frontier, Point
from wordveil.report.values import show_number

_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 14.0, 26.0, 40.0
_CHANCE = 46.0
_LONGEST = 26
_TICKS = 6
HEIGHT = 14.0
"""Height of a line of text, in pixels."""
_CHARACTER = 7.2
# What separates two labels of one line.
_SPACE = 5.0
_GAPS = (9.0, 20.0, 34.0)
_RADIUS = 6.0
# The penalty of a label that lies across a line.
_CROSSED = 6.0


@dataclass(frozen=True)
class Box:
    """Rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Return whether their interiors overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: Box) -> bool:
        """Return whether the other box lies inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


def estimate_width(text: str) -> float:
    """Estimate the width of a text of 12 pixels, in pixels; too large rather than too small."""
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
    """Place a box for each label beside its point, in pixels and inside the frame; None if none fits.

    Boxes never meet each other, a point, or a ``blocked`` box. Each label takes a near position that crosses few of the
    ``lines``, such as error bars. ``reach``: number of distances from the point to try, from 1 to 3. ``first``: numbers
    of the points to label first; then come those in a crowd.
    """
    discs = [Box(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in points]
    crowd = [sum(math.dist(point, other) for other in points) for point in points]
    placed: dict[int, Box] = {}
    for number in sorted(range(len(points)), key=lambda number: (number not in first, crowd[number])):
        labelled = (Box(box.left - _SPACE, box.top, box.right + _SPACE, box.bottom) for box in placed.values())
        taken = [*blocked, *discs, *labelled]
        options = [
            (rank + _CROSSED * sum(box.meets(line) for line in lines), box)
            for rank, box in enumerate(_candidates(points[number], estimate_width(labels[number]), reach))
            if frame.holds(box) and not any(box.meets(other) for other in taken)
        ]
        if options:
            placed[number] = min(options, key=lambda option: option[0])[1]
    return tuple(placed.get(number) for number in range(len(points)))


def _candidates(point: tuple[float, float], width: float, reach: int) -> list[Box]:
    """List boxes around a point: right, left, above, below and the corners; near ones first."""
    x, y = point
    boxes = []
    for gap in _GAPS[:reach]:
        across, down = (x + gap, x - width / 2, x - gap - width), (y - HEIGHT / 2, y - gap - HEIGHT, y + gap)
        pairs = [(across[0], down[0]), (across[2], down[0]), (across[1], down[1]), (across[1], down[2])]
        pairs += [pair for pair in product((across[0], across[2]), down[1:]) if pair not in pairs]
        boxes += [Box(left, top, left + width, top + HEIGHT) for left, top in pairs]
    return boxes


@dataclass(frozen=True)
class Tick:
    """Mark of an axis: its position in pixels and its text."""

    position: float
    text: str


@dataclass(frozen=True)
class Dot:
    """Point of a picture: its centre, the ends of its bars, and its label, all in pixels.

    ``label``: its name, or its number if names do not fit; empty if that does not fit either. ``label_x``, ``label_y``,
    ``anchor``: a point on the text's base line, and the part of the text there: ``start``, ``middle`` or ``end``.
    ``leader``: a line to ``leader_x``, ``leader_y`` joins the label to the point, because it is not next to it.
    """

    point: Point
    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float
    label: str
    label_x: float
    label_y: float
    anchor: str
    leader: bool
    leader_x: float
    leader_y: float


@dataclass(frozen=True)
class Picture:
    """Picture of ``width`` by ``height`` pixels for screens of a ``kind``, ``wide`` or ``narrow``."""

    kind: str
    width: int
    height: int
    plot: Box
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    dots: tuple[Dot, ...]
    line: str
    chance: float | None
    is_numbered: bool


def draw_frontier(frontier: Frontier) -> tuple[Picture, Picture]:
    """Draw the picture for a wide screen and that for a narrow one."""
    return _draw(frontier, "wide", 680, 420), _draw(frontier, "narrow", 330, 330)


def _draw(frontier: Frontier, kind: str, width: int, height: int) -> Picture:
    plot = Box(_LEFT, _TOP, width - _RIGHT, height - _BOTTOM)
    chance = () if frontier.chance is None else (frontier.chance,)
    utilities, attacks = zip(*((point.utility, point.attack) for point in frontier.points), strict=True)
    across = choose_ticks([end for span in utilities for end in (span.low, span.high)])
    up = choose_ticks([*(end for span in attacks for end in (span.low, span.high)), *chance])
    to_x, to_y = make_scale(across, plot.left, plot.right), make_scale(up, plot.bottom, plot.top)
    line = " ".join(f"{to_x(point.utility.value):.1f},{to_y(point.attack.value):.1f}" for point in frontier.optimal)
    dots, is_numbered = _place(frontier, plot, to_x, to_y)
    return Picture(
        kind,
        width,
        height,
        plot,
        tuple(Tick(round(to_x(value), 1), f"{value:g}") for value in across),
        tuple(Tick(round(to_y(value), 1), f"{value:g}") for value in up),
        dots,
        line,
        None if frontier.chance is None else round(to_y(frontier.chance), 1),
        is_numbered,
    )


def choose_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Choose round numbers that enclose the values: steps of 1, 2 or 5 times a power of ten."""
    low, high = min(values), max(values)
    rough = max(high - low, 0.02) / (_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(number * step, 10) for number in range(first, max(last, first + 1) + 1))


def make_scale(ticks: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """Make the map from values to pixels, with the first tick near ``start`` and the last near ``end``."""
    # A little room beyond the outermost ticks keeps points off the axes.
    room = 0.03 * (end - start)
    inner = end - start - 2 * room
    return lambda value: start + room + inner * (value - ticks[0]) / (ticks[-1] - ticks[0])


def _place(
    frontier: Frontier, plot: Box, to_x: Callable[[float], float], to_y: Callable[[float], float]
) -> tuple[tuple[Dot, ...], bool]:
    points = frontier.points
    centres = [(to_x(point.utility.value), to_y(point.attack.value)) for point in points]
    names = [shorten(point.subject) for point in points]
    lines = [*_bars(points, to_x, to_y), *_segments([centres[points.index(point)] for point in frontier.optimal])]
    blocked = []
    if frontier.chance is not None:
        y = to_y(frontier.chance)
        lines.append(Box(plot.left, y - 1, plot.right, y + 1))
        blocked.append(Box(plot.right - _CHANCE, y - HEIGHT - 2, plot.right, y))
    # A name that is far away could be mistaken for a neighbour's.
    boxes = place_labels(centres, names, plot, lines, blocked, reach=2)
    if is_numbered := None in boxes:
        names = [str(number) for number in range(1, len(points) + 1)]
        optimal = [number for number, point in enumerate(points) if point.is_optimal]
        boxes = place_labels(centres, names, plot, lines, blocked, first=optimal)
    dots = [
        _dot(point, centre, label, box, to_x, to_y)
        for point, centre, label, box in zip(points, centres, names, boxes, strict=True)
    ]
    return tuple(dots), is_numbered


def shorten(name: str) -> str:
    """Cut a name to the length of a label."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _bars(points: Sequence[Point], to_x: Callable[[float], float], to_y: Callable[[float], float]) -> list[Box]:
    bars = []
    for point in points:
        x, y = to_x(point.utility.value), to_y(point.attack.value)
        bars.append(Box(to_x(point.utility.low), y - 1, to_x(point.utility.high), y + 1))
        bars.append(Box(x - 1, to_y(point.attack.high), x + 1, to_y(point.attack.low)))
    return bars


def _segments(centres: Sequence[tuple[float, float]]) -> list[Box]:
    """List small boxes along the line through the points."""
    boxes = []
    for (x, y), (a, b) in pairwise(centres):
        pieces = max(1, round(max(abs(a - x), abs(b - y)) / HEIGHT))
        for piece in range(pieces + 1):
            share = piece / pieces
            at_x, at_y = x + share * (a - x), y + share * (b - y)
            boxes.append(Box(at_x - 2, at_y - 2, at_x + 2, at_y + 2))
    return boxes


def _dot(
    point: Point,
    centre: tuple[float, float],
    label: str,
    box: Box | None,
    to_x: Callable[[float], float],
    to_y: Callable[[float], float],
) -> Dot:
    x, y = centre
    if box is None:
        label, box = "", Box(x, y, x, y)
    anchor, label_x = _anchor(x, box)
    end_x, end_y = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
    return Dot(
        point=point,
        x=round(x, 1),
        y=round(y, 1),
        left=round(to_x(point.utility.low), 1),
        right=round(to_x(point.utility.high), 1),
        top=round(to_y(point.attack.high), 1),
        bottom=round(to_y(point.attack.low), 1),
        label=label,
        label_x=round(label_x, 1),
        label_y=round(box.top + 0.8 * HEIGHT, 1),
        anchor=anchor,
        leader=bool(label) and math.dist(centre, (end_x, end_y)) > 14,
        leader_x=round(end_x, 1),
        leader_y=round(end_y, 1),
    )


def _anchor(x: float, box: Box) -> tuple[str, float]:
    """Find the end of a box next to the point, to anchor its text: a box's width is only an estimate."""
    if box.left >= x:
        return "start", box.left
    return ("end", box.right) if box.right <= x else ("middle", (box.left + box.right) / 2)


def describe_point(point: Point) -> str:
    """Describe a point's figures in words."""
    return f"{point.subject}: utility {show_number(point.utility.value)}, attack {show_number(point.attack.value)}"
