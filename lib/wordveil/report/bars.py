"""Bars of shares with chance levels and intervals, and histograms, for templates.

Their scale is linear or, if some would vanish, logarithmic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordveil.scores.counts import Bin

VISIBLE = 0.01
"""Least length, as a share of its scale, that a linear picture shows: two pixels on a narrow screen."""
_LEAST_DECADE = -5
_HEIGHT = 150
_TICKS = 6
_NO_MARKS: Mapping[str, float] = MappingProxyType({})
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


def draw_histogram(
    bins: Sequence[Bin], marks: Mapping[str, float] = _NO_MARKS, *, tail: bool = False
) -> dict[str, Any] | None:
    """Draw the macro ``histogram``, if there are bins: ``x``, ``width`` and marks in percent, ``height`` in pixels.

    Heights are logarithmic if a bin that is not empty would vanish; then ``grid`` has the heights of powers of ten.
    ``marks``: numbers to mark with a line, by name. ``tail``: a number beyond the closed bins is marked in the middle
    of the open one; otherwise it is not marked.
    """
    if not bins:
        return None
    top = max(bin_.count for bin_ in bins)
    is_log = any(0 < bin_.count < VISIBLE * top for bin_ in bins)
    step = 100 / len(bins)
    every = -(-len(bins) // _TICKS)
    columns = [
        {
            "x": round(number * step, 3),
            "width": round(0.9 * step, 3),
            "height": _find_height(bin_.count, top, is_log=is_log),
            "label": _label(bin_),
            "count": f"{bin_.count:,}",
            "tick": f"{bin_.low:,}{'+' * (bin_.high is None)}" if number % every == 0 else "",
        }
        for number, bin_ in enumerate(bins)
    ]
    positions = {name: _find_position(bins, value, step, tail=tail) for name, value in marks.items()}
    shown = [
        {"name": name, "position": position, "anchor": "end" if position > 50 else "start"}
        for name, position in positions.items()
        if position is not None
    ]
    grid = [_find_height(10**power, top, is_log=True) for power in range(len(str(top)))] if is_log else []
    return {"columns": columns, "top": f"{top:,}", "marks": shown, "grid": grid}


def _find_height(count: int, top: int, *, is_log: bool) -> float:
    share = math.log1p(count) / math.log1p(top) if is_log else count / max(top, 1)
    return round(_HEIGHT * share, 1)


def _find_position(bins: Sequence[Bin], value: float, step: float, *, tail: bool) -> float | None:
    closed = [bin_ for bin_ in bins if bin_.high is not None]
    reach = closed[-1].high + 1 if closed and closed[-1].high is not None else 0
    if value < reach:
        return round(len(closed) * step * value / reach, 3)
    return round(100 - step / 2, 3) if tail and len(closed) < len(bins) else None


def _label(bin_: Bin) -> str:
    if bin_.high is None:
        return f"{bin_.low:,} or more"
    return f"{bin_.low:,}" if bin_.low == bin_.high else f"{bin_.low:,} to {bin_.high:,}"
