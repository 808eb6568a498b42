"""Page of estimates: bars with intervals for each group, shares over a column as lines, and pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wordveil.report.picture import choose_ticks, make_scale, shorten
from wordveil.report.templates import render_page
from wordveil.report.values import show_interval, show_share

MOST_GROUPS, MOST_BARS, MOST_LINES, MOST_PAIRS = 12, 15, 12, 10
"""Largest numbers of groups, of bars and of lines in a group, and of pairs on the page."""
_KEYWORDS = 5
# Lines are drawn in a box of 100 by as many pixels, which is stretched to the width of the page.
_HEIGHT, _ABOVE = 90, 14.0

Row = Mapping[str, Any]
Group = tuple[Any, ...]


def render_estimates(
    table: str,
    version: int | None,
    unit: str,
    by: Sequence[str],
    over: str | None,
    rows: Sequence[Row],
    trends: Sequence[Row],
    pairs: Sequence[Row],
    notes: Sequence[str] = (),
    least_draws: int = 0,
    least_count: int = 0,
) -> str:
    """Render the page of a table's estimates, in HTML, with all names escaped.

    ``unit``: what was counted, ``texts`` or ``words``. ``by``: the columns of groups, ``over`` among them, whose values
    are in order. ``rows``: the estimate of each symbol in each group, and the ``true`` count where the originals are at
    hand. ``trends``: steps of shares between values of ``over``. ``pairs``: symbols of one record. ``least_draws``:
    the draws of the smallest group, and ``least_count``, from which on a symbol usually stands out from none in it.
    """
    labels = {row["symbol"]: _label(row, unit) for row in rows}
    groups, others = _split(rows, by), [name for name in by if name != over]
    series = _split([row for row in rows if row[over] is not None], others) if over is not None else {}
    steps = _split(trends, others)
    largest, largest_series = _find_largest(groups), _find_largest(series)
    if least_count:
        smallest = f"The smallest group has {least_draws:,} {unit}, of which {least_count:,} or more usually stand out"
        notes = [*notes, f"{smallest} from none. Four times as many halve the interval of a share."]
    linked = sorted((pair for pair in pairs if pair["more_than_chance"]), key=lambda pair: -pair["difference"])
    return render_page(
        "estimates.html",
        title=f"Estimates of {table}",
        table_version=version,
        unit=unit,
        symbol_name="subject" if unit == "texts" else "cluster",
        most_bars=MOST_BARS,
        has_truth=any("true" in row for row in rows),
        over=over,
        height=_HEIGHT,
        groups=[_describe_group(_name_group(by, group, unit), groups[group], labels) for group in largest],
        groups_left_out=len(groups) - len(largest),
        series=[
            {
                "name": _name_group(others, group, unit),
                "panels": draw_lines(series[group], steps.get(group, []), str(over), labels),
                "steps": len(steps.get(group, [])),
                "real_steps": sum(step["more_than_noise"] for step in steps.get(group, [])),
            }
            for group in largest_series
        ],
        series_left_out=len(series) - len(largest_series),
        pairs=[_describe_pair(pair, labels) for pair in linked[:MOST_PAIRS]],
        linked=len(linked),
        pairs_in_all=len(pairs),
        notes=notes,
    )


def _split(rows: Sequence[Row], by: Sequence[str]) -> dict[Group, list[Row]]:
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return groups


def _find_largest(groups: Mapping[Group, Sequence[Row]]) -> list[Group]:
    """Find the groups with the most draws. Each symbol has a row in a group, so that the sum ranks them."""
    return sorted(groups, key=lambda group: -sum(row["draws"] for row in groups[group]))[:MOST_GROUPS]


def _label(row: Row, unit: str) -> str:
    words = " ".join(row["keywords"].split()[:_KEYWORDS])
    return words or (row["written"] if unit == "words" else "") or f"symbol {row['symbol']}: no known word"


def _name_value(value: Any) -> str:
    return "(none)" if value is None else str(value) or "(empty)"


def _name_group(by: Sequence[str], group: Group, unit: str) -> list[str]:
    return [f"{name} {_name_value(value)}" for name, value in zip(by, group, strict=True)] or [f"All {unit}"]


def _describe_group(name: Sequence[str], rows: Sequence[Row], labels: Mapping[int, str]) -> dict[str, Any]:
    return {
        "name": name,
        "draws": f"{rows[0]['draws']:,}",
        "bars": draw_bars(rows, labels),
        "symbols": len(rows),
        "certain": sum(row["low_of_all"] > 0 for row in rows),
        "held": sum(row["low"] <= row["true"] <= row["high"] for row in rows if "true" in row),
    }


def draw_bars(rows: Sequence[Row], labels: Mapping[int, str]) -> list[dict[str, Any]]:
    """Draw the symbols with the highest estimates of a group, for the template: widths and places in percent."""
    ranked = sorted(rows, key=lambda row: -row["estimate"])[:MOST_BARS]
    marks = ("estimate", "high_of_all", "drawn", "true")
    top = max((row[name] for row in ranked for name in marks if name in row), default=0) or 1
    return [
        {
            "label": labels[row["symbol"]],
            "written": row["written"],
            "is_noise": row["low_of_all"] <= 0,
            "count": _show_count(row["estimate"]),
            "interval": show_interval(row["low"], row["high"], _show_count),
            "interval_of_all": show_interval(row["low_of_all"], row["high_of_all"], _show_count),
            "share": show_share(max(row["share"], 0.0)),
            "times_drawn": f"{row['drawn']:,}",
            "times_true": f"{row['true']:,}" if "true" in row else None,
            **{
                name: round(100 * max(row[name], 0) / top, 2)
                for name in (*marks, "low", "high", "low_of_all")
                if name in row
            },
        }
        for row in ranked
    ]


def _show_count(value: float | None) -> str:
    return f"{max(value or 0, 0):,.0f}"


def _show_change(value: float | None) -> str:
    return f"{value or 0:+,.0f}".replace("-", "\N{MINUS SIGN}")


def draw_lines(rows: Sequence[Row], steps: Sequence[Row], over: str, labels: Mapping[int, str]) -> list[dict[str, Any]]:
    """Draw the share of symbols over the values of a column, for the template: those with the most real steps first."""
    values = sorted({row[over] for row in rows})
    places = {value: place for place, value in enumerate(values)}
    to_x = make_scale((0, len(values) - 1) if len(values) > 1 else (-1, 1), 0, 100)
    points_of, steps_of = _split(rows, ["symbol"]), _split(steps, ["symbol"])
    real = {symbol: sum(step["more_than_noise"] for step in steps_of.get(symbol, [])) for symbol in points_of}
    ranked = sorted(points_of, key=lambda symbol: (-real[symbol], -sum(row["estimate"] for row in points_of[symbol])))
    panels = []
    for symbol in ranked[:MOST_LINES]:
        points = {places[row[over]]: row for row in points_of[symbol]}
        moves = [
            (places[step[f"{over}_before"]], places[step[over]], step["more_than_noise"])
            for step in steps_of.get(symbol, [])
        ]
        panels.append(
            {
                "label": labels[symbol[0]],
                "first": shorten(_name_value(values[0])),
                "last": shorten(_name_value(values[-1])) if len(values) > 1 else "",
                "steps": len(moves),
                "real_steps": real[symbol],
                **_draw_line(points, moves, to_x),
            }
        )
    return panels


def _draw_line(
    points: Mapping[int, Row], moves: Sequence[tuple[int, int, bool]], to_x: Callable[[float], float]
) -> dict[str, Any]:
    """Draw shares by place with their band, steps between places, and true shares if there are any, as paths."""
    names = ("estimate", "low", "high", *(["true"] if all("true" in row for row in points.values()) else []))
    spans = {
        place: [100 * max(row[name], 0) / max(row["draws"], 1) for name in names]
        for place, row in sorted(points.items())
    }
    ticks = choose_ticks([0.0, *(end for span in spans.values() for end in span)])
    to_y = make_scale(ticks, _HEIGHT, _ABOVE)
    middle, low, high, *true = (
        {place: f"{to_x(place):.2f} {to_y(span[number]):.1f}" for place, span in spans.items()}
        for number in range(len(names))
    )
    noise, real = (
        " ".join(f"M{middle[start]}L{middle[end]}" for start, end, is_real in moves if is_real == wanted)
        for wanted in (False, True)
    )
    shares = [span[0] for span in spans.values()]
    return {
        "band": f"M{'L'.join([*high.values(), *[*low.values()][::-1]])}Z",
        "noise": noise,
        "real": real,
        # A line without length is a dot, which stays round where the picture is stretched.
        "dots": " ".join(f"M{point}h0" for point in middle.values()),
        "true": f"M{'L'.join(true[0].values())}" if true else "",
        "top": round(to_y(ticks[-1]), 1),
        "bottom": round(to_y(0), 1),
        "top_text": f"{ticks[-1]:g}%",
        "least": show_share(min(shares) / 100),
        "most": show_share(max(shares) / 100),
        "latest": show_share(shares[-1] / 100),
    }


def _describe_pair(pair: Row, labels: Mapping[int, str]) -> dict[str, Any]:
    names = {end: labels.get(pair[end]) or shorten(pair[f"{end}_written"]) for end in ("first", "second")}
    return {
        **names,
        "together": _show_count(pair["together"]),
        "expected": _show_count(pair["expected"]),
        "difference": _show_change(pair["difference"]),
        "interval": show_interval(pair["low"], pair["high"], _show_change),
    }
