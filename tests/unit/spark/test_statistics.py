"""Whether Delta's settings let the log of a table hold texts."""

from __future__ import annotations

import pytest

from wordveil.spark.input.statistics import _has_statistics


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
