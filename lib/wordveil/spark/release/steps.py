"""The steps of one run, each of which finds out whether it has been done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.window import Window

from wordveil.input.columns import Columns
from wordveil.privacy.events import ReleaseTerms
from wordveil.records.schema import REASON_COLUMN, REQUESTED, TOKENS_COLUMN, WITHDRAWN
from wordveil.spark.input.screening import screen_input
from wordveil.spark.input.source import InputTable
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.progress import ignore
from wordveil.spark.release.admission import admit_candidates
from wordveil.spark.release.changes import (
    CHANGED_COLUMN,
    CORRECTED_COLUMN,
    UNSOUND_COLUMN,
    WAS_COLUMN,
    Candidates,
    find_candidates,
)
from wordveil.spark.release.journal import Intent
from wordveil.spark.release.latest import filter_by_ids
from wordveil.spark.release.ledger import REFUSE, Reservation, Terms
from wordveil.spark.release.record_limit import check_record_limit
from wordveil.spark.release.tables import AUTHOR_COLUMN, EPOCH_COLUMN, RESERVED_COLUMN, SEQ_COLUMN, ReleaseTables
from wordveil.spark.sanitise.counts import aggregates, count_rows, read_observation, report_counts
from wordveil.spark.sanitise.job import sanitise_records
from wordveil.spark.sanitise.worker import Inspect, Sanitise

_REFUSED = "__refused"


class RunSteps:
    """What one intent says is done: :meth:`reserve`, :meth:`draw`, :meth:`settle`, :meth:`counts`, in this order.

    Parameters
    ----------
    tables
        the release's tables and its ledger.
    intent
        what the run does.
    table
        the input; None for a withdrawal.
    terms
        what each record costs.
    columns
        the id, the text, the author and the kept columns of the input.
    records_per_file
        the most rows of a file of draws; None for the default.
    progress
        told what begins.
    is_fresh
        the intent has just been written and no other process can have seen it, so that none of its steps has been done.
    """

    def __init__(
        self,
        tables: ReleaseTables,
        intent: Intent,
        table: InputTable | None,
        *,
        terms: ReleaseTerms,
        columns: Columns,
        records_per_file: int | None = None,
        progress: Callable[[str], None] = ignore,
        is_fresh: bool = False,
    ) -> None:
        self._tables = tables
        self._intent = intent
        self._table = table
        self._tokens, self._max_records = terms.tokens, terms.max_records
        self._terms = Terms.of(
            terms,
            tables=tables.draws.identifier(),
            run_id=intent.run_id,
            epoch=intent.terms.epoch,
            epoch_key=intent.terms.epochs[intent.terms.epoch - 1],
        )
        self._columns = replace(columns, max_bytes=intent.max_bytes) if table else columns
        self._records_per_file = records_per_file
        self._budget = intent.budget
        self._progress = progress
        self._is_fresh = is_fresh
        self._known: Candidates | None = None
        self._copies = 0
        self._observed: dict[str, Any] | None = None

    def close(self) -> None:
        """Free what is kept in memory and scratch."""
        if self._known is not None:
            self._known.unpersist()

    def reserve(self, job: Sanitise) -> int:
        """Reserve what is about to be drawn; of a withdrawal, record it in the ledger, which outlives the draws.

        Returns how many records exceed a budget that fails the run: nothing was reserved then. Otherwise 0. Raises
        :class:`RecordLimitError` where the ledger has no room for them.
        """
        if self._has_drawn():
            return 0
        if self._table is None:
            ids = self._withdrawn_ids().select(F.col("__id").cast("string").alias("record_id"))
            self._tables.ledger.withdraw(self._terms, ids)
            return 0
        self._progress("reserving")

        def decide(ledger: DataFrame) -> Reservation:
            reservation = self._decide(self._price(self._candidates(job)), ledger)
            if self._max_records is not None and not reservation.exceeding:
                check_record_limit(reservation.records, ledger, self._terms, self._max_records)
            return reservation

        return self._tables.ledger.reserve(
            self._terms, decide, lambda: self._find_corrected(job), is_fresh=self._is_fresh
        )

    def _decide(self, candidates: DataFrame, ledger: DataFrame) -> Reservation:
        """Which of ``candidates`` the budget of the run admits."""
        if self._budget is None:
            return Reservation(candidates.withColumn("reason", F.lit(None).cast("string")))
        decided = admit_candidates(candidates.drop(WAS_COLUMN), ledger, self._terms, self._budget)
        fails = self._budget.on_exceeded == "fail"
        return Reservation(decided, decided.where("reason is not null").count() if fails else 0)

    def draw(self, job: Sanitise) -> None:
        """Append the run's draws, and the withdrawals, in one commit."""
        if self._has_drawn():
            return
        self._progress("sanitising")
        rows = self._make_withdrawals() if self._table is None else self._make_draws(job)
        observation = Observation()
        rows = self._add_copies(rows.observe(observation, *aggregates()))
        self._tables.draws.append(
            rows,
            step="draws",
            idempotency_key=self._tables.idempotency_key(self._intent),
            records_per_file=self._records_per_file,
        )
        self._observed = read_observation(observation)

    def settle(self) -> None:
        """Settle the reservations from the draws."""
        if self._table is None:
            return
        self._progress("settling")
        drawn = self._run_draws().where(F.col(RESERVED_COLUMN).isNotNull())
        self._tables.ledger.settle(
            self._terms,
            drawn.select(
                column(self._columns.id).cast("string").alias("record_id"),
                F.col(AUTHOR_COLUMN).alias("author"),
                F.col(RESERVED_COLUMN).alias("reserved"),
                F.col("privacy.tokens").alias("tokens"),
                "content_tag",
            ),
            is_fresh=self._is_fresh,
        )

    def counts(self) -> dict[str, Any]:
        """The counts of the run's draws: observed on their way to the table if this call wrote them, else read from
        it.
        """
        if self._observed is not None:
            return {**report_counts(self._observed), "corrected": self._copies}
        copied = self._run_draws().where(~self._is_own())
        return {**count_rows(self._run_draws().where(self._is_own())), "corrected": copied.count()}

    def _has_drawn(self) -> bool:
        return not self._is_fresh and self._tables.has_drawn(self._intent)

    def _run_draws(self) -> DataFrame:
        return self._tables.draws.read().where(F.col(SEQ_COLUMN) == self._intent.seq)

    def _candidates(self, job: Sanitise) -> Candidates:
        if self._known is None:
            assert self._table is not None
            self._progress("looking for what changed")
            earlier = None if self._intent.changes == "all" else self._tables.draws.read()
            bare = replace(job, settings=replace(job.settings, kept=(), internal=1))
            withdrawn = self._tables.ledger.withdrawn(self._terms.release)
            self._known = find_candidates(self._table, earlier, withdrawn, self._intent, self._columns, Inspect(bare))
        return self._known

    def _find_corrected(self, job: Sanitise) -> DataFrame | None:
        """record_id and author of records that may have been charged to another author; None where there can be
        none.
        """
        candidates, had_tables = self._candidates(job), self._intent.anew
        if self._columns.author is None or (self._intent.changes == "all" and not had_tables):
            return None
        if candidates.compared is None:
            rows = candidates.rows.where(F.col(UNSOUND_COLUMN).isNull())
        else:  # where the release had other tables before, only the ledger knows whom their draws were charged to
            rows = candidates.compared if had_tables else candidates.compared.where(CORRECTED_COLUMN)
        if rows.isEmpty():  # as in most runs, which then need not read the ledger for it
            return None
        return rows.select(
            column(self._columns.id).cast("string").alias("record_id"), F.col(AUTHOR_COLUMN).alias("author")
        )

    def _price(self, candidates: Candidates) -> DataFrame:
        """Who may be charged, and for how many tokens: record_id, author, tokens, ``__was``."""
        tokens: Column = F.lit(self._tokens).cast("bigint")
        sound, was = candidates.rows.where(F.col(UNSOUND_COLUMN).isNull()), F.lit(None).cast("string")
        if (changed := candidates.changed) is not None:
            sound = changed.where(F.col(REASON_COLUMN).isNull())
            tokens, was = F.col(TOKENS_COLUMN), F.col(WAS_COLUMN)
        record_id = column(self._columns.id).cast("string").alias("record_id")
        return sound.select(
            record_id, F.col(AUTHOR_COLUMN).alias("author"), tokens.alias("tokens"), was.alias(WAS_COLUMN)
        )

    def _make_draws(self, job: Sanitise) -> DataFrame:
        """The run's part of the draws table."""
        candidates = self._candidates(job)
        rows = candidates.rows
        tokens: Column = F.lit(self._tokens).cast("bigint")
        was: Column = F.lit(None).cast("string")
        if (changed := candidates.changed) is not None:
            ids = changed.select(column(self._columns.id).alias("__id"), TOKENS_COLUMN, WAS_COLUMN).dropDuplicates(
                ["__id"]
            )
            without_id = rows.where(column(self._columns.id).isNull())
            rows = (
                filter_by_ids(rows, self._columns.id, ids, "inner")
                .drop("__id")
                .unionByName(without_id, allowMissingColumns=True)
            )
            tokens, was = F.col(TOKENS_COLUMN), F.col(WAS_COLUMN)
        refused = F.col(UNSOUND_COLUMN)
        if self._budget is not None:
            entries = self._tables.ledger.entries(self._terms, REFUSE)
            over = entries.select(F.col("record_id").alias("__id"), F.col("reason").alias("__over"))
            named = rows.withColumn("__name", column(self._columns.id).cast("string"))
            rows = filter_by_ids(named, "__name", over, "left").drop("__id", "__name")
            # Refused for the same reason as before: the record's newest draw says so already.
            rows = rows.where(F.col("__over").isNull() | ~was.eqNullSafe(F.col("__over")))
            refused = F.coalesce(refused, F.col("__over"))
        rows = rows.withColumn(_REFUSED, refused).withColumn(RESERVED_COLUMN, F.when(F.col(_REFUSED).isNull(), tokens))
        screened = screen_input(rows, self._columns, internal=[AUTHOR_COLUMN, RESERVED_COLUMN], refused=_REFUSED)
        draws = sanitise_records(screened, job)
        if candidates.leaving is not None:
            draws = draws.unionByName(self._make_tombstones(candidates.leaving), allowMissingColumns=True)
        return self._as_table(draws)

    def _add_copies(self, rows: DataFrame) -> DataFrame:
        """Add to ``rows`` copies of the newest draws of records of which only the author has changed, with the new
        author.

        Nothing is drawn for these records. A later run compares its input with the new author.
        """
        compared = None if self._known is None else self._known.compared
        if compared is None or self._columns.author is None or self._intent.changes == "all":
            return rows
        same = compared.where(~F.col(CHANGED_COLUMN))
        self._copies = same.count()
        if not self._copies:
            return rows
        name, now = self._columns.id, F.col("__now")
        ids = same.select(column(name).alias("__id"), F.col(AUTHOR_COLUMN).alias("__now"))
        draws = filter_by_ids(
            self._tables.draws.read().where(F.col(SEQ_COLUMN) < self._intent.seq), name, ids, "inner", self._copies
        )
        newest = F.row_number().over(Window.partitionBy("__id").orderBy(F.col(SEQ_COLUMN).desc()))
        copies = draws.withColumn("__place", newest).where("__place = 1")
        filled = {AUTHOR_COLUMN: now, RESERVED_COLUMN: F.lit(None), SEQ_COLUMN: F.lit(self._intent.seq)}
        return rows.unionByName(self._as_table(copies, filled))

    def _is_own(self) -> Column:
        """Whether a draw was drawn by the run, and is not a copy of an earlier one."""
        return F.col("run_id") == self._intent.run_id

    def _make_withdrawals(self) -> DataFrame:
        return self._as_table(self._make_tombstones(self._withdrawn_ids().withColumn(REASON_COLUMN, F.lit(REQUESTED))))

    def _withdrawn_ids(self) -> DataFrame:
        """The ids of a withdrawal: ``__id``, of the draws' type, and ``named``."""
        return self._tables.cast_ids(self._intent.ids, self._columns.id)

    def _make_tombstones(self, leaving: DataFrame) -> DataFrame:
        return leaving.select(
            F.col("__id").alias(self._columns.id),
            F.lit(WITHDRAWN).alias("status"),
            F.col(REASON_COLUMN).alias("reason"),
            F.lit(self._intent.run_id).alias("run_id"),
        )

    def _run_columns(self) -> dict[str, Column]:
        """The columns that the run decides."""
        return {SEQ_COLUMN: F.lit(self._intent.seq), EPOCH_COLUMN: F.lit(self._intent.terms.epoch)}

    def _as_table(self, rows: DataFrame, filled: Mapping[str, Column] | None = None) -> DataFrame:
        """``rows`` with exactly the columns of the draws table: those in ``filled``, else their own, else null."""
        chosen = self._run_columns() if filled is None else filled
        return rows.select(
            *(
                chosen.get(field.name, column(field.name) if field.name in rows.columns else F.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in self._tables.draws.read().schema.fields
            )
        )
