"""The suite itself: tests that must not run at once are kept together."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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


def test_the_long_suite_runs_every_long_target():
    """Each target can be started alone; `make test-long` runs or skips all of them."""
    long = set(re.findall(r"^([a-z-]+):.*## long:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {"test-long-suite", "chaos", "standalone", "yarn", "bench-billion"} <= long
    script = (ROOT / "scripts" / "test_long.sh").read_text("utf-8")
    assert set(re.findall(r"^ *run ([a-z-]+)$", script, re.MULTILINE)) == long
