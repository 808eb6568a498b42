"""Which records of the input a run draws: all, those whose content changed, or those that a change feed lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from wordveil.input.columns import Columns
from wordveil.records.schema import (
    ABSENT,
    DELETED,
    DUPLICATE_ID,
    ID_REASONS,
    INSPECTED_FIELDS,
    OVERSIZE,
    REASON_COLUMN,
    RELEASED,
    TAG_COLUMN,
    TOKENS_COLUMN,
    WITHDRAWN,
)
from wordveil.release.budgets import BUDGET_REASONS
from wordveil.release.events import Intent
from wordveil.release.layout import AUTHOR_COLUMN
from wordveil.spark.input.screening import flag_invalid_ids, screen_input
from wordveil.spark.input.source import InputTable
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.versions import try_cast
from wordveil.spark.release.latest import filter_by_ids, latest_state
from wordveil.spark.sanitise.worker import Inspect

WAS_COLUMN, UNSOUND_COLUMN, STANDING_COLUMN = "__was", "__unsound", "__standing"
CHANGED_COLUMN, CORRECTED_COLUMN = "__changed", "__corrected"
# Why other settings than the policy's refuse records: such records are tried again when those settings change.
_RETRIED = (*BUDGET_REASONS, OVERSIZE)
_TASK_ROWS = 20_000
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


@dataclass(frozen=True)
class Candidates:
    """The records that a run is about.

    Attributes
    ----------
    rows
        records of the input, with its columns, ``__author``, and ``__unsound``: why a record's id cannot be used, or
        null.
    compared
        where contents were compared or tokens counted: id, ``__author``, ``__reason``, ``__tag``, ``__tokens``,
        ``__was`` (the reason of the newest draw) and ``__standing`` (whether that is released). It holds those of
        ``rows`` that are to be drawn or refused (``__changed``), or whose author is not that of their newest draw
        (``__corrected``). None: all rows are to be drawn.
    leaving
        ids and reasons, columns ``__id`` and ``__reason``, of records that leave the release. None: no record does.
    cached
        other frames that are kept in memory or scratch, as ``compared`` is, each before those made from it.
    """

    rows: DataFrame
    compared: DataFrame | None
    leaving: DataFrame | None
    cached: tuple[DataFrame, ...] = ()

    @property
    def changed(self) -> DataFrame | None:
        """Those of ``compared`` that are to be drawn or refused."""
        return None if self.compared is None else self.compared.where(CHANGED_COLUMN)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many of ``compared`` are ``changed``, have another author (``corrected``), and have nothing but another
        author (``same``). Empty without ``compared``.
        """
        if self.compared is None:
            return {}
        changed, corrected = F.col(CHANGED_COLUMN), F.col(CORRECTED_COLUMN)
        conditions = {"changed": changed, "corrected": corrected, "same": ~changed}
        row = self.compared.agg(*(F.count_if(is_met).alias(name) for name, is_met in conditions.items())).collect()[0]
        return row.asDict()

    @property
    def number(self) -> int | None:
        """How many records are to be drawn or refused, if that is known."""
        return self.counts.get("changed")

    def unpersist(self) -> None:
        """Free what is kept in memory and scratch."""
        # The last frame first: Spark plans again what was made from a frame that is freed.
        for frame in reversed([*self.cached, *([self.compared] if self.compared is not None else [])]):
            frame.unpersist()


class _Changes(NamedTuple):
    """What may have changed since the release last read its input: ``rows`` that may be new or changed, and the newest
    draws, as :func:`latest_state` gives them, of these records at least. ``is_unique``: whether no two rows have the
    same id. The others as in :class:`Candidates`.
    """

    rows: DataFrame
    state: DataFrame
    leaving: DataFrame | None
    cached: tuple[DataFrame, ...]
    is_unique: bool = False


def find_candidates(
    source: InputTable,
    draws: DataFrame | None,
    withdrawn: DataFrame,
    intent: Intent,
    columns: Columns,
    inspect: Inspect,
) -> Candidates:
    """The candidates of a run. ``draws``: the release's draws, or None where there are none yet. ``withdrawn``:
    records, column ``record_id``, that were withdrawn permanently.
    """
    if draws is None:
        rows = _identify(_drop_withdrawn(source.read(intent.version), withdrawn, columns.id), columns)
        # Prices depend on the texts; or the ledger knows contents of a release whose tables were lost.
        needs_contents = inspect.job.settings.policy.n_max is None or intent.anew
        compared = _compare_contents(rows, None, columns, inspect).persist() if needs_contents else None
        return Candidates(rows, compared, None)
    read = _read_feed if intent.changes == "feed" else _read_snapshot
    changes = read(source, draws, intent, columns.id)
    rows = _drop_withdrawn(changes.rows, withdrawn, columns.id)
    rows = _identify(rows, columns, is_unique=changes.is_unique)
    leaving = changes.leaving
    if intent.full_snapshot:
        present = source.read(intent.version).select(column(columns.id).alias("__id"))
        absent = changes.state.where(f"status <> '{WITHDRAWN}'").join(present, "__id", "left_anti")
        leaving = _mark_leaving(absent, ABSENT)
    compared = _compare_contents(rows, changes.state, columns, inspect).persist()
    return Candidates(rows, compared, leaving, changes.cached)


