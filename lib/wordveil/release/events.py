"""Events of a release's journal, and the state that follows from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from wordveil.errors import ReleaseError
from wordveil.privacy.relations import Relation
from wordveil.records.schema import NULL_ID, WITHDRAWN
from wordveil.release.budgets import Budget

INTENT, FINISHED, ABANDONED, REFUSED = "intent", "finished", "abandoned", "refused"
GATE, PUBLISHED, PURGED, VACUUMED, FROZEN = "gate", "published", "purged", "vacuumed", "frozen"
ADDING = "adding"
"""Event of a publication that begins to add rows to a shuffled table."""
SHUFFLED = "shuffled"
"""Value of the fixed term ``rows`` of a release whose records are drawn once and published without ids."""
_ROW_COUNTS = ("records", "withdrawn", "corrected", "kept_changed", "stale")
"""Counts that a run reports of the rows that it drew or copied. A copy may be in several."""
# State of a run by the last of these events.
_RUN_STATES = {INTENT: "open", FINISHED: FINISHED, ABANDONED: ABANDONED, REFUSED: REFUSED}


@dataclass(frozen=True)
class RunTerms:
    """Terms under which a run draws.

    ``fixed``: fingerprints of mechanism, policy and root key, and the columns, the same for all runs of a release.
    ``epoch``: the key's noise epoch; ``epochs``: the fingerprints of all. ``shown``: exposures in addition to policy
    and columns. ``settings``: those behind ``fixed``; empty in runs of versions that did not record them.
    """

    fixed: Mapping[str, str]
    epoch: int
    epochs: tuple[str, ...]
    shown: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Intent:
    """Plan of a run, written before it draws. A retry does exactly this, even if the configuration has changed.

    ``seq``: the run's number in the release, which its draws carry: of two draws of a record the greater one is newer.
    ``kind``: ``sanitise``, or ``withdraw``, of the records that the ledger lists under the run: the journal names none.
    ``source``, ``source_id``: the input as the configuration names it, and Delta's or Iceberg's identifier of that
    table. ``version``: the input's version, or the id of its Iceberg snapshot; with ``changes: feed``, ``since`` is the
    version up to which the slice was read before. ``where``, ``params``: the slice of the input. ``changes``: ``feed``,
    ``scan``, or ``all`` for a slice that was never read. ``full_snapshot``: records that are not in the input leave the
    release. ``budgets``, ``max_bytes``: what decides, besides the policy, which records are refused. ``retried``:
    budgets or max_bytes differ from the last run over the slice. ``anew``: the release had other tables before, which
    were given up: the ledger then has draws that are not in its table of draws. ``null_id_count``: the number of
    records without an id in the reports of earlier runs over the slice. ``renamed``: new names of the input's columns,
    by their own. ``cast``: the types to which columns were cast.
    """

    run_id: str
    seq: int
    kind: str
    terms: RunTerms
    source: str = ""
    source_id: str = ""
    version: int = -1
    since: int = -1
    where: str = ""
    params: dict[str, str] = field(default_factory=dict)
    changes: str = "all"
    full_snapshot: bool = False
    budgets: dict[str, Any] | None = None
    max_bytes: int = 0
    retried: bool = False
    anew: bool = False
    null_id_count: int = 0
    renamed: dict[str, str] = field(default_factory=dict)
    cast: dict[str, str] = field(default_factory=dict)

    @property
    def slice(self) -> str:
        """Description of the slice that the run reads: equal texts for equal slices."""
        return json.dumps([self.source, self.where, self.params], sort_keys=True)

    @property
    def feed_range(self) -> tuple[int, int]:
        """First and last version whose changes a run by feed reads; without a new one, the last version alone."""
        return min(self.since + 1, self.version), self.version

    @property
    def draws_once(self) -> bool:
        """True if a record that was released is never drawn again."""
        return self.terms.fixed.get("rows") == SHUFFLED

    @property
    def budget(self) -> Budget | None:
        """Limits of the run, or None."""
        if self.budgets is None:
            return None
        return Budget(**{**self.budgets, "relation": Relation(self.budgets["relation"])})

    def refuses_as(self, other: Intent) -> bool:
        """Return whether both refuse the same records, by the settings that may change between runs."""
        return (self.budgets, self.max_bytes) == (other.budgets, other.max_bytes)

    def reads_as(self, other: Intent) -> bool:
        """Return whether both read the same table version (a feed is no scan) alike, and refuse the same records."""
        is_as_whole = self.changes != "feed" or other.changes == "feed"
        read, others = ((one.version, one.source_id, one.renamed, one.cast) for one in (self, other))
        return is_as_whole and read == others and self.refuses_as(other)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Intent:
        """Read what :meth:`to_dict` returned, from JSON."""
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        plain.pop("ids", None)  # journals of earlier versions name the records of a withdrawal
        terms = {item.name: plain.pop(item.name) for item in fields(RunTerms) if item.name in plain}
        return cls(**{**plain, "terms": RunTerms(fixed=plain["terms"], **terms)})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with those of ``terms`` beside the others."""
        plain = asdict(self)
        terms = plain.pop("terms")
        return {**plain, "terms": terms.pop("fixed"), **terms}


