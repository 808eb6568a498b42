"""Costs of a context in a unit, budgets that cannot be kept, and the prefix rule against a brute force."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from support.budgets import Candidate, Charge, Entry, admit, cost
from wordveil.privacy.events import Composition, ReleaseTerms, price
from wordveil.privacy.guarantees import Metric, WordGuarantee
from wordveil.privacy.relations import Relation
from wordveil.release.budgets import (
    NULL_AUTHOR,
    OVER_AUTHOR_BUDGET,
    OVER_CORPUS_BUDGET,
    OVER_RECORD_BUDGET,
    AuthorRecords,
    Budget,
    count_fitting,
    find_budget_faults,
    multiply,
)
from wordveil.release.events import Intent, RunTerms
from wordveil.release.rules import output_exposes
from wordveil.spark.release.ledger import Terms

METRIC = "euclidean:1f0c9a0000000000"
ANY, LENGTH, SKELETON = Relation.ANY_TEXT, Relation.SAME_LENGTH, Relation.SAME_SKELETON
CHARGE = Charge(tokens=100, price=10.4, epsilon=8.0, metric=METRIC, relation=ANY)
BUDGET = Budget("pure", ANY, record=1040.0)


def terms(relation=ANY, n_max=64):
    guarantee = WordGuarantee(Metric("euclidean", "1f0c9a" + "0" * 58), 8.0, 8.0, 1.3)
    return ReleaseTerms("r", "exponential", "f", guarantee, Composition.SEQUENCE, relation, (), n_max, "exact", 1.0)


@pytest.mark.parametrize(("held", "wanted"), list(itertools.product(Relation, Relation)))
def test_a_cost_outside_the_relation_is_infinite_in_every_unit(held, wanted):
    charge = replace(CHARGE, relation=held)
    finite = held is ANY or held is wanted
    assert cost(charge, "pure", wanted) == (1040.0 if finite else math.inf)
    assert cost(charge, METRIC, wanted) == (8.0 if finite else math.inf)
    nothing = replace(charge, tokens=0)
    assert [cost(nothing, unit, wanted) for unit in ("pure", METRIC)] == ([0, 8.0] if finite else [math.inf] * 2)


def test_a_charge_is_what_the_privacy_column_shows():
    for drawn in (0, 1, 7, 100):
        shown = price(terms(SKELETON, None), drawn)
        charged = Terms.of(terms(SKELETON, None), tables="t", run_id="run", epoch=1, epoch_key="k")
        assert shown.tokens * charged.price == shown.epsilon_bound
        assert (charged.epsilon, charged.metric, charged.relation) == (8.0, METRIC, "same_skeleton")


def test_a_limit_is_a_finite_number():
    for limit, scope in itertools.product((-1.0, math.nan, math.inf), ("record", "author", "corpus")):
        with pytest.raises(ValueError, match=scope):
            Budget("pure", ANY, **{scope: limit})


def told(budget, **facts):
    known = {"relation": ANY, "tokens": 100, "has_authors": True, "guarantee": terms().guarantee, **facts}
    return {fault.where: fault.problem for fault in find_budget_faults(budget, **known)}


def test_a_budget_that_can_be_kept_has_no_fault():
    for known in ({}, {"guarantee": None}):
        assert told(replace(BUDGET, author=1e5, corpus=1e5), **known) == {}
        assert told(replace(BUDGET, unit=METRIC, record=8.0), **known) == {}
    assert "needs input.author" in told(Budget("pure", ANY, author=1e5), has_authors=False)["budgets.author"]
    assert "sets no limit" in told(Budget("pure", ANY))["budgets"]


@pytest.mark.parametrize("scope", ["record", "author", "corpus"])
def test_budgets_that_no_run_can_keep_are_faults(scope):
    pure = Budget("pure", ANY, **{scope: 1040.0})
    unbound = told(pure, relation=LENGTH, tokens=None, guarantee=None)
    assert "every record costs infinitely much" in unbound["budgets.relation"]
    assert "Set relation: same_length" in told(pure, relation=LENGTH, tokens=None)["budgets.relation"]
    assert f"bundle's metric is {METRIC}" in told(replace(pure, unit="euclidean:ff"))["budgets.unit"]
    short = Budget("pure", ANY, **{scope: math.nextafter(1040.0, 0)})
    assert "1040.0, what every record costs (100 tokens at 10.4)" in told(short)[f"budgets.{scope}"]
    assert told(short, tokens=None, relation=ANY) == {}
    assert "8.0, what every record costs" in told(Budget(METRIC, ANY, **{scope: 7.9}))[f"budgets.{scope}"]


def test_refusing_by_what_a_length_shows_exposes_presence():
    """An author's limit counts other releases, whose costs follow from their texts; for any text these are infinite."""

    def shows_presence(budget, n_max):
        return "presence" in output_exposes("hashed", is_release=True, budget=budget, n_max=n_max, has_kept=False)

    author, others = Budget("pure", LENGTH, author=9.0), Budget("pure", LENGTH, record=9.0, corpus=9.0)
    assert shows_presence(BUDGET, None)
    assert shows_presence(author, 64)
    for budget, n_max in ((BUDGET, 64), (Budget("pure", ANY), None), (None, None), (replace(author, relation=ANY), 64)):
        assert not shows_presence(budget, n_max)
    assert not shows_presence(others, 64)


