"""Settings of mechanisms refuse contradictions and say what enters a recipe; the keep-rate counts words alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest

from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.additive.hyperbolic import HyperbolicSettings
from wordveil.mechanisms.additive.laplace import LaplaceSettings
from wordveil.mechanisms.er_ae.mechanism import ErAeSettings
from wordveil.mechanisms.keep_rate import KeepRate, measure_keep_rate
from wordveil.mechanisms.registry import SHIPPED
from wordveil.mechanisms.settings import ComparisonTerms, MechanismSettings, MetricName
from wordveil.mechanisms.tables.exponential import ExponentialSettings

# Those of tree and staircase are plain or tested beside them.
EXPECTED: list[tuple[MechanismSettings, float, dict[str, object], str]] = [
    (
        ExponentialSettings(epsilon=4.0, gamma=2.5, neighbours=64, tight=True),
        4.0,
        {"epsilon": 4.0, "metric": "euclidean", "gamma": 2.5, "neighbours": 64, "tight": True},
        "x, gamma 2.5, neighbours 64",
    ),
    (LaplaceSettings(epsilon=8.0), 8.0, {"epsilon": 8.0, "search": "exact", "pad_height": None}, "x"),
    (
        LaplaceSettings(epsilon=8.0, search="annoy", n_trees=10, search_k=500, pad_height=2.0),
        8.0,
        {"epsilon": 8.0, "search": "annoy", "n_trees": 10, "search_k": 500, "pad_height": 2.0},
        "x",
    ),
    (HyperbolicSettings(epsilon=9.0), 9.0, {"epsilon": 9.0}, "x"),
    (
        ErAeSettings(epsilon=8.0, model="g.npz", choice="two-set", candidates=3),
        8.0,
        {"epsilon": 8.0, "model": "g.npz", "choice": "two-set", "candidates": 3, "corpus": "public"},
        "x",
    ),
]


@pytest.mark.parametrize(("settings", "epsilon", "recipe", "label"), EXPECTED)
def test_what_enters_a_recipe_and_how_people_see_it(settings, epsilon, recipe, label):
    assert settings.nominal_epsilon == epsilon
    assert settings.recipe() == recipe
    assert settings.terms.label("x") == label
    assert settings.has_epsilon() == (epsilon > 0)


@dataclass(frozen=True, kw_only=True)
class Lists(MechanismSettings):
    sizes: tuple[int, ...] = (10, 80)
    pairs: tuple[tuple[str, float], ...] = (("a", 0.5), ("b", 1.0))
    name: str | None = None


def test_tuples_are_lists_in_a_recipe():
    assert Lists().recipe() == {"sizes": [10, 80], "pairs": [["a", 0.5], ["b", 1.0]], "name": None}


def test_another_epsilon_changes_nothing_else():
    settings = LaplaceSettings(epsilon=8.0, search="annoy", n_trees=10, search_k=500)
    assert settings.at_epsilon(2.0) == LaplaceSettings(epsilon=2.0, search="annoy", n_trees=10, search_k=500)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"search": "annoy", "n_trees": 10}, "mechanism.search_k: is required with search: annoy"),
        ({"search": "annoy"}, "mechanism.n_trees: is required.*; mechanism.search_k: is required"),
        ({"n_trees": 10}, "mechanism.n_trees: is only for search: annoy"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        LaplaceSettings(epsilon=1.0, **settings)


def test_find_faults_skips_values_that_are_faulty():
    faults = LaplaceSettings.find_faults({"epsilon": -1, "search": "annoy"})
    assert [name for name, _ in faults] == ["n_trees", "search_k"]
    assert list(ExponentialSettings.find_faults({"epsilon": -1, "gamma": "x"})) == []


def test_every_space_is_a_metric_of_the_settings():
    assert set(get_args(MetricName)) == set(SPACES)
    assert all(ComparisonTerms(metric).metric in SPACES for metric in get_args(MetricName))


@pytest.mark.parametrize("metric", get_args(MetricName))
def test_mechanisms_are_compared_with_those_of_their_space(metric):
    terms = ComparisonTerms(metric, 20, 3.0)
    shown = {kind.name for kind in SHIPPED if kind.comparable_settings(terms)}
    additive = {"hyperbolic-laplace", "hyperbolic-fdd"} if metric == "hyperbolic" else {"laplace", "tree"}
    assert shown == {"staircase", "exponential", *additive}


SIZE = 4
PAD, UNKNOWN = SIZE, SIZE + 1


@pytest.mark.parametrize(
    ("before", "drawn", "rate"),
    [
        ([0, 1, 1, 3], [0, 1, 2, 0], KeepRate(2, 4)),
        ([PAD, 0, UNKNOWN, 2], [PAD, 0, UNKNOWN, PAD], KeepRate(1, 2)),
        ([], [], KeepRate(0, 0)),
        ([PAD, UNKNOWN], [PAD, UNKNOWN], KeepRate(0, 0)),
    ],
)
def test_words_alone_are_counted(before: list[int], drawn: list[int], rate: KeepRate):
    for kind in (np.int32, np.int64):
        found = measure_keep_rate(np.array(before, kind), np.array(drawn, np.int32), SIZE)
        assert found == rate
        assert found.rate == (rate.kept / rate.words if rate.words else None)


@pytest.mark.parametrize("drawn", [[0], [0, 1, 2], [[0], [1]]])
def test_arrays_of_other_shapes_are_refused(drawn):
    with pytest.raises(ValueError, match="one shape"):
        measure_keep_rate(np.array([0, 1], np.int32), np.array(drawn, np.int32), SIZE)
