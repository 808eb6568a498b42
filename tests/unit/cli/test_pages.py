"""The pages of ``--html``: one file that loads nothing, says all that it should, and escapes whatever it is given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.pages import ESCAPED, EVIL, check_alone, read_text
from support.plans import FINGERPRINT, PLAN, RECOVERY, WHOLE
from support.run_reports import make_run_report
from wordveil.cli.files import check_page, save_page
from wordveil.cli.pages import (
    EXPOSURES,
    RELATIONS,
    describe_columns,
    explain_exposure,
    render_gate,
    render_plan,
    render_run,
)
from wordveil.cli.plan import check_text
from wordveil.cli.plan_tables import plan_facts
from wordveil.errors import ConfigError, OutputExistsError
from wordveil.evaluation.linkage import LinkageForecast
from wordveil.input.columns import Columns
from wordveil.measures.comparison import MechanismLine, SentenceComparison, SentencePreview
from wordveil.measures.preview import Quantiles, Sample, WordPreview
from wordveil.measures.text_lengths import Suggestion
from wordveil.privacy.relations import Exposure, Relation
from wordveil.release.budgets import AuthorRecords, Budget, RefusalForecast, RefusedGroup
from wordveil.release.rules import GateRules, Measured, evaluate
from wordveil.scores.counts import count_bins
from wordveil.spark.plan.plan import Plan
from wordveil.spark.plan.sample import Preview, TableSample
from wordveil.spark.release.gate import GateDecision

LENGTHS = np.array([*range(120), 3000], np.int64)
SAMPLE = Sample(
    records=125,
    released=121,
    quarantined={"duplicate_id": 3, "oversize": 1},
    emptied={},
    words=4321,
    unknown=99,
    lengths=Quantiles(0, 60, 114, 3000),
    histogram=count_bins(LENGTHS),
    distinct=None,
    suggested=Suggestion(n_max=128, cut=4),
    cut=57,
    padded=64,
    tokens=7744,
    keep_rate=0.37,
    keep_draws=4000,
    tokens_per_second=2e6,
    seconds=3.0,
)
SENTENCE = SentencePreview("The train leaves.", "The ferry goes .", None, 3, 0, 4)
WORDS = [WordPreview("train", 8.0, 2000, 0.4, (("ferry", 0.05), ("bus", 0.04)), 310)]
LINE = MechanismLine("tree", 8.0, 8.0, 0.4, "The ferry goes.")
DECISION = GateDecision(
    release="support",
    draws_version=7,
    ledger_version=9,
    result=evaluate(
        GateRules(min_records=100, unknown_rate=0.05, exposes=("gate", "length")),
        Measured(released=99, words=100, unknown=3, exposes=("length",)),
    ),
    rules=FINGERPRINT[::-1],
    runs=[
        {"run_id": f"night-{night}", "seq": night, "kind": "sanitise", "input_version": night, "epoch": 1, "state": "x"}
        for night in range(1, 13)
    ],
    fingerprints={"policy_fingerprint": FINGERPRINT, "key_fingerprint": "k" * 64},
)


SUBJECTS = {"the subject of the sentence": "train bus", "the subject that was drawn": "ship sea"}


RUN = make_run_report(
    records=125,
    released=121,
    quarantined={"null_text": 3, "oversize": 1},
    refused={"over_author_budget": 200},
    withdrawn=7,
    exposes=("edited", "column:product"),
    recovery=RECOVERY.to_dict(),
    changes="scan",
)


def plan_page(plan: Plan = PLAN, sample: Sample | None = SAMPLE, **given: Any) -> str:
    table = TableSample(sample, 1_000_000, token_price=8.0) if sample else None
    preview = Preview(table, given.pop("words", WORDS if sample else []))
    source = Columns("ticket_id", "body", author="agent", keep=plan.kept)
    columns = describe_columns(plan, source, is_shuffled=plan.table is not None)
    return render_plan(plan, plan_facts(plan), given.pop("notes", []), columns, preview, **given)


PAGES = {
    "plan": lambda: plan_page(sentence=SENTENCE, comparison=SentenceComparison(LINE, [LINE], [LINE])),
    "plan of whole texts": lambda: plan_page(
        WHOLE,
        replace(SAMPLE, unit="text", cut=None, padded=None, suggested=None),
        words=[],
        sentence=replace(SENTENCE, subjects=SUBJECTS),
    ),
    "plan alone": lambda: plan_page(sample=None),
    "plan without a bundle": lambda: plan_page(
        replace(PLAN, bundle=None, epsilon_bound=None, epsilon_pure=None, recovery=None), None, notes=["run build"]
    ),
    "run": lambda: render_run(RUN, is_release=True),
    "run of a job": lambda: render_run(make_run_report(), is_release=False),
    "gate": lambda: render_gate(DECISION),
    "gate without rules": lambda: render_gate(replace(DECISION, result=evaluate(GateRules(), Measured()))),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_well_formed_file_that_loads_nothing(name: str):
    page = PAGES[name]()
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in check_alone(page).tags
    assert "prefers-color-scheme: dark" in page


def test_a_plan_says_whom_the_budgets_leave_out():
    groups = (RefusedGroup("product", "<b>", 250, 110),)
    forecast = RefusalForecast(6069, {"over_author_budget": 790}, 12, groups, by_sample=True)
    authors = AuthorRecords(212, 3, 40, 900)
    budget = Budget("pure", Relation.ANY_TEXT, author=9000.0, corpus=1e6)
    visible = replace(PLAN, tokens=None, budget=budget, fitting={"author": 7}, fitting_tokens=61)
    plan = replace(visible, refusals=forecast, author_records=authors, longest_cost=1288.0)
    facts = plan_facts(plan)
    assert facts["left out by budgets"] == (
        "13.0% of 6,069 records, by the sample's lengths of texts: 790 (790 over_author_budget), of 12 authors; most "
        "of product=<b> 44.0%"
    )
    assert "budgets.author: 52000 has room for 40 of the longest record" in facts["records of an author"]
    admitted = "admits 7 records or versions of an author, over all releases of the ledger, each of 61 tokens"
    assert facts["budgets.author"] == f"9,000 nats; {admitted}, which 95% of the sample do not exceed"
    assert facts["budgets.corpus"] == "1,000,000 nats"
    public = plan_facts(replace(PLAN, budget=budget, fitting={"author": 7}, fitting_tokens=64))
    assert public["budgets.author"].endswith("over all releases of the ledger"), "all have one length"
    page = plan_page(plan)
    check_alone(page)
    text = read_text(page)
    assert text.index("Left out by budgets: 13.0% of 6,069 records") < text.index("What is released")
    document = json.loads(json.dumps(plan.to_dict()))
    assert document["refusals"]["share"] == pytest.approx(790 / 6069)
    assert document["refusals"]["most_refused"][0]["share"] == 0.44
    assert document["author_records"]["suggested_limit"] == 52_000
    nobody = replace(plan, refusals=replace(forecast, refused={}, authors=0, most_refused=()))
    assert plan_facts(nobody)["left out by budgets"] == "none of 6,069 records, by the sample's lengths of texts"


def test_a_plan_shows_what_is_used_of_its_budgets():
    budget = Budget("euclidean:aa", Relation.ANY_TEXT, record=800.0, author=1000.0)
    plan = replace(PLAN, budget=budget, left={"author": 250.00000001, "record": -1.0}, runs_left={"author": 3})
    assert plan_facts(plan)["budgets.author"] == (
        "1,000 epsilon of euclidean:aa; 250 left for the author that has used most; lasts 3 more runs at their mean "
        "rate"
    )
    page = plan_page(plan)
    text = read_text(page)
    assert "Budgets Used of each limit, where most is used record 801 of 800 author 750 of 1,000" in text
    assert [bar in page for bar in ('class="fill" width="75.0%"', 'class="fill" width="100.0%"')] == [True, True]
    assert text.count("250 left for the author") == 1, "not among all settings again"
    assert json.loads(json.dumps(plan.to_dict()))["budget"]["author"] == 1000
    assert "Budgets" not in read_text(plan_page(PLAN))


def test_a_plan_says_its_time_in_units_that_people_read():
    text = read_text(plan_page())
    assert "under a second time on one core, this table" in read_text(plan_page(sample=replace(SAMPLE, seconds=1e-5)))
    assert "6.7 hours time on one core, this table" in text and "core-hours" not in text


def test_a_plan_says_first_how_surely_records_are_linked():
    plan = replace(PLAN, linkage=LinkageForecast(10_000, {5: 0.99, 20: 1.0}, half=2))
    assert next(iter(plan_facts(plan))) == next(iter(plan_facts(PLAN))) == "linked"
    assert "can match nearly every record" in plan_facts(PLAN)["linked"]
    whole = plan_facts(replace(WHOLE, bundle=None, linkage=None))["linked"]
    assert whole == "no forecast before the bundle is built. What a record costs bounds how many are linked"
    assert "links more" not in plan_facts(plan)["linked"]
    longer = plan_facts(replace(plan, relation="same_length"))["linked"]
    assert "Whatever is shown beside the drawn words links more" in longer
    text = read_text(plan_page(plan))
    assert text.index("finds the right one for 99% of the records of 5 words") < text.index("What is released")


def test_a_page_of_whole_texts_is_not_about_words():
    text = read_text(PAGES["plan of whole texts"]())
    for words in (
        "finds the right one for 0.81% of the records",
        "of one version of a record with a probability of 3.9% at most",
        "replaced by a public passage for each text",
        "A record of 1 text costs at most epsilon 6",
        "after 20 draws of a subject",
        "the subject that was drawn",
        "texts that keep their subject",
    ):
        assert words in text, words
    for words in ("word by word", "1 tokens", "draws of a word", "What each token", "words that stay", "n_max"):
        assert words not in text, words


def test_plan_page_says_what_is_released_and_at_which_price():
    text = read_text(PAGES["plan"]())
    for words in (
        "ticket_id string published unchanged",
        "body string replaced word by word",
        "product string published unchanged",
        "presence Whether the record was refused",
        "column:product The column is published",
        "A record of 64 tokens costs at most epsilon 512",
        "without looking 9.5% after one draw 22.3% after 20 draws of a word at least 30%",
        "after 20 draws of a word 5% to 6%",
        "before The train leaves. after The ferry goes .",
        "121 of 125 released",
        "120 or more 1",
        "word stays at 8 likeliest others at 8 train 40.0% ferry 5.0%, bus 4.0%",
        FINGERPRINT,
    ):
        assert words in text, words


def test_the_page_of_a_run_says_what_became_of_its_records():
    text = read_text(PAGES["run"]())
    for words in (
        "Run night-1 . Records were found by scan: the contents",
        "121 of 125 released 7 withdrawn",
        "10.0% unknown words",
        "Quarantined, by reason null_text 3 oversize 1",
        "refused before among them over_author_budget 200",
        "A released record cost epsilon 10 to 12.5",
        "between any two texts by e^12.5 at most",
        "column:product The column is published",
        "sees one word of the output",
        "without looking 9.5% after one draw 22.3%",
        "tokens drawn 48",
    ):
        assert words in text, words
    alone = read_text(PAGES["run of a job"]())
    assert "withdrawn" not in alone
    assert "Not measured" in alone
    refused = read_text(render_run(make_run_report(released=0, epsilon_bound=None, records=0), is_release=False))
    assert "Nothing was released, and nothing is charged." in refused


def test_the_page_of_a_gate_says_what_was_decided_and_about_what():
    text = read_text(PAGES["gate"]())
    for words in (
        "did not pass : min_records.",
        "min_records At least this many records are released. output-only 100 99 ✗ failed",
        "unknown_rate At most this share of the original words is outside the vocabulary. private 0.05 0.03 ✓ passed",
        "exposes The release shows only the sanitised words and what is listed here. public gate, length length ✓",
        "12 in all, the last 10 are shown",
        "night-12 sanitise 12 1 x",
        "version of the draws 7",
        f"policy fingerprint {FINGERPRINT}",
        f"rules {FINGERPRINT[::-1]}",
    ):
        assert words in text, words
    assert "night-2 " not in text
    assert "every version passes" in read_text(PAGES["gate without rules"]())


def test_whatever_a_page_is_given_is_escaped():
    plan = replace(PLAN, release=EVIL, input=EVIL, bundle=EVIL, kept=(EVIL,), exposes=(f"column:{EVIL}",))
    plan = replace(plan, columns={"ticket_id": EVIL, EVIL: "string"})
    sample = replace(SAMPLE, quarantined={EVIL: 1}, emptied={EVIL: 2})
    words = [replace(WORDS[0], word=EVIL, replacements=((EVIL, 0.5),))]
    line = replace(LINE, mechanism=EVIL, text=EVIL)
    sentence = SentencePreview(EVIL, EVIL, None, 1, 0, 1)
    shown = {"words": words, "sentence": sentence, "comparison": SentenceComparison(line, [line], []), "notes": [EVIL]}
    plans = [plan_page(plan, sample, **shown), plan_page(sentence=SentencePreview(EVIL, None, EVIL, 0, 0, 0))]
    runs = [{**DECISION.runs[0], "run_id": EVIL, "kind": EVIL, "state": EVIL}]
    result = evaluate(GateRules(exposes=(f"column:{EVIL}",)), Measured(exposes=(f"column:{EVIL}",)))
    gate = render_gate(replace(DECISION, release=EVIL, runs=runs, fingerprints={EVIL: EVIL}, rules=EVIL, result=result))
    run = render_run(replace(RUN, release=EVIL, run_id=EVIL, notes=(EVIL,), quarantined={EVIL: 1}), is_release=True)
    for page in (*plans, run, gate):
        assert ESCAPED in page
        check_alone(page)


def test_every_term_has_a_meaning():
    assert set(EXPOSURES) == set(Exposure)
    assert set(RELATIONS) == set(Relation)
    assert explain_exposure("column:x") == "The column is published unchanged."
    assert explain_exposure("pseudonym:x").startswith("Which records have the same value in the column.")


def test_a_page_is_written_once_and_for_its_owner(tmp_path: Path):
    path = check_page(str(tmp_path / "new" / "plan.html"))
    assert not path.exists(), "nothing is left where the command fails"
    assert check_page(f"file://{path}") == path
    save_page(path, "a page: ✓")
    assert path.read_text("utf-8") == "a page: ✓"
    assert path.stat().st_mode & 0o777 == 0o600
    for again in (lambda: check_page(str(path)), lambda: save_page(path, "another")):
        with pytest.raises(OutputExistsError, match=r"--html = .*plan\.html: already exists, and nothing was done"):
            again()
    assert path.read_text("utf-8") == "a page: ✓"
    for place in ("s3a://bucket/plan.html", str(path / "plan.html")):
        with pytest.raises(ConfigError, match=r"--html = .*plan\.html: (cannot be written|is on another file system)"):
            check_page(place)
    dangling = tmp_path / "link.html"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputExistsError):
        check_page(str(dangling))


def test_an_empty_sentence_is_refused():
    with pytest.raises(ConfigError, match=r"--text =  : is empty"):
        check_text(" ", compare=False)
    with pytest.raises(ConfigError, match=r"--compare: needs a public sentence"):
        check_text(None, compare=True)
    check_text("A train.", compare=False)
    check_text(None, compare=False)
