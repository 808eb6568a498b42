"""A job asks its configuration once: what it needs is computed at the start and handed on as plain values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from support.releases import States
from support.workspaces import Command, Workspace, corpus
from wordveil import config

PACKAGE = Path(config.__file__).parents[1]
CONFIG = PACKAGE / "config"


def find_caller(frame: FrameType | None) -> FrameType | None:
    """The nearest frame of the package: pydantic and the standard library pass a call on."""
    while frame is not None and PACKAGE not in Path(frame.f_code.co_filename).parents:
        frame = frame.f_back
    return frame


@contextmanager
def climbs() -> Iterator[set[str]]:
    """The lines from which functions of the configuration's room were called by code of other rooms."""
    lines: set[str] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(CONFIG)):
            return
        caller = find_caller(frame.f_back)
        # A class body or a module that is loaded has no fast locals.
        if caller and frame.f_code.co_flags & 1 and CONFIG not in Path(caller.f_code.co_filename).parents:
            lines.add(f"{Path(caller.f_code.co_filename).relative_to(PACKAGE)}:{caller.f_lineno}")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield lines
    finally:
        sys.setprofile(before)


def test_a_job_goes_back_to_its_configuration_ten_times_at_most(spark, workspace: Workspace, run: Command):
    workspace.write_corpus(corpus(6))
    file = workspace.write_config()
    assert run("build", "--config", file)[0] == 0
    with climbs() as lines:
        assert run("sanitise", "--config", file)[0] == 0
    assert 0 < len(lines) <= 10, sorted(lines)


def test_a_run_of_a_release_goes_back_five_times_at_most(released: States):
    lake = released.restore("drawn")
    lake.delete("id = 'r00003'")
    settings = lake.config(
        input={"changes": "feed"}, budgets={"unit": "pure", "relation": "any_text", "record": 1e5, "delta": 1e-3}
    )
    with climbs() as lines:
        lake.run(settings)
    assert 0 < len(lines) <= 5, sorted(lines)
