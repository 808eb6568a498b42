"""Journal of a release: an append-only table of events, and what they must be before a command may go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from wordveil.assembly.local_state import UNREAD, read_events
from wordveil.crypto.keys import MasterKey, find_key_fault
from wordveil.errors import ReleaseError
from wordveil.records.fixed_settings import explain_change
from wordveil.release.events import FROZEN, Event, Events, RunTerms, parse_events
from wordveil.spark.platform.delta_table import Decision, DeltaTable
from wordveil.spark.platform.versions import from_arrow, parse_schema

_SCHEMA = "seq bigint, event string, run_id string, at string, body string"


class Journal(Events):
    """Events of one release as of this object's creation, and those that :meth:`add` has seen since."""

    def __init__(self, table: DeltaTable, release: str) -> None:
        self._table = table
        self.release = release
        # Read before the events: if it is too low, they are read once more.
        self._version = table.version()
        super().__init__(self._load(table.read(), self._version) if self._version >= 0 else [])

    @staticmethod
    def create(table: DeltaTable) -> None:
        """Create the table if it is missing."""
        table.create(parse_schema(_SCHEMA))

    def refresh(self) -> None:
        """Read the events again if others may have been written since."""
        if (version := self._table.version()) != self._version:
            self.events, self._version = self._load(self._table.read(), version), version

    def _load(self, events: DataFrame, version: int) -> list[Event]:
        """Load the events at a version, locally without a job of Spark, which would take most of a second."""
        if (directory := self._table.find_directory()) is not None:
            with suppress(*UNREAD):
                return read_events(directory, version)
        return parse_events(row.asDict() for row in events.collect())

    def add(
        self,
        event: str,
        run_id: str,
        body: Callable[[int], dict[str, Any]],
        *,
        unless: Callable[[list[Event]], bool] = lambda _: False,
    ) -> Event | None:
        """Write an event and return it. ``body`` makes its body from its number.

        Returns None, and writes nothing, if ``unless`` is true of the events that were written by then.
        """

        def decide(events: DataFrame, version: int) -> Decision[Event | None]:
            if version != self._version:
                self.events, self._version = self._load(events, version), version
            if unless(self.events):
                return Decision(None, None)
            seq = len(self.events) + 1
            made = Event(seq, event, run_id, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", body(seq))
            values = {**asdict(made), "body": json.dumps(made.body, sort_keys=True)}
            # Spark reads an Arrow table itself; for a list of rows it would start Python workers, which takes longer
            # than the commit.
            rows = from_arrow(events.sparkSession, pa.Table.from_pylist([values]), _SCHEMA).coalesce(1)
            return Decision(rows, made)

        added = self._table.compare_and_append(decide, step=event)
        if added is not None:
            self.events.append(added)
            self._version += 1
        return added

    def require_no_open_runs(self) -> None:
        """Raise :class:`ReleaseError` for a release that has no runs, or one that has not ended."""
        if not self.intents():
            raise ReleaseError(f"release {self.release}: has no runs. Run `wordveil sanitise` first.")
        if interrupted := self.open_intents():
            raise ReleaseError(
                f"run {interrupted[0].run_id} was interrupted. Run `wordveil sanitise` again: it finishes that run "
                "first."
            )

    def require_live(self) -> None:
        """Raise :class:`ReleaseError` for a release that is frozen."""
        if (frozen := self.latest(FROZEN)) is not None:
            raise ReleaseError(
                f"release {self.release}: has been frozen since {frozen.at}, when its key was destroyed. What is "
                "published stays published, and nothing can be drawn, gated or published any more. Start a release "
                "under another name, with another key."
            )

    def check_key(self, key: MasterKey) -> None:
        """Raise :class:`ReleaseError` unless ``key`` is the one that a release with runs was drawn with."""
        intents = self.intents()
        if problem := find_key_fault(intents[0].terms.fixed["key_fingerprint"], intents[-1].terms.epochs, key):
            raise ReleaseError(f"release {self.release}: {problem}")

    def require_same_terms(self, terms: RunTerms) -> None:
        """Raise :class:`ReleaseError` with the settings by which fixed ``terms`` differ from the first run's."""
        intents = self.intents()
        first = intents[0].terms.fixed
        for name in {**terms.fixed, **first}:
            value, before = (fixed.get(name, "not set") for fixed in (terms.fixed, first))
            if before != value:
                change = explain_change(name, value, before, terms.settings, intents[0].terms.settings)
                raise ReleaseError(
                    f"release {self.release}: {change} (in its first run). A release keeps one bundle, one text "
                    "policy, one key, one set of columns and one kind of rows. Use those of its first run, or start a "
                    "release under another name."
                )
