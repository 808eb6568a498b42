"""Steps of one run. Each finds out whether it has been done before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType
from pyspark.sql.window import Window

from wordveil.input.columns import Columns
from wordveil.privacy.events import ReleaseTerms
from wordveil.records.pseudonyms import list_lasting
from wordveil.records.schema import REASON_COLUMN, REQUESTED, TAG_COLUMN, TOKENS_COLUMN, WITHDRAWN
from wordveil.release.budgets import BUDGET_REASONS
from wordveil.release.events import Intent
from wordveil.release.layout import AUTHOR_COLUMN, EPOCH_COLUMN, RESERVED_COLUMN, SEQ_COLUMN
from wordveil.spark.input.screening import screen_input
from wordveil.spark.input.source import InputTable
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.versions import try_cast
from wordveil.spark.release.admission import admit_candidates
from wordveil.spark.release.changes import (
    CHANGED_COLUMN,
    CORRECTED_COLUMN,
    KEPT_COLUMN,
    REFRESHED_COLUMN,
    STANDING_COLUMN,
    UNSOUND_COLUMN,
    WAS_COLUMN,
    Candidates,
    differ_in_kept,
    find_candidates,
)
from wordveil.spark.release.latest import WAS_KEPT_COLUMN, filter_by_ids, latest_state
from wordveil.spark.release.ledger import (
    READMIT,
    REFUSE,
    WITHDRAW,
    Terms,
    check_record_limit,
    mark_charged,
)
from wordveil.spark.release.tables import Release
from wordveil.spark.sanitise.counts import aggregates, read_observation, report_counts
from wordveil.spark.sanitise.job import sanitise_records
from wordveil.spark.sanitise.worker import Inspect, Sanitise

_REFUSED, _OVER, _READMITTED = "__refused", "__over", "__readmitted"
_COPIES = ("corrected", "kept_changed", "stale")
"""Counts of copied draws in a run's report."""


