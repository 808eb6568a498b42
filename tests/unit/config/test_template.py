"""A first configuration: what is guessed from names and types, and that what is written reads back."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from wordveil.config.load import parse_config
from wordveil.config.template import (
    Column,
    draft_config,
    draft_facts,
    guess_columns,
    is_local_delta,
    refuse_existing,
    table_name,
    write_draft,
)
from wordveil.errors import ConfigError, OutputExistsError

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


@pytest.mark.parametrize(
    ("names", "table", "expected"),
    [
        (["id:bigint", "ticket_id:bigint"], "x", "id"),
        (["ticket_id:bigint", "customer_id:bigint"], "x", "ticket_id"),
        (["ticket_id:bigint", "thread_id:bigint"], "x", None),
        (["ticket_id:bigint", "thread_id:bigint"], "tickets", "ticket_id"),
        (["ticketId:string", "body:string"], "x", "ticketId"),
        (["uuid:string", "key:string"], "x", "uuid"),
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
        (["comments:string", "title:string"], "comments"),
        (["body:string", "text:string"], "text"),
        (["mail_body:string", "body:string"], "body"),
        (["mail_body:string", "head_body:string"], None),
        (["text:int"], None),
        (["text:string*"], None),
        (["context:string"], None),
    ],
)
def test_texts_are_guessed_by_name_and_type(names, expected):
    assert guess_columns(columns("id:int", *names)).text == expected


def test_a_column_is_never_two_things():
    guess = guess_columns(
        columns("text_id:string", "user_message:string", "user_name:string", "user_id:int", "ds:date*", "x:int")
    )
    assert (guess.id, guess.text, guess.author) == ("text_id", "user_message", "user_id")
    assert guess.keep == ("ds",)
    assert guess.not_kept == ("user_name", "x")


def test_partitions_by_author_and_names_of_the_output_are_not_kept():
    guess = guess_columns(
        columns("id:int", "body:string", "day:string*", "customer:string*", "status:string*", "__x:int*")
    )
    assert guess.keep == ("day",)
    assert {"customer", "status", "__x"} < {*guess.not_kept, "more"}


def test_a_draft_loads_once_it_is_filled_in():
    table = columns("ticket_id:bigint", "body:string", "customer:string", "ds:date*", "secret:string")
    text = draft_config("/lake/raw/tickets/", table, guess_columns(table, "tickets"))
    config = parse_config(filled(text), "draft")
    assert (config.release, config.input.id, config.input.text, config.input.author) == (
        "tickets",
        "ticket_id",
        "body",
        "customer",
    )
    assert config.input.keep == config.output.partition_by == ["ds"]
    assert config.output.path == "/lake/raw/tickets-sanitised"
    assert "secret" in text
    with pytest.raises(ConfigError) as error:
        parse_config(yaml.safe_load(text), "draft")
    assert {fault.where for fault in error.value.faults} == {"mechanism.epsilon", "mechanism.public", "key"}


def test_a_draft_says_the_format(tmp_path):
    table = columns("id:int", "body:string")
    guess = guess_columns(table)
    assert parse_config(filled(draft_config("t", table, guess)), "draft").input.format == "parquet"
    assert parse_config(filled(draft_config("t", table, guess, "delta")), "draft").input.format == "delta"
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    assert is_local_delta(f"file:{tmp_path}/t")
    assert not is_local_delta(str(tmp_path))
    assert not is_local_delta("s3a://bucket/t")


def test_what_is_not_guessed_is_named_by_the_check():
    table = columns("nr:bigint", "words:string")
    guess = guess_columns(table)
    text = draft_config("t", table, guess)
    with pytest.raises(ConfigError) as error:
        parse_config(filled(text), "draft")
    assert {fault.where for fault in error.value.faults} == {"input.id", "input.text"}
    assert "one of nr, words?" in text
    assert guess.to_fill[:2] == ["input.id", "input.text"]


@pytest.mark.parametrize(
    "hostile",
    ["a: b", "x # y", "no", "1e3", "12", "{a}", "a\nkey: {file: evil}", "a\x85b: 1", "ü 😀", "'", '"', "- a", ""],
)
def test_names_are_quoted_wherever_they_stand(hostile):
    """As a kept column, as one that is not kept (in a comment), and in the path."""
    table = [
        *columns("id:int", "body:string"),
        Column(hostile + "p", "string", partition=True),
        Column(hostile, "string"),
    ]
    raw = filled(draft_config("/x/" + hostile, table, guess_columns(table)))
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


def test_facts_and_names():
    table = columns("id:int", "body:string")
    facts = draft_facts("job.yaml", "t", guess_columns(table))
    assert (facts["id"], facts["text"], facts["keep"]) == ("id", "body", [])
    assert facts["to_fill"] == ["mechanism.epsilon", "mechanism.public", "key"]
    assert table_name("s3://a/b/tickets.parquet/") == "tickets"


def test_a_draft_in_another_directory_names_the_key_where_its_command_writes_it():
    table = columns("id:int", "body:string")
    text = draft_config("../raw", table, guess_columns(table), "parquet", Path("my conf"))
    assert "\n  path: ../raw\n" in text
    assert 'wordveil key new "my conf/wordveil.key".' in text
    assert parse_config(filled(text), "draft", directory=Path("/lake/conf")).output.path == "/lake/raw-sanitised"
