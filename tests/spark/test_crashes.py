"""A run that dies between any two commits is finished by the next start: same draws, same ledger, nothing lost, nothing
twice.
"""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from pathlib import Path

import pytest

from support.releases import Lake, States, die_after
from support.workspaces import KEY, corpus, draw_key
from wordveil.assembly.run_report import RunReport
from wordveil.crypto.keys import rotate_key
from wordveil.errors import ReleaseError
from wordveil.release.events import Intent
from wordveil.spark.platform import delta_table
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.run import ReleaseRunner, abandon, run_release


@pytest.fixture(scope="module")
def states(released: States) -> States:
    """A release of eight records that has not run (``written``), whose run ``night-1`` died after it had reserved
    (``reserved``), or that has run as ``night-1`` (``drawn``).
    """
    lake = released.restore("written")
    with die_after("reserve"):
        lake.run(run_id="night-1")
    released.keep("reserved")
    return released


@pytest.fixture
def undisturbed(states: States) -> RunReport:
    """The report of the first run."""
    assert states.report is not None
    return states.report


@pytest.fixture
def reserved(states: States) -> Lake:
    """The release whose first run died after it had reserved."""
    return states.restore("reserved")


def test_a_run_that_dies_after_each_commit_is_finished(states: States, undisturbed: RunReport):
    """Each start makes one commit and dies; what it leaves on the disk is what the next one begins with."""
    reference = states.restore("drawn")
    tables = reference.draws(), reference.entries()
    lake = states.restore("written")
    for step in (
        *("create ledger", "create draws", "create journal"),
        *("intent", "reserve", "draws", "settle", "finished"),
    ):
        with die_after(1) as steps:
            lake.run(run_id="night-1")
        assert steps == [step]
        lake.forget()
    report = lake.run(run_id="night-1")
    assert (report.run_id, report.records, report.released) == ("night-1", 8, 8)
    assert dataclasses.replace(undisturbed, seconds=report.seconds) == report, (
        "counted afterwards as on the way to the table"
    )
    assert (lake.draws(), lake.entries()) == tables


def test_interrupted_run_with_moved_input_and_key_ends_as_begun(states: States):
    """The open run keeps to its version and its epoch; then the new one sees what came after."""
    undisturbed = states.restore("drawn").draws()
    lake = states.restore("reserved")
    assert lake.reserved() == 8 * 24, "what is reserved counts until it is settled"
    lake.delete("id = 'r00001'")
    lake.write(corpus(9).slice(8, 1))
    rotate_key(lake.root / "key")
    report = lake.run(lake.config(input={"changes": "feed"}), run_id="night-2")
    assert (report.changes, report.records, report.withdrawn) == ("feed", 1, 1)
    assert [row for row in lake.draws() if row["run_id"] == "night-1"] == undisturbed
    released = {row["id"]: (row["run_id"], row["__epoch"]) for row in lake.draws() if row["status"] == "released"}
    assert released == {**{f"r{number:05d}": ("night-1", 1) for number in range(8)}, "r00008": ("night-2", 2)}
    assert lake.reserved() == 0
    lake.workspace.write_key("key", KEY)
    with pytest.raises(ReleaseError, match="epoch"):
        lake.run(run_id="night-3")
    lake.workspace.write_key("key", draw_key())
    with pytest.raises(ReleaseError, match="key"):
        lake.run(run_id="night-3")


def test_a_run_id_that_has_finished_reports_and_does_nothing(drawn: Lake, undisturbed: RunReport):
    draws = drawn.draws()
    drawn.write(corpus(10).slice(8, 2))
    again = drawn.run(run_id="night-1")
    assert dataclasses.replace(again, seconds=0.0) == dataclasses.replace(undisturbed, seconds=0.0)
    assert drawn.draws() == draws


def test_an_abandoned_run_is_charged_in_full_and_never_drawn(reserved: Lake):
    lake = reserved
    abandon(lake.config().home, lambda: lake.spark, "night-1")
    assert lake.draws() == []
    assert (sum(lake.spent().values()), lake.reserved()) == (8 * 24, 0)
    with pytest.raises(ReleaseError, match="was abandoned"):
        lake.run(run_id="night-1")


def test_two_runs_of_one_release_wait_for_each_other(lake: Lake, tmp_path: Path):
    """Threads here, processes elsewhere: the second finds the first's work done."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(run_release, lake.config(), lambda: lake.spark, run_id=f"night-{number}") for number in (1, 2)
        ]
        reports = [future.result() for future in futures]
    assert sorted(report.records for report in reports) == [0, 8]
    assert len(lake.draws()) == 8
    assert lake.spent() == {f"r{number:05d}": 24 for number in range(8)}


def test_two_swaps_at_once_both_enter_and_know_of_each_other(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    """Without the lock of one machine, as on an object store: the second comes in while the first makes up its mind."""
    monkeypatch.setattr(delta_table, "hold_lock", lambda *_: nullcontext(False))
    place = delta_table.DeltaTable(lake.spark, str(lake.root / "journal"), "journal")
    Journal.create(place)
    journal, other = Journal(place, "support"), Journal(place, "support")
    looks: list[int] = []

    def late(seq: int) -> dict[str, object]:
        looks.append(seq)
        if len(looks) == 1:
            assert other.add("note", "", lambda seq: {"by": 2, "seq": seq}) is not None
        return {"by": 1, "seq": seq}

    event = journal.add("note", "", late)
    assert looks == [1, 2], "it has looked again"
    assert event is not None
    assert [(event.seq, event.body) for event in Journal(place, "support").events] == [
        (1, {"by": 2, "seq": 1}),
        (2, {"by": 1, "seq": 2}),
    ]
    assert journal.events == Journal(place, "support").events
    assert other.add("note", "", lambda _: {}, unless=lambda events: len(events) == 2) is None, "it knows of the first"


@pytest.mark.long
def test_run_begun_meanwhile_by_another_is_not_begun_twice(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    """As on a store without locks: the journal has moved on between the decision and the intent."""
    begin = ReleaseRunner._begin
    inner: list[object] = []

    def racing(self: ReleaseRunner, intent: Intent, table: object) -> object:
        if not inner:
            inner.append(None)
            inner[0] = lake.run(run_id="night-1")
        return begin(self, intent, table)

    monkeypatch.setattr(ReleaseRunner, "_begin", racing)
    report = lake.run(run_id="night-1")
    assert report == inner[0]
    assert len(lake.draws()) == 8
