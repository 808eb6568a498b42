"""Histograms as columns with marks, in percent and pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wordveil.report.bars import VISIBLE

if TYPE_CHECKING:
    from wordveil.scores.counts import Bin

_HEIGHT = 150
_TICKS = 6
_NO_MARKS: Mapping[str, float] = MappingProxyType({})


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
