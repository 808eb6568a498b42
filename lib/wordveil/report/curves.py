"""Curves of a training, as a picture in SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wordveil.report.picture import choose_ticks, make_marks, make_scale
from wordveil.report.templates import render_page

_WIDTH, _HEIGHT, _GAP = 680, 220, 70
_LEFT, _RIGHT, _TOP = 52.0, 14.0, 30.0
_MOST = 400
"""Largest number of points of a line; further ones are averaged with their neighbours."""
_PANELS = (
    ("reconstruction loss, nats a symbol", "reconstruction"),
    ("share of symbols that are the likeliest", "accuracy"),
    ("mean reward of the likeliest words", "reward"),
)


def draw_curves(rows: Sequence[Mapping[str, Any]]) -> str:
    """Draw the picture of a training's rows (:class:`wordveil.generators.training.checkpoint.MetricsFile`), as SVG."""
    steps = choose_ticks([0, *(row["step"] for row in rows)])
    to_x = make_scale(steps, _LEFT, _WIDTH - _RIGHT)
    across = make_marks(steps, to_x, "{:,.0f}".format)
    panels = [{**_draw(rows, name, number, to_x), "title": title} for number, (title, name) in enumerate(_PANELS)]
    begin = next((row["step"] for row in rows if row["rewarded"]), None)
    return render_page(
        "curves.svg",
        width=_WIDTH,
        height=len(panels) * (_HEIGHT + _GAP),
        panels=panels,
        across=across,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        begin=None if begin is None else round(to_x(begin), 1),
    )


def _draw(rows: Sequence[Mapping[str, Any]], name: str, number: int, to_x: Callable[[float], float]) -> dict[str, Any]:
    """Draw the picture of one figure over the steps: its lines as points of SVG, empty if there are none."""
    top = number * (_HEIGHT + _GAP) + _TOP
    bottom = top + _HEIGHT
    lines = [_find_line(rows, key) for key in (name, f"validation_{name}")]
    up = choose_ticks([0, *(value for line in lines for _, value in line)])
    to_y = make_scale(up, bottom, top)
    training, validation = (" ".join(f"{to_x(x):.1f},{to_y(y):.1f}" for x, y in line) for line in lines)
    ends = {"top": top, "bottom": bottom, "up": make_marks(up, to_y)}
    return {**ends, "training": training, "validation": validation}


def _find_line(rows: Sequence[Mapping[str, Any]], name: str) -> list[tuple[float, float]]:
    points = [(float(row["step"]), float(row[name])) for row in rows if name in row]
    share = -(-len(points) // _MOST) or 1
    groups = [points[start : start + share] for start in range(0, len(points), share)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]
