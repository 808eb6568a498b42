"""The suite itself: tests that must not run at once are kept together."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("together")
def test_groups_are_kept_together(request: pytest.FixtureRequest):
    """Without its group a test runs wherever there is room: two clusters at once, or a session in each process."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@together")
    assert request.node.get_closest_marker("xdist_group")
