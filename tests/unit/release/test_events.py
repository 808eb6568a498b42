"""What a journal says of the runs before one: which slices of a table they read, and whether others came between."""

from __future__ import annotations

from dataclasses import replace

from wordveil.release.events import ABANDONED, FINISHED, INTENT, Event, Events, Intent, RunTerms

RUN = Intent("new", 99, "sanitise", RunTerms({}, 1, ()), source="t", source_id="one", where="ds = :ds", changes="feed")


def journal(*runs: tuple[str, dict[str, object], str]) -> Events:
    """Runs over days, each with what else differs and how it ended."""
    events = []
    for number, (day, differing, end) in enumerate(runs):
        intent = replace(RUN, run_id=str(number), seq=2 * number + 1, params={"ds": day}, **differing)
        events.append(Event(intent.seq, INTENT, intent.run_id, "", intent.to_dict()))
        events.append(Event(intent.seq + 1, end, intent.run_id, "", {}))
    return Events(events)


def test_slices_beside_a_run_are_those_read_of_its_table():
    """Each once, whatever order its parameters were given in; none that was only begun, or of another table."""
    read = journal(
        ("20", {"changes": "all"}, FINISHED),
        ("21", {"changes": "scan"}, FINISHED),
        ("21", {}, FINISHED),
        ("22", {}, ABANDONED),
        ("23", {"source_id": "two"}, FINISHED),
        ("24", {"kind": "withdraw"}, FINISHED),
    )
    assert read.slices_beside(replace(RUN, params={"ds": "20"})) == [("ds = :ds", {"ds": "21"})]
    assert len(read.slices_beside(replace(RUN, params={"ds": "25"}))) == 2
    assert read.slices_beside(replace(RUN, params={"ds": "20"}, seq=3)) == []


def test_a_slice_is_read_alone_until_another_one_is_read():
    whole, feed = {"changes": "scan"}, {"changes": "feed"}
    run = replace(RUN, params={"ds": "20"})
    assert journal(("21", whole, FINISHED), ("20", whole, FINISHED), ("20", feed, FINISHED)).is_read_alone(run)
    assert journal(("20", whole, FINISHED), ("21", feed, ABANDONED)).is_read_alone(run)
    assert not journal(("20", whole, FINISHED), ("21", whole, FINISHED), ("20", feed, FINISHED)).is_read_alone(run)
    assert not journal(("20", {**whole, "source_id": "two"}, FINISHED)).is_read_alone(run)
    assert not journal().is_read_alone(run)


def test_a_scan_after_a_feed_of_the_same_version_is_read():
    """It finds what the feed may have missed; a feed after a scan, and either after its own kind, finds nothing."""
    scan = replace(RUN, changes="scan")
    assert not RUN.reads_as(scan)
    assert RUN.reads_as(RUN) and scan.reads_as(RUN) and scan.reads_as(scan)
    assert not any(scan.reads_as(replace(scan, **one)) for one in ({"version": 7}, {"cast": {"id": "int"}}))


def test_finished_runs_after_a_number_and_their_kept_changes():
    read = journal(("20", {}, FINISHED), ("20", {}, FINISHED), ("20", {}, ABANDONED), ("20", {}, FINISHED))
    for event in read.events[1::2]:
        event.body.update(records=1, kept_changed=10)
    assert read.runs_after(1) == (["1", "3"], 20)
    assert read.runs_after(7) == ([], 0)
    assert read.first_draws() == (1, 22), "copies are rows of later runs too"
