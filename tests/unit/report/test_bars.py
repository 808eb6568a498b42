"""Bars and histograms: each is visible, bars on one scale with their marks."""

from __future__ import annotations

import pytest

from wordveil.report.bars import Bar, draw_bars, draw_histogram
from wordveil.scores.counts import Bin


def test_bars_of_large_shares_are_linear():
    chart = draw_bars(
        [Bar("authors", 0.4, "0.400", low=0.3, high=0.5, chance=0.001, original=0.75), Bar("none", 0, "0")]
    )
    assert (chart["ticks"], chart["grid"]) == ([], [])
    row, nothing = chart["rows"]
    assert {name: row[name] for name in ("share", "reach", "low", "high", "chance", "original")} == {
        "share": 40.0,
        "reach": None,
        "low": 30.0,
        "high": 50.0,
        "chance": 0.1,
        "original": 75.0,
    }
    assert (nothing["share"], nothing["chance"]) == (0, None)


@pytest.mark.parametrize("small", [0.0099, 0.001, 0.00034, 1e-5])
def test_bars_beside_a_small_share_are_logarithmic(small: float):
    """The smallest bar and the largest are visible, tenfold shares are equally far apart, and 0 stays at 0."""
    chart = draw_bars([Bar(str(share), share, str(share)) for share in (small, 10 * small, 1.0, 0.0)])
    lengths = [row["share"] for row in chart["rows"]]
    decade = 100 / (len(chart["grid"]) + 1)
    assert 0 < lengths[0] <= decade + 0.01
    assert lengths[1] - lengths[0] == pytest.approx(decade, abs=0.02)
    assert lengths[2:] == [100.0, 0.0]
    ends = chart["ticks"][0], chart["ticks"][-1]
    assert [tick["position"] for tick in ends] == [0.0, 100.0]
    assert float(ends[0]["text"]) == pytest.approx(10.0 ** -(len(chart["grid"]) + 1))
    assert ends[1]["text"] == "1"


def test_marks_of_a_logarithmic_chart_are_on_its_scale():
    row, _ = draw_bars([Bar("linked", 0.008, "", low=0.0, high=0.1, chance=0.0001), Bar("named", 0.8, "")])["rows"]
    assert (row["chance"], row["high"], row["low"]) == (20.0, 80.0, 0.0)
    assert row["chance"] < row["share"] < row["high"]


def test_bars_below_a_millionth_have_no_length():
    tiny, whole = (draw_bars([Bar("", 1e-8, ""), Bar("", 1.0, "")])["rows"][number]["share"] for number in (0, 1))
    assert (tiny, whole) == (0.0, 100.0)


def test_histogram_of_like_counts_is_linear():
    chart = draw_histogram([Bin(0, 9, 50), Bin(10, 19, 100), Bin(20, None, 0)])
    assert chart is not None
    assert [column["height"] for column in chart["columns"]] == [75.0, 150.0, 0.0]
    assert [column["tick"] for column in chart["columns"]] == ["0", "10", "20+"]
    assert chart["grid"] == []


def test_histogram_with_a_rare_bin_is_logarithmic():
    chart = draw_histogram([Bin(0, 0, 99_500), Bin(1, 1, 0), Bin(2, None, 1)])
    assert chart is not None
    assert [column["height"] for column in chart["columns"]] == [150.0, 0.0, pytest.approx(9, abs=0.1)]
    assert len(chart["grid"]) == 5, "1 to 10,000"
    steps = [upper - lower for lower, upper in zip(chart["grid"][1:], chart["grid"][2:], strict=False)]
    assert steps == pytest.approx([30, 30, 30], abs=1.5)
