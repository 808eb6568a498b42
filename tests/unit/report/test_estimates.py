"""The page of estimates: bars, lines and pairs, and what is within the noise."""

from __future__ import annotations

import re
from typing import Any

from support.pages import ESCAPED, EVIL, check_alone, read_text
from wordveil.report.estimates import draw_bars, draw_lines, render_estimates

LABELS = {0: "heat", 1: "noise"}


def make_row(symbol: int = 0, estimate: float = 50.0, draws: int = 100, **columns: Any) -> dict[str, Any]:
    figures = {"low": estimate - 5, "high": estimate + 5, "low_of_all": estimate - 10, "high_of_all": estimate + 10}
    clipped = {name: min(max(value, 0.0), draws) for name, value in figures.items()}
    words = {"written": f"passage {symbol}", "keywords": f"one two three four five six{symbol}", "size": 3}
    counts = {"draws": draws, "drawn": 40, "estimate": estimate, "share": estimate / draws, "rank": symbol + 1}
    return {"symbol": symbol, **words, **counts, **clipped, **columns}


def make_step(before: int, symbol: int = 0, more_than_noise: bool = True, **columns: Any) -> dict[str, Any]:
    figures = {"difference": 0.1, "low": 0.05, "high": 0.15, "more_than_noise": more_than_noise}
    return {"week_before": before, "week": before + 1, "symbol": symbol, **figures, **columns}


def make_pair(first: int, difference: float, more_than_chance: bool = True) -> dict[str, Any]:
    written = {"first_written": f"left{first}", "second_written": "right"}
    ends = {"low": difference - 2, "high": difference + 2, "more_than_chance": more_than_chance}
    return {"first": first, "second": 99, **written, "together": 9.0, "expected": 4.0, "difference": difference, **ends}


def render(rows: list[dict[str, Any]], by: tuple[str, ...] = (), over: str | None = None, **given: Any) -> str:
    values = {"table": "published", "version": 3, "unit": "texts", "trends": (), "pairs": (), **given}
    return render_estimates(by=by, over=over, rows=rows, **values)


def list_paths(page: str, name: str) -> list[str]:
    return re.findall(rf'<path class="{name}" d="([^"]*)"', page)


def test_page_escapes_all_that_a_table_says():
    rows = [make_row(keywords=EVIL, written=f'"{EVIL}', **{EVIL: EVIL, "<week": week}) for week in ("<1", "<2")]
    step = {**make_step(0), EVIL: EVIL, "<week_before": "<1", "<week": "<2"}
    pair = {**make_pair(5, 3.0), "first_written": EVIL}
    page = render(rows, (EVIL, "<week"), "<week", table=EVIL, trends=[step], pairs=[pair], notes=[EVIL])
    check_alone(page)
    assert page.count(ESCAPED) > 10
    assert not re.search("<(week|[12])", page)


def test_negative_estimate_is_shown_as_none_with_interval():
    (bar,) = draw_bars([make_row(estimate=-2.0)], LABELS)
    assert (bar["estimate"], bar["low"], bar["count"], bar["interval"], bar["share"]) == (0, 0, "0", "0 to 3", "0%")
    assert bar["high"] == 7.5, "in percent of the count drawn, the largest number"


def test_bars_have_the_highest_estimates_within_one_scale():
    rows = [make_row(symbol, float(symbol), drawn=symbol) for symbol in range(20)]
    bars = draw_bars(rows, {symbol: str(symbol) for symbol in range(20)})
    assert [bar["label"] for bar in bars] == [str(symbol) for symbol in range(19, 4, -1)]
    assert (bars[0]["high_of_all"], bars[0]["estimate"]) == (100, round(100 * 19 / 29, 2))


def test_bar_whose_widest_interval_has_none_is_noise():
    page = render([make_row(0, 12.0), make_row(1, 9.0)])
    assert "1 of 2 subjects stand out from none" in read_text(page)
    assert re.findall(r'<div class="estimate( noise)?">', page) == ["", " noise"]
    assert re.findall(r"drawn 40(; within the noise)?", page) == ["", "; within the noise"]


def test_true_count_is_drawn_and_compared_with_its_interval():
    rows = [make_row(0, 12.0, true=60), make_row(1, 9.0, true=14)]
    page, text = render(rows), read_text(render(rows))
    check_alone(page)
    assert re.findall(r"(\d+) \(\d+ to \d+\) true (\d+)", text) == [("12", "60"), ("9", "14")]
    assert "1 of the 2 intervals hold the true count" in text
    assert re.findall(r'<svg x="([\d.]+)%"><path class="true"', page)[1:] == ["100.0", "23.33"], "after the key"
    assert "only a trial, such as the quickstart, can show them" in text
    assert "true" not in read_text(render([make_row()]))


