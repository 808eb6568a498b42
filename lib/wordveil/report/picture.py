"""Pictures in pixels: axes with round numbers, and a frontier's numbered points for a wide and for a narrow screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wordveil.report.frontier import Frontier, Point
from wordveil.report.values import show_number

_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 14.0, 26.0, 40.0
_LONGEST = 26
_TICKS = 6
_CHARACTER = 7.2


def estimate_width(text: str) -> float:
    """Estimate the width of a text of 12 pixels, in pixels; too large rather than too small."""
    return _CHARACTER * len(text)


def shorten(name: str) -> str:
    """Cut a name to the length of a label."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


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


def make_marks(
    ticks: Iterable[float], scale: Callable[[float], float], show: Callable[[float], str] = "{:g}".format
) -> list[dict[str, Any]]:
    """Make the marks of an axis, for a template: ``position`` in pixels, and ``text``."""
    return [{"position": round(scale(value), 1), "text": show(value)} for value in ticks]


def draw_frontier(frontier: Frontier) -> list[dict[str, Any]]:
    """Draw the picture for a wide screen and that for a narrow one, for the template."""
    return [_draw(frontier, "wide", 680, 420), _draw(frontier, "narrow", 330, 330)]


def _draw(frontier: Frontier, kind: str, width: int, height: int) -> dict[str, Any]:
    left, right, top, bottom = _LEFT, width - _RIGHT, _TOP, height - _BOTTOM
    chance = () if frontier.chance is None else (frontier.chance,)
    utilities, attacks = zip(*((point.utility, point.attack) for point in frontier.points), strict=True)
    across = choose_ticks([end for span in utilities for end in (span.low, span.high)])
    up = choose_ticks([*(end for span in attacks for end in (span.low, span.high)), *chance])
    to_x, to_y = make_scale(across, left, right), make_scale(up, bottom, top)
    return {
        "kind": kind,
        "width": width,
        "height": height,
        "plot": {"left": left, "right": right, "top": top, "bottom": bottom},
        "across": make_marks(across, to_x),
        "up": make_marks(up, to_y),
        "dots": [
            {
                "point": point,
                "x": round(to_x(point.utility.value), 1),
                "y": round(to_y(point.attack.value), 1),
                "left": round(to_x(point.utility.low), 1),
                "right": round(to_x(point.utility.high), 1),
                "top": round(to_y(point.attack.high), 1),
                "bottom": round(to_y(point.attack.low), 1),
            }
            for point in frontier.points
        ],
        "line": " ".join(f"{to_x(one.utility.value):.1f},{to_y(one.attack.value):.1f}" for one in frontier.optimal),
        "chance": None if frontier.chance is None else round(to_y(frontier.chance), 1),
    }


def describe_point(point: Point) -> str:
    """Describe a point's figures in words."""
    return f"{point.subject}: utility {show_number(point.utility.value)}, attack {show_number(point.attack.value)}"
