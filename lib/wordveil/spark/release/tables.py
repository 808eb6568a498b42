"""Tables of a release: its draws, its journal, its public table, and the ledger that it is charged to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from wordveil.config.schema import OutputSection
from wordveil.errors import ReleaseError
from wordveil.records.columns import TextColumns
from wordveil.records.schema import STATISTIC_FIELDS
from wordveil.release.events import Intent
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
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.locks import hold_lease, hold_lock
from wordveil.spark.platform.versions import from_arrow, try_cast
from wordveil.spark.release.journal import Journal
from wordveil.spark.release.ledger import Ledger
from wordveil.spark.sanitise.layout import check_directories


class ReleaseTables:
    """Tables of one release under ``output.path``, and its ledger, which other releases may be charged to as well.

    ``path``: the directory of the release, without a slash at its end.
    """

    def __init__(self, spark: SparkSession, release: str, output: OutputSection, ledger_path: str) -> None:
        self.spark = spark
        self.release = release
        self.path = output.path.rstrip("/")
        self.draws = DeltaTable(spark, f"{self.path}/{DRAWS}", "draws")
        self.journal_table = DeltaTable(spark, f"{self.path}/{JOURNAL}", "journal")
        self.public = DeltaTable(spark, output.public or f"{self.path}/{PUBLIC}", "public table")
        self.ledger = Ledger(DeltaTable(spark, ledger_path, "ledger"))
        self._partition_by = output.partition_by

    @contextmanager
    def locked(self, waiting: Callable[[], None] = lambda: None) -> Iterator[bool]:
        """Make other runs, gates and publications of this release wait.

        The context yields whether none of them can work before its end: a lease may be lost, a lock may not.
        ``waiting`` is called once if another process has the lock or the lease.
        """
        path = f"{self.path}/release"
        with (
            hold_lock(self.spark, path, waiting) as is_exclusive,
            nullcontext() if is_exclusive else hold_lease(self.spark, path, waiting),
        ):
            yield is_exclusive

    def journal(self) -> Journal:
        """Read the release's events.

        Raises :class:`ReleaseError` if one of its tables is missing or older than its events say, or if the events are
        those of another release.
        """
        with job_errors("nothing was changed"):
            if not self.journal_table.exists():
                if self.draws.version() > 0:
                    raise ReleaseError(
                        f"journal {self.journal_table.path}: is gone, though release {self.release} has draws. Without "
                        "it there is no record of what was drawn, changed or withdrawn. Restore draws, journal and "
                        "ledger from one backup, or start a release under another name."
                    )
                self._require_unknown()
                return Journal(self.journal_table)
            self.journal_table.check()
            journal = Journal(self.journal_table)
            if intents := journal.intents():
                if (held := intents[0].terms.fixed["release"]) != self.release:
                    raise ReleaseError(
                        f"output.path = {self.path}: holds the release {held}, not {self.release}. Name another "
                        "directory."
                    )
                self._check(self.draws, journal, DRAWS_VERSION)
                self._check(self.ledger.table, journal, LEDGER_VERSION)
        return journal

    def has_tables(self) -> bool:
        """Return whether there is a journal or a table of draws."""
        return self.journal_table.exists() or self.draws.exists()

    def _require_unknown(self) -> None:
        """Raise :class:`ReleaseError` if the ledger lists the release, but its tables are not here."""
        if not self.ledger.tables_of(self.release):
            return
        raise ReleaseError(
            f"release {self.release}: the ledger {self.ledger.table.path} lists it, but its tables are not at "
            f"{self.path}. Without them there is no record of what was drawn and published. Name the output.path "
            "where they are, or restore draws and journal from the same backup as this ledger. If they are "
            "permanently lost, `wordveil release reset` gives them up, and the next run makes new ones. What was "
            "spent stays charged, and withdrawn records stay out."
        )

    def _check(self, table: DeltaTable, journal: Journal, name: str) -> None:
        """Raise :class:`ReleaseError` if a table is gone, or older than the journal has seen it.

        Only this table was then restored from a backup.
        """
        version, seen = table.version(), journal.newest_version(name)
        if version < 0:
            raise ReleaseError(
                f"{table.kind} {table.path}: is gone, though release {self.release} has runs. Without it records would "
                "be drawn or charged again. Restore it from a backup, or start a release under another name."
            )
        table.check()
        if version < seen:
            raise ReleaseError(
                f"{table.kind} {table.path}: is at version {version}, and the journal of release {self.release} has "
                f"seen version {seen}: it was restored from an older state, in which draws or charges are missing. "
                "Restore draws, journal and ledger from one backup."
            )

    def has_drawn(self, intent: Intent) -> bool:
        """Return whether a run has drawn."""
        return self.draws.has(self.idempotency_key(intent))

    def idempotency_key(self, intent: Intent) -> str:
        """Return the key under which a run appends its draws: appending a second time does nothing."""
        return f"{self.release} {intent.run_id} {intent.seq}"

    def create(self, rows: DataFrame, kept: Sequence[str], name: str, texts: TextColumns) -> None:
        """Create the missing tables.

        They are for the id column ``name``, the ``kept`` columns of ``rows``, and the ``texts`` of the output.

        Raises :class:`ReleaseError` if the draws have other columns.
        """
        with job_errors("nothing was drawn or charged"):
            check_directories(rows, self._partition_by)
            schema = _draws_schema(rows, kept, name, texts)
            self.ledger.create()
            if self.draws.exists():
                self._check_columns(schema)
            else:
                self.draws.create(schema, partition_by=self._partition_by, indexed=[SEQ_COLUMN, name])
            Journal.create(self.journal_table)

    def _check_columns(self, schema: StructType) -> None:
        was, now = (
            {field.name: field.dataType.simpleString() for field in columns.fields}
            for columns in (self.draws.read().schema, schema)
        )
        if differing := sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name)):
            shown = ", ".join(
                f"{name} ({was.get(name, 'none')} in the release, {now.get(name, 'none')} in the input)"
                for name in differing
            )
            raise ReleaseError(
                f"release {self.release}: its columns differ from the input's: {shown}. A release keeps its columns. "
                "Cast or rename them in a view of the input, or start a release under another name."
            )

    def cast_ids(self, ids: Sequence[str], name: str) -> DataFrame:
        """Cast ``ids`` to the type of the draws' id column ``name``: columns ``__id`` and ``named``, the id as it was
        given.

        A text that is no value of that type cannot be the id of a record: its ``__id`` is null.
        """
        kind = self.draws.read().schema[name].dataType
        given = from_arrow(self.spark, pa.table({"__id": pa.array(ids, pa.string())}))
        return given.select(try_cast("__id", kind).alias("__id"), F.col("__id").alias("named"))


def _draws_schema(rows: DataFrame, kept: Sequence[str], name: str, texts: TextColumns) -> StructType:
    """Make the columns of the draws table: those of a Parquet output, and internal ones that begin with two
    underscores.
    """
    passed = rows.select(column(name), *map(column, kept)).schema.fields
    made = from_arrow_schema(pa.schema([*texts.output_fields, *STATISTIC_FIELDS])).fields
    internal = [
        StructField(AUTHOR_COLUMN, StringType()),
        StructField(RESERVED_COLUMN, LongType()),
        StructField(SEQ_COLUMN, LongType()),
        StructField(EPOCH_COLUMN, IntegerType()),
    ]
    return StructType([StructField(field.name, field.dataType) for field in (*passed, *made, *internal)])
