"""The suite itself: tests that must not run at once are kept together."""

from __future__ import annotations

import os
import re

import pytest
from threadpoolctl import threadpool_info

from support.repository import ROOT


def test_tests_of_one_file_run_in_one_process(request: pytest.FixtureRequest):
    """Fixtures of a module are made once, and no session is built for one test."""
    groups = {item: item.get_closest_marker("xdist_group").args[0] for item in request.session.items}
    files = {item: str(item.path.relative_to(ROOT).with_suffix("")) for item in groups}
    assert {group for item, group in groups.items() if group != files[item]} <= {
        "cluster",
        "jax",
        "airflow",
        "released",
    }
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert all(item.nodeid.rsplit("@", 1)[1] == group for item, group in groups.items())


def test_products_are_those_of_the_processor_that_was_asked_for():
    """`make test-processors` asks for three."""
    asked = os.environ.get("OPENBLAS_CORETYPE", "").lower()
    kernels = {found["architecture"].lower() for found in threadpool_info() if found["internal_api"] == "openblas"}
    # OpenBLAS calls Prescott by the name of an older one with the same kernels.
    assert not asked or kernels <= {{"prescott": "katmai"}.get(asked, asked)}


def test_the_long_suite_runs_every_long_target():
    """Each target can be started alone; `make test-long` runs or skips all of them."""
    long = set(re.findall(r"^([a-z-]+):.*## long:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {"test-long-suite", "test-research", "chaos", "standalone", "yarn", "bench-billion"} <= long
    script = (ROOT / "scripts" / "test_long.sh").read_text("utf-8")
    assert set(re.findall(r"^ *run ([a-z-]+)$", script, re.MULTILINE)) == long
