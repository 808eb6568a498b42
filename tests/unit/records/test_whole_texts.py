"""What a record costs under a mechanism that reads whole texts, or whose weights a private corpus trained."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from support.toys import KEYS, record_batch, sanitise, write_toy_bundle
from wordveil.artifacts.bundle import Bundle, open_bundle
from wordveil.errors import BundleError
from wordveil.privacy.guarantees import charge_corpus
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings, release_terms
from wordveil.release.budgets import Budget, find_budget_faults
from wordveil.text.policy import TextPolicy

PADDED = TextPolicy(length="pad", n_max=6)
WEIGHTS = "ab" * 32


def claiming(bundle: Bundle, **claims: Any) -> Bundle:
    """The bundle with a mechanism that says other things of itself."""
    mechanism = copy.copy(bundle.mechanism)
    mechanism.__class__ = type("Reader", (type(mechanism),), {"reads_context": True, **claims})
    return replace(bundle, mechanism=mechanism)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A bundle of a word mechanism, one that reads whole texts, and one that the private corpus trained."""
    words = open_bundle(write_toy_bundle(tmp_path_factory.mktemp("store"), padding=True))
    return {"words": words, "texts": claiming(words), "private": claiming(words, private_weights=WEIGHTS)}


def settings(policy=PADDED, limit=None):
    return RecordSettings("toy", "run-1", policy, (), max_records=limit)


def rows(record_settings, bundle):
    batch = record_batch(["the cat sat on the mat", "dog", ""])
    sanitiser = RecordSanitiser(record_settings, bundle, KEYS)
    (checked,) = sanitiser.inspect(batch)
    return sanitise(sanitiser, batch)["privacy"].to_pylist(), checked["__tokens"].to_pylist()


@pytest.mark.parametrize("output", ["sequence", "bag"])
def test_whole_text_costs_all_tokens_however_few_words_differ(bundles, output):
    policy = replace(PADDED, output=output)
    privacy, tokens = rows(settings(policy), bundles["texts"])
    price = 6 * bundles["texts"].guarantee.pure
    assert {(row["composition"], row["tokens"], row["epsilon_bound"], row["epsilon_pure"]) for row in privacy} == {
        ("text", 6, price, price)
    }
    assert tokens == [6, 6, 6]
    privacy, _ = rows(settings(policy), bundles["words"])
    assert {row["composition"] for row in privacy} == {output}


def test_visible_length_pays_for_drawn_tokens_as_whole_text(bundles, tmp_path):
    privacy, tokens = rows(settings(TextPolicy()), claiming(open_bundle(write_toy_bundle(tmp_path))))
    assert [row["tokens"] for row in privacy] == tokens == [6, 1, 0]
    assert {(row["composition"], row["epsilon_pure"]) for row in privacy} == {("text", None)}


def test_private_corpus_record_pays_for_every_record_ever_drawn(bundles):
    privacy, tokens = rows(settings(limit=1000), bundles["private"])
    bundle = bundles["private"]
    assert {(row["composition"], row["tokens"]) for row in privacy} == {("corpus", 6000)}
    assert {row["epsilon_pure"] for row in privacy} == {6000 * bundle.guarantee.pure}
    assert {row["epsilon"] for row in privacy} == {bundle.guarantee.pure}
    assert tokens == [6000] * 3  # what is reserved is what is charged
    assert release_terms(settings(limit=1000), bundle).guarantee.pure * 6000 == privacy[0]["epsilon_bound"]


def test_a_budget_below_what_all_draws_cost_is_refused_at_once(bundles):
    terms = release_terms(settings(limit=1000), bundles["private"])
    single = 6000 * bundles["private"].guarantee.pure
    facts = (terms.relation, terms.tokens, terms.guarantee)
    budget = Budget("pure", terms.relation, record=single * 0.99, delta=1e-6)
    (fault,) = find_budget_faults(budget, *facts, has_authors=False)
    assert fault.where == "budgets.record"
    assert "6000 tokens" in fault.problem
    assert find_budget_faults(replace(budget, record=single), *facts, has_authors=False) == []


def test_private_corpus_draws_share_a_metric_only_at_one_price(bundles):
    guarantee = bundles["private"].guarantee
    base = charge_corpus(guarantee, WEIGHTS, 6, 1000)
    assert base == charge_corpus(guarantee, WEIGHTS, 6, 1000)
    assert (base.pure, base.delta, base.nominal_epsilon) == (guarantee.pure, guarantee.delta, guarantee.nominal_epsilon)
    others = [charge_corpus(guarantee, WEIGHTS, *sizes) for sizes in ((7, 1000), (6, 1001), (60, 100), (600, 10))]
    others.append(charge_corpus(guarantee, "cd" * 32, 6, 1000))
    others.append(charge_corpus(replace(guarantee, epsilon=guarantee.epsilon * 2), WEIGHTS, 6, 1000))
    metrics = {one.metric.identifier for one in (base, guarantee, *others)}
    assert len(metrics) == len(others) + 2
    assert all(metric.startswith("corpus:") for metric in metrics - {guarantee.metric.identifier})


def test_private_weights_draw_only_where_draws_are_counted(bundles):
    with pytest.raises(BundleError, match="every draw costs every record"):
        release_terms(settings(), bundles["private"])
    with pytest.raises(BundleError, match=r"text\.length: pad"):
        release_terms(settings(TextPolicy(), limit=10), bundles["private"])
    for name in ("words", "texts"):
        with pytest.raises(BundleError, match="max_records has no meaning"):
            release_terms(settings(limit=10), bundles[name])


def test_policy_that_destroys_texts_a_mechanism_reads_is_refused(bundles):
    repeated = replace(PADDED, repeat="same", refused="quarantine")
    with pytest.raises(BundleError, match=r"text.repeat same contradicts mechanism.name: laplace"):
        bundles["texts"].check_policy(repeated)
    bundles["words"].check_policy(repeated)
    manifest = bundles["texts"].manifest
    unpadded = replace(bundles["texts"], manifest={**manifest, "content": {**manifest["content"], "padding": False}})
    with pytest.raises(BundleError, match=r"text.length sample contradicts"):
        unpadded.check_policy(TextPolicy(length="sample", n_max=6))
    heard = []
    bundle = claiming(bundles["words"], check_lengths=lambda _, lengths: heard.append(tuple(lengths)))
    bundle.check_policy(replace(PADDED, output="bag"))
    bundle.check_policy(PADDED, (4, 2))
    assert heard == [(6,), (4, 2)], "it hears the public length of each column"
