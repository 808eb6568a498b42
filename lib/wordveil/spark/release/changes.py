"""Which records of the input a run draws: all, those whose content changed, or those that a change feed names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from wordveil.config.schema import ColumnsSection
from wordveil.records.schema import (
    ABSENT,
    DELETED,
    DUPLICATE_ID,
    ID_REASONS,
    INSPECTED_FIELDS,
    OVERSIZE,
    QUARANTINED,
    REASON_COLUMN,
    TAG_COLUMN,
    TOKENS_COLUMN,
    WITHDRAWN,
)
from wordveil.release.budgets import BUDGET_REASONS
from wordveil.spark.input.screening import flag_invalid_ids, screen_input
from wordveil.spark.platform.columns import column
from wordveil.spark.release.journal import Intent
from wordveil.spark.release.latest import filter_by_ids, latest_state
from wordveil.spark.release.tables import AUTHOR_COLUMN
from wordveil.spark.sanitise.worker import Inspect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WAS_COLUMN, UNSOUND_COLUMN = "__was", "__unsound"
CHANGED_COLUMN, CORRECTED_COLUMN = "__changed", "__corrected"
# Rejected by other settings than the policy's: tried again when those change.
_RETRIED = (*BUDGET_REASONS, OVERSIZE)
_TASK_ROWS = 20_000


class Source(Protocol):
    """The input as Delta keeps it."""

    def read(self, version: int | None) -> DataFrame:
        """The slice at a version."""

    def changes(self, first: int, last: int) -> DataFrame:
        """The slice's change feed, with ``_change_type`` and ``_commit_version``."""


@dataclass(frozen=True)
class Candidates:
    """What a run is about.

    Attributes
    ----------
    rows
        records of the input, with its columns, ``__author``, and ``__unsound``: why a record's id cannot be used, or
        null.
    looked
        where contents were compared or counted: id, ``__author``, ``__reason``, ``__tag``, ``__tokens`` and ``__was``
        (why the record is in quarantine now) of those among ``rows`` that are to be drawn or refused (``__changed``),
        or whose author is not the one of their newest draw (``__corrected``). None: all rows are to be drawn.
    left
        ids and reasons, columns ``__id`` and ``__reason``, of records that leave the release.
    kept
        other frames that are kept in memory or scratch, as ``looked`` is, each before those made from it.
    """

    rows: DataFrame
    looked: DataFrame | None
    left: DataFrame | None
    kept: tuple[DataFrame, ...] = ()

    @property
    def changed(self) -> DataFrame | None:
        """Those of ``looked`` that are to be drawn or refused."""
        return None if self.looked is None else self.looked.where(CHANGED_COLUMN)

    def forget(self) -> None:
        """Free what was kept in memory and scratch."""
        # The last one first: Spark plans anew what was made from a frame that is freed.
        for frame in reversed([*self.kept, *([self.looked] if self.looked is not None else [])]):
            frame.unpersist()


def find_candidates(
    source: Source,
    draws: DataFrame | None,
    withdrawn: DataFrame,
    intent: Intent,
    columns: ColumnsSection,
    inspect: Inspect,
) -> Candidates:
    """The candidates of a run. ``draws``: the release's draws, or None where there are none yet. ``withdrawn``:
    records, column ``record_id``, that were withdrawn for ever.
    """
    if draws is None:
        rows = _identify(_without(source.read(intent.version), withdrawn, columns.id), columns)
        counted = inspect.job.settings.policy.n_max is None
        return Candidates(rows, _compare_contents(rows, None, columns, inspect).persist() if counted else None, None)
    left = None
    if intent.changes == "feed":
        found, left, state, kept = _changes_from_feed(source, draws, intent, columns)
    else:
        # Looked at some times over: finding the newest draw of each record reads and sorts all draws.
        state = latest_state(draws, columns.id, intent.seq).persist()
        kept = [state]
        found = _with_new_null_ids(source.read(intent.version), columns.id, intent.null_id_count)
    rows = _identify(_without(found, withdrawn, columns.id), columns)
    if intent.full_snapshot:
        present = source.read(intent.version).select(column(columns.id).alias("__id"))
        gone = state.where(f"status <> '{WITHDRAWN}'").join(present, "__id", "left_anti")
        left = _leaving(gone, ABSENT)
    return Candidates(rows, _compare_contents(rows, state, columns, inspect).persist(), left, kept=tuple(kept))


