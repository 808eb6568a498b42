"""The columns that a configuration names, and what a table records of their values, before any row is read."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from wordveil.errors import ConfigError
from wordveil.input.columns import Columns
from wordveil.input.source import Source
from wordveil.records.pseudonyms import Pseudonym
from wordveil.spark.input.table_versions import _has_statistics
from wordveil.spark.platform.columns import check_columns, rename_columns

SCHEMA = (
    StructType()
    .add("id", StringType())
    .add("body", StringType())
    .add("day", StringType())
    .add("note", LongType())
    .add("ratio", DoubleType())
    .add("meta", StructType().add("writer", StringType()))
)


def find_faults(**columns: Any) -> list[str]:
    named = Columns(**{"id": "id", "text": "body", "keep": ["day"], **columns})
    try:
        check_columns(SCHEMA, named, "corpus")
    except ConfigError as error:
        assert str(error).startswith("corpus")
        return str(error).splitlines()[1:]
    return []


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"id": "idd"}, "input.id = idd: the table has no such column. Did you mean id?"),
        ({"text": "bodi"}, "input.text = bodi: the table has no such column. Did you mean body?"),
        ({"text": "ratio"}, "input.text = ratio: is of type double. A text must be a string"),
        ({"id": "ratio"}, "input.id = ratio: is of type double. Ids must be strings or whole numbers"),
        ({"keep": ["zzz"]}, "input.keep = zzz: the table has no such column. It has: id, body, day, note, ratio"),
        ({"pseudonyms": [Pseudonym("ratio", "r")]}, "= ratio: is of type double. What becomes a pseudonym must be"),
        ({"pseudonyms": [Pseudonym("who", "id2")]}, "input.keep = who: the table has no such column"),
        ({"keep": ["a`b"]}, "input.keep = a`b: Spark cannot quote a backtick in a column's name"),
        ({"author": "meta.writer"}, "input.author = meta.writer: is a field of a struct, which only a text may be."),
        ({"author": "bod"}, "input.author = bod: the table has no such column. Did you mean body?"),
    ],
)
def test_a_wrong_column_is_named_with_its_fix(columns: dict[str, Any], fault: str):
    (found,) = find_faults(**columns)
    assert fault in found


@pytest.mark.parametrize(
    ("rename", "names"),
    [
        ({"id": "key", "day": "ds"}, ["key", "body", "ds"]),
        ({"id": "body", "body": "id"}, ["body", "id", "day"]),
        ({"customer": "day"}, ["id", "body", "day"]),
    ],
)
def test_columns_are_renamed_unless_the_table_has_the_new_name(rename: dict[str, str], names: list[str]):
    """A version from before the column was renamed has the name that all settings have."""
    assert rename_columns(["id", "body", "day"], rename, "corpus") == names


@pytest.mark.parametrize(
    ("rename", "fault"),
    [
        ({"bodi": "text"}, "input.rename.bodi = text: the table has neither column. Did you mean body?"),
        ({"day": "NOTE"}, "input.rename.day = NOTE: is a column of the table, too. Remove this entry to read that one"),
        ({"id": "body", "day": "id"}, "input.rename.id = body: is a column of the table, too."),
    ],
)
def test_a_column_that_cannot_be_renamed_is_named(rename: dict[str, str], fault: str):
    with pytest.raises(ConfigError) as error:
        rename_columns(["id", "body", "day", "note"], rename, "corpus")
    (found,) = map(str, error.value.faults)
    assert found.startswith(fault)


def test_statistics_are_looked_for_under_both_names_of_a_text():
    source = Source(id="id", text=["message.body", "subject"], rename={"mail": "message", "key": "id"})
    assert source.known_texts == ("message.body", "subject", "mail", "subject")


def test_columns_of_the_right_types_are_no_fault():
    assert find_faults() == []
    assert find_faults(id="note", text="note", author="day") == []
    assert find_faults(pseudonyms=[Pseudonym("note", "who")]) == []


@pytest.mark.parametrize(
    ("named", "first", "expected"),
    [
        (None, None, True),
        (None, "1", True),
        (None, "0", False),
        ("id, day", None, False),
        ("id,Body", "0", True),
        ("id, `body`", None, True),
        ("id,message.day", None, True),
        ("bodyguard", None, False),
    ],
)
def test_statistics_of_a_text_are_found_by_its_column(named: str | None, first: str | None, *, expected: bool):
    assert _has_statistics(named, first, ["body", "message.text"]) is expected
