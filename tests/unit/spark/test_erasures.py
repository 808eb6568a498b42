"""Search for ids in what a release writes beside its tables' data."""

from __future__ import annotations

import json

import pytest

from wordveil.spark.release.erase import names_record

ADD = {"add": {"path": "part-0.parquet", "size": 8812, "stats": json.dumps({"minValues": {"id": "8812"}})}}


@pytest.mark.parametrize(
    ("value", "is_named"),
    [
        (json.dumps(ADD), True),
        (json.dumps({"commitInfo": {}}) + "\n" + json.dumps(ADD), True),
        ({"ids": ["r1", "r-x"]}, True),
        ({"id": 8812}, True),
        ({"size": 8812, "at": ["8812"], "r-x": 0}, False),
        ({"predicate": ["r-x"]}, True),
        ("{broken r-x", False),
        (None, False),
    ],
)
def test_names_record_finds_ids_and_no_other_numbers(value: object, is_named: bool):
    assert names_record(value, "id", {"8812", "r-x"}) is is_named
