"""Figures against epsilon as lines in pixels, small enough for a narrow screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wordveil.report.picture import Tick, choose_ticks, make_scale

WIDTH, HEIGHT = 300, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 10.0, 12.0, 30.0
# Texts of the axis that are closer to each other are unreadable.
_APART = 26.0


@dataclass(frozen=True)
class Spot:
    """Point of a line: its centre in pixels, and its figure in words."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Line:
    """Line of one figure: its name, its points, and the line through them as SVG writes it."""

    name: str
    spots: tuple[Spot, ...]
    points: str


@dataclass(frozen=True)
class Panel:
    """Picture of some figures over the same epsilons.

    ``label``: the picture in words, for screen readers. ``left``, ``right``, ``top``, ``bottom``: the ends of the axes
    in pixels. ``across``, ``up``: the marks of both axes. ``lines``: the figures, in the order of their colours.
    """

    title: str
    label: str
    left: float
    right: float
    top: float
    bottom: float
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    lines: tuple[Line, ...]


def draw_lines(
    title: str,
    epsilons: Sequence[float],
    figures: Mapping[str, Sequence[float | None]],
    show: Callable[[float], str],
) -> Panel:
    """Draw figures over a logarithmic axis of epsilons, which are positive and rising.

    ``figures``: by name, a value of 0 or more for each epsilon, or None. ``show``: writes a value.
    """
    ends = _LEFT, WIDTH - _RIGHT, _TOP, HEIGHT - _BOTTOM
    to_x = _make_axis(epsilons, ends[0], ends[1])
    points_of = {
        name: [(epsilon, value) for epsilon, value in zip(epsilons, values, strict=True) if value is not None]
        for name, values in figures.items()
    }
    up = choose_ticks([0.0, *(value for pairs in points_of.values() for _, value in pairs)])
    to_y = make_scale(up, ends[3], ends[2])
    lines = tuple(_draw_line(name, pairs, to_x, to_y, show) for name, pairs in points_of.items())
    said = "; ".join(f"{line.name}: {', '.join(spot.text for spot in line.spots)}" for line in lines)
    ticks = tuple(Tick(round(to_y(value), 1), show(value)) for value in up)
    return Panel(title, f"{title}. {said}.", *ends, _name_epsilons(epsilons, to_x), ticks, lines)


def _make_axis(epsilons: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    low, high = math.log(epsilons[0]), math.log(epsilons[-1])
    scale = make_scale((low, high) if low < high else (low - 1, low + 1), start, end)
    return lambda epsilon: scale(math.log(epsilon))


def _name_epsilons(epsilons: Sequence[float], to_x: Callable[[float], float]) -> tuple[Tick, ...]:
    """Make marks of the axis for epsilons. A text that would overlap the one before it is left out."""
    ticks: list[Tick] = []
    last = -math.inf
    for epsilon in epsilons:
        x = round(to_x(epsilon), 1)
        is_free = x - last >= _APART
        last = x if is_free else last
        ticks.append(Tick(x, f"{epsilon:g}" if is_free else ""))
    return tuple(ticks)


def _draw_line(
    name: str,
    pairs: Sequence[tuple[float, float]],
    to_x: Callable[[float], float],
    to_y: Callable[[float], float],
    show: Callable[[float], str],
) -> Line:
    spots = tuple(
        Spot(round(to_x(epsilon), 1), round(to_y(value), 1), f"{show(value)} at epsilon {epsilon:g}")
        for epsilon, value in pairs
    )
    return Line(name, spots, " ".join(f"{spot.x},{spot.y}" for spot in spots))
