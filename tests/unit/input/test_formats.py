"""Formats and their options: what would lose records, change types, or show a secret is named before any data is read,
all at once, and no message shows the value of an option.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.toys import toy_settings
from wordveil.config.load import parse_config
from wordveil.errors import ConfigError
from wordveil.input.formats import find_source_faults, has_header, reader_options
from wordveil.input.source import Source

HIDDEN = "pelican-37"


def settings(**source: Any) -> dict[str, Any]:
    section = {"name": "laplace", "epsilon": 4.0, "embedding": "demo", "public": True}
    corpus = {"path": "/lake/in", "id": "id", "text": "body", **source}
    return toy_settings(section, input=corpus, output={"path": "/lake/out"})


def faults(**source: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as error:
        parse_config(settings(**source), "tests")
    assert HIDDEN not in str(error.value)
    return {fault.where: fault.problem for fault in error.value.faults}


def source(**given: Any) -> Source:
    return Source(**{"id": "id", "text": "body", "path": "/lake/in", **given})


@pytest.mark.parametrize("kind", ["orc", "json", "CSV", "avro", "com.example.Source", "delta", "Parquet", None])
def test_formats_by_name_and_class(kind):
    assert parse_config(settings(format=kind), "tests").input.format == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("com.databricks.spark.csv", "csv"),
        ("org.apache.spark.sql.execution.datasources.csv.CSVFileFormat", "csv"),
        ("org.apache.spark.sql.execution.datasources.v2.json.JsonDataSourceV2", "json"),
        ("org.apache.spark.sql.json", "json"),
        ("org.apache.spark.sql.json.DefaultSource", "json"),
        ("com.databricks.spark.xml", "xml"),
        ("org.apache.spark.sql.execution.datasources.xml.XmlFileFormat", "xml"),
    ],
)
def test_a_reader_of_spark_has_one_kind_by_any_name(name, kind):
    config = parse_config(settings(format=name), "tests")
    assert (config.source.kind, config.source.reader, config.shown) == (kind, kind, ("presence",))
    assert reader_options(config.source, {}) == reader_options(source(format=kind), {})
    assert "is set by wordveil" in faults(format=name, options={"columnPruning": "true"})["input.options.columnPruning"]


def test_other_classes_are_other_sources():
    for name in ("org.apache.spark.sql.csvx", "com.example.csv", "org.apache.spark.sql.hive.orc"):
        assert source(format=name).kind == name
    assert source(format="org.apache.spark.sql.execution.datasources.orc.OrcFileFormat").kind == "orc"
    assert "have no ids" in faults(format="org.apache.spark.sql.text", id="file_name", text="value")["input.format"]


def test_where_a_record_ends_is_not_a_setting():
    options = {"multiLine": "false", "unescapedQuoteHandling": "SKIP_VALUE", "rescuedDataColumn": "x"}
    names = {f"input.options.{name}" for name in options}
    for kind in ("csv", "CSV", "json", "xml", "com.databricks.spark.csv"):
        assert set(faults(format=kind, options=options)) == names
    assert "input.options_env.MULTILINE" in faults(format="csv", options_env={"MULTILINE": "VARIABLE"})
    assert parse_config(settings(format="com.example.Source", options={"multiLine": "x"}), "tests").input.options


def test_a_source_without_files_needs_no_path():
    given = settings(format="jdbc", options={"url": "jdbc:postgresql://host/lake", "dbtable": "tickets"})
    del given["input"]["path"]
    jdbc = parse_config(given, "tests").source
    assert (jdbc.setting, jdbc.name) == ("input.format", "jdbc")
    del given["input"]["format"], given["input"]["options"]
    with pytest.raises(ConfigError, match=r"input\.path: name exactly one"):
        parse_config(given, "tests")


def test_all_bad_options_are_named_at_once():
    options = {
        "mode": "DROPMALFORMED",
        "InferSchema": "true",
        "versionAsOf": "3",
        "columnNameOfCorruptRecord": "x",
        "comment": "#",
        "enforceSchema": "true",
        "ignoreCorruptFiles": "true",
        "header": "true",
        "HEADER": "false",
        "password": HIDDEN,
        "url": f"jdbc:postgresql://user:{HIDDEN}@host/lake",
        "extra": f"PWD={HIDDEN};x",
    }
    found = faults(format="csv", options=options, options_env={"Mode": "VARIABLE"}, version=3)
    assert {name.removeprefix("input.options.") for name in found} == {
        *(set(options) - {"header"}),
        "input.options_env.Mode",
        "input.version",
    }
    assert "wordveil quarantines them" in found["input.options.mode"]
    assert "Name them in input.columns" in found["input.options.InferSchema"]
    assert "options_env: {password: VARIABLE}" in found["input.options.password"]


def test_the_values_of_options_are_strings():
    found = faults(format="jdbc", options={"header": True, "password": [HIDDEN]}, options_env={"a": HIDDEN})
    assert {"input.options.header", "input.options.password", "input.options_env.a"} <= set(found)


def test_a_catalogue_knows_options_and_columns():
    found = faults(path=None, table="lake.in", options={"a": "b"}, columns="id INT")
    assert {"input.options", "input.columns"} <= set(found)


def test_iceberg_has_versions_and_no_feed():
    given = settings(format="iceberg", version=2**62)
    assert parse_config(given, "tests").source.version == 2**62
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
    assert parse_config(given, "tests").source.kind == "text"


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
    assert parse_config(given, "tests").shown == ("presence",)
    del given["input"]["format"]
    assert parse_config(given, "tests").shown == ()


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
    with pytest.raises(ConfigError) as error:
        parse_config(given, "tests")
    found = {fault.where: fault.problem for fault in error.value.faults}
    assert said in found[where], found


def test_a_record_costs_the_sum_of_its_columns():
    given = settings(text=["subject", "message.body"])
    assert parse_config(given, "tests").policy.n_max == 16
    given["text"]["n_max"] = {"message.body": 30, "subject": 4}
    config = parse_config(given, "tests")
    assert config.policy.n_max == 34
    assert (config.text_columns.names, config.text_columns.widths) == (("subject", "message.body"), (4, 30))
    one = settings()
    one["text"]["n_max"] = {"body": 8}
    assert parse_config(one, "tests").policy == parse_config(settings(), "tests").policy
    listed = parse_config(settings(text=["body"]), "tests")
    assert (listed.policy, listed.text_columns.names) == (parse_config(settings(), "tests").policy, ("text",))


def test_a_condition_with_a_variable_is_refused():
    with pytest.raises(ConfigError, match=r"input\.where = day = '\$\{day\}': has a variable .*Write a parameter"):
        parse_config(settings(where="day = '${day}'"), "tests")
