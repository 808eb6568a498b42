"""The suite itself: tests that need data sets are long."""

from __future__ import annotations

import pytest


def test_data_sets_are_for_long_tests(request: pytest.FixtureRequest):
    """Elsewhere those tests are skipped: what the others show, they show anywhere."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    asking = [item for item in items if {"DATA", "load_parts"} & {*item.function.__code__.co_names}]
    assert all(item.get_closest_marker("long") for item in asking)