@dataclass(frozen=True)
class Event:
    """One line of the journal; ``body`` holds plain values."""

    seq: int
    event: str
    run_id: str
    at: str
    body: dict[str, Any]


class Events:
    """Events of one release, oldest first, and the state that follows from them."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events

    def open_intents(self) -> list[Intent]:
        """List runs that have begun and not ended, oldest first. A refused run has ended, and may begin again."""
        begun: dict[str, Intent] = {}
        for event in self.events:
            if event.event == INTENT:
                begun[event.run_id] = Intent.from_dict(event.body)
            elif event.event in (FINISHED, ABANDONED, REFUSED):
                begun.pop(event.run_id, None)
        return list(begun.values())

    def intents(self) -> list[Intent]:
        """List all runs, oldest first."""
        return [Intent.from_dict(event.body) for event in self.events if event.event == INTENT]

    def list_runs(self) -> list[dict[str, Any]]:
        """List all runs as plain values, oldest first; ``state``: finished, abandoned, refused or open."""
        states = {event.run_id: event.event for event in self.events if event.event in _RUN_STATES}
        return [
            {
                "run_id": intent.run_id,
                "seq": intent.seq,
                "kind": intent.kind,
                "input_version": intent.version,
                "epoch": intent.terms.epoch,
                "state": _RUN_STATES[states[intent.run_id]],
            }
            for intent in self.intents()
        ]

    def finished(self, run_id: str) -> dict[str, Any] | None:
        """Return the report of a finished run, or None. Raises :class:`ReleaseError` for an abandoned run."""
        for event in self.events:
            if event.run_id == run_id and event.event == ABANDONED:
                raise ReleaseError(
                    f"run {run_id} was abandoned at {event.at} and is charged in full. Use another --run-id."
                )
            if event.run_id == run_id and event.event == FINISHED:
                return event.body
        return None

    def first_draws(self) -> tuple[int, int]:
        """Return the ``seq`` of the run that finished first, or 0, and the greatest number of rows of later runs."""
        begun = {event.run_id: event.seq for event in self.events if event.event == INTENT}
        done = [event for event in self.events if event.event == FINISHED]
        first = begun[done[0].run_id] if done else 0
        return first, sum(event.body.get(name, 0) for event in done[1:] for name in _ROW_COUNTS)

    def runs_after(self, seq: int) -> tuple[list[str], int]:
        """List the finished runs after the number ``seq``, and count the ``kept_changed`` records of their reports."""
        later = {intent.run_id for intent in self.intents() if intent.seq > seq}
        done = [event for event in self.events if event.event == FINISHED and event.run_id in later]
        return [event.run_id for event in done], sum(event.body.get("kept_changed", 0) for event in done)

    def last_of(self, part: str) -> Intent | None:
        """Return the last finished run over this slice."""
        done = {event.run_id for event in self.events if event.event == FINISHED}
        return next((run for run in reversed(self._runs_over(part)) if run.run_id in done), None)

    def slices_beside(self, intent: Intent) -> list[tuple[str, dict[str, str]]]:
        """List the other slices of a run's table that were read before it, as conditions and parameters."""
        read = [run for run in self._read_before(intent) if run.source_id == intent.source_id]
        slices = {json.dumps([run.where, run.params], sort_keys=True): (run.where, run.params) for run in read}
        slices.pop(json.dumps([intent.where, intent.params], sort_keys=True), None)
        return list(slices.values())

    def is_read_alone(self, intent: Intent) -> bool:
        """Return whether no other slice was read since the run's was read whole: its draws then count its ids."""
        for run in reversed(self._read_before(intent)):
            if (run.slice, run.source_id) != (intent.slice, intent.source_id):
                return False
            if run.changes != "feed":
                return True
        return False

    def null_id_count(self, part: str) -> int:
        """Count the records without an id that the finished runs over this slice have reported."""
        runs = {run.run_id for run in self._runs_over(part)}
        done = [event.body for event in self.events if event.event == FINISHED and event.run_id in runs]
        return sum(report["quarantined"].get(NULL_ID, 0) for report in done)

    def _runs_over(self, part: str) -> list[Intent]:
        return [intent for intent in self.intents() if intent.kind == "sanitise" and intent.slice == part]

    def _read_before(self, intent: Intent) -> list[Intent]:
        """List the finished runs before one that read an input, oldest first."""
        done = {event.run_id for event in self.events if event.event == FINISHED}
        runs = (run for run in self.intents() if run.kind == "sanitise" and run.run_id in done)
        return [run for run in runs if run.seq < intent.seq]

    def newest_version(self, name: str) -> int:
        """Return the newest version of a table recorded under ``name``, or -1 if there is none."""
        return max((int(event.body.get(name, -1)) for event in self.events), default=-1)

    def latest(self, event: str) -> Event | None:
        """Return the last event of a kind."""
        return next((item for item in reversed(self.events) if item.event == event), None)


