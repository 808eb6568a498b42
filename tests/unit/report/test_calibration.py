"""What a calibration found, as sentences, tables and a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.calibrations import EPSILONS, make_calibration, make_meaning
from support.pages import ESCAPED, EVIL, check_alone, read_text
from wordveil.measures.calibration.figures import LikelyOutputs
from wordveil.report.calibration import (
    describe_found,
    describe_meaning,
    draw_histograms,
    draw_lines,
    render_calibration,
)
from wordveil.report.values import show_share

CALIBRATION = make_calibration()


def test_sentences_say_what_an_epsilon_means():
    found = CALIBRATION.found[0]
    interval = "2.85 (2.81 to 2.9, from draws, with a confidence of 95%); there it is 0.3."
    assert describe_found(found) == f"share_kept=0.3 needs epsilon {interval}"
    assert "2.9, computed)" in describe_found(replace(found, is_exact=True))
    text = " ".join(describe_meaning(make_meaning(10.0)))
    for words in (
        "At epsilon 10 a word comes back as itself in 71.3% of the draws.",
        "An attacker who knows word frequencies names at least 70.2% of the words (9.54% without looking).",
        "Where all words are equally likely, rare ones too, an attacker names 57.1% of the words (0.005% without",
        "No output changes the odds between any two words by more than e^29, except with a probability of 1e-12.",
        "the median loss is 9.",
    ):
        assert words in text, words
    text = " ".join(describe_meaning(replace(make_meaning(10.0), share_in_cluster=0.86)))
    assert "At epsilon 10 a word stays in its cluster in 86% of the draws" in text
    assert "71.3%" not in text
    bare = replace(make_meaning(10.0), recovery=None, nearest_loss=None, delta=0.0)
    text = " ".join(describe_meaning(bare))
    assert "e^29." in text
    for word in ("attacker", "probability", "neighbour"):
        assert word not in text


def test_the_page_is_one_file_with_all_of_it():
    page = render_calibration(CALIBRATION)
    check_alone(page)
    text = read_text(page)
    for words in (
        "What epsilon means: laplace",
        "share_kept=0.3 needs epsilon 2.85",
        "At epsilon 20 a word comes back",
        "average 125.8",
        "worst 473",
        "N_w, draws of 1,000",
        "train ferry",
        "Earth Mover&#39;s distance to the noisy points, with 50%: at most 230",
        "K_w what K_w is, in words.",
        "K_w is defined by this package.",
        "threshold of K_w and inputs 0.001",
    ):
        assert words.replace("train ferry", "ferry") in text, words
    assert page.count("<polyline") == 5
    chart = draw_histograms(CALIBRATION.meanings)[0][1][0]["chart"]
    average = next(mark for mark in chart["marks"] if mark["name"].startswith("average"))
    assert 30 < average["position"] < 40, "126 of 1,000 draws, where the columns end at 380"
    assert page.count("Histogram: N_w") == len(EPSILONS)


def test_lines_of_figures_far_apart_are_on_a_log_scale():
    shares = {"kept": [0.00007, 0.0, None], "in its cluster": [0.01, 0.1, 1.0]}
    panel = draw_lines("Words", [2.0, 4.0, 8.0], shares, show_share)
    kept, stays = (line["spots"] for line in panel["lines"])
    assert panel["title"] == "Words, log scale"
    assert [mark["text"] for mark in panel["up"]] == ["100%", "10%", "1%", "0.1%", "0.01%", "0.001%"]
    heights = [spot["y"] for spot in stays]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)
    assert (heights[2], len(kept)) == (panel["up"][0]["position"], 1), "no logarithm is 0"
    assert heights[0] < kept[0]["y"] < panel["bottom"]
    linear = draw_lines("Words", [2.0, 4.0], {"kept": [0.011, 1.0], "none": [0.0, 0.0]}, show_share)
    assert (linear["title"], linear["lines"][1]["spots"][0]["y"]) == ("Words", linear["up"][0]["position"])


def test_shares_are_shown_without_exponents():
    shown = [show_share(share) for share in (0.0, 1.13e-7, 1e-6, 0.000073, 0.2071, 1.0)]
    assert shown == ["0%", "under 0.0001%", "0.0001%", "0.0073%", "20.7%", "100%"]


def test_the_page_escapes_all_names():
    meaning = make_meaning(2.0)
    figure = replace(meaning.words[0], name=EVIL, definition=EVIL, worst_word=EVIL)
    example = LikelyOutputs(EVIL, ((EVIL, 0.5),), is_exact=True)
    meaning = replace(meaning, words=(figure,), examples=(example,), utility={EVIL: 1.0})
    found = replace(CALIBRATION.found[0], target=EVIL)
    page = render_calibration(
        replace(CALIBRATION, mechanism=EVIL, facts={EVIL: EVIL}, meanings=(meaning,), found=(found,), notes=(EVIL,))
    )
    assert ESCAPED in page
    check_alone(page)
