"""Histograms as columns with marks, in percent and pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wordveil.scores.counts import Bin

_HEIGHT = 150
_TICKS = 6
_NO_MARKS: Mapping[str, float] = MappingProxyType({})


def draw_histogram(
    bins: Sequence[Bin], marks: Mapping[str, float] = _NO_MARKS, *, tail: bool = False
) -> dict[str, Any] | None:
    """Draw the macro ``histogram``, if there are bins: ``x``, ``width`` and marks in percent, ``height`` in pixels.

    ``marks``: numbers to mark with a line, by name. ``tail``: a number beyond the closed bins is marked in the middle
    of the open one; otherwise it is not marked.
    """
    if not bins:
        return None
    top = max(bin_.count for bin_ in bins)
    step = 100 / len(bins)
    every = -(-len(bins) // _TICKS)
    columns = [
        {
            "x": round(number * step, 3),
            "width": round(0.9 * step, 3),
            "height": round(_HEIGHT * bin_.count / top, 1) if top else 0,
            "label": _label(bin_),
            "count": f"{bin_.count:,}",
            "tick": f"{bin_.low:,}" if number % every == 0 else "",
        }
        for number, bin_ in enumerate(bins)
    ]
    positions = {name: _find_position(bins, value, step, tail=tail) for name, value in marks.items()}
    shown = [
        {"name": name, "position": position, "anchor": "end" if position > 50 else "start"}
        for name, position in positions.items()
        if position is not None
    ]
    return {"columns": columns, "top": f"{top:,}", "marks": shown}


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
