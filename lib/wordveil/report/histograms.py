"""Histograms as columns with marks, in percent and pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from wordveil.scores.histogram import Bin

_HEIGHT = 150
_TICKS = 6
_NO_MARKS: Mapping[str, float] = MappingProxyType({})


def draw_histogram(
    bins: Sequence[Bin], marks: Mapping[str, float] = _NO_MARKS, *, tail: bool = False
) -> dict[str, Any] | None:
    """The places of a histogram's columns and marks; None without bins.

    Parameters
    ----------
    bins
        from :func:`wordveil.scores.histogram.count_bins`.
    marks
        numbers to mark with a line, by name.
    tail
        whether a number beyond the closed bins is marked in the middle of the open one; else it has no mark.

    Returns
    -------
    dict or None
        what the macro ``histogram`` shows: ``x``, ``width`` and places of marks in percent, ``height`` in pixels.
    """
    if not bins:
        return None
    top = max(one.count for one in bins)
    step = 100 / len(bins)
    every = -(-len(bins) // _TICKS)
    columns = [
        {
            "x": round(place * step, 3),
            "width": round(0.9 * step, 3),
            "height": round(_HEIGHT * one.count / top, 1) if top else 0,
            "label": _bin_label(one),
            "count": f"{one.count:,}",
            "tick": f"{one.low:,}" if place % every == 0 else "",
        }
        for place, one in enumerate(bins)
    ]
    places = {name: _find_place(bins, value, step, tail=tail) for name, value in marks.items()}
    shown = [
        {"name": name, "place": place, "anchor": "end" if place > 50 else "start"}
        for name, place in places.items()
        if place is not None
    ]
    return {"columns": columns, "top": f"{top:,}", "marks": shown}


def _find_place(bins: Sequence[Bin], value: float, step: float, *, tail: bool) -> float | None:
    closed = [one for one in bins if one.high is not None]
    reach = closed[-1].high + 1 if closed and closed[-1].high is not None else 0
    if value < reach:
        return round(len(closed) * step * value / reach, 3)
    return round(100 - step / 2, 3) if tail and len(closed) < len(bins) else None


def _bin_label(one: Bin) -> str:
    if one.high is None:
        return f"{one.low:,} or more"
    return f"{one.low:,}" if one.low == one.high else f"{one.low:,} to {one.high:,}"
