"""Contents of ``wordveil release show``, from what was read of a release's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wordveil.records.schema import WITHDRAWN
from wordveil.release.events import FROZEN, GATE, PUBLISHED, Events


def describe_release(release: str, path: str, writers: str | None, events: Events) -> dict[str, Any]:
    """Describe a release's events as plain values. ``writers``: the writers that the configuration states."""
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

    ``draws_version``: the newest version of the draws. ``counts``: for each status how many records there are, and of
    how many the draws have a text. ``in_public``: how many withdrawn records the public table has. ``old_files``: for
    each table how many files it has that its newest version does not need.
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
