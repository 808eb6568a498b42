"""Bars of shares with chance levels and intervals, on a linear scale or, if some would vanish, on a logarithmic one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

VISIBLE = 0.01
"""Least length, as a share of its scale, that a linear picture shows: two pixels on a narrow screen."""
_LEAST_DECADE = -5
_LENGTHS = ("share", "reach", "low", "high", "chance", "original")


@dataclass(frozen=True)
class Bar:
    """Bar of a share; all numbers are from 0 to 1.

    ``value``: the figure as text. ``reach``: how far the share may reach, if it is only a lower bound. ``low``,
    ``high``: 95% interval. ``chance``, ``original``: levels to compare with.
    """

    label: str
    share: float
    value: str
    reach: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    original: float | None = None


def show_plain(share: float) -> str:
    """Show a power of ten without an exponent."""
    return f"{share:.6f}".rstrip("0").removesuffix(".")


def draw_bars(bars: Sequence[Bar], show: Callable[[float], str] = show_plain) -> dict[str, Any]:
    """Draw bars for the macro ``bars``: lengths and places in percent, None where there is nothing to draw.

    All are on one scale to 1. It is logarithmic if a share above 0 is below a hundredth; then ``grid`` has the places
    of its powers of ten, and ``ticks`` name its ends by ``show``.
    """
    decades = 0
    if min((share for bar in bars for share in (bar.share, bar.reach) if share), default=1.0) < VISIBLE:
        least = min(length for bar in bars for length in (bar.share, bar.reach, bar.chance, bar.original) if length)
        # The least length is not 0, even if it is a power of ten.
        decades = 1 - max(math.ceil(math.log10(least)), _LEAST_DECADE)
    rows = [
        {
            "label": bar.label,
            "value": bar.value,
            **{name: _place(getattr(bar, name), decades) for name in _LENGTHS},
        }
        for bar in bars
    ]
    named = {-decades, 0, *([-decades // 2] if decades % 2 == 0 else [])} if decades else ()
    ticks = [{"position": 100 + 100 * power / decades, "text": show(10.0**power)} for power in sorted(named)]
    return {"rows": rows, "ticks": ticks, "grid": [round(100 * step / decades, 2) for step in range(1, decades)]}


def _place(length: float | None, decades: int) -> float | None:
    if length is None or not decades:
        return length if length is None else round(100 * length, 2)
    return round(100 * max(0.0, 1 + math.log10(length) / decades), 2) if length > 0 else 0.0
