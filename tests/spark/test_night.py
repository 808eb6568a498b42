"""A night in one session leaves what the three commands leave, also where it was stopped in between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.releases import Lake, States, die_after
from wordveil.release.events import GATE, PUBLISHED
from wordveil.spark.release.night import Night, run_night


@pytest.fixture(scope="module")
def states(released: States) -> States:
    """A release before and after each command, and one that has spent a night (``spent``)."""
    made = spend_night(released.restore("written"))
    assert made.report is not None
    assert made.decision is not None
    assert made.publication is not None
    assert (made.report.released, made.decision.result.passed) == (8, True)
    released.keep("spent")
    return released


def spend_night(lake: Lake, **sections: Any) -> Night:
    return run_night(lake.config(**sections), lambda: lake.spark, run_id="night-1")


def manifest_of(lake: Lake) -> dict[str, Any]:
    """The manifest without what names files, times and the table. A publication that died has left a version."""
    found = json.loads((lake.public / "_manifest.json").read_text("utf-8"))["manifest"]
    names = ("created", "files", "metadata", "public_version")
    return {name: value for name, value in found.items() if name not in names}


def events(lake: Lake, names: tuple[str, ...] = ("intent", "finished", GATE, PUBLISHED)) -> list[str]:
    rows = sorted(lake.rows(lake.home / "journal"), key=lambda row: row["seq"])
    return [row["event"] for row in rows if row["event"] in names]


def outcome(lake: Lake) -> tuple[Any, ...]:
    """All that a night leaves but places, times, and how often it looked."""
    return lake.draws(), lake.entries(), lake.rows(lake.public), manifest_of(lake)


def test_a_night_leaves_what_the_three_commands_leave(states: States):
    apart = outcome(published := states.restore("published"))
    assert events(published) == ["intent", "finished", GATE, PUBLISHED]
    spent = states.restore("spent")
    assert outcome(spent) == apart
    assert events(spent) == ["intent", "finished", GATE, PUBLISHED]


def test_a_night_whose_gate_does_not_pass_publishes_nothing(states: States):
    lake = states.restore("drawn")
    made = spend_night(lake, gate={"min_records": 100})
    assert made.decision is not None
    assert [one.name for one in made.decision.result.failures] == ["min_records"]
    assert made.publication is None
    assert not lake.public.exists()
    assert events(lake) == ["intent", "finished", GATE]
    assert sum(lake.spent().values()) == 8 * 24, "it has drawn nothing again"


STEPS = ("create ledger", "create draws", "create journal", "intent", "reserve", "draws", "settle", "finished", "gate")


@pytest.mark.parametrize(
    ("begun", "steps"), [("drawn", STEPS[-1:]), pytest.param("written", STEPS, marks=pytest.mark.long)]
)
def test_a_night_that_dies_after_each_commit_is_finished(states: States, begun: str, steps: tuple[str, ...]):
    """Each start makes one commit and dies. At the end there is what an undisturbed night leaves.

    test_crashes.py shows the commits before the gate of a run by itself.
    """
    undisturbed = outcome(states.restore("spent"))
    lake = states.restore(begun)
    for step in steps:
        with die_after(1) as done:
            spend_night(lake)
        assert done == [step]
        lake.forget()
    # From here on a call that dies has measured once more: only whole gates lead to a publication.
    with die_after("public table"):
        spend_night(lake)
    lake.forget()
    made = spend_night(lake)
    assert made.publication is not None
    assert outcome(lake) == undisturbed
    assert lake.reserved() == 0
