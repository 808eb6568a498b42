"""What must be true of a release before a command works on it, decided from the journal's events alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from wordveil.crypto.keys import MasterKey
from wordveil.errors import ReleaseError
from wordveil.release.events import ABANDONED, FINISHED, FROZEN, INTENT, Event, Intent, RunTerms
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.run import require_feed

KEY = MasterKey(bytes(range(32)))
TERMS = {"key_fingerprint": KEY.fingerprint, "policy_fingerprint": "p1"}
FIRST = Intent(
    run_id="night-1",
    seq=1,
    kind="sanitise",
    terms=RunTerms(TERMS, 1, KEY.epoch_fingerprints),
    source="/lake/tickets",
    source_id="table-1",
    version=4,
)


class NoTable:
    """The journal's table before a first run."""

    def version(self) -> int:
        """There is none."""
        return -1


def journal_of(*events: tuple[str, str, dict[str, Any]]) -> Journal:
    """A journal with these events: their kind, their run and their body."""
    journal = Journal(NoTable(), "support")  # type: ignore[arg-type]
    journal.events = [
        Event(number, kind, run_id, "2026-11-20T02:00:00Z", body)
        for number, (kind, run_id, body) in enumerate(events, 1)
    ]
    return journal


def begun(intent: Intent) -> tuple[str, str, dict[str, Any]]:
    """The event that a run has begun."""
    return (INTENT, intent.run_id, intent.to_dict())


def finished(run_id: str, null_ids: int = 0) -> tuple[str, str, dict[str, Any]]:
    """The event that a run has finished."""
    return (FINISHED, run_id, {"quarantined": {"null_id": null_ids} if null_ids else {}})


@pytest.mark.parametrize(
    ("events", "check", "problem"),
    [
        ([], Journal.require_no_open_runs, r"release support: has no runs\. Run `wordveil sanitise` first"),
        ([begun(FIRST)], Journal.require_no_open_runs, "run night-1 was interrupted"),
        (
            [begun(FIRST), (FROZEN, "", {})],
            Journal.require_live,
            "release support: has been frozen since 2026-11-20T02:00:00Z",
        ),
        ([begun(FIRST)], lambda journal: journal.check_key(MasterKey(bytes(range(32, 64)))), "release support: .*key"),
    ],
)
def test_a_release_that_is_not_ready_is_refused(events: Any, check: Callable[[Journal], None], problem: str):
    with pytest.raises(ReleaseError, match=problem):
        check(journal_of(*events))


def test_a_release_is_ready_once_its_runs_ended():
    for end in (finished("night-1"), (ABANDONED, "night-1", {})):
        journal = journal_of(begun(FIRST), end)
        journal.require_no_open_runs()
        journal.require_live()
        journal.check_key(KEY)


def test_changed_terms_are_named_whole_with_the_changed_setting():
    old, new = "a" * 64, "b" * 64
    terms = {**TERMS, "policy_fingerprint": old}
    settings = {"text.n_max": "256", "text.case": "lower", "mechanism.epsilon": "8.0"}
    known = replace(FIRST.terms, fixed=terms, settings=settings)
    journal = journal_of(begun(replace(FIRST, terms=known)), finished("night-1"))
    journal.require_same_terms(known)
    changed = replace(known, fixed={**terms, "policy_fingerprint": new}, settings={**settings, "text.n_max": "64"})
    with pytest.raises(ReleaseError) as error:
        journal.require_same_terms(changed)
    message = str(error.value)
    assert "text.n_max is 64 now and was 256; " in message
    assert f"policy_fingerprint is {new} now and was {old}" in message
    assert "text.case" not in message
    assert "mechanism.epsilon" not in message


def test_a_changed_column_is_named():
    columns = {"id": "id", "text": "body", "author": None, "keep": ["day"]}
    first = replace(FIRST, terms=replace(FIRST.terms, fixed={"columns": json.dumps(columns)}))
    changed = replace(FIRST.terms, fixed={"columns": json.dumps({**columns, "author": "user", "keep": []})})
    with pytest.raises(ReleaseError) as error:
        journal_of(begun(first)).require_same_terms(changed)
    assert "input.author is user now and was not set; input.keep is none now and was day" in str(error.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"source_id": "table-2"}, r"is not the table that the release has read so far.*input\.changes=scan"),
        ({"version": 3}, r"is at version 3, and the release has read version 4.*input\.changes=scan"),
    ],
)
def test_a_feed_that_does_not_lead_here_is_refused(changes: dict[str, Any], problem: str):
    with pytest.raises(ReleaseError, match=f"input /lake/tickets: {problem}"):
        require_feed(FIRST, replace(FIRST, **changes))


@pytest.mark.parametrize("version", [4, 5])
def test_a_feed_leads_to_the_same_version_and_to_later_ones(version: int):
    require_feed(FIRST, replace(FIRST, version=version))


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"run_id": "night-2", "seq": 2, "terms": replace(FIRST.terms, epoch=2)}, True),
        ({"version": 5}, False),
        ({"source_id": "table-2"}, False),
        ({"max_bytes": 10}, False),
        ({"budgets": {"record": 1.0}}, False),
    ],
)
def test_runs_with_equal_input_and_refusals_read_the_same(changes: dict[str, Any], same: bool):
    assert FIRST.reads_as(replace(FIRST, **changes)) is same


def test_records_without_id_are_counted_over_a_slices_ended_runs():
    other = replace(FIRST, run_id="night-2", where="day = 'x'")
    again = replace(FIRST, run_id="night-3")
    open_run = replace(FIRST, run_id="night-4")
    runs = [begun(FIRST), finished("night-1", 2), begun(other), finished("night-2", 5), begun(again)]
    journal = journal_of(*runs, finished("night-3", 1), begun(open_run))
    assert journal.null_id_count(FIRST.slice) == 3
    assert journal.null_id_count(other.slice) == 5
    assert journal.null_id_count("no such slice") == 0


def test_an_intent_is_written_as_earlier_versions_wrote_it():
    written = FIRST.to_dict()
    assert (written["terms"], written["epoch"], written["settings"]) == (TERMS, 1, {})
    assert Intent.from_dict(json.loads(json.dumps(written))) == FIRST
    older = {name: value for name, value in written.items() if name not in ("settings", "shown")}
    assert Intent.from_dict(older) == FIRST