def parse_events(rows: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Parse a journal's rows into events, oldest first."""
    events = [Event(**{**row, "body": json.loads(row["body"])}) for row in rows]
    return sorted(events, key=lambda event: event.seq)


def describe_release(release: str, path: str, writers: str | None, events: Events) -> dict[str, Any]:
    """Describe a release's events as plain values. ``writers``: as configured."""
    return {
        "release": release,
        "path": path,
        "writers": writers,
        "runs": events.list_runs(),
        "open_runs": [intent.run_id for intent in events.open_intents()],
        "frozen": (event := events.latest(FROZEN)) and event.at,
        "gate": (event := events.latest(GATE)) and {"at": event.at, **event.body},
        "published": (event := events.latest(PUBLISHED)) and {"at": event.at, **event.body},
    }


def describe_records(
    draws_version: int, counts: Mapping[str, tuple[int, int]], in_public: int, old_files: Mapping[str, int]
) -> dict[str, Any]:
    """Count records by status, and copies of withdrawn text that remain, as plain values.

    ``draws_version``: the newest version of the draws. ``counts``: for each status the number of records, and of those
    with a text in the draws. ``in_public``: the number of withdrawn records in the public table. ``old_files``: for
    each table the number of files that its newest version does not need.
    """
    withdrawn, in_draws = counts.get(WITHDRAWN, (0, 0))
    return {
        "draws_version": draws_version,
        "records": {status: counts[status][0] for status in sorted(counts)},
        "withdrawn": {
            "records": withdrawn,
            "in_draws": in_draws,
            "in_public_table": in_public,
            "files_of_old_versions": dict(old_files),
            "gone": not (in_draws or in_public or any(old_files.values())),
        },
    }
