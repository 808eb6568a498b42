"""A first configuration: what is guessed from names and types, and that what is written reads back."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import yaml

from support.repository import ROOT
from support.toys import random_embedding
from wordveil.assembly.bundles import build_bundle
from wordveil.config.guess import Column, guess_columns
from wordveil.config.load import Config, parse_config
from wordveil.config.template import draft_config, is_local_delta, refuse_existing, table_name, write_draft
from wordveil.config.yaml_file import set_key
from wordveil.errors import ConfigError, OutputExistsError
from wordveil.input.files import find_format
from wordveil.input.parameters import check_params, parse_params
from wordveil.text.stop_words import load_stop_words
from wordveil.text.types.classes import CLASSES, TokenClass, newest_version

FILLED = {"mechanism": {"epsilon": 10.0, "public": True}, "key": {"file": "wordveil.key"}}


def columns(*descriptions: str) -> list[Column]:
    """Columns from ``name:type``, partition columns with a star behind."""
    split = [description.rsplit(":", maxsplit=1) for description in descriptions]
    return [Column(name, kind.rstrip("*"), kind.endswith("*")) for name, kind in split]


def filled(text: str) -> dict:
    """The drafted file, what is left to the user filled in."""
    raw = yaml.safe_load(text)
    raw["mechanism"].update(FILLED["mechanism"])
    return {**raw, "key": FILLED["key"]}


def draft(*names: str, **given: Any) -> str:
    """The draft for a table of columns ``names``."""
    table = columns(*(names or ("id:int", "body:string")))
    return draft_config("t", table, guess_columns(table), **given)


def faults_of(raw: dict) -> set[str]:
    with pytest.raises(ConfigError) as error:
        parse_config(raw, "draft")
    return {fault.where for fault in error.value.faults}


@pytest.mark.parametrize(
    ("names", "table", "expected"),
    [
        (["id:bigint", "ticket_id:bigint"], "x", "id"),
        (["ticket_id:bigint", "thread_id:bigint"], "x", None),
        (["ticket_id:bigint", "thread_id:bigint"], "tickets", "ticket_id"),
        (["ticketId:string", "body:string"], "x", "ticketId"),
        (["id:double"], "x", None),
        (["id:string*", "nr:int"], "x", None),
        (["user_id:string", "body:string"], "x", None),
        (["run_id:string"], "x", None),  # the output uses that name itself
        (["valid:string", "monkey:string"], "x", None),
    ],
)
def test_ids_are_guessed_only_where_they_are_clear(names, table, expected):
    assert guess_columns(columns(*names), table).id == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["subject:string", "body:string"], "body"),
        (["body:string", "text:string"], "text"),
        (["mail_body:string", "head_body:string"], None),
        (["text:int"], None),
        (["text:string*"], None),
    ],
)
def test_texts_are_guessed_by_name_and_type(names, expected):
    assert guess_columns(columns("id:int", *names)).text == expected


def test_what_may_be_the_text_is_not_offered_for_publication():
    table = columns("id:int", "first:string", "second:string", "size:int", "country:string*")
    guess = guess_columns(table)
    assert guess.text_candidates == ("first", "second")
    assert (guess.keep, guess.not_kept) == (("country",), ("size",))
    assert "#   first string" not in draft_config("t", table, guess)


def test_a_column_is_never_two_things():
    names = ("text_id:string", "user_message:string", "user_name:string", "user_id:int", "ds:date*", "x:int")
    guess = guess_columns(columns(*names))
    assert (guess.id, guess.text, guess.author) == ("text_id", "user_message", "user_id")
    assert guess.keep == ("ds",)
    assert guess.not_kept == ("user_name", "x")
    days = columns("id:int", "body:string", "day:string*", "customer:string*", "status:string*", "__x:int*")
    guess = guess_columns(days)
    assert guess.keep == ("day",), "neither an author nor a name of the output"


def test_draft_takes_the_newest_classes_and_names_their_version(monkeypatch):
    before, newest = draft(), newest_version() + 1
    monkeypatch.setitem(CLASSES, "ticket", TokenClass("ticket", ("T-0001", "T-0002"), lambda _: ("#",), since=newest))
    config = parse_config(filled(draft()), "draft")
    assert config.policy.types_version == newest
    assert config.policy.type_actions["ticket"] == "surrogate"
    assert "ticket" not in parse_config(filled(before), "draft").policy.type_actions
    with pytest.raises(ConfigError, match=r"types\.ticket.* came with version .*Set types_version: "):
        parse_config({**filled(before), "text": {"profile": "readable", "types": {"ticket": "tag"}}}, "draft")


def test_a_draft_loads_once_it_is_filled_in():
    table = columns("ticket_id:bigint", "body:string", "customer:string", "ds:date*", "secret:string")
    text = draft_config("/lake/raw/tickets/", table, guess_columns(table, "tickets"))
    config = parse_config(filled(text), "draft")
    assert config.release == "tickets"
    assert (config.input.id, config.input.text, config.input.author) == ("ticket_id", "body", "customer")
    assert config.input.keep == config.output.partition_by == ["ds"]
    assert config.output.path == "/lake/raw/tickets-sanitised"
    assert "secret" in text
    assert faults_of(yaml.safe_load(text)) == {"mechanism.epsilon", "mechanism.public", "key"}


def test_a_draft_says_the_format(tmp_path):
    for kind in ("parquet", "delta"):
        assert parse_config(filled(draft(kind=kind)), "draft").input.format == kind
    for has_feed, changes in ((True, "feed"), (False, "scan")):
        written = yaml.safe_load(draft(kind="delta", is_release=True, has_feed=has_feed))
        assert written["input"]["changes"] == changes
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    assert is_local_delta(f"file:{tmp_path}/t")
    assert not is_local_delta(str(tmp_path))
    assert not is_local_delta("s3a://bucket/t")


def release_of(*names: str, path: str = "/lake/raw/tickets", **given: Any) -> tuple[str, Config]:
    """A draft of a release, and the configuration that it is once it is filled in."""
    table = columns(*names)
    guess = guess_columns(table, table_name(path))
    text = draft_config(path, table, guess, "delta", is_release=True, **given)
    assert faults_of(yaml.safe_load(text)) == {*guess.to_fill(is_release=True)}
    raw = filled(text)
    raw["budgets"]["record"] = 10_000.0
    return text, parse_config(raw, "draft")


def dag_parameters() -> list[str]:
    """The parameter that the nightly DAG passes by --param if its settings name nothing but the configuration."""
    tree = ast.parse((ROOT / "airflow_dags" / "wordveil_airflow.py").read_text("utf-8"))
    fields = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call)]
    (default,) = (field.value.args[0].value for field in fields if getattr(field.target, "id", "") == "slice_param")
    return [f"{default}=2026-11-20"] if default else []


@pytest.mark.parametrize("day", ["ds:string*", "event_date:date*", "dt:string*"])
def test_release_draft_is_whole_and_shows_the_slice_of_the_dag(day):
    """It reads the whole table: a slice would hide that other days were edited, or deleted."""
    text, config = release_of("ticket_id:bigint", "body:string", "customer:string", day, "secret:string")
    name = day.partition(":")[0]
    assert config.input.where is None
    where = re.search(r'# where: "(.*)"', text)[1]
    assert where == f"{name} = :ds"
    check_params(where, parse_params(dag_parameters()))
    assert (config.input.format, config.output.format, config.input.author) == ("delta", "delta", "customer")
    assert (config.output.path, config.output.public) == ("/lake/raw/tickets-release", "/lake/raw/tickets-public")
    assert config.ledger.path == "/lake/raw/wordveil-ledger"
    assert (config.budgets.unit, config.budgets.relation) == ("pure", "same_skeleton")
    assert config.gate.exposes == [*config.policy.exposes, "edited", "withdrawn", "kept_changed", f"column:{name}"]
    assert text.count("FILL IN") == 7
    assert config.gate.max_refused_rate == 0.05
    limits = yaml.safe_load(text)["budgets"]
    assert "author" not in limits, "what an author may cost has no default"
    command = re.search(r"`wordveil plan --sample 1000 --set (budgets\.author=\d+)`", text)[1]
    assert set_key({"budgets": limits}, command) == []
    assert limits["author"] == 1_000_000
    assert "longest record's cost times" not in release_of("ticket_id:bigint", "body:string", day)[0]
    assert "were edited or deleted" in text


def test_a_draft_is_readable_and_shows_what_strict_needs():
    text = draft()
    policy = parse_config(filled(text), "draft").policy
    assert (policy.stop_words, policy.repeat, policy.stop_word_capitals) == ("keep", "same", "replace")
    chosen = ("  profile: readable", "  repeat: same", "  stop_word_capitals: replace", "  articles: agree")
    lines = [line for line in text.split("\n") if not line.startswith(chosen)]
    chosen = ("  # profile:", "  # n_max:")
    other = [line.replace("# ", "", 1) if line.startswith(chosen) else line for line in lines]
    strict = parse_config(filled("\n".join(other)), "draft").policy
    assert (strict.relation, strict.n_max) == ("any_text", 128)


def test_a_draft_of_passages_draws_whole_texts():
    job = parse_config(filled(draft(is_whole=True)), "draft")
    text, release = release_of("id:bigint", "body:string", "ds:date*", is_whole=True)
    for config in (job, release):
        assert (config.mechanism.name, config.policy.unit, config.policy.n_max) == ("passages", "text", 1)
        assert config.relation == "any_text"
    assert "costs epsilon for" in text
    assert {*release.gate.exposes} == {"presence", "edited", "withdrawn", "kept_changed", "column:ds"}


def test_drafts_of_both_ways_share_no_output():
    words, passages = (parse_config(filled(draft(is_whole=whole)), "draft") for whole in (False, True))
    assert words.output.path.endswith("/t-sanitised")
    assert passages.output.path.endswith("/t-passages")
    assert (words.release, passages.release) == ("t", "t-passages"), "they are charged as two"
    by_word, by_text = (release_of("id:bigint", "body:string", is_whole=whole)[1] for whole in (False, True))
    assert by_word.release != by_text.release
    assert not {by_word.output.path, by_word.output.public} & {by_text.output.path, by_text.output.public}
    assert by_word.ledger == by_text.ledger


def test_shipped_configurations_read_the_slice_the_dag_names():
    for name in ("release.yaml", "nightly.yaml"):
        raw = yaml.safe_load((ROOT / "conf" / name).read_text("utf-8"))
        check_params(raw["input"].get("where"), parse_params(dag_parameters()))


def test_a_filled_draft_costs_epsilon_a_token_and_not_more(tmp_path):
    """Nothing that raises the price is left out of what is to be filled in."""
    words = [*load_stop_words("english")[:40], *random_embedding(80, 5).words.to_pylist()]
    replace(random_embedding(120, 5), words=pa.array(words)).save(tmp_path / "words")
    raw = filled(draft())
    raw["mechanism"] |= {"embedding": str(tmp_path / "words"), "clusters": [5]}
    del raw["mechanism"]["merge"]  # a list of English words
    raw["bundle_store"] = str(tmp_path / "bundles")
    guarantee = build_bundle(parse_config(raw, "draft")).guarantee
    assert 0.99 * FILLED["mechanism"]["epsilon"] < guarantee.pure <= FILLED["mechanism"]["epsilon"]
    assert guarantee.delta == 0


def test_what_is_not_guessed_is_named_by_the_check():
    table = columns("nr:bigint", "words:string")
    guess = guess_columns(table)
    text = draft_config("t", table, guess)
    assert faults_of(filled(text)) == {"input.id", "input.text"}
    assert "one of nr, words?" in text
    assert guess.to_fill()[:2] == ["input.id", "input.text"]


@pytest.mark.parametrize(
    "hostile",
    ["a: b", "x # y", "no", "1e3", "12", "{a}", "a\nkey: {file: evil}", "a\x85b: 1", "ü 😀", "'", '"', "- a", ""],
)
def test_names_are_quoted_wherever_they_stand(hostile):
    """As a kept column, as one that is not kept (in a comment), and in the path."""
    named = [Column(hostile + "p", "string", partition=True), Column(hostile, "string")]
    table = [*columns("id:int", "body:string"), *named]
    guess = guess_columns(table)
    released = yaml.safe_load(draft_config("/x/" + hostile, table, guess, "delta", is_release=True))
    assert released["gate"]["exposes"][-1] == "column:" + hostile + "p"
    assert released["output"]["public"] == f"/x/{hostile.replace(chr(58), chr(45))}".rstrip("/") + "-public"
    raw = filled(draft_config("/x/" + hostile, table, guess))
    assert raw["input"]["keep"] == raw["output"]["partition_by"] == [hostile + "p"]
    assert raw["input"]["path"] == "/x/" + hostile
    assert raw["key"] == FILLED["key"]
    assert set(raw) == {"format_version", "release", "input", "mechanism", "bundle_store", "text", "output", "key"}
    parse_config(raw, "draft")


def test_an_existing_file_is_left_alone(tmp_path):
    file = tmp_path / "job.yaml"
    write_draft(file, "mine")
    for attempt in (lambda: write_draft(file, "other"), lambda: refuse_existing(file)):
        with pytest.raises(OutputExistsError, match=r"job\.yaml"):
            attempt()
    assert file.read_text() == "mine"
    with pytest.raises(ConfigError, match="--output"):
        write_draft(tmp_path / "none" / "job.yaml", "x")


def test_a_draft_of_files_has_their_format_and_options():
    for path, settings in (
        ("/lake/t.tsv", {"format": "csv", "options": {"sep": "\t"}, "id": "id", "text": "body"}),
        ("/lake/t.json", {"format": "json", "id": "id", "text": "body"}),
        ("/lake/t.txt", {"format": "text", "options": {"wholetext": "true"}, "id": "file_name", "text": "value"}),
    ):
        found = find_format(path)
        table = [Column(str(settings[name]), "string") for name in ("text", "id")]
        written = draft_config(path, table, guess_columns(table, "t"), found.kind, options=found.options)
        assert yaml.safe_load(written)["input"] == {"path": path, "keep": [], **settings}
