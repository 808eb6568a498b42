"""What a record costs where a mechanism reads a text as a whole, and where the private corpus trained its weights: all
tokens are paid for, and settings under which that would not be true are refused.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from support.toys import KEYS, write_toy_bundle
from wordveil.artifacts.bundle import Bundle, open_bundle
from wordveil.errors import BundleError
from wordveil.privacy.events import Composition
from wordveil.privacy.guarantees import charge_corpus
from wordveil.records.columns import TextColumns
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings, compose, release_terms
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.release.budgets import Budget, ReleaseFacts, find_budget_faults
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


def settings(policy=PADDED, limit=None, columns=None):
    return RecordSettings("toy", "run-1", policy, (), columns=columns or TextColumns(), max_records=limit)


def rows(record_settings, bundle):
    texts = ["the cat sat on the mat", "dog", ""]
    batch = pa.table({"id": ["a", "b", "c"], TEXT_COLUMN: texts, REASON_COLUMN: pa.nulls(3, pa.string())})
    sanitiser = RecordSanitiser(record_settings, bundle, KEYS)
    checked = pa.Table.from_batches(list(sanitiser.inspect(batch.to_batches()[0])))
    out = pa.Table.from_batches(list(sanitiser.sanitise(batch.to_batches()[0])))
    return out["privacy"].to_pylist(), checked["__tokens"].to_pylist()


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
    bundle = claiming(open_bundle(write_toy_bundle(tmp_path)))
    privacy, tokens = rows(settings(TextPolicy()), bundle)
    assert [(row["composition"], row["tokens"], row["epsilon_pure"]) for row in privacy] == [
        ("text", 6, None),
        ("text", 1, None),
        ("text", 0, None),
    ]
    assert tokens == [6, 1, 0]


def test_private_corpus_record_pays_for_every_record_ever_drawn(bundles):
    privacy, tokens = rows(settings(limit=1000), bundles["private"])
    bundle = bundles["private"]
    assert {(row["composition"], row["tokens"]) for row in privacy} == {("corpus", 6000)}
    assert {row["epsilon_pure"] for row in privacy} == {6000 * bundle.guarantee.pure}
    assert {row["epsilon"] for row in privacy} == {bundle.guarantee.pure}
    assert tokens == [6000] * 3  # what is reserved is what is charged
    terms = release_terms(settings(limit=1000), bundle)
    assert terms.guarantee.pure * 6000 == privacy[0]["epsilon_bound"]


def test_a_budget_below_what_all_draws_cost_is_refused_at_once(bundles):
    terms = release_terms(settings(limit=1000), bundles["private"])
    single = 6000 * bundles["private"].guarantee.pure
    facts = ReleaseFacts(terms.relation, terms.tokens, has_authors=False, guarantee=terms.guarantee)
    (fault,) = find_budget_faults(Budget("pure", terms.relation, record=single * 0.99, delta=1e-6), facts)
    assert fault.where == "budgets.record"
    assert "6000 tokens" in fault.problem
    assert find_budget_faults(Budget("pure", terms.relation, record=single, delta=1e-6), facts) == []


def test_private_corpus_draws_share_a_metric_only_at_one_price(bundles):
    guarantee = bundles["private"].guarantee
    base = charge_corpus(guarantee, WEIGHTS, 6, 1000)
    assert base == charge_corpus(guarantee, WEIGHTS, 6, 1000)
    assert (base.pure, base.delta, base.nominal_epsilon) == (guarantee.pure, guarantee.delta, guarantee.nominal_epsilon)
    others = [
        charge_corpus(guarantee, "cd" * 32, 6, 1000),
        charge_corpus(guarantee, WEIGHTS, 7, 1000),
        charge_corpus(guarantee, WEIGHTS, 6, 1001),
        charge_corpus(guarantee, WEIGHTS, 60, 100),
        charge_corpus(guarantee, WEIGHTS, 600, 10),
        charge_corpus(replace(guarantee, epsilon=guarantee.epsilon * 2), WEIGHTS, 6, 1000),
    ]
    assert len({one.metric.identifier for one in [base, *others]}) == len(others) + 1
    assert {one.metric.identifier.partition(":")[0] for one in others} == {"corpus"}
    assert guarantee.metric.identifier not in {one.metric.identifier for one in [base, *others]}


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
    sampled = TextPolicy(length="sample", n_max=6)
    manifest = bundles["texts"].manifest
    unpadded = replace(bundles["texts"], manifest={**manifest, "content": {**manifest["content"], "padding": False}})
    with pytest.raises(BundleError, match=r"text.length sample contradicts"):
        unpadded.check_policy(sampled)
    bundles["texts"].check_policy(PADDED)
    bundles["texts"].check_policy(replace(PADDED, output="bag"))


def test_a_mechanism_hears_the_public_length_of_each_column(bundles):
    heard = []
    bundle = claiming(bundles["words"], check_lengths=lambda _, lengths: heard.append(tuple(lengths)))
    bundle.check_policy(PADDED)
    bundle.check_policy(PADDED, (4, 2))
    assert heard == [(6,), (4, 2)]


def test_composition_follows_from_class_and_settings_alone(bundles):
    words, texts = (type(bundles[name].mechanism) for name in ("words", "texts"))
    assert compose(words, PADDED) is Composition.SEQUENCE
    assert compose(texts, PADDED) is Composition.TEXT
    assert compose(texts, PADDED, 5) is Composition.CORPUS
