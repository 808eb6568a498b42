"""Tables of a release: its draws, its journal, its public table, and its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from wordveil.config.schema import ReleaseHome
from wordveil.errors import ReleaseError
from wordveil.records.columns import TextColumns
from wordveil.records.schema import REQUESTED, STATISTIC_FIELDS, WITHDRAWN
from wordveil.release.events import PUBLISHED, Intent
from wordveil.release.layout import (
    AUTHOR_COLUMN,
    DRAWS,
    DRAWS_VERSION,
    EPOCH_COLUMN,
    JOURNAL,
    LEDGER_VERSION,
    PUBLIC,
    RESERVED_COLUMN,
    SEQ_COLUMN,
)
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta import require_exclusive_commits
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import require_free_paths
from wordveil.spark.platform.locks import hold_lease, hold_lock
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.session import require_classic
from wordveil.spark.platform.versions import from_arrow, parse_schema, try_cast
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.latest import count_newest, find_newest, latest_state
from wordveil.spark.release.ledger import Ledger
from wordveil.spark.sanitise.layout import check_directories


class Release:
    """Tables of one release under ``path``, and its ledger, which it may share with other releases.

    ``is_exclusive``: no other process can work on it until it is closed.
    """

    def __init__(self, spark: SparkSession, home: ReleaseHome) -> None:
        self.spark, self.home, self.name = spark, home, home.name
        self.path = home.output.path.rstrip("/")
        self.draws = DeltaTable(spark, f"{self.path}/{DRAWS}", "draws")
        self.journal_table = DeltaTable(spark, f"{self.path}/{JOURNAL}", "journal")
        self.public = DeltaTable(spark, home.output.public or f"{self.path}/{PUBLIC}", "public table")
        self.ledger = Ledger(DeltaTable(spark, home.ledger.path, "ledger"))
        self.is_exclusive = False
        self._newest: dict[int, tuple[DataFrame, DataFrame | None]] = {}
        self._counted: dict[int, Row] = {}

    @contextmanager
    def locked(self, waiting: Callable[[], None] = lambda: None) -> Iterator[bool]:
        """Make other runs, gates and publications wait; yield whether none can work: a lease may be lost, a lock not.

        ``waiting`` is called once if another process has the lock or the lease.
        """
        path = f"{self.path}/release"
        with (
            hold_lock(self.spark, path, waiting) as is_exclusive,
            nullcontext() if is_exclusive else hold_lease(self.spark, path, waiting),
        ):
            self.is_exclusive = is_exclusive
            yield is_exclusive

    @cached_property
    def journal(self) -> Journal:
        """Events of the release, read at the first use.

        Raises :class:`ReleaseError` for missing or outdated tables, and for events of another release.
        """
        with job_errors("nothing was changed"):
            if not self.journal_table.exists():
                if self.draws.version() > 0:
                    raise ReleaseError(
                        f"journal {self.journal_table.path}: is gone, though release {self.name} has draws. Without "
                        "it there is no record of what was drawn, changed or withdrawn. Restore draws, journal and "
                        "ledger from one backup, or start a release under another name."
                    )
                if self.ledger.tables_of(self.name):
                    raise ReleaseError(
                        f"release {self.name}: the ledger {self.ledger.table.path} lists it, but its tables are not at "
                        f"{self.path}. Without them there is no record of what was drawn and published. Name the "
                        "output.path where they are, or restore draws and journal from the same backup as this ledger. "
                        "If they are permanently lost, `wordveil release reset` gives them up, and the next run makes "
                        "new ones. What was spent stays charged, and withdrawn records stay out."
                    )
                return Journal(self.journal_table, self.name)
            self.journal_table.check()
            journal = Journal(self.journal_table, self.name)
            if intents := journal.intents():
                if (held := intents[0].terms.fixed["release"]) != self.name:
                    raise ReleaseError(
                        f"output.path = {self.path}: holds the release {held}, not {self.name}. Name another directory."
                    )
                self._check(self.draws, journal, DRAWS_VERSION)
                self._check(self.ledger.table, journal, LEDGER_VERSION)
        return journal

    def _check(self, table: DeltaTable, journal: Journal, name: str) -> None:
        """Raise :class:`ReleaseError` if a table is gone, or an older backup than the journal's version of it."""
        version, seen = table.version(), journal.newest_version(name)
        if version < 0:
            raise ReleaseError(
                f"{table.kind} {table.path}: is gone, though release {self.name} has runs. Without it records would "
                "be drawn or charged again. Restore it from a backup, or start a release under another name."
            )
        table.check()
        if version < seen:
            raise ReleaseError(
                f"{table.kind} {table.path}: is at version {version}, and the journal of release {self.name} has "
                f"seen version {seen}: it was restored from an older state, in which draws or charges are missing. "
                "Restore draws, journal and ledger from one backup."
            )

    def newest_rows(self, version: int) -> DataFrame:
        """Find the newest draw of each record at a version of the draws, once."""
        if version not in self._newest:
            self._newest[version] = find_newest(self.draws.read(version), self.home.id, self.journal)
        return self._newest[version][0]

    def count_rows(self, version: int, texts: TextColumns) -> Row:
        """Count by :func:`count_newest` at a version of the draws, once for gate and publication of one nightly run."""
        if version not in self._counted:
            self._counted[version] = count_newest(self.newest_rows(version), texts, self.published_seq)
        return self._counted[version]

    @property
    def published_seq(self) -> int:
        """Number of the last publication's event, above those of the runs that it covers; 0 without a publication."""
        last = self.journal.latest(PUBLISHED)
        return last.seq if last else 0

    def close(self) -> None:
        """Let the session forget the frames that were kept."""
        for _, again in self._newest.values():
            if again is not None:
                again.unpersist()

    def has_drawn(self, intent: Intent) -> bool:
        """Return whether a run has drawn."""
        return self.draws.has(self.idempotency_key(intent))

    def idempotency_key(self, intent: Intent) -> str:
        """Return the key under which a run appends its draws: appending a second time does nothing."""
        return f"{self.name} {intent.run_id} {intent.seq}"

    def create(self, rows: DataFrame, kept: Sequence[str], texts: TextColumns) -> None:
        """Create the missing tables, for the ``kept`` columns of ``rows`` and the ``texts`` of the output.

        Raises :class:`ReleaseError` if the draws have other columns.
        """
        with job_errors("nothing was drawn or charged"):
            check_directories(rows, self.home.output.partition_by)
            schema = _draws_schema(rows.select(column(self.home.id), *map(column, kept)), texts)
            self.ledger.create()
            if self.draws.exists():
                self._check_columns(schema)
            else:
                # Without ids: the log keeps the least and greatest of each file after their records are erased.
                self.draws.create(schema, partition_by=self.home.output.partition_by, indexed=[SEQ_COLUMN])
            Journal.create(self.journal_table)

    def _check_columns(self, schema: StructType) -> None:
        was, now = (
            {field.name: field.dataType.simpleString() for field in columns.fields}
            for columns in (self.draws.read().schema, schema)
        )
        if differing := sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name)):
            types = ((name, was.get(name, "none"), now.get(name, "none")) for name in differing)
            shown = ", ".join(f"{name} ({old} in the release, {new} in the input)" for name, old, new in types)
            casts = ", ".join(f"{name}: {was[name]}" for name in differing if name in was)
            raise ReleaseError(
                f"release {self.name}: its columns differ from the input's: {shown}. A release keeps its columns. "
                f"Read them as before by input.cast: {{{casts}}}: a value that does not fit becomes null. Or start a "
                "release under another name."
            )

    @property
    def id_type(self) -> DataType:
        """Type of the draws' id column."""
        return self.draws.read().schema[self.home.id].dataType

    def cast_ids(self, ids: Sequence[str]) -> DataFrame:
        """Cast ``ids`` to the type of the draws' id column: columns ``__id`` and ``named``, the id as it was given.

        A text that is no value of that type cannot be the id of a record: its ``__id`` is null.
        """
        given = from_arrow(self.spark, pa.table({"__id": pa.array(ids, pa.string())}))
        return given.select(try_cast("__id", self.id_type).alias("__id"), F.col("__id").alias("named"))

    def find_known_ids(self, ids: Collection[str]) -> list[str]:
        """Return ``ids`` as :meth:`match_ids` finds them among the draws.

        Raises :class:`ReleaseError`, quoting one id, for unknown, ambiguous and withdrawn ids.
        """
        known = latest_state(self.draws.read(), self.home.id)
        found = self.match_ids(ids, known.where(~((F.col("status") == WITHDRAWN) & (F.col("reason") == REQUESTED))))
        if unknown := set(ids) - found.keys():
            raise refuse_ids(self.name, unknown)
        return sorted(set(found.values()))

    def match_ids(self, ids: Collection[str], known: DataFrame) -> dict[str, str]:
        """Match ``ids`` with ``__id`` of ``known``: the text of each as the release has it, without unknown ones.

        An id that it lacks may stand for one with spaces at its end, as Spark reads the ids of a column ``CHAR(n)``,
        unless there are several.
        """
        texts = known.select("__id", F.col("__id").cast("string").alias("text"))
        exact = self.cast_ids([*set(ids)]).join(texts, "__id").select("named", "text").distinct().collect()
        found = {row.named: row.text for row in exact}
        if missing := [name for name in set(ids) if name not in found]:
            same = F.rtrim("named") == F.rtrim("text")
            padded = self.cast_ids(missing).join(texts, same).select("named", "text").distinct().collect()
            times = Counter(row.named for row in padded)
            found |= {row.named: row.text for row in padded if times[row.named] == 1}
        return found