def _identify(rows: DataFrame, columns: ColumnsSection) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    author = F.lit(None) if columns.author is None else column(columns.author)
    named, reason = flag_invalid_ids(rows, columns)
    return named.withColumns({AUTHOR_COLUMN: author.cast("string"), UNSOUND_COLUMN: reason}).drop("__id", "__duplicate")


def inspect_records(records: DataFrame, inspect: Inspect) -> DataFrame:
    """What would become of the records of a prepared table; nothing is drawn."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    def wordveil_inspect(batches: Any) -> Any:
        return inspect(batches)

    passed = records.columns[:-2]
    numbered = records.toDF(*(f"__{place}" for place in range(len(passed))), *records.columns[-2:])
    added = from_arrow_schema(pa.schema(INSPECTED_FIELDS))
    result = numbered.mapInArrow(wordveil_inspect, StructType([*numbered.schema.fields[:-2], *added.fields]))
    return result.toDF(*passed, *result.columns[len(passed) :])


def _compare_contents(rows: DataFrame, state: DataFrame | None, columns: ColumnsSection, inspect: Inspect) -> DataFrame:
    """The records that are new, differ from their newest draw, or have another author than it."""
    from pyspark.sql import functions as F  # noqa: N812

    bare = columns.model_copy(update={"keep": []})
    seen = inspect_records(screen_input(rows, bare, internal=[AUTHOR_COLUMN], refused=UNSOUND_COLUMN), inspect)
    if state is None:
        nothing = {WAS_COLUMN: F.lit(None).cast("string"), CHANGED_COLUMN: F.lit(True), CORRECTED_COLUMN: F.lit(False)}
        return seen.withColumns(nothing)
    known = state.withColumnRenamed(AUTHOR_COLUMN, "state_author")
    both = seen.join(known, column(columns.id) == F.col("__id"), "left")
    reason, was = F.col(REASON_COLUMN), F.col("state_reason")
    both = both.withColumnRenamed("reason", "state_reason")
    differs = (
        F.col("status").isNull()
        | (F.col("status") == WITHDRAWN)
        | F.when(reason.isNotNull(), ~was.eqNullSafe(reason)).otherwise(
            ~F.col("content_tag").eqNullSafe(F.col(TAG_COLUMN))
        )
    )
    # A tombstone has no author: whoever returns is looked up in the ledger.
    is_known = F.col("status").isNotNull() & ~F.coalesce(reason.isin(*ID_REASONS), F.lit(False))
    corrected = is_known & ~F.col("state_author").eqNullSafe(F.col(AUTHOR_COLUMN))
    quarantined = F.when(F.col("status") == QUARANTINED, was).alias(WAS_COLUMN)
    kept = [column(columns.id), F.col(AUTHOR_COLUMN), reason, F.col(TAG_COLUMN), F.col(TOKENS_COLUMN)]
    both = both.withColumns({CHANGED_COLUMN: differs, CORRECTED_COLUMN: corrected})
    return both.where(F.col(CHANGED_COLUMN) | F.col(CORRECTED_COLUMN)).select(
        *kept, quarantined, CHANGED_COLUMN, CORRECTED_COLUMN
    )


def _without(rows: DataFrame, withdrawn: DataFrame, name: str) -> DataFrame:
    """The rows without those that somebody asked to be withdrawn, ``record_id``."""
    from pyspark.sql import functions as F  # noqa: N812

    if withdrawn.isEmpty():
        return rows
    ids = withdrawn.select(F.col("record_id").try_cast(rows.schema[name].dataType).alias("__id"))
    return filter_by_ids(rows, name, ids, "left_anti")


def _with_new_null_ids(rows: DataFrame, name: str, known: int) -> DataFrame:
    """The rows, those without an id only if there are more of them than are ``known``: nothing tells one from
    another.
    """
    without_id = column(name).isNull()
    return rows.where(~without_id) if known and rows.where(without_id).count() <= known else rows


def _leaving(ids: DataFrame, reason: str) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    return ids.select("__id", F.lit(reason).alias(REASON_COLUMN))


def _changes_from_feed(
    source: Source, draws: DataFrame, intent: Intent, columns: ColumnsSection
) -> tuple[DataFrame, DataFrame, DataFrame, list[DataFrame]]:
    """The rows that the change feed leaves, the ids that it deletes, the newest draws of the records that it names, and
    what is kept.

    Where an id stood twice, or may now, the feed alone does not say what is left: those ids are looked up in the table.
    """
    from pyspark.sql import functions as F  # noqa: N812

    feed = source.changes(intent.since + 1, intent.version)
    names = [name for name in feed.columns if name not in ("_change_type", "_commit_version", "_commit_timestamp")]
    kind, version = F.col("_change_type"), F.col("_commit_version")
    is_after = kind.isin("insert", "update_postimage")
    whole = F.struct(*(column(name) for name in names))
    changed = (
        feed.where(column(columns.id).isNotNull())
        .groupBy(column(columns.id).alias("__id"))
        .agg(
            (F.count_if(kind == "insert") - F.count_if(kind == "delete")).alias("__more"),
            F.max_by(F.when(is_after, whole), F.when(is_after, version)).alias("__last"),
        )
        .persist()
    )
    number = changed.count()
    # Spark does not merge the tasks of what is kept, and hundreds of a few records would each start Python.
    tasks = max(feed.sparkSession.sparkContext.defaultParallelism, -(-number // _TASK_ROWS))
    ids = changed.select("__id")
    # Of most records the feed says nothing, and their draws need not be sorted.
    if intent.retried:
        state = latest_state(draws, columns.id, intent.seq).persist()
    else:
        state = (
            latest_state(filter_by_ids(draws, columns.id, ids, number=number), columns.id, intent.seq)
            .coalesce(tasks)
            .persist()
        )
    gone = F.col("status").isNull() | (F.col("status") == WITHDRAWN)
    before = F.when(gone, 0).when(F.col("reason") == DUPLICATE_ID, 2).otherwise(1)
    counted = changed.join(state, "__id", "left").withColumn("__before", before)
    copies = F.col("__before") + F.col("__more")
    simple = (F.col("__before") <= 1) & (copies == 1) & F.col("__last").isNotNull()
    deleted = (F.col("__before") <= 1) & (copies <= 0)
    plain = counted.where(simple).select("__last.*")
    unclear = counted.where(~simple & ~deleted).select("__id")
    left = _leaving(counted.where(deleted & (F.col("__before") == 1)), DELETED)
    without_id = feed.where(column(columns.id).isNull() & (kind == "insert")).select(*(column(name) for name in names))
    rows = plain.unionByName(without_id)
    wanted = unclear
    if intent.retried:
        again = state.where((F.col("status") == QUARANTINED) & F.col("reason").isin(*_RETRIED)).select("__id")
        wanted = unclear.union(again.join(ids, "__id", "left_anti"))
    if not wanted.isEmpty():
        snapshot = source.read(intent.version)
        found = filter_by_ids(snapshot, columns.id, wanted).select(*(column(name) for name in names))
        vanished = unclear.join(found.select(column(columns.id).alias("__id")), "__id", "left_anti")
        rows, left = rows.unionByName(found), left.union(_leaving(vanished, DELETED))
    rows = rows.coalesce(tasks).persist()
    return rows, left.coalesce(tasks), state, [changed, state, rows]
