"""What must be true of a release before a command may work on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from pyspark.sql import functions as F  # noqa: N812

from wordveil.crypto.keys import MasterKey, find_key_fault
from wordveil.errors import ReleaseError
from wordveil.records.fixed_settings import explain_change
from wordveil.records.schema import REQUESTED, WITHDRAWN
from wordveil.release.events import FROZEN, Intent, RunTerms
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.latest import latest_state
from wordveil.spark.release.tables import ReleaseTables


def require_no_open_runs(journal: Journal, release: str) -> None:
    """Raise :class:`ReleaseError` for a release that has no runs, or one that has not ended."""
    if not journal.intents():
        raise ReleaseError(f"release {release}: has no runs. Run `wordveil sanitise` first.")
    if interrupted := journal.open_intents():
        raise ReleaseError(
            f"run {interrupted[0].run_id} was interrupted. Run `wordveil sanitise` again: it finishes that run first."
        )


def require_live(journal: Journal, release: str) -> None:
    """Raise :class:`ReleaseError` for a release that is frozen."""
    if (frozen := journal.latest(FROZEN)) is not None:
        raise ReleaseError(
            f"release {release}: has been frozen since {frozen.at}, when its key was destroyed. What is published "
            "stays published, and nothing can be drawn, gated or published any more. Start a release under another "
            "name, with another key."
        )


def check_key(journal: Journal, key: MasterKey, release: str) -> None:
    """Raise :class:`ReleaseError` unless ``key`` is the one that a release with runs was drawn with."""
    intents = journal.intents()
    if problem := find_key_fault(intents[0].terms.fixed["key_fingerprint"], intents[-1].terms.epochs, key):
        raise ReleaseError(f"release {release}: {problem}")


def require_same_terms(journal: Journal, terms: RunTerms, release: str) -> None:
    """Raise :class:`ReleaseError` where the fixed ``terms`` differ from those that a release with runs began with. The
    message says which settings have changed.
    """
    intents = journal.intents()
    first = intents[0].terms.fixed
    for name, value in terms.fixed.items():
        if first[name] != value:
            change = explain_change(name, value, first[name], terms.settings, intents[0].terms.settings)
            raise ReleaseError(
                f"release {release}: {change} (in its first run). A release keeps one bundle, one text policy, one key "
                "and one set of columns. Use those of its first run, or start a release under another name."
            )


def find_known_ids(tables: ReleaseTables, ids: Collection[str], name: str) -> tuple[str, ...]:
    """``ids`` as the release has them, each once. An id that it lacks may stand for one that has spaces at its end: so
    Spark reads the ids of a column ``CHAR(n)``.

    ``name``: the id column. Raises :class:`ReleaseError` where some of ``ids`` are not in the release, stand for
    several records, or have been withdrawn. The message quotes one of these ids.
    """
    known = latest_state(tables.draws.read(), name)
    known = known.where(~((F.col("status") == WITHDRAWN) & (F.col("reason") == REQUESTED))).select("__id")
    missing = tables.cast_ids(sorted(set(ids)), name).join(known, "__id", "left_anti")
    if missing.isEmpty():
        return tuple(sorted(set(ids)))
    padded = known.select(F.col("__id").cast("string").alias("padded"))
    pairs = missing.join(padded, F.rtrim("named") == F.rtrim("padded"), "left").select("named", "padded").collect()
    times, whole = Counter(row.named for row in pairs), {row.named: row.padded for row in pairs}
    if wrong := sorted(named for named, padded in whole.items() if padded is None or times[named] > 1):
        raise ReleaseError(
            f"{len(wrong):,} of the ids are not in release {tables.release}, or have been withdrawn; "
            f"{wrong[0]!r} is one of them. Nothing was done. Remove them from the list, or correct them."
        )
    return tuple(sorted({whole.get(named, named) for named in ids}))


def require_feed(last: Intent, intent: Intent) -> None:
    """Raise :class:`ReleaseError` where the input's change feed does not lead from the ``last`` run to this one."""
    if last.source_id != intent.source_id:
        raise ReleaseError(
            f"input {intent.source}: is not the table that the release has read so far, so its change feed does not "
            "say what changed since. Compare contents once with --set input.changes=scan; add --full-snapshot if the "
            "table holds the whole corpus."
        )
    if intent.version < last.version:
        raise ReleaseError(
            f"input {intent.source}: is at version {intent.version}, and the release has read version {last.version}. "
            "A change feed cannot be read backwards. Compare contents with --set input.changes=scan."
        )
