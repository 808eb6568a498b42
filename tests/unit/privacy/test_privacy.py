"""The price of a record: what one token costs times the tokens that are paid for, and a pure epsilon only where any two
texts are covered."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from wordveil.privacy.events import Composition, ReleaseTerms, price
from wordveil.privacy.guarantees import Metric, WordGuarantee
from wordveil.privacy.relations import Relation

METRIC = Metric("euclidean", "1f0c9a" + "0" * 58)
TOKEN = WordGuarantee(METRIC, nominal_epsilon=2.0, epsilon=3.0, diameter=5.0, slack=0.25)


def terms(composition=Composition.SEQUENCE, relation=Relation.ANY_TEXT, n_max=None):
    return ReleaseTerms("r", "laplace", "f", TOKEN, composition, relation, (), n_max, "exact", 1.0)


@pytest.mark.parametrize(
    ("distance", "loss"),
    [(0.0, 0.25), (1.0, 3.25), (4.999, 3.0 * 4.999 + 0.25), (5.0, 15.25), (5.001, 15.25), (math.inf, 15.25)],
)
def test_the_loss_is_bounded_at_every_distance(distance, loss):
    assert TOKEN.bound(distance) == loss


def test_bound_is_at_most_the_largest_computed_loss():
    exact = replace(TOKEN, largest=7.0)
    found = [exact.bound(distance) for distance in (0.0, 2.0, 2.25, 2.5, 5.0, math.inf)]
    assert found == [0.25, 6.25, 7.0, 7.0, 7.0, 7.0]
    assert exact.pure == 7.0
    assert replace(TOKEN, largest=0.125).bound(0.0) == 0.125


@pytest.mark.parametrize("distance", [math.nan, -1.0, -1e-300, -math.inf])
def test_what_is_no_distance_has_no_bound(distance):
    with pytest.raises(ValueError, match="distance"):
        TOKEN.bound(distance)


@pytest.mark.parametrize("composition", Composition)
@pytest.mark.parametrize("drawn", [0, 1, 64])
def test_price_is_of_tokens_drawn_or_of_the_public_number(composition, drawn):
    visible = price(terms(composition, Relation.SAME_LENGTH), drawn)
    assert (visible.tokens, visible.epsilon_bound) == (drawn, drawn * 15.25)
    hidden = price(terms(composition, n_max=64), drawn)
    assert (hidden.tokens, hidden.epsilon_bound, hidden.epsilon_pure) == (64, 64 * 15.25, 64 * 15.25)


def test_price_of_corpus_weights_pays_for_all_records():
    paid = price(replace(terms(Composition.CORPUS, n_max=64), max_records=100), 3)
    assert (paid.tokens, paid.epsilon_pure) == (6400, 6400 * 15.25)


@pytest.mark.parametrize(
    ("relation", "pure"), [(Relation.ANY_TEXT, 30.5), (Relation.SAME_LENGTH, None), (Relation.SAME_SKELETON, None)]
)
def test_a_pure_epsilon_is_stated_for_any_text_alone(relation, pure):
    paid = price(terms(relation=relation, n_max=2), 2)
    assert paid.epsilon_pure == pure
    assert paid.epsilon_bound == 30.5


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e-300])
@pytest.mark.parametrize("name", ["nominal_epsilon", "epsilon", "diameter", "slack", "delta"])
def test_guarantee_that_is_no_finite_constant_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        WordGuarantee(METRIC, **{"nominal_epsilon": 1.0, "epsilon": 1.0, "diameter": 1.0, name: value})


def test_guarantee_of_zero_loses_nothing():
    nothing = WordGuarantee(METRIC, 0.0, 0.0, 1.0)
    assert [nothing.bound(distance) for distance in (0.0, 1.0, math.inf)] == [0.0, 0.0, 0.0]
    assert WordGuarantee(METRIC, 0.0, 0.0, 0.0).pure == 0


def test_metric_is_identified_by_name_and_points():
    assert METRIC.identifier == "euclidean:1f0c9a0000000000"
