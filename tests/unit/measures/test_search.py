"""One search finds the epsilon of a figure, in few builds, and all its callers get the same answer."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.toys import random_embedding, toy_embedding
from wordveil.errors import BundleError
from wordveil.measures import comparison
from wordveil.measures.calibration.meaning import Subject
from wordveil.measures.calibration.targets import find_target
from wordveil.measures.comparison import SentenceComparison, compare
from wordveil.measures.search import Matcher, find_epsilon, find_loss, make_candidate
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import ComparisonTerms, MechanismSettings
from wordveil.mechanisms.tables.exponential import ExponentialSettings
from wordveil.text.policy import with_profile

LOSSES = {
    "line": lambda epsilon: epsilon,
    "square": lambda epsilon: epsilon**2.03,
    "fourth power": lambda epsilon: epsilon**4,
    "root": lambda epsilon: 0.4 * epsilon**0.3,
    "bend": lambda epsilon: epsilon + max(0.0, epsilon - 5) ** 3,
    "nearly flat": lambda epsilon: 9.0 + epsilon / 20,
    "jump": lambda epsilon: epsilon if epsilon < 7 else epsilon + 10,
}


class Builds:
    """Builds what has a known loss, and lists the epsilons of the builds."""

    def __init__(self, grow: Any) -> None:
        self.grow, self.epsilons = grow, []

    def __call__(self, epsilon: float) -> Any:
        self.epsilons.append(epsilon)
        return SimpleNamespace(guarantee=SimpleNamespace(pure=self.grow(epsilon)))


@pytest.mark.parametrize("start", [1.0, 12.0, 900.0])
@pytest.mark.parametrize("name", LOSSES)
def test_find_loss_any_growth_nearly_met_never_exceeded(name: str, start: float):
    builds = Builds(LOSSES[name])
    epsilon, built = find_loss(builds, 12.0, start)
    assert built.guarantee.pure == builds.grow(epsilon) <= 12.0
    assert builds.grow(epsilon * 1.0201) > 12.0
    assert epsilon == float(f"{epsilon:.3g}")
    assert len(builds.epsilons) == len(set(builds.epsilons)) <= 14


def test_what_cannot_be_reached_or_built_bounds_the_search():
    builds = Builds(lambda epsilon: 30 + epsilon)
    assert find_loss(builds, 12.0, 1.0, 0.01) is None
    assert len(builds.epsilons) <= 12

    def build(epsilon: float) -> Any:
        if epsilon < 6.5:
            raise BundleError("too large")
        return SimpleNamespace(guarantee=SimpleNamespace(pure=epsilon))

    assert find_loss(build, 12.0, 1.0)[0] == 12.0
    assert find_loss(build, 5.0, 20.0) is None
    with pytest.raises(BundleError):
        find_loss(lambda _: build(1.0), 5.0, 1.0)


@pytest.mark.parametrize("start", [0.1, 3.0, 1e4])
def test_a_share_is_found_from_either_side_in_few_measurements(start: float):
    measured: list[float] = []

    def share(epsilon: float) -> float:
        measured.append(epsilon)
        return epsilon**4 / (50 + epsilon**4)

    crossing = find_epsilon(share, 0.3, start)
    assert crossing.is_reached
    assert crossing.epsilon == pytest.approx((50 * 0.3 / 0.7) ** 0.25, rel=1e-3)
    assert len(measured) == len(set(measured)) <= 16


def test_an_end_of_the_range_is_told_with_what_it_gives():
    over = find_epsilon(lambda epsilon: epsilon / 10, 0.9, 1.0, 0.5, 5.0)
    under = find_epsilon(lambda epsilon: epsilon / 10, 0.048, 1.0, 0.5, 5.0)
    assert (over.is_reached, over.is_near, over.epsilon) == (False, False, 5.0)
    assert (under.is_reached, under.is_near, under.ratio) == (False, True, pytest.approx(0.05 / 0.048))
    # No measurement is outside of it, and a figure that falls by noise does not end it.
    measured: list[float] = []
    crossing = find_epsilon(lambda epsilon: measured.append(epsilon) or epsilon, 1e-9, 1.0, 9.009, 300.0)
    assert crossing.epsilon == min(measured) == 9.009
    assert find_epsilon(lambda epsilon: 0.01 if 1 < epsilon < 25 else epsilon / 50, 0.9, 1.0).is_reached


EMBEDDING = random_embedding(100, 4)
BALL = toy_embedding(EMBEDDING.words.to_pylist(), EMBEDDING.vectors * np.float32(0.1))
NEIGHBOURS = 20
EMBEDDINGS = {"euclidean": EMBEDDING, "hyperbolic": BALL}
GAMMAS = {metric: comparison.measure_cut(Matcher(made), metric, NEIGHBOURS) for metric, made in EMBEDDINGS.items()}
FREE = [
    pytest.param(metric, name, settings, id=f"{metric}, {settings.terms.label(name)}")
    for metric, gamma in GAMMAS.items()
    for name, kind in MECHANISMS.items()
    for settings in kind.comparable_settings(ComparisonTerms(metric, NEIGHBOURS, gamma))
    if settings.has_epsilon()
]


@cache
def compare_at(metric: str, epsilon: float, *, capped: bool) -> SentenceComparison:
    """The comparison with the exponential mechanism, which costs up to ten times its epsilon."""
    gamma = 1.5 * GAMMAS[metric] if capped else None
    configured = ExponentialSettings(epsilon=epsilon, metric=metric, neighbours=NEIGHBOURS, gamma=gamma)
    policy = with_profile("readable", stop_word_list=("and", "the"))
    return compare(EMBEDDINGS[metric], policy, "exponential", configured, "waab")


@pytest.mark.parametrize(("metric", "name", "settings"), FREE)
def test_one_question_has_one_answer(metric: str, name: str, settings: MechanismSettings):
    """Plan, calibrate and the laboratory begin elsewhere, and end at the same epsilon."""
    embedding = EMBEDDINGS[metric]
    # A mechanism is not compared with itself.
    compared = compare_at(metric, 8.0, capped=name == "exponential" and settings.gamma is None)
    candidate, pure = make_candidate(name, settings), compared.configured.pure
    lines = {line.mechanism: line for line in compared.equal_pure}
    found = Matcher(embedding).at_loss(candidate, pure)
    if found is None:
        assert candidate.label not in lines
        return
    line, target = lines[candidate.label], find_target(Subject(name, settings, embedding), "pure_epsilon", pure)
    assert line.epsilon == target.epsilon
    assert target.epsilon == pytest.approx(found.epsilon, rel=0.01)
    assert line.pure == pytest.approx(target.reached, rel=1e-5)
    assert line.pure <= pure
    assert 0.995 * line.pure <= found.built.guarantee.pure <= pure