@dataclass(kw_only=True)
class RunSteps:
    """Execution of one intent: :meth:`reserve`, :meth:`draw`, :meth:`settle`, :meth:`counts`, in this order.

    ``table``: the input; None for a withdrawal. ``is_fresh``: the intent is new, so that no step has been done.
    """

    release: Release
    intent: Intent
    table: InputTable | None
    job: Sanitise
    terms: ReleaseTerms
    columns: Columns
    progress: Callable[[str], None]
    is_fresh: bool
    _known: Candidates | None = field(default=None, init=False)
    _copies: dict[str, int] = field(default_factory=dict, init=False)
    _observed: dict[str, Any] | None = field(default=None, init=False)
    _decided: Observation | None = field(default=None, init=False)

    @cached_property
    def _costs(self) -> Terms:
        epoch = self.intent.terms.epoch
        return Terms.of(
            self.terms,
            tables=self.release.draws.identifier(),
            run_id=self.intent.run_id,
            epoch=epoch,
            epoch_key=self.intent.terms.epochs[epoch - 1],
        )

    def close(self) -> None:
        """Free the frames kept in memory and scratch."""
        if self._known is not None:
            self._known.unpersist()

    def reserve(self) -> int:
        """Reserve the run's draws; a withdrawal, which the ledger has already, reserves nothing.

        Returns the number of records over a budget that fails the run, so that nothing was reserved; otherwise 0.
        Raises :class:`RecordLimitError` if the ledger has no room for them.
        """
        if self.table is None or self._has_drawn():
            return 0
        self.progress("reserving")
        return self.release.ledger.reserve(self._costs, self._admit, self._find_corrected, is_fresh=self.is_fresh)

    def _admit(self, ledger: DataFrame) -> tuple[DataFrame, int]:
        """Select the candidates that the ledger has room for, under the budget of the run and the limit of records."""
        candidates, exceeding = self._price(self._candidates()), 0
        if self._readmits and not self._is_first:
            candidates = mark_charged(candidates, ledger, self._costs, self._candidates().number)
        else:
            candidates = candidates.withColumn("is_charged", F.lit(False))
        if (budget := self.intent.budget) is None:
            records = candidates.withColumn("reason", F.lit(None).cast("string"))
        else:
            records = admit_candidates(candidates, ledger, self._costs, budget, self._candidates().number)
            if budget.on_exceeded == "fail":
                exceeding = records.where("reason is not null").count()
        if self.terms.max_records is not None and not exceeding:
            check_record_limit(records, ledger, self._costs, self.terms.max_records)
        self._decided = Observation()
        refused = (F.count_if(F.col("reason") == name).alias(name) for name in BUDGET_REASONS)
        readmitted = F.count_if(F.col("reason").isNull() & F.col("is_charged")).alias(READMIT)
        return records.observe(self._decided, *refused, readmitted), exceeding

    def draw(self) -> None:
        """Append the run's draws, and the withdrawals, in one commit."""
        if self._has_drawn():
            return
        self.progress("sanitising")
        if self.table is None:
            listed = self.release.ledger.entries(self._costs, WITHDRAW)
            ids = listed.select(try_cast("record_id", self.release.id_type).alias("__id"))
            leaving = ids.withColumn(REASON_COLUMN, F.lit(REQUESTED))
            rows = self._as_table(self._make_tombstones(leaving))
        else:
            rows = self._make_draws()
        observation = Observation()
        rows = self._add_copies(rows.observe(observation, *aggregates()))
        self.release.draws.append(
            rows,
            step="draws",
            idempotency_key=self.release.idempotency_key(self.intent),
            records_per_file=self.release.home.output.records_per_file,
        )
        self._observed = read_observation(observation)

    def settle(self) -> None:
        """Settle the reservations from the draws."""
        if self.table is None:
            return
        self.progress("settling")
        # A context that was admitted because it has been charged reserved nothing.
        is_drawn = F.col(RESERVED_COLUMN).isNotNull() | F.col("privacy").isNotNull()
        drawn = self._run_draws().where((F.col("run_id") == self.intent.run_id) & is_drawn)
        self.release.ledger.settle(
            self._costs,
            drawn.select(
                *(self._record_id().alias("record_id"), F.col(AUTHOR_COLUMN).alias("author")),
                *(F.col(RESERVED_COLUMN).alias("reserved"), F.col("privacy.tokens").alias("tokens"), "content_tag"),
            ),
            is_fresh=self.is_fresh,
            is_first=self._is_first,
            is_marked=self._readmits,
            number=None if self._known is None else self._known.number,
        )

    def counts(self) -> dict[str, Any]:
        """Count the run's draws: observed on their way to the table if this call wrote them, otherwise read from it."""
        refused = {}
        if self.table is not None and self.intent.budget is not None:
            refused = {"refused": self._count_refused()}
        if self._observed is not None:
            return {**report_counts(self._observed), **self._copies, **refused}
        drawn, is_own = self._run_draws(), F.col("run_id") == self.intent.run_id  # others are copies of earlier draws
        counts = report_counts(drawn.where(is_own).agg(*aggregates()).collect()[0].asDict())
        return {**counts, **self._count_copies(drawn.where(~is_own)), **refused}

    def _count_copies(self, copies: DataFrame) -> dict[str, int]:
        """Count written ``copies`` as :meth:`_add_copies` does, by what they were before the run."""
        name, kept = self.columns.id, self.columns.followed
        ids = copies.select(column(name).alias("__id"))
        before = latest_state(filter_by_ids(self.release.draws.read(), name, ids), name, self.intent.seq, kept)
        before = before.withColumnsRenamed({AUTHOR_COLUMN: "__was_author", "reason": WAS_COLUMN})
        both = copies.join(before.drop("status", "content_tag"), column(name) == F.col("__id"))
        is_refreshed = F.lit(False)
        if kept:
            fields = StructType([copies.schema[field] for field in kept])
            is_refreshed = differ_in_kept(F.struct(*map(column, kept)), F.col(WAS_KEPT_COLUMN), fields)
        is_corrected = ~F.col("__was_author").eqNullSafe(F.col(AUTHOR_COLUMN))
        counts = _count_kinds(is_corrected, is_refreshed, over=F.col("reason"), was=F.col(WAS_COLUMN))
        return both.agg(*counts).collect()[0].asDict()

    def _count_refused(self) -> dict[str, int]:
        if (seen := self._seen_decisions()) is not None:
            return {name: seen[name] for name in sorted(BUDGET_REASONS) if seen[name]}
        entries = self.release.ledger.entries(self._costs, REFUSE).groupBy("reason").count()
        return {row.reason: row["count"] for row in entries.sort("reason").collect()}

    def _seen_decisions(self) -> dict[str, int] | None:
        """Count the refused records, by reason, and the readmitted ones. Return None if an earlier call decided."""
        return None if self._decided is None else read_observation(self._decided)

    def _has_drawn(self) -> bool:
        return not self.is_fresh and self.release.has_drawn(self.intent)

    def _run_draws(self) -> DataFrame:
        return self.release.draws.read().where(F.col(SEQ_COLUMN) == self.intent.seq)

    def _candidates(self) -> Candidates:
        if self._known is None:
            assert self.table is not None
            self.progress("looking for what changed")
            draws = self.release.draws
            # At a version: frames kept at the newest one are planned again by Spark once the run has appended its
            # draws.
            earlier = None if self.intent.changes == "all" else draws.read(draws.version())
            lasting = list_lasting(self.job.settings.pseudonyms)
            bare = replace(self.job, settings=replace(self.job.settings, kept=(), pseudonyms=lasting, internal=1))
            withdrawn = self.release.ledger.withdrawn(self.release.name)
            read = self.table, earlier, withdrawn, self.intent, self.columns
            self._known = find_candidates(*read, Inspect(bare), self.release.journal)
        return self._known

    def _find_corrected(self) -> DataFrame | None:
        """Find record_id and author of records that may have been charged to another author, or None."""
        if self.columns.author is None or self._is_first:
            return None
        candidates = self._candidates()
        rows = candidates.compared
        assert rows is not None  # only a release's first run compares nothing
        if not self.intent.anew:  # else only the ledger knows whom the draws in other tables were charged to
            if not candidates.counts["corrected"]:
                return None
            rows = rows.where(CORRECTED_COLUMN)
        return rows.select(self._record_id().alias("record_id"), F.col(AUTHOR_COLUMN).alias("author"))

    @property
    def _is_first(self) -> bool:
        """True if the ledger had no entry of the release when the run began."""
        return self.intent.changes == "all" and not self.intent.anew

    def _record_id(self) -> Column:
        return column(self.columns.id).cast("string")

    @property
    def _readmits(self) -> bool:
        """True if a charged context is admitted at no cost: lengths, and thus a budget's refusals, are visible."""
        return self.terms.n_max is None

    def _price(self, candidates: Candidates) -> DataFrame:
        """List record_id, author and tokens of chargeable records, and content_tag if contents are compared."""
        named = {"record_id": self._record_id(), "author": F.col(AUTHOR_COLUMN), "tokens": self._fixed_price}
        if (changed := candidates.changed) is None:
            sound = candidates.rows.where(F.col(UNSOUND_COLUMN).isNull())
        else:
            sound = changed.where(F.col(REASON_COLUMN).isNull())
            named |= {"tokens": F.col(TOKENS_COLUMN), "content_tag": F.col(TAG_COLUMN)}
        return sound.select(*(value.alias(name) for name, value in named.items()))

    @property
    def _fixed_price(self) -> Column:
        """Tokens of a record whose content is not compared."""
        return F.lit(self.terms.tokens).cast("bigint")

    def _make_draws(self) -> DataFrame:
        candidates = self._candidates()
        rows, tokens = candidates.rows, self._fixed_price
        was, is_standing = F.lit(None).cast("string"), F.lit(False)
        if (changed := candidates.changed) is not None:
            named = changed.select(column(self.columns.id).alias("__id"), TOKENS_COLUMN, WAS_COLUMN, STANDING_COLUMN)
            ids, without = named.dropDuplicates(["__id"]), rows.where(column(self.columns.id).isNull())
            rows = filter_by_ids(rows, self.columns.id, ids, "inner", candidates.number, texts=True).drop("__id")
            rows = rows.unionByName(without, allowMissingColumns=True)
            tokens, was, is_standing = F.col(TOKENS_COLUMN), F.col(WAS_COLUMN), F.col(STANDING_COLUMN)
        refused, is_priced = F.col(UNSOUND_COLUMN), F.lit(True)
        decisions = self._seen_decisions()
        may_refuse = self._readmits or self.intent.budget is not None
        if may_refuse and (decisions is None or any(decisions.values())):
            rows = rows.withColumn("__name", self._record_id())
            rows = filter_by_ids(rows, "__name", self._find_decided(), "left", candidates.number, texts=True)
            rows = rows.drop("__id", "__name")
            # A standing version is copied. The newest draw of a quarantined one may have this reason already.
            has_row = F.when(is_standing, F.lit(self._keeps_last)).otherwise(was.eqNullSafe(F.col(_OVER)))
            rows = rows.where(F.col(_OVER).isNull() | ~has_row)
            refused = F.coalesce(refused, F.col(_OVER))
            is_priced = F.col(_READMITTED).isNull()
        rows = rows.withColumn(_REFUSED, refused)
        rows = rows.withColumn(RESERVED_COLUMN, F.when(F.col(_REFUSED).isNull() & is_priced, tokens))
        screened = screen_input(rows, self.columns, internal=[AUTHOR_COLUMN, RESERVED_COLUMN], refused=_REFUSED)
        draws = sanitise_records(screened, self.job)
        if candidates.leaving is not None:
            draws = draws.unionByName(self._make_tombstones(candidates.leaving), allowMissingColumns=True)
        return self._as_table(draws)

    @property
    def _keeps_last(self) -> bool:
        """True if a record whose edit is refused keeps its released version."""
        return self.intent.budget is not None and self.intent.budget.on_exceeded == "keep_last"

    def _find_decided(self) -> DataFrame:
        """Find the records (``__id``, as text) that reserved nothing: by the budget ``__over``, or ``__readmitted``."""
        entries = self.release.ledger.entries(self._costs, REFUSE, READMIT)
        is_readmitted = F.when(F.col("kind") == READMIT, F.lit(True)).alias(_READMITTED)
        return entries.select(F.col("record_id").alias("__id"), F.col("reason").alias(_OVER), is_readmitted)

    def _find_copied(self, compared: DataFrame) -> DataFrame:
        """Find the records of ``compared`` whose newest draws are copied.

        Columns are ``__id``, ``__now`` (author), ``__over`` (refusing budget, or null), and some of ``compared``.
        """
        named = column(self.columns.id).alias("__id"), F.col(AUTHOR_COLUMN).alias("__now")
        others = {KEPT_COLUMN, WAS_COLUMN, CHANGED_COLUMN, CORRECTED_COLUMN, REFRESHED_COLUMN, STANDING_COLUMN}
        compared = compared.select(*named, *(name for name in compared.columns if name in others))
        same = compared.where(~F.col(CHANGED_COLUMN)).withColumn(_OVER, F.lit(None).cast("string"))
        if not self._keeps_last:
            return same
        decided = self._find_decided().withColumnRenamed("__id", "__name").where(F.col(_OVER).isNotNull())
        standing = compared.where(F.col(CHANGED_COLUMN) & F.col(STANDING_COLUMN))
        refused = standing.join(decided, F.col("__id").cast("string") == F.col("__name")).drop("__name", _READMITTED)
        is_new = ~F.col(WAS_COLUMN).eqNullSafe(F.col(_OVER)) | F.col(REFRESHED_COLUMN)
        return same.unionByName(refused.where(is_new))

    def _add_copies(self, rows: DataFrame) -> DataFrame:
        """Add to ``rows`` copies of the newest draws of records that keep them; nothing is drawn for these.

        Their author or kept columns have changed, or a budget refuses their edit and their released version is kept. A
        later run compares its input with the new author and kept columns.
        """
        known = self._known
        if known is None or known.compared is None or self.intent.changes == "all":
            return rows
        if not (known.counts["same"] or self._keeps_last):
            return rows
        copied = self._find_copied(known.compared)
        is_changed = F.col(CORRECTED_COLUMN), F.col(REFRESHED_COLUMN)
        counts = _count_kinds(*is_changed, over=F.col(_OVER), was=F.col(WAS_COLUMN))
        number, *found = copied.agg(F.count(F.lit(1)), *counts).collect()[0]
        self._copies = dict(zip(_COPIES, found, strict=True))
        if not number:
            return rows
        refreshes = KEPT_COLUMN in copied.columns
        ids = copied.select("__id", "__now", _OVER, *([KEPT_COLUMN] if refreshes else []))
        earlier = self.release.draws.read().where(F.col(SEQ_COLUMN) < self.intent.seq)
        draws = filter_by_ids(earlier, self.columns.id, ids, "inner", number)
        newest = F.row_number().over(Window.partitionBy("__id").orderBy(F.col(SEQ_COLUMN).desc()))
        copies = draws.withColumn("__rank", newest).where("__rank = 1")
        filled = {AUTHOR_COLUMN: F.col("__now"), RESERVED_COLUMN: F.lit(None), SEQ_COLUMN: F.lit(self.intent.seq)}
        kept = {name: F.col(KEPT_COLUMN).getField(name) for name in self.columns.followed} if refreshes else {}
        return rows.unionByName(self._as_table(copies, {**filled, **kept, "reason": F.coalesce(_OVER, "reason")}))

    def _make_tombstones(self, leaving: DataFrame) -> DataFrame:
        return leaving.select(
            F.col("__id").alias(self.columns.id),
            F.lit(WITHDRAWN).alias("status"),
            F.col(REASON_COLUMN).alias("reason"),
            F.lit(self.intent.run_id).alias("run_id"),
        )

    def _as_table(self, rows: DataFrame, filled: Mapping[str, Column] | None = None) -> DataFrame:
        """Give ``rows`` exactly the columns of the draws table: those in ``filled``, their own, or null."""
        chosen = filled or {SEQ_COLUMN: F.lit(self.intent.seq), EPOCH_COLUMN: F.lit(self.intent.terms.epoch)}
        known = {**{name: column(name) for name in rows.columns}, **chosen}
        fields = self.release.draws.read().schema.fields
        return rows.select(*(known.get(item.name, F.lit(None)).cast(item.dataType).alias(item.name) for item in fields))


def _count_kinds(is_corrected: Column, is_refreshed: Column, *, over: Column, was: Column) -> list[Column]:
    """List the counts of :data:`_COPIES`. ``over``, ``was``: the budget that refuses an edit, now and before."""
    is_stale = over.isNotNull()
    kinds = is_corrected & ~is_stale, is_refreshed, is_stale & ~over.eqNullSafe(was)
    return [F.count_if(is_kind).alias(name) for name, is_kind in zip(_COPIES, kinds, strict=True)]
