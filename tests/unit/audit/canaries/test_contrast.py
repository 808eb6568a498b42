"""The test of two samples: valid under one law, powerful under two, and without power in few copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact

from wordveil.audit.canaries.audit import ReleaseClaim, judge_differences, judge_exposures
from wordveil.audit.canaries.compare import Contrast, Difference, find_contrast, find_least_hits
from wordveil.audit.findings import Verdict
from wordveil.privacy.relations import Exposure


@pytest.mark.parametrize("is_ordered", [False, True])
def test_p_values_of_one_law_are_not_too_small(is_ordered: bool):
    rng = np.random.default_rng(7)
    found = [
        find_contrast(*rng.integers(0, 5, (2, 60)).tolist(), is_ordered=is_ordered).p_value  # type: ignore[union-attr]
        for _ in range(400)
    ]
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(found) <= level) <= level + 3 * np.sqrt(level / 400)
    assert np.mean(found) < 0.95


def test_two_laws_are_told_apart():
    rng = np.random.default_rng(8)
    one, other = rng.binomial(1, 0.9, 64).tolist(), rng.binomial(1, 0.1, 64).tolist()
    for first, second in ((one, other), (other, one)):
        contrast = find_contrast(first, second)
        assert contrast is not None
        assert contrast.p_value < 1e-6
        table = [[hits, draws - hits] for hits, draws in zip(contrast.hits, contrast.draws, strict=True)]
        assert contrast.p_value == pytest.approx(fisher_exact(table, "greater").pvalue)
    assert find_contrast(one, one).p_value > 0.05  # type: ignore[union-attr]


def test_ranges_and_values_that_never_repeat():
    rng = np.random.default_rng(9)
    low, high = rng.normal(0, 1, 64).tolist(), rng.normal(4, 1, 64).tolist()
    for first, second in ((low, high), (high, low)):
        assert find_contrast(first, second, is_ordered=True).p_value < 1e-6  # type: ignore[union-attr]
    assert find_contrast(low, [0.0] * 64).p_value < 1e-12  # type: ignore[union-attr]
    assert find_contrast([0.0] * 64, low).p_value < 1e-12  # type: ignore[union-attr]


def test_too_few_values():
    assert find_contrast([1, 2, 3], [1, 2, 3, 4]) is None
    assert find_least_hits(3, 1e-6) is None
    assert find_least_hits(16, 0.5) == 1


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