def refuse_ids(release: str, unknown: Collection[str]) -> ReleaseError:
    """Make the error for ids that a release lacks."""
    return ReleaseError(
        f"{len(unknown):,} of the ids are not in release {release}, or have been withdrawn; {min(unknown)!r} is one of "
        "them. Nothing was done. Remove them from the list, or correct them."
    )


def _draws_schema(passed: DataFrame, texts: TextColumns) -> StructType:
    """Make the columns of the draws table: ``passed``, a Parquet output's, and internal ones with ``__``."""
    made = from_arrow_schema(pa.schema([*texts.output_fields, *STATISTIC_FIELDS])).fields
    internal = f"{AUTHOR_COLUMN} string, {RESERVED_COLUMN} bigint, {SEQ_COLUMN} bigint, {EPOCH_COLUMN} int"
    fields = (*passed.schema.fields, *made, *parse_schema(internal).fields)
    return StructType([StructField(field.name, field.dataType) for field in fields])


@contextmanager
def open_release(
    home: ReleaseHome,
    session: Callable[[], SparkSession],
    progress: Callable[[str], None] = ignore,
    *,
    outcome: str,
    waiting_for: str = "a run",
    is_locked: bool = True,
) -> Iterator[Release]:
    """Open the release at ``home``, and close it after the ``with`` block.

    ``session``: starts the Spark session, or returns the running one. ``progress``: called with what begins, and with
    what is waited for. ``outcome``: completes the sentence "the Spark job failed and". ``waiting_for``: the usual
    holder of the lock. ``is_locked``: other runs, gates and publications of the release wait until it is closed.

    Raises :class:`PlatformError` if the session cannot be used, and :class:`ConfigError` if a table would be created
    inside another release or a Delta table, or is where several writers overwrite each other's commits. Spark's own
    errors in the block become a :class:`SparkJobError`.
    """
    if SparkSession.getActiveSession() is None:
        progress("starting Spark")
    spark = session()
    require_classic(spark)
    output, ledger = home.output, home.ledger
    require_free_paths(spark, output, ledger)
    if is_locked:
        places = {"output.path": output.path, "ledger.path": ledger.path}
        places |= {"output.public": output.public} if output.public else {}
        require_exclusive_commits(spark, places, is_only_writer=output.writers == "one")
    release = Release(spark, home)
    lock = release.locked(lambda: progress(f"waiting for {waiting_for} of this release"))
    with job_errors(outcome), lock if is_locked else nullcontext(), closing(release):
        yield release