def _read_snapshot(source: InputTable, draws: DataFrame, intent: Intent, name: str) -> _Changes:
    """All records of the input, to be compared with their newest draws."""
    # Used several times: to find the newest draw of each record, all draws are read and sorted.
    state = latest_state(draws, name, intent.seq).persist()
    rows, without_id = source.read(intent.version), column(name).isNull()
    # Nothing distinguishes one record without an id from another: they count as new if there are more than before.
    if intent.null_id_count and rows.where(without_id).count() <= intent.null_id_count:
        rows = rows.where(~without_id)
    return _Changes(rows, state, None, (state,))


def _identify(rows: DataFrame, columns: Columns, *, is_unique: bool = False) -> DataFrame:
    author = F.lit(None) if columns.author is None else column(columns.author)
    named, reason = flag_invalid_ids(rows, columns, is_unique=is_unique)
    return named.withColumns({AUTHOR_COLUMN: author.cast("string"), UNSOUND_COLUMN: reason}).drop("__id", "__duplicate")


def _inspect_records(records: DataFrame, inspect: Inspect) -> DataFrame:
    """What would become of the records of a screened table. Nothing is drawn."""

    def wordveil_inspect(batches: Any) -> Any:
        return inspect(batches)

    number = len(records.columns) - len(inspect.job.settings.columns.names) - 1
    numbered = records.toDF(*(f"__{index}" for index in range(number)), *records.columns[number:])
    added = from_arrow_schema(pa.schema(INSPECTED_FIELDS))
    result = numbered.mapInArrow(wordveil_inspect, StructType([*numbered.schema.fields[:number], *added.fields]))
    return result.toDF(*records.columns[:number], *result.columns[number:])


def _compare_contents(rows: DataFrame, state: DataFrame | None, columns: Columns, inspect: Inspect) -> DataFrame:
    """The records that are new, differ from their newest draw, or have another author than it."""
    bare = replace(columns, keep=())
    seen = _inspect_records(screen_input(rows, bare, internal=[AUTHOR_COLUMN], refused=UNSOUND_COLUMN), inspect)
    if state is None:
        new = {WAS_COLUMN: F.lit(None).cast("string"), CHANGED_COLUMN: F.lit(True)}
        return seen.withColumns({**new, CORRECTED_COLUMN: F.lit(False), STANDING_COLUMN: F.lit(False)})
    known = state.withColumnsRenamed({AUTHOR_COLUMN: "state_author", "reason": "state_reason"})
    both = seen.join(known, column(columns.id) == F.col("__id"), "left")
    reason, was = F.col(REASON_COLUMN), F.col("state_reason")
    is_standing = F.coalesce(F.col("status") == RELEASED, F.lit(False))
    differs = (
        F.col("status").isNull()
        | (F.col("status") == WITHDRAWN)
        | (is_standing & was.isNotNull())  # a budget has refused its last edit
        | F.when(reason.isNotNull(), ~was.eqNullSafe(reason)).otherwise(
            ~F.col("content_tag").eqNullSafe(F.col(TAG_COLUMN))
        )
    )
    # A tombstone has no author: the ledger is asked for the author of a record that comes back.
    is_known = F.col("status").isNotNull() & ~F.coalesce(reason.isin(*ID_REASONS), F.lit(False))
    corrected = is_known & ~F.col("state_author").eqNullSafe(F.col(AUTHOR_COLUMN))
    found = {CHANGED_COLUMN: differs, CORRECTED_COLUMN: corrected, WAS_COLUMN: was, STANDING_COLUMN: is_standing}
    both = both.withColumns(found)
    return both.where(F.col(CHANGED_COLUMN) | F.col(CORRECTED_COLUMN)).select(
        *(column(columns.id), AUTHOR_COLUMN, REASON_COLUMN, TAG_COLUMN, TOKENS_COLUMN),
        *(WAS_COLUMN, CHANGED_COLUMN, CORRECTED_COLUMN, STANDING_COLUMN),
    )


