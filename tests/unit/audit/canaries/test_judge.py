"""Copies of a document that are too few to show anything refute nothing, and say so."""

from __future__ import annotations

import pytest

from wordveil.audit.canaries.audit import ReleaseClaim, judge_differences, judge_exposures
from wordveil.audit.canaries.compare import Contrast, Difference
from wordveil.audit.findings import Verdict
from wordveil.privacy.relations import Exposure


@pytest.mark.parametrize(
    ("draws", "alpha", "verdict"),
    [(32, 0.01, Verdict.NOT_REFUTED), (4, 0.01, Verdict.NO_POWER), (32, 1e-30, Verdict.NO_POWER)],
)
def test_few_copies_or_a_tiny_alpha_have_no_power(draws, alpha, verdict):
    same = Difference("case", "the text", None, frozenset(), Contrast("one value", (1, 1), (draws, draws), 0.8))
    (finding,) = judge_differences([same], ReleaseClaim("any_text", (), frozenset()), alpha)
    assert finding.verdict is verdict


@pytest.mark.parametrize(("draws", "verdict"), [(32, Verdict.REFUTED), (4, Verdict.NO_POWER)])
def test_what_few_copies_cannot_show_is_not_said_to_be_absent(draws, verdict):
    shown = frozenset({Exposure.LENGTH})
    same = Difference("length", "the text", Exposure.LENGTH, shown, Contrast("one value", (1, 1), (draws, draws), 0.8))
    (finding,) = judge_exposures([same], ReleaseClaim("same_length", (str(Exposure.LENGTH),), frozenset()), 0.01, {})
    assert finding.verdict is verdict
