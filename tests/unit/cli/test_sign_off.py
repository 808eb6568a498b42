"""The page of ``plan --sign-off``: what an officer reads and signs about one configuration."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.configs import parse, settings
from support.pages import ESCAPED, EVIL, check_alone, read_text
from support.plans import FINGERPRINT, PLAN, WHOLE
from support.repository import ROOT
from wordveil.cli.sign_off import list_attacks, list_places, list_questions, render_sign_off
from wordveil.config.load import Config
from wordveil.evaluation.linkage import LinkageForecast
from wordveil.mechanisms.base import Topics
from wordveil.privacy.guarantees import Metric, WordGuarantee
from wordveil.release.budgets import RefusalForecast
from wordveil.spark.plan.plan import Plan

TREE = {"name": "tree", "epsilon": 8.0, "clusters": [4], "embedding": "demo", "public": True}
SUBJECTS = {"name": "passages", "epsilon": 6.0, "clusters": 4, "passages": "wordnet", "embedding": "demo"}
SUBJECTS |= {"public": True}
SOURCE = {"path": "/lake/tickets", "format": "delta", "id": "ticket_id", "author": "agent", "keep": ["product"]}
BUDGETS = {"unit": "pure", "relation": "any_text", "author": 12_000, "on_exceeded": "keep_last"}
DELTA = {"output": {"path": "/lake/out/", "format": "delta"}, "ledger": {"path": "/lake/ledger"}}
LINKED = replace(PLAN, linkage=LinkageForecast(10_000, {5: 0.97, 20: 1.0}, half=3), fitting={"author": 23})
WORD = WordGuarantee(Metric("discrete", "aa"), 8.0, 8.0, 1.0)
TEXT = WordGuarantee(Metric("texts", "aa"), 6.0, 6.0, 1.0)
NOISE = WordGuarantee(Metric("euclidean", "aa"), 10.0, 10.5, 8.7, slack=0.01, delta=1e-13)


def make_config(**sections: Any) -> Config:
    given = {"mechanism": TREE, "text": {"n_max": 64}, "source": SOURCE, "budgets": BUDGETS, **DELTA, **sections}
    return parse(settings(**{name: value for name, value in given.items() if value is not None}))


def make_job(**sections: Any) -> Config:
    return make_config(**{"budgets": None, "ledger": None, "output": {"path": "out"}, **sections})


def read_page(config: Config, plan: Plan, guarantee: WordGuarantee | None) -> str:
    page = render_sign_off(config, replace(plan, budget=config.budget), guarantee)
    check_alone(page)
    return read_text(page)


def test_sign_off_of_words_puts_worst_attack_first():
    text = read_page(make_config(gate={"min_records": 10, "unknown_rate": 0.1}), LINKED, WORD)
    order = (
        "finds the right one for 97% of the records of 5 words",
        "one of 10,000 equally likely candidates is named with a probability of 100% at most, which rules nothing out",
        "Recovering single words",
        "without looking 9.5% after one draw 22.3%",
        "A record of 64 tokens costs at most epsilon 512",
        "of one word is right with a probability of 99.97% at most",
        "proved epsilon 8 largest loss of one token 8 nats",
        "agent string names whose budget pays; not published product string published unchanged",
        "Not shown: edited, kept changed, withdrawn, gate, layout, length",
        "record: one record, all its versions no limit",
        "12,000 nats; admits 23 records or versions of an author",
        "stays, marked as stale",
        "add their own costs: the ledger counts the releases that name it",
        "unknown_rate At most this share of the original words is outside the vocabulary. private 0.1",
        "Not checked: relation, exposes,",
        "The key is in the file",
        "/lake/out/draws every draw: ids, authors, sanitised texts",
        "/lake/out/public ids, kept columns, sanitised texts",
        "/lake/ledger ids and authors with their costs",
        "A whole record: losses of its words add up",
        "Attackers. Who has the originals",
        "Are those that read originals (unknown_rate) worth the bit they show?",
        f"mechanism fingerprint {FINGERPRINT}",
        "on_exceeded: keep_last",
        "Privacy officer name, date, signature",
    )
    places = [text.find(words) for words in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)
    assert "cannot be signed" not in text


def test_sign_off_without_a_bundle_cannot_be_signed():
    unbuilt = replace(PLAN, bundle=None, bundle_problem="no bundle fits", epsilon_bound=None, epsilon_pure=None)
    text = read_page(make_config(), replace(unbuilt, recovery=None), None)
    for words in ("This page cannot be signed.", "no bundle fits", "limit of the budgets admits", "Not to be signed"):
        assert words in text, words
    assert "name, date, signature" not in text
    assert "is right with a probability" not in text


def test_sign_off_of_passages_is_about_subjects():
    config = make_config(
        mechanism=SUBJECTS,
        text={"profile": "passages", "refused": "empty"},
        budgets=None,
        output={"path": "out", "format": "delta", "shuffle": {"epsilon": 0.5, "delta": 1e-8}},
        gate={"audited": ["bundle"]},
        key={"env": "KEY_OF_RELEASE"},
    )
    table = {"epsilon": 0.5, "delta": 1e-8, "least_rows": 2000, "rows": None, "epsilon_of_rows": None}
    text = read_page(config, replace(WHOLE, table=table, exposes=("column:product",)), TEXT)
    for words in (
        "Linking a row to its original Anyone to whom 10,000 candidate originals are equally likely",
        "with a probability of 3.9% at most, whatever its subject",
        "Recovering single subjects",
        "originals of one text is right with a probability of 99.75% at most",
        "0.5 for each record at delta 1e-08: in each group of kept columns, 2,000 rows",
        "largest loss of one text 6 nats, between any two",
        "ticket_id string not published",
        "public kept columns, sanitised texts",
        "No budgets: each record is drawn and published once",
        "Columns that are published unchanged (product)",
        "Whoever has it can test a guess",
        "symbols array&lt;int&gt; added: the numbers of what was drawn Shown",
        "audited These audits passed",
        "the environment variable KEY_OF_RELEASE",
        "The subject of most texts: it is kept, on purpose",
        "each published column (product)",
        "Have you read the list in section 9?",
    ):
        assert words in text, words
    order = ("Reading the subject", "names the subject of 22.3% of the texts (9.5% without it)", "Linking a row")
    places = [text.find(words) for words in order]
    assert -1 not in places
    assert places == sorted(places)
    for words in ("published unchanged (ticket_id", "version of a record", "Repeated versions"):
        assert words not in text
    assert "rules nothing out" not in text


def test_sign_off_of_noise_in_a_job_names_delta_and_copied_words():
    config = make_job(
        mechanism={"name": "laplace", "epsilon": 10.0, "embedding": "demo", "public": True},
        text={"profile": "readable", "unknown": "keep", "other_language": "quarantine"},
        source={"id": "ticket_id", "text": ["body", "agent"], "language": "product"},
    )
    shown = ("length", "punctuation", "stop_words", "unknown_words")
    plan = replace(LINKED, mechanism="laplace", tokens=None, relation="same_skeleton", exposes=shown, kept=())
    text = read_page(config, replace(plan, epsilon_pure=None, delta=1e-13, output_format="parquet"), NOISE)
    assert text.index("Reading what is copied Words outside the vocabulary") < text.index("Linking a record")
    for words in (
        "No bound limits this: the promise holds only between two texts that agree in everything",
        "proved epsilon 10.5 for each unit of distance",
        "slack of a token 0.01 nats, for whole numbers delta of a token 1e-13",
        "agent string replaced word by word product string chooses the rules of a language",
        "length How many tokens the text has.",
        "Not shown: presence, layout, repetition",
        "The price is of this output alone, and no ledger keeps it",
        "None: only a release has a gate",
        "Two outputs of the same records show together which texts changed",
        "pass on a table of output.public_only",
    ):
        assert words in text, words
    assert "rounding its effect is not proved" in text
    assert "originals of one word, which agree in all that is shown or copied, is right" in text
    assert "originals of a whole record" not in text


def test_sign_off_bounds_versions_of_a_text_together():
    config = make_config(mechanism=SUBJECTS, text={"profile": "passages"}, budgets={**BUDGETS, "record": 12})
    text = read_page(config, WHOLE, TEXT)
    assert "of one version of a record with a probability of 3.9% at most" in text
    assert "of all versions that budgets admit of it together with 94.2% at most" in text
    assert "stale boolean added: whether the text was edited since, and a budget refused the edit Shown" in text
    sentences = replace(WHOLE, unit="sentence", tokens=None, epsilon_pure=None, linkage=LINKED.linkage)
    text = read_page(config, sentences, TEXT)
    for words in ("97% of the records of 5 sentences", "epsilon 6 of a sentence", "losses of its sentences add up"):
        assert words in text, words


def test_sign_off_lists_all_subjects_by_their_share():
    config = make_config(mechanism=SUBJECTS, text={"profile": "passages"}, budgets=None)
    topics = Topics(pa.array(["A cat.", "A dog."]), pa.array(["cat paw", "dog bone"]), np.array([0.25, 0.75]))
    text = read_text(render_sign_off(config, WHOLE, TEXT, topics))
    assert "dog bone , 75%: A dog. cat paw , 25%: A cat. 10. What is signed" in text


def test_sign_off_of_a_job_says_that_its_output_is_internal():
    plan = replace(PLAN, output_format="parquet")
    words = "must not be passed on"
    assert words in read_page(make_job(), plan, WORD)
    assert words not in read_page(make_job(output={"path": "out", "public_only": True}), plan, WORD)


def test_sign_off_weighs_words_only_if_they_are_drawn_apart():
    for composition in ("text", "corpus", "sampled"):
        text = read_page(make_config(), replace(PLAN, composition=composition), WORD)
        assert "originals of one word" not in text
        assert "originals of a whole record is right" in text
    assert "originals of one word is right" in read_page(make_config(), PLAN, WORD)


def test_sign_off_names_condition_and_id_that_is_the_author():
    config = make_config(source={**SOURCE, "id": "agent", "where": "product IS NOT NULL"})
    columns = {"agent": "string", "body": "string", "product": "string"}
    text = read_page(config, replace(PLAN, columns=columns), WORD)
    assert "agent string published unchanged" in text
    assert "That this held for each published record: product IS NOT NULL." in text


def test_sign_off_of_several_columns_has_the_policy_of_a_run():
    config = make_config(source={**SOURCE, "text": ["subject", "body"]})
    plan = replace(PLAN, columns={**PLAN.columns, "subject": "string"})
    assert f"policy fingerprint {config.record_settings('').policy_fingerprint}" in read_page(config, plan, WORD)


def test_sign_off_of_carrier_phrases_warns_of_reading():
    assert list_attacks(replace(PLAN, exposes=("carrier_phrases",)))[0][0] == "Reading what is copied"


def test_sign_off_of_a_shuffled_job_says_its_key_is_thrown_away():
    config = make_job(
        mechanism=SUBJECTS,
        text={"profile": "passages", "refused": "empty"},
        output={"path": "out", "shuffle": {"epsilon": 0.5, "delta": 1e-8}, "public_only": True},
    )
    text = read_page(config, replace(WHOLE, output_format="parquet"), TEXT)
    assert "a job draws each time with a new key, which is thrown away" in text
    assert "test a guess" not in text


def test_sign_off_of_a_generator_keeps_weights_secret(monkeypatch: pytest.MonkeyPatch):
    config = make_config()
    monkeypatch.setattr(type(config.mechanism.settings), "record_limit", 9)
    assert ("bundle_store", "weights that the private corpus trained") in [
        (setting, holds) for setting, _, holds, _ in list_places(config)
    ]
    assert "whoever reads them may find whole sentences" in read_page(config, PLAN, WORD)


def test_sign_off_with_a_sample_says_who_is_left_out():
    refused = replace(LINKED, refusals=RefusalForecast(6069, {"over_author_budget": 790}, 12, (), by_sample=False))
    assert "Records left out, a figure of the private corpus: 13.0% of 6,069 records: 790" in read_page(
        make_config(), refused, WORD
    )
    assert "forecasts how many" in read_page(make_config(), LINKED, WORD)


def test_sign_off_without_authors_says_nothing_adds_up():
    config = make_config(source={**SOURCE, "author": None}, budgets={**BUDGETS, "author": None, "record": 600})
    plan = replace(LINKED, columns={"ticket_id": "string", "body": "string", "product": "string"})
    text = read_page(config, plan, WORD)
    assert "nothing adds up what one" in text
    assert "Limits leave out later versions of a record." in text


def test_sign_off_escapes_what_it_is_given():
    evil = make_config(source={**SOURCE, "path": EVIL, "keep": [EVIL]}, key={"env": "K"}, output=DELTA["output"])
    plan = replace(PLAN, release=EVIL, columns={"ticket_id": EVIL, EVIL: "string"}, exposes=(f"column:{EVIL}",))
    page = render_sign_off(evil, plan, WORD)
    check_alone(page)
    assert ESCAPED in page


def test_sign_off_settings_hold_what_was_set_alone():
    page = read_page(make_config(), PLAN, WORD)
    assert "author: agent" in page
    assert "max_bytes" not in page
    changed = read_page(make_config(budgets={**BUDGETS, "author": 12_001}), PLAN, WORD)
    digests = [re.search(r" settings digest ([0-9a-f]{64}) ", text) for text in (page, changed)]
    assert len({found and found[1] for found in digests} - {None}) == 2


def test_list_attacks_without_a_forecast_claims_no_figure():
    ((_, found),) = list_attacks(replace(PLAN, epsilon_bound=None, epsilon_pure=None, bundle=None))
    assert "no forecast" in found.lower()
    assert "probability" not in found


def test_list_questions_have_names_of_their_own():
    names = [name for name, _ in list_questions(WHOLE, make_config())]
    assert len(names) == len({*names})
    assert "Subjects" in names
    assert "Subjects" not in [name for name, _ in list_questions(PLAN, make_config())]


def test_officers_page_has_the_questions_of_a_sign_off():
    config = make_config(mechanism=SUBJECTS, text={"profile": "passages"}, budgets=None)
    asked = [name for name, _ in list_questions(WHOLE, config)]
    page = (ROOT / "docs" / "officer.md").read_text("utf-8")
    assert re.findall(r"^\| ([A-Z][\w ]+) \|", page, re.MULTILINE) == asked
