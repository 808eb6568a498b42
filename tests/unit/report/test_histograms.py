"""Histograms: each bin that is not empty is visible."""

from __future__ import annotations

import pytest

from wordveil.report.histograms import draw_histogram
from wordveil.scores.counts import Bin


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
