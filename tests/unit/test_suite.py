"""The suite itself: tests that must not run at once are kept together."""

from __future__ import annotations

import os

import pytest


def test_what_shares_the_session_is_kept_together(request: pytest.FixtureRequest):
    """Also where no test says so itself."""
    items = [item for item in request.session.items if "spark" in getattr(item, "fixturenames", ())]
    assert all(item.get_closest_marker("xdist_group") for item in items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert all(item.nodeid.rsplit("@", 1)[1] in ("session", "cluster") for item in items)


@pytest.mark.xdist_group("together")
def test_groups_are_kept_together(request: pytest.FixtureRequest):
    """Without its group a test runs wherever there is room: two clusters at once, or a session in each process."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@together")
    assert request.node.get_closest_marker("xdist_group")