def _drop_withdrawn(rows: DataFrame, withdrawn: DataFrame, name: str) -> DataFrame:
    """The rows without the records whose withdrawal was requested, column ``record_id``."""
    if withdrawn.isEmpty():
        return rows
    ids = withdrawn.select(try_cast("record_id", rows.schema[name].dataType).alias("__id"))
    return filter_by_ids(rows, name, ids, "left_anti")


def _mark_leaving(ids: DataFrame, reason: str) -> DataFrame:
    return ids.select("__id", F.lit(reason).alias(REASON_COLUMN))


def _read_feed(source: InputTable, draws: DataFrame, intent: Intent, name: str) -> _Changes:
    """The records that the change feed leaves, and the ids that it deletes.

    Where an id was in more than one record, or may be now, the feed alone does not say what is left: those ids are
    looked up in the table.
    """
    # Without a new version of the input, only what was refused is read again.
    first, is_new = min(intent.since + 1, intent.version), F.lit(intent.since < intent.version)
    feed = source.changes(first, intent.version).where(is_new)
    fields = [column(field) for field in feed.columns if field not in _FEED_COLUMNS]
    changed = _net_changes(feed, fields, name).persist()
    number = changed.count()
    # Spark 3.5 does not merge the tasks of a cached frame, and hundreds of a few records would each start Python.
    tasks = max(feed.sparkSession.sparkContext.defaultParallelism, -(-number // _TASK_ROWS))
    ids = changed.select("__id")
    if intent.retried:
        state = latest_state(draws, name, intent.seq).persist()
    else:  # the feed does not mention most records, and their draws need not be sorted
        drawn = filter_by_ids(draws, name, ids, number=number)
        state = latest_state(drawn, name, intent.seq).coalesce(tasks).persist()
    present, deleted, unclear = _sort_out(changed, state)
    without_id = feed.where(column(name).isNull() & (F.col("_change_type") == "insert"))
    rows, leaving, wanted = present.unionByName(without_id.select(*fields)), _mark_leaving(deleted, DELETED), unclear
    if intent.retried:
        is_refused = F.col("reason").isin(*_RETRIED)
        wanted = wanted.union(state.where(is_refused).select("__id").join(ids, "__id", "left_anti"))
    is_unique = wanted.isEmpty()
    if not is_unique:
        records = filter_by_ids(source.read(intent.version), name, wanted).select(*fields)
        vanished = unclear.join(records.select(column(name).alias("__id")), "__id", "left_anti")
        rows, leaving = rows.unionByName(records), leaving.union(_mark_leaving(vanished, DELETED))
    rows = rows.coalesce(tasks).persist()
    return _Changes(rows, state, leaving.coalesce(tasks), (changed, state, rows), is_unique)


def _net_changes(feed: DataFrame, fields: list[Column], name: str) -> DataFrame:
    """One row for each id that the feed names: ``__id``, ``__more`` (by how many records with that id the table has
    grown) and ``__last`` (the newest record that the feed leaves, null where it leaves none).
    """
    kind, version = F.col("_change_type"), F.col("_commit_version")
    is_after = kind.isin("insert", "update_postimage")
    more = F.count_if(kind == "insert") - F.count_if(kind == "delete")
    last = F.max_by(F.when(is_after, F.struct(*fields)), F.when(is_after, version))
    named = feed.where(column(name).isNotNull()).groupBy(column(name).alias("__id"))
    return named.agg(more.alias("__more"), last.alias("__last"))


def _sort_out(changed: DataFrame, state: DataFrame) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Count the records of each id: those before, by its newest draw, and those that the feed adds or deletes.

    Returns the records of ids that exactly one record has now, with the input's columns; the ids (``__id``) of records
    of the release that no record has now; and the ids of which the feed alone does not say how many records have them.
    """
    is_gone = F.col("status").isNull() | (F.col("status") == WITHDRAWN)
    before = F.when(is_gone, 0).when(F.col("reason") == DUPLICATE_ID, 2).otherwise(1)
    counted = changed.join(state, "__id", "left").withColumn("__before", before)
    copies = F.col("__before") + F.col("__more")
    is_single = (F.col("__before") <= 1) & (copies == 1) & F.col("__last").isNotNull()
    is_deleted = (F.col("__before") <= 1) & (copies <= 0)
    present = counted.where(is_single).select("__last.*")
    deleted = counted.where(is_deleted & (F.col("__before") == 1)).select("__id")
    return present, deleted, counted.where(~is_single & ~is_deleted).select("__id")