def candidate(record, tokens=1, author="ann", price=1.0):
    return Candidate(record.encode(), author, replace(CHARGE, tokens=tokens, price=price))


def entry(record, tokens=1, author="ann", release="r", **changes):
    return Entry(release, record.encode(), author, replace(CHARGE, **{"tokens": tokens, "price": 1.0, **changes}))


@pytest.mark.parametrize("changes", [{"relation": LENGTH}, {"price": math.inf}])
def test_one_infinite_cost_of_an_author_refuses_all_that_follows(changes):
    ledger = [entry("old", tokens=0, release="other", **changes)]
    budget = Budget("pure", ANY, author=1e300)
    assert admit(budget, "r", [candidate("a"), candidate("b", author="bob")], ledger) == [OVER_AUTHOR_BUDGET, None]
    uncovered = Candidate(b"a", "ann", replace(CHARGE, tokens=0, **changes))
    assert admit(budget, "r", [uncovered], []) == [OVER_AUTHOR_BUDGET]


def test_a_metric_counts_contexts_and_refuses_other_metrics():
    budget = Budget(METRIC, ANY, author=24.0)
    asked = [candidate("a"), candidate("b"), candidate("c")]
    assert admit(budget, "r", asked, [entry("a")]) == [None, None, OVER_AUTHOR_BUDGET]
    assert admit(budget, "r", asked, [entry("a", metric="angular:00")]) == [OVER_AUTHOR_BUDGET] * 3


# By their bytes the last but two comes before the last but three, in UTF-16 after it.
NAMES = some.sampled_from(["a", "b", "ab", "😀", "\uff41", "10", "9"])
AUTHORS = some.sampled_from(["ann", "bob", None])
TOKENS = some.integers(0, 6)
LIMITS = some.none() | some.sampled_from([0.0, 0.3, 0.5, 1.0, 2.0, 3.0])
DELTAS = some.none() | some.sampled_from([0.0, 1e-9, 3e-9])
ENTRIES = some.builds(
    lambda release, record, author, tokens, price: entry(record, tokens, author, release, price=price),
    some.sampled_from(["r", "other"]),
    NAMES,
    AUTHORS,
    TOKENS,
    some.sampled_from([0.1, 0.25, 0.7]),
)


def with_delta(item):
    """The same with a delta that falls with the price, so that the two sums refuse others."""
    return replace(item, charge=replace(item.charge, delta=1e-10 / item.charge.price))


