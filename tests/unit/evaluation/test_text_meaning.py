"""What epsilon keeps of subjects of whole texts, and links, by the law that a build certifies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wordveil.evaluation.text_meaning import CLUSTERS, measure_text_meaning


def test_each_epsilon_has_the_configured_number_too():
    rows = measure_text_meaning((4.0, 6.0), 50)
    assert [(row.epsilon, row.clusters) for row in rows] == [
        (e, k) for e in (4.0, 6.0) for k in sorted({*CLUSTERS, 50})
    ]


@pytest.mark.parametrize(("epsilon", "clusters"), [(4.0, 16), (6.0, 100), (8.0, 400)])
def test_links_are_those_of_an_attacker_who_knows_all_subjects(epsilon: float, clusters: int):
    """100,000 draws of 10,000 records of equally frequent subjects; the attacker guesses inside the drawn subject."""
    (row,) = (row for row in measure_text_meaning((epsilon,), clusters) if row.clusters == clusters)
    rng = np.random.default_rng(0)
    stays = rng.random(100_000) < math.exp(epsilon) / (math.exp(epsilon) + clusters)
    assert stays.mean() == pytest.approx(row.stays, abs=0.005)
    assert (stays / (10_000 / clusters)).mean() == pytest.approx(row.linked, rel=0.01)
    assert row.linked < row.at_most == pytest.approx(1 / (1 + 9_999 * math.exp(-epsilon)))
