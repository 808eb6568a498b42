"""Opening of a release for a command: its session, its tables and, unless the command only reads, its lock.

Preconditions must be true of a release before a command may work on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from wordveil.config.load import Config
from wordveil.crypto.keys import MasterKey, find_key_fault
from wordveil.errors import ReleaseError
from wordveil.records.columns import TextColumns
from wordveil.records.fixed_settings import explain_change
from wordveil.records.schema import REQUESTED, WITHDRAWN
from wordveil.release.events import FROZEN, Intent, RunTerms
from wordveil.spark.platform.delta import require_exclusive_commits
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.free_paths import require_free_paths
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.session import require_classic
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.latest import NewestRows, count_newest, latest_state
from wordveil.spark.release.tables import ReleaseTables


@dataclass(frozen=True)
class OpenRelease:
    """Release that a command works on, in a classic session that has Delta.

    ``name``: its id column. ``is_exclusive``: whether no other process can work on it until it is closed.
    """

    spark: SparkSession
    tables: ReleaseTables
    name: str
    is_exclusive: bool
    _newest: dict[int, NewestRows] = field(default_factory=dict, init=False)
    _counted: dict[int, Row] = field(default_factory=dict, init=False)

    @cached_property
    def journal(self) -> Journal:
        """Events of the release, read at the first use. Raises as :meth:`ReleaseTables.journal`."""
        return self.tables.journal()

    def newest_rows(self, version: int) -> DataFrame:
        """Find the newest draw of each record at a version of the draws, once."""
        if version not in self._newest:
            draws = self.tables.draws.read(version)
            self._newest[version] = NewestRows.find(draws, self.name, self.journal)
        return self._newest[version].rows

    def count_rows(self, version: int, texts: TextColumns) -> Row:
        """Count by :func:`count_newest` at a version of the draws, once for gate and publication of one nightly run."""
        if version not in self._counted:
            self._counted[version] = count_newest(self.newest_rows(version), texts)
        return self._counted[version]

    def close(self) -> None:
        """Let the session forget the frames kept for the block."""
        for found in self._newest.values():
            found.close()


@contextmanager
def open_release(
    config: Config,
    session: Callable[[], SparkSession],
    progress: Callable[[str], None] = ignore,
    *,
    outcome: str,
    waiting_for: str = "a run",
    is_locked: bool = True,
) -> Iterator[OpenRelease]:
    """Open the release of ``config``, and close it after the ``with`` block.

    ``config``: a configuration with ``output.format: delta``. ``session``: starts the Spark session, or returns the
    running one. ``progress``: called with what begins, and with what is waited for. ``outcome``: what holds when a
    Spark job of the block fails; it completes the sentence "the Spark job failed and". ``waiting_for``: what holds the
    lock as a rule. ``is_locked``: whether other runs, gates and publications of the release wait until it is closed.

    Raises
    ------
    PlatformError
        If the session cannot be used.
    ConfigError
        If a table would be created inside another release or a Delta table, or is where several writers overwrite each
        other's commits.
    SparkJobError
        In place of Spark's own errors in the block.
    """
    if SparkSession.getActiveSession() is None:
        progress("starting Spark")
    spark = session()
    require_classic(spark)
    require_free_paths(spark, config.output, config.ledger)
    assert config.ledger is not None
    if is_locked:
        places = {"output.path": config.output.path, "ledger.path": config.ledger.path}
        places |= {"output.public": config.output.public} if config.output.public else {}
        require_exclusive_commits(spark, places, is_only_writer=config.output.writers == "one")
    tables = ReleaseTables(spark, config.release, config.output, config.ledger.path)
    lock = tables.locked(lambda: progress(f"waiting for {waiting_for} of this release")) if is_locked else None
    with (
        job_errors(outcome),
        lock or nullcontext(enter_result=False) as is_exclusive,
        closing(OpenRelease(spark, tables, config.source.id, is_exclusive)) as release,
    ):
        yield release


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