def test_a_pure_budget_takes_a_delta_only_within_a_limit():
    inexact = replace(terms().guarantee, delta=1e-12)
    plenty = Budget("pure", ANY, record=200.0)
    assert list(told(plenty, tokens=10, guarantee=inexact)) == ["budgets.delta"]
    assert "1e-12" in told(plenty, tokens=10, guarantee=inexact)["budgets.delta"]
    assert told(replace(plenty, delta=1e-11), tokens=10, guarantee=inexact) == {}
    assert "it admits no record" in told(replace(plenty, delta=9e-12), tokens=10, guarantee=inexact)["budgets.delta"]
    assert told(plenty, tokens=10) == {}
    assert told(Budget(METRIC, ANY, record=100.0), tokens=10, guarantee=inexact) == {}
    limited = replace(plenty, delta=1e-11)
    kept = json.loads(json.dumps(asdict(limited)))
    assert Intent("a", 1, "sanitise", RunTerms({}, 1, ()), budgets=kept).budget == limited
    for wrong in (-1e-9, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta"):
            replace(plenty, delta=wrong)


def brute(budget, candidates, ledger):
    """The rule read aloud: for each candidate anew, everything that counts is gathered and summed."""

    def within(limit, counted, one, same_key):
        before = [other for other in candidates if other.record <= one.record and same_key(other)]
        charges = [item.charge for item in (*counted, *before) if not isinstance(item, Entry) or same_key(item)]
        deltas_fit = budget.delta is None or summed(charges, one.charge, "delta") <= budget.delta
        return deltas_fit and summed(charges, one.charge, "price") <= limit

    def summed(charges, own, name):
        price = getattr(own, name)
        others = sorted({getattr(charge, name) for charge in charges} - {price})
        spent = 0.0
        for other in others:
            spent = spent + sum(charge.tokens for charge in charges if getattr(charge, name) == other) * other
        return spent + sum(charge.tokens for charge in charges if getattr(charge, name) == price) * price

    here = [item for item in ledger if item.release == "r"]
    found = []
    for one in candidates:
        by_record = lambda item, one=one: item.record == one.record
        by_author = lambda item, one=one: item.author == one.author
        alone = lambda item, one=one: item.author is None and item.record == one.record
        in_corpus = by_author if one.author is not None else alone
        if budget.record is not None and not within(budget.record, here, one, by_record):
            found.append(OVER_RECORD_BUDGET)
        elif budget.author is not None and one.author is None:
            found.append(NULL_AUTHOR)
        elif budget.author is not None and not within(budget.author, ledger, one, by_author):
            found.append(OVER_AUTHOR_BUDGET)
        elif budget.corpus is not None and not within(budget.corpus, here, one, in_corpus):
            found.append(OVER_CORPUS_BUDGET)
        else:
            found.append(None)
    return found


@given(
    some.lists(some.tuples(NAMES, TOKENS, AUTHORS), max_size=7, unique_by=lambda item: item[0]),
    some.lists(ENTRIES, max_size=6),
    some.sampled_from([0.1, 0.25, 0.7]),
    some.builds(Budget, some.just("pure"), some.just(ANY), LIMITS, LIMITS, LIMITS, delta=DELTAS),
    some.randoms(),
)
def test_admission_is_what_the_rule_says(asked, ledger, price, budget, random):
    candidates = [with_delta(candidate(name, tokens, author, price)) for name, tokens, author in asked]
    ledger = [with_delta(item) for item in ledger]
    refused = admit(budget, "r", candidates, ledger)
    assert refused == brute(budget, candidates, ledger)
    order = list(range(len(candidates)))
    random.shuffle(order)
    random.shuffle(ledger)
    assert admit(budget, "r", [candidates[index] for index in order], ledger) == [refused[index] for index in order]


def test_author_limit_is_the_cost_of_95_percent_rounded_up():
    counts = AuthorRecords(authors=212, median=3, p95=40, most=900)
    assert [counts.suggest_limit(cost) for cost in (1288.0, 30.0, 0.0)] == [52_000.0, 1_200.0, 0.0]


@given(some.floats(1e-3, 1e6), some.integers(1, 10_000))
def test_author_limit_has_room_for_the_records(cost: float, count: int):
    assert count * cost <= AuthorRecords(1, 1, count, count).suggest_limit(cost) <= 1.11 * count * cost


@given(some.floats(0, 1e9), some.floats(0.01, 30), some.integers(1, 600))
def test_what_fits_is_the_most_that_a_limit_admits(limit: float, price: float, tokens: int):
    count = count_fitting(limit, price, tokens)
    assert multiply(count * tokens, price) <= limit < multiply((count + 1) * tokens, price)
