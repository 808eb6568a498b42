"""The price of a record: what one token costs times the tokens that are paid for, and a pure epsilon only where any two
texts are covered."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from support.toys import spiral_embedding, write_toy_bundle
from wordveil.artifacts.bundle import open_bundle
from wordveil.privacy.events import Composition, ReleaseTerms, price
from wordveil.privacy.guarantees import Metric, WordGuarantee
from wordveil.privacy.relations import Relation, column_exposure

METRIC = Metric("euclidean", "1f0c9a" + "0" * 58)
TOKEN = WordGuarantee(METRIC, nominal_epsilon=2.0, epsilon=3.0, diameter=5.0, slack=0.25)


def terms(composition=Composition.SEQUENCE, relation=Relation.ANY_TEXT, n_max=None):
    return ReleaseTerms("r", "laplace", "f", TOKEN, composition, relation, (), n_max, "exact", 1.0)


def test_a_token_costs_the_true_constant_times_the_diameter_and_the_slack():
    assert TOKEN.pure == 3.0 * 5.0 + 0.25


@pytest.mark.parametrize(
    ("distance", "loss"),
    [
        (0.0, 0.25),
        (1.0, 3.25),
        (4.999, 3.0 * 4.999 + 0.25),
        (5.0, 15.25),
        (5.001, 15.25),
        (1e300, 15.25),
        (math.inf, 15.25),
    ],
)
def test_the_loss_is_bounded_at_every_distance(distance, loss):
    assert TOKEN.bound(distance) == loss


def test_no_bound_exceeds_the_largest_loss_that_the_build_computed():
    exact = replace(TOKEN, largest=7.0)
    assert [exact.bound(distance) for distance in (0.0, 2.0, 2.25, 2.5, 5.0, math.inf)] == [
        0.25,
        6.25,
        7.0,
        7.0,
        7.0,
        7.0,
    ]
    assert exact.pure == 7.0
    assert replace(TOKEN, largest=0.125).bound(0.0) == 0.125


def test_a_mechanism_that_hides_everything_loses_nothing_at_any_distance():
    nothing = WordGuarantee(METRIC, 0.0, 0.0, 1.0)
    assert [nothing.bound(distance) for distance in (0.0, 1.0, math.inf)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("distance", [math.nan, -1.0, -1e-300, -math.inf])
def test_what_is_no_distance_has_no_bound(distance):
    with pytest.raises(ValueError, match="distance"):
        TOKEN.bound(distance)


@pytest.mark.parametrize("composition", Composition)
@pytest.mark.parametrize("drawn", [0, 1, 4, 1000])
def test_visible_length_pays_for_the_tokens_drawn(composition, drawn):
    paid = price(terms(composition, Relation.SAME_LENGTH), drawn)
    assert (paid.tokens, paid.epsilon_bound) == (drawn, drawn * 15.25)


@pytest.mark.parametrize("composition", Composition)
@pytest.mark.parametrize("drawn", [0, 1, 64])
def test_hidden_length_pays_for_the_public_number_whatever_was_drawn(composition, drawn):
    paid = price(terms(composition, n_max=64), drawn)
    assert (paid.tokens, paid.epsilon_bound, paid.epsilon_pure) == (64, 64 * 15.25, 64 * 15.25)


def test_a_record_pays_for_all_that_is_ever_drawn_from_weights_that_the_corpus_trained():
    paid = price(replace(terms(Composition.CORPUS, n_max=64), max_records=100), 3)
    assert (paid.tokens, paid.epsilon_pure) == (6400, 6400 * 15.25)


@pytest.mark.parametrize(
    ("relation", "pure"), [(Relation.ANY_TEXT, 30.5), (Relation.SAME_LENGTH, None), (Relation.SAME_SKELETON, None)]
)
def test_a_pure_epsilon_is_stated_for_any_text_alone(relation, pure):
    paid = price(terms(relation=relation, n_max=2), 2)
    assert paid.epsilon_pure == pure
    assert paid.epsilon_bound == 30.5


@pytest.mark.parametrize(
    ("name", "value"),
    list(itertools.product(("nominal_epsilon", "epsilon", "diameter"), (math.nan, math.inf, -math.inf, -1.0, -1e-300))),
)
def test_guarantee_refuses_what_is_no_finite_constant(name, value):
    constants = {"nominal_epsilon": 1.0, "epsilon": 1.0, "diameter": 1.0, name: value}
    with pytest.raises(ValueError, match=name):
        WordGuarantee(METRIC, **constants)


@pytest.mark.parametrize(("name", "value"), list(itertools.product(("slack", "delta"), (math.nan, math.inf, -1.0))))
def test_guarantee_refuses_slack_and_delta_that_would_lower_or_lose_the_price(name, value):
    with pytest.raises(ValueError, match=name):
        WordGuarantee(METRIC, 1.0, 1.0, 1.0, **{name: value})


def test_guarantee_of_zero_is_a_guarantee():
    assert WordGuarantee(METRIC, 0.0, 0.0, 0.0).pure == 0


def test_guarantee_comes_back_from_plain_values():
    assert WordGuarantee.from_dict(TOKEN.to_dict()) == TOKEN


def test_metric_is_identified_by_name_and_points():
    assert METRIC.identifier == "euclidean:1f0c9a0000000000"


def test_metrics_differ_where_points_differ(tmp_path):
    nudged = spiral_embedding()
    nudged.vectors[0, 0] = np.nextafter(nudged.vectors[0, 0], np.float32(9))
    found = {
        name: open_bundle(path).guarantee.metric.identifier
        for name, path in {
            "plain": write_toy_bundle(tmp_path / "plain"),
            "other epsilon": write_toy_bundle(tmp_path / "epsilon", epsilon=7.0),
            "nudged": write_toy_bundle(tmp_path / "nudged", nudged),
            "padded": write_toy_bundle(tmp_path / "padded", padding=True),
            "scaled": write_toy_bundle(tmp_path / "scaled", spiral_embedding(scale=2.0)),
        }.items()
    }
    assert found["plain"] == found.pop("other epsilon")
    assert len(set(found.values())) == 4


def test_kept_columns_are_exposed_by_name():
    assert column_exposure("ds") == "column:ds"