def test_labels_are_keywords_or_the_written_word():
    rows = [make_row(0), make_row(1, keywords=""), make_row(2, keywords="", written="")]
    assert re.findall(r'<div class="label"[^>]*>([^<]*)', render(rows)) == [
        "one two three four five",
        "symbol 1: no known word",
        "symbol 2: no known word",
    ]
    assert re.findall(r'<div class="label"[^>]*>([^<]*)', render(rows, unit="words"))[1] == "passage 1"


def test_page_without_rows_says_that_nothing_was_drawn():
    page = render([], ("product", "week"), "week")
    check_alone(page)
    assert "The table has no draws" in page
    assert "<h2>" not in page


def test_small_groups_are_left_out_and_counted():
    rows = [make_row(draws=100 + number, product=f"p{number}") for number in range(14)]
    page = render(rows, ("product",))
    assert re.findall(r"product (p\d+)", read_text(page)) == [f"p{number}" for number in range(13, 1, -1)]
    assert "2 more are left out" in page
    assert "9 more groups" in page


def test_null_value_is_a_group_but_no_point_of_a_line():
    rows = [make_row(product=product, week=week) for product in (None, "") for week in (None, 1, 2)]
    page = render(rows, ("product", "week"), "week", trends=[make_step(1, product=None)])
    assert "product (none), week (none)" in read_text(page)
    assert "product (empty), week 2" in read_text(page)
    assert [dots.count("M") for dots in list_paths(page, "dots")] == [2, 2]
    assert [path.count("M") for path in list_paths(page, "beyond")] == [1, 0]


def test_steps_more_than_noise_are_drawn_strong():
    rows = [make_row(symbol, 20.0 + 30 * symbol, week=week) for symbol in (0, 1) for week in (40, 1, 2)]
    steps = [make_step(1, 0, more_than_noise=False), make_step(2, 0, week=40), make_step(1, 1, more_than_noise=False)]
    first, second = draw_lines(rows, steps, "week", LABELS)
    assert (first["label"], second["label"]) == ("heat", "noise"), "the one with a real step first"
    assert (first["real_steps"], first["steps"], second["real_steps"]) == (1, 2, 0)
    points = [point.removesuffix("h0") for point in first["dots"][1:].split(" M")]
    assert first["noise"] == f"M{points[0]}L{points[1]}"
    assert first["real"] == f"M{points[1]}L{points[2]}"
    assert (second["real"], first["first"], first["last"]) == ("", "1", "40")


def test_band_is_the_interval_as_a_share():
    (line,) = draw_lines([make_row(week=1, estimate=-1.5, draws=50)], [], "week", LABELS)
    high, low = (float(point.split()[1]) for point in line["band"][1:-1].split("L"))
    assert low == line["bottom"], "of an estimate below none"
    assert (line["top_text"], line["latest"]) == ("8%", "0%")
    assert high == round(low + (line["top"] - low) * 7 / 8, 1)


def test_true_shares_are_a_line_on_the_scale_of_estimates():
    rows = [make_row(week=week, estimate=10.0, true=true) for week, true in ((1, 10), (2, 40))]
    assert list_paths(render(rows, ("week",), "week"), "truth") == [draw_lines(rows, [], "week", LABELS)[0]["true"]]
    (line,) = draw_lines(rows, [], "week", LABELS)
    first, last = line["true"].removeprefix("M").split("L")
    assert line["dots"].startswith(f"M{first}h0 ")
    assert (line["top_text"], float(last.split()[1])) == ("40%", line["top"])
    assert draw_lines([make_row(week=1)], [], "week", LABELS)[0]["true"] == ""


def test_pairs_more_than_chance_come_by_difference():
    pairs = [make_pair(1, 5.0), make_pair(2, 8.4), make_pair(3, 1.0, more_than_chance=False)]
    text = read_text(render([make_row()], pairs=pairs))
    assert "2 of 3 pairs come together in one record more often than by chance. The other 1" in text
    assert re.findall(r"left\d and right", text) == ["left2 and right", "left1 and right"]
    assert "+8 (+6 to +10)" in text
    assert "What comes together" not in render([make_row()])
