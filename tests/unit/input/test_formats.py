"""Formats and options that lose records, change types or show a secret are named before any data is read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support import configs
from support.configs import find_faults, parse
from wordveil.input.formats import find_source_faults, has_header, reader_options
from wordveil.input.source import Source

HIDDEN = "pelican-37"


def settings(**source: Any) -> dict[str, Any]:
    return configs.settings(source=source, text={"n_max": 8})


def faults(**source: Any) -> dict[str, str]:
    found = find_faults(settings(**source))
    assert HIDDEN not in str(found)
    return found


def source(**given: Any) -> Source:
    return Source(**{"id": "id", "text": "body", "path": "/lake/in", **given})


def test_formats_by_name_and_class():
    for kind in ("orc", "json", "CSV", "avro", "com.example.Source", "delta", "Parquet", None):
        assert parse(settings(format=kind)).input.format == kind
    for name in ("org.apache.spark.sql.csvx", "com.example.csv", "org.apache.spark.sql.hive.orc"):
        assert source(format=name).kind == name
    assert source(format="org.apache.spark.sql.execution.datasources.orc.OrcFileFormat").kind == "orc"
    assert "have no ids" in faults(format="org.apache.spark.sql.text", id="file_name", text="value")["input.format"]


READERS = {
    "com.databricks.spark.csv": "csv",
    "org.apache.spark.sql.execution.datasources.csv.CSVFileFormat": "csv",
    "org.apache.spark.sql.execution.datasources.v2.json.JsonDataSourceV2": "json",
    "org.apache.spark.sql.json": "json",
    "org.apache.spark.sql.json.DefaultSource": "json",
    "com.databricks.spark.xml": "xml",
    "org.apache.spark.sql.execution.datasources.xml.XmlFileFormat": "xml",
}


def test_a_reader_of_spark_has_one_kind_by_any_name():
    options = {"columnPruning": "true"}
    for name, kind in READERS.items():
        config = parse(settings(format=name))
        assert (config.source.kind, config.source.reader, config.shown) == (kind, kind, ("presence",))
        assert reader_options(config.source, {}) == reader_options(source(format=kind), {})
        assert "is set by wordveil" in faults(format=name, options=options)["input.options.columnPruning"]


def test_where_a_record_ends_is_not_a_setting():
    options = {"multiLine": "false", "unescapedQuoteHandling": "SKIP_VALUE", "rescuedDataColumn": "x"}
    names = {f"input.options.{name}" for name in options}
    for kind in ("csv", "CSV", "json", "xml", "com.databricks.spark.csv"):
        assert set(faults(format=kind, options=options)) == names
    assert "input.options_env.MULTILINE" in faults(format="csv", options_env={"MULTILINE": "VARIABLE"})
    assert parse(settings(format="com.example.Source", options={"multiLine": "x"})).input.options


def test_a_source_without_files_needs_no_path():
    given = settings(format="jdbc", options={"url": "jdbc:postgresql://host/lake", "dbtable": "tickets"})
    del given["input"]["path"]
    jdbc = parse(given).source
    assert (jdbc.setting, jdbc.name) == ("input.format", "jdbc")
    del given["input"]["format"], given["input"]["options"]
    assert "name exactly one" in find_faults(given)["input.path"]


def test_all_bad_options_are_named_at_once():
    plain = {
        "mode": "DROPMALFORMED", "InferSchema": "true", "versionAsOf": "3", "columnNameOfCorruptRecord": "x",
        "comment": "#", "enforceSchema": "true", "ignoreCorruptFiles": "true", "header": "true", "HEADER": "false",
    }  # fmt: skip
    secret = {
        "password": HIDDEN, "url": f"jdbc:postgresql://user:{HIDDEN}@host/lake", "extra": f"PWD={HIDDEN};x",
    }  # fmt: skip
    found = faults(format="csv", options={**plain, **secret}, options_env={"Mode": "VARIABLE"}, version=3)
    named = {f"input.options.{name}" for name in {*plain, *secret} - {"header"}}
    assert set(found) == named | {"input.options_env.Mode", "input.version"}
    assert "wordveil quarantines them" in found["input.options.mode"]
    assert "Name them in input.columns" in found["input.options.InferSchema"]
    assert "options_env: {password: VARIABLE}" in found["input.options.password"]
    found = faults(format="jdbc", options={"header": True, "password": [HIDDEN]}, options_env={"a": HIDDEN})
    assert {"input.options.header", "input.options.password", "input.options_env.a"} <= set(found), "strings alone"
    found = faults(path=None, table="lake.in", options={"a": "b"}, columns="id INT")
    assert {"input.options", "input.columns"} <= set(found), "which a catalogue knows"


def test_iceberg_has_versions_and_no_feed():
    given = settings(format="iceberg", version=2**62)
    assert parse(given).source.version == 2**62
    options = {"snapshot-id": "1", "as-of-timestamp": "1", "branch": "b", "tag": "t", "start-snapshot-id": "1"}
    given = source(format="iceberg", options=options, columns="id INT", changes="feed")
    found = {fault.where: fault.problem for fault in find_source_faults(given)}
    assert {f"input.options.{name}" for name in options} <= set(found)
    assert found["input.columns"] == "the table has its own columns. Remove it."
    assert "Set input.changes: scan" in found["input.changes"]
    assert "input.path" in faults(format="iceberg", path=None)


def test_lines_of_text_have_no_ids():
    assert "have no ids that stay" in faults(format="text", id="file_name", text="value")["input.format"]
    given = settings(format="text", id="file_name", text="value", options={"wholetext": "true"})
    assert parse(given).source.kind == "text"


def test_csv_is_read_as_it_is_written_elsewhere():
    defaults = reader_options(source(format="csv"), {})
    assert (defaults["header"], defaults["multiLine"], defaults["escape"]) == ("true", "true", '"')
    changed = reader_options(source(format="csv", options={"HEADER": "false", "sep": ";"}), {})
    assert "header" not in changed
    assert (changed["HEADER"], changed["sep"]) == ("false", ";")
    assert has_header(source(format="csv"))
    assert not has_header(source(format="csv", options={"HEADER": "false"}))
    assert not has_header(source(format="json"))
    assert reader_options(source(), {}) == {}


def test_a_text_may_be_why_a_row_cannot_be_parsed():
    given = settings(format="csv")
    given["text"]["refused"] = "empty"
    assert parse(given).shown == ("presence",)
    del given["input"]["format"]
    assert parse(given).shown == ()


def test_secrets_come_from_the_environment():
    jdbc = source(format="jdbc", path=None, options_env={"password": "LAKE_PASSWORD"})
    assert reader_options(jdbc, {"LAKE_PASSWORD": HIDDEN}) == {"password": HIDDEN}
    assert HIDDEN not in repr(jdbc)


@pytest.mark.parametrize(
    ("text", "n_max", "keep", "where", "said"),
    [
        (["subject", "body"], {"subject": 8}, [], "text.n_max", "lacks body"),
        (["subject", "body"], {"subject": 8, "bdy": 9, "body": 9}, [], "text.n_max.bdy", "Did you mean body?"),
        (["subject", "subject"], 8, [], "input.text", "is listed more than once"),
        (["subject", "SUBJECT"], 8, [], "input.text", "is listed more than once"),
        (["id", "body"], 8, [], "input.text", "is also the id column"),
        (["message.body", "title"], 8, ["message"], "input.keep", "keeping it would publish the original"),
        ("message.body", 8, ["message"], "input.keep", "keeping it would publish the original"),
        ("body", 8, ["BODY"], "input.keep", "keeping it would publish the original"),
        (["message", "message.body"], 8, [], "input.text", "holds another text column"),
        (["a..b", "body"], 8, [], "input.text", "is not a column name"),
        (["status", "body"], 8, [], "input.text", "is a name that the output reserves"),
        ([], 8, [], "input.text", "should have at least 1 item"),
        (["body", "subject"], 0, [], "text.n_max", "greater than or equal to 1"),
        (["body", "subject"], {"body": 0, "subject": 1}, [], "text.n_max.body", "greater than or equal to 1"),
    ],
)
def test_text_columns_that_contradict_each_other(text, n_max, keep, where, said):
    given = settings(text=text, keep=keep)
    given["text"]["n_max"] = n_max
    assert said in find_faults(given)[where]


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        ({"rename": {"ticket": "Ticket"}, "id": "Ticket"}, "rename.ticket", "is the column's own name. Remove it."),
        ({"rename": {"a": "id", "b": "ID"}}, "rename.b", "is the new name of a, too. Keep one of them."),
        ({"rename": {"a": "bodi"}}, "rename.a", "is a name that no setting of input has. Did you mean body?"),
        ({"cast": {"idd": "int"}}, "cast.idd", "is the type of a column that no setting of input has"),
        ({"cast": {"body": "string"}}, "cast.body", "or of a text, which needs none. Remove it."),
        ({"cast": {"id": "varchar(3)"}}, "cast.id", "allowed: string, tinyint, smallint"),
        ({"cast": {"who": "int"}, "author": "who"}, "cast.who", "a value that does not fit would be nobody"),
    ],
)
def test_new_names_and_types_that_mean_nothing(changes, where, said):
    assert said in faults(**changes)[f"input.{where}"]


def test_new_names_and_types_of_columns_are_taken():
    columns = {
        "id": "id",
        "text": ["mail.body", "note"],
        "author": "who",
        "keep": [{"column": "shop", "as": "pseudonym"}],
    }
    rename = {f"old_{name}": name for name in ("id", "mail", "note", "who", "shop")}
    cast = {"id": "bigint", "shop": "string"}
    config = parse(settings(**columns, rename=rename, cast=cast))
    assert (config.source.rename, config.source.cast) == (rename, cast)


def test_a_record_costs_the_sum_of_its_columns():
    given = settings(text=["subject", "message.body"])
    assert parse(given).policy.n_max == 16
    given["text"]["n_max"] = {"message.body": 30, "subject": 4}
    config = parse(given)
    assert config.policy.n_max == 34
    assert (config.text_columns.names, config.text_columns.widths) == (("subject", "message.body"), (4, 30))
    one = settings()
    one["text"]["n_max"] = {"body": 8}
    listed = parse(settings(text=["body"]))
    assert parse(one).policy == listed.policy == parse(settings()).policy
    assert listed.text_columns.names == ("text",)


def test_a_condition_with_a_variable_is_refused():
    assert re.search("has a variable .*Write a parameter", faults(where="day = '${day}'")["input.where"])
