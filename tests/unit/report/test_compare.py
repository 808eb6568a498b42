"""Two evaluations side by side: the same figure beside the same, and what their difference says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.evaluations import make_attack, make_evaluation, make_score
from wordveil.report.compare import Change, ScorePair, compare_evaluations, render_comparison

EXACT = {"low": None, "high": None}
INFINITE = float("inf")
FIRST = make_evaluation(0.4, 0.7)
SECOND = make_evaluation(0.2, 0.71, title="Evaluation of support, epsilon 4")


def test_equal_figures_stand_beside_each_other():
    found = compare_evaluations(FIRST, SECOND)
    assert len(found.pairs) == len(FIRST.scores)
    assert all(one.first.key == one.second.key and one.first.subject == one.second.subject for one in found.pairs)
    assert found.alone == ()
    attack = found.pairs[2]
    assert (attack.first.value, attack.second.value, attack.difference) == (0.4, 0.2, -0.2)
    assert (attack.do_intervals_overlap, attack.change) == (False, Change.BETTER)
    utility = found.pairs[5]
    assert (utility.do_intervals_overlap, utility.change) == (True, Change.UNCLEAR)
    assert found.pairs[0].change == Change.SAME


@pytest.mark.parametrize(
    ("first", "second", "difference", "overlap", "change"),
    [
        (make_score("a", 0.5), make_score("a", 0.6), 0.1, False, Change.BETTER),
        (make_score("a", 0.6), make_score("a", 0.5), -0.1, False, Change.WORSE),
        (make_attack("a", 0.5), make_attack("a", 0.6), 0.1, False, Change.WORSE),
        (make_score("a", 0.5), make_score("a", 0.54), 0.04, True, Change.UNCLEAR),
        (make_score("a", 0.5), make_score("a", 0.6, higher_is_better=None), 0.1, False, Change.BETTER),
        (make_score("a", 0.5, higher_is_better=None), make_score("a", 0.6), 0.1, False, Change.OTHER),
        (make_score("a", 5.0, **EXACT), make_score("a", 5.0, **EXACT), 0, True, Change.SAME),
        (make_score("a", 5.0, **EXACT), make_score("a", 5.1, **EXACT), 0.1, False, Change.BETTER),
        (make_attack("a", 8.0, **EXACT), make_attack("a", INFINITE, **EXACT), INFINITE, False, Change.WORSE),
        (make_score("a", None), make_score("a", 0.5), None, None, None),
        (make_score("a", INFINITE), make_score("a", INFINITE), None, True, Change.SAME),
    ],
)
def test_difference_is_judged_by_its_intervals_and_direction(first, second, difference, overlap, change):
    pair = ScorePair(first, second)
    assert pair.difference == (None if difference is None else pytest.approx(difference))
    assert (pair.do_intervals_overlap, pair.change) == (overlap, change)


def test_figures_of_one_alone_are_named():
    second = replace(SECOND, scores=(*SECOND.scores[1:], make_score("release", 0.5, task="sst2")))
    found = compare_evaluations(FIRST, second, ("old", "new"))
    assert [(name, score.subject, score.task) for name, score in found.alone] == [
        ("old", "original", "authors"),
        ("new", "release", "sst2"),
    ]


def test_merged_evaluations_hold_what_is_equal_once():
    compared = compare_evaluations(FIRST, SECOND, ("old", "new"))
    assert {score.subject for score in compared.merge_scores()} == {"original", "old: release", "new: release"}
    assert compared.facts == {"release": ("support", "support"), "epsilon": ("8", "8")}
    assert compared.is_private
    assert not compare_evaluations(replace(FIRST, is_private=False), replace(SECOND, is_private=False)).is_private


def test_the_page_shows_both_and_their_difference():
    page = render_comparison(compare_evaluations(FIRST, SECOND, ("old", "new")))
    for shown in (
        "old and new",
        "old: release",
        "new: release",
        "\N{MINUS SIGN}0.200",
        'class="good">better',
        "Internal.",
    ):
        assert shown in page
    empty = render_comparison(compare_evaluations(FIRST, replace(SECOND, scores=())))
    assert "no figure in common" in empty
    assert "Measured once" in empty
