"""The steps of one run, each of which finds out whether it has been done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wordveil.errors import ReleaseError
from wordveil.records.schema import REASON_COLUMN, REQUESTED, TOKENS_COLUMN, WITHDRAWN
from wordveil.spark.input.screening import screen_input
from wordveil.spark.platform.columns import column
from wordveil.spark.release.admission import admitted
from wordveil.spark.release.changes import (
    CHANGED_COLUMN,
    CORRECTED_COLUMN,
    UNSOUND_COLUMN,
    WAS_COLUMN,
    Candidates,
    find,
)
from wordveil.spark.release.latest import filter_by_ids, latest_state
from wordveil.spark.release.ledger import REFUSE
from wordveil.spark.release.tables import AUTHOR_COLUMN, EPOCH_COLUMN, RESERVED_COLUMN, SEQ_COLUMN
from wordveil.spark.sanitise.counts import aggregates, count_rows, read_observation, report_counts
from wordveil.spark.sanitise.job import sanitise_records
from wordveil.spark.sanitise.worker import Inspect, Sanitise

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from wordveil.spark.input.source import InputTable
    from wordveil.spark.release.journal import Intent
    from wordveil.spark.release.run import ReleaseRunner

_REFUSED = "__refused"


class RunSteps:
    """What one intent says is done: :meth:`reserve`, :meth:`draw`, :meth:`settle`, :meth:`counts`, in this order.

    ``fresh``: the intent was written a moment ago and nobody else can have seen it, so that none of its steps has been
    done.
    """

    def __init__(
        self, steward: ReleaseRunner, intent: Intent, table: InputTable | None, *, fresh: bool = False
    ) -> None:
        self._home = steward.home
        self._spark = steward.spark
        self._columns = steward.config.input.model_copy(update={"max_bytes": intent.max_bytes} if table else {})
        self._output = steward.config.output
        self._budget = intent.budget
        self._policy = steward.config.policy
        self._progress = steward.progress
        self._intent = intent
        self._terms = steward.terms_of(intent)
        self._table = table
        self._fresh = fresh
        self._found: Candidates | None = None
        self._copies = 0
        self._observed: dict[str, Any] | None = None

    def close(self) -> None:
        """Free what was kept in memory and scratch."""
        if self._found is not None:
            self._found.forget()

    def reserve(self, job: Sanitise) -> int:
        """Reserve what is about to be drawn. Returns how many records are over a budget that is to fail the run;
        nothing is reserved then.

        Of a withdrawal: write it down where it outlives the draws.
        """
        from pyspark.sql import functions as F  # noqa: N812

        if self._drawn():
            return 0
        if self._table is None:
            self._home.ledger.withdraw(
                self._terms, self._wanted().select(F.col("__id").cast("string").alias("record_id"))
            )
            return 0
        self._progress("reserving")
        over: list[int] = []

        def decide(ledger: DataFrame) -> DataFrame | None:
            candidates = self._priced(self._candidates(job))
            if self._budget is None:
                return candidates.withColumn("reason", F.lit(None).cast("string"))
            decided = admitted(candidates.drop(WAS_COLUMN), ledger, self._terms, self._budget)
            if self._budget.on_exceeded == "fail":
                over[:] = [decided.where("reason is not null").count()]
            return None if any(over) else decided

        self._home.ledger.reserve(self._terms, decide, lambda: self._corrected(job), fresh=self._fresh)
        return over[0] if over else 0

    def draw(self, job: Sanitise) -> None:
        """Append the run's draws, and the withdrawals, in one commit."""
        from pyspark.sql import Observation

        if self._drawn():
            return
        self._progress("sanitising")
        rows = self._withdrawals() if self._table is None else self._draws(job)
        observation = Observation()
        rows = self._with_copies(rows.observe(observation, *aggregates()))
        key, size = self._home.idempotency_key(self._intent), self._output.records_per_file
        self._home.draws.append(rows, step="draws", idempotency_key=key, records_per_file=size)
        self._observed = read_observation(observation)

    def settle(self) -> None:
        """Settle the reservations from the draws."""
        from pyspark.sql import functions as F  # noqa: N812

        if self._table is None:
            return
        self._progress("settling")
        drawn = self._mine().where(F.col(RESERVED_COLUMN).isNotNull())
        self._home.ledger.settle(
            self._terms,
            drawn.select(
                column(self._columns.id).cast("string").alias("record_id"),
                F.col(AUTHOR_COLUMN).alias("author"),
                F.col(RESERVED_COLUMN).alias("reserved"),
                F.col("privacy.tokens").alias("tokens"),
                "content_tag",
            ),
            fresh=self._fresh,
        )

    def counts(self) -> dict[str, Any]:
        """What the run's draws hold, as they were seen on their way to the table if this call wrote them."""
        if self._observed is not None:
            return {**report_counts(self._observed), "corrected": self._copies}
        copied = self._mine().where(~self._own())
        return {**count_rows(self._mine().where(self._own())), "corrected": copied.count()}

    def refuse_unknown_ids(self) -> None:
        """Raise :class:`ReleaseError` where ids to withdraw are not in the release, or have been withdrawn."""
        from pyspark.sql import functions as F  # noqa: N812

        there = latest_state(self._home.draws.read(), self._columns.id)
        there = there.where(~((F.col("status") == WITHDRAWN) & (F.col("reason") == REQUESTED)))
        missing = self._wanted().join(there, "__id", "left_anti")
        if (example := missing.first()) is not None:
            raise ReleaseError(
                f"{missing.count():,} of the ids are not in release {self._terms.release}, or have been withdrawn: {example.named!r} "
                "for one. Nothing was done."
            )

    def _drawn(self) -> bool:
        return not self._fresh and self._home.has_drawn(self._intent)

    def _mine(self) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        return self._home.draws.read().where(F.col(SEQ_COLUMN) == self._intent.seq)

    def _candidates(self, job: Sanitise) -> Candidates:
        if self._found is None:
            assert self._table is not None
            self._progress("looking for what changed")
            earlier = None if self._intent.changes == "all" else self._home.draws.read()
            bare = replace(job, settings=replace(job.settings, kept=(), internal=1))
            withdrawn = self._home.ledger.withdrawn(self._terms.release)
            self._found = find(self._table, earlier, withdrawn, self._intent, self._columns, Inspect(bare))
        return self._found

    def _corrected(self, job: Sanitise) -> DataFrame | None:
        """record_id and author of records that may have been charged to another author; None where there can be
        none.
        """
        from pyspark.sql import functions as F  # noqa: N812

        found, anew = self._candidates(job), self._intent.anew
        if self._columns.author is None or (self._intent.changes == "all" and not anew):
            return None
        if found.looked is None:
            rows = found.rows.where(F.col(UNSOUND_COLUMN).isNull())
        else:  # where there were other draws before, the ledger alone knows whom those were charged to
            rows = found.looked if anew else found.looked.where(CORRECTED_COLUMN)
        if rows.isEmpty():  # as on most nights, which then need not read the ledger for it
            return None
        return rows.select(
            column(self._columns.id).cast("string").alias("record_id"), F.col(AUTHOR_COLUMN).alias("author")
        )

    def _priced(self, found: Candidates) -> DataFrame:
        """Who may be charged, and for how many tokens: record_id, author, tokens, ``__was``."""
        from pyspark.sql import functions as F  # noqa: N812

        tokens: Column = F.lit(self._policy.n_max).cast("bigint")
        sound, was = found.rows.where(F.col(UNSOUND_COLUMN).isNull()), F.lit(None).cast("string")
        if (changed := found.changed) is not None:
            sound = changed.where(F.col(REASON_COLUMN).isNull())
            tokens, was = F.col(TOKENS_COLUMN), F.col(WAS_COLUMN)
        record_id = column(self._columns.id).cast("string").alias("record_id")
        return sound.select(
            record_id, F.col(AUTHOR_COLUMN).alias("author"), tokens.alias("tokens"), was.alias(WAS_COLUMN)
        )

    def _draws(self, job: Sanitise) -> DataFrame:
        """The run's part of the draws table."""
        from pyspark.sql import functions as F  # noqa: N812

        found = self._candidates(job)
        rows = found.rows
        tokens: Column = F.lit(self._policy.n_max).cast("bigint")
        was: Column = F.lit(None).cast("string")
        if (changed := found.changed) is not None:
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
            entries = self._home.ledger.entries(self._terms, REFUSE)
            over = entries.select(F.col("record_id").alias("__id"), F.col("reason").alias("__over"))
            named = rows.withColumn("__name", column(self._columns.id).cast("string"))
            rows = filter_by_ids(named, "__name", over, "left").drop("__id", "__name")
            # Refused as before: the record's newest draw says so already.
            rows = rows.where(F.col("__over").isNull() | ~was.eqNullSafe(F.col("__over")))
            refused = F.coalesce(refused, F.col("__over"))
        rows = rows.withColumn(_REFUSED, refused).withColumn(RESERVED_COLUMN, F.when(F.col(_REFUSED).isNull(), tokens))
        made = sanitise_records(
            screen_input(rows, self._columns, internal=[AUTHOR_COLUMN, RESERVED_COLUMN], refused=_REFUSED), job
        )
        if found.left is not None:
            made = made.unionByName(self._tombstones(found.left), allowMissingColumns=True)
        return self._as_table(made)

    def _with_copies(self, rows: DataFrame) -> DataFrame:
        """``rows``, and the newest draws of records of which the author alone has changed, with that author.

        Nothing is drawn for them. A later run finds the author that it knows.
        """
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.window import Window

        looked = None if self._found is None else self._found.looked
        if looked is None or self._columns.author is None or self._intent.changes == "all":
            return rows
        same = looked.where(~F.col(CHANGED_COLUMN))
        self._copies = same.count()
        if not self._copies:
            return rows
        name, now = self._columns.id, F.col("__now")
        ids = same.select(column(name).alias("__id"), F.col(AUTHOR_COLUMN).alias("__now"))
        draws = filter_by_ids(
            self._home.draws.read().where(F.col(SEQ_COLUMN) < self._intent.seq), name, ids, "inner", self._copies
        )
        newest = F.row_number().over(Window.partitionBy("__id").orderBy(F.col(SEQ_COLUMN).desc()))
        copies = draws.withColumn("__place", newest).where("__place = 1")
        filled = {AUTHOR_COLUMN: now, RESERVED_COLUMN: F.lit(None), SEQ_COLUMN: F.lit(self._intent.seq)}
        return rows.unionByName(self._as_table(copies, filled))

    def _own(self) -> Column:
        """Whether a draw is the run's own, and no copy of an earlier one."""
        from pyspark.sql import functions as F  # noqa: N812

        return F.col("run_id") == self._intent.run_id

    def _withdrawals(self) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        return self._as_table(self._tombstones(self._wanted().withColumn(REASON_COLUMN, F.lit(REQUESTED))))

    def _wanted(self) -> DataFrame:
        """The ids of a withdrawal, column ``__id``, of the draws' type."""
        import pyarrow as pa
        from pyspark.sql import functions as F  # noqa: N812

        kind = self._home.draws.read().schema[self._columns.id].dataType
        ids = self._spark.createDataFrame(pa.table({"__id": pa.array(self._intent.ids, pa.string())}))
        # What is no id of that type is no record's: null, and found missing.
        return ids.select(F.col("__id").try_cast(kind).alias("__id"), F.col("__id").alias("named"))

    def _tombstones(self, left: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        return left.select(
            F.col("__id").alias(self._columns.id),
            F.lit(WITHDRAWN).alias("status"),
            F.col(REASON_COLUMN).alias("reason"),
            F.lit(self._intent.run_id).alias("run_id"),
        )

    def _filled(self) -> dict[str, Column]:
        """The columns of which the run decides."""
        from pyspark.sql import functions as F  # noqa: N812

        return {SEQ_COLUMN: F.lit(self._intent.seq), EPOCH_COLUMN: F.lit(self._intent.epoch)}

    def _as_table(self, rows: DataFrame, filled: Mapping[str, Column] | None = None) -> DataFrame:
        """``rows`` with exactly the columns of the draws table, some of them ``filled``."""
        from pyspark.sql import functions as F  # noqa: N812

        chosen = self._filled() if filled is None else filled
        return rows.select(
            *(
                chosen.get(field.name, column(field.name) if field.name in rows.columns else F.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in self._home.draws.read().schema.fields
            )
        )
