"""Selection of the records that a run draws: all, those whose content changed, or those that a change feed lists."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from wordveil.errors import ConfigError
from wordveil.input.columns import Columns
from wordveil.input.parameters import join_conditions
from wordveil.records.pseudonyms import list_lasting
from wordveil.records.schema import (
    ABSENT,
    DELETED,
    DUPLICATE_ID,
    ID_REASONS,
    INSPECTED_FIELDS,
    INVALID_ID,
    OVERSIZE,
    QUARANTINED,
    REASON_COLUMN,
    RELEASED,
    TAG_COLUMN,
    TOKENS_COLUMN,
    WITHDRAWN,
)
from wordveil.release.budgets import BUDGET_REASONS
from wordveil.release.events import Events, Intent
from wordveil.release.layout import AUTHOR_COLUMN
from wordveil.spark.input.screening import flag_invalid_ids, screen_input
from wordveil.spark.input.source import InputTable
from wordveil.spark.platform.columns import as_read, column
from wordveil.spark.platform.versions import try_cast
from wordveil.spark.release.latest import WAS_KEPT_COLUMN, filter_by_ids, latest_state
from wordveil.spark.sanitise.job import map_records
from wordveil.spark.sanitise.worker import Inspect

WAS_COLUMN, UNSOUND_COLUMN, STANDING_COLUMN = "__was", "__unsound", "__standing"
CHANGED_COLUMN, CORRECTED_COLUMN = "__changed", "__corrected"
KEPT_COLUMN, REFRESHED_COLUMN = "__kept", "__refreshed"
# Reasons of other settings than the policy's: such records are tried again when those settings change.
_RETRIED = (*BUDGET_REASONS, OVERSIZE)
_TASK_ROWS = 20_000
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


@dataclass(frozen=True)
class Candidates:
    """Records that a run is about.

    ``rows``: records of the input, with its columns, ``__author``, and ``__unsound``: why a record's id cannot be used,
    or null. ``compared``: if contents were compared or tokens counted, id, ``__author``, ``__reason``, ``__tag``,
    ``__tokens``, ``__was`` (the reason of the newest draw) and ``__standing`` (whether that is released) of the
    ``rows`` that are to be drawn or refused (``__changed``), whose author is not that of their newest draw
    (``__corrected``), or whose kept columns are not those of the draw that is released (``__refreshed``); and their
    kept columns as the struct ``__kept``, if these can change. None: all rows are to be drawn. ``leaving``: ``__id``
    and ``__reason`` of records that leave the release, or None. ``cached``: other frames that are kept in memory or
    scratch, as ``compared`` is, each before those made from it.
    """

    rows: DataFrame
    compared: DataFrame | None
    leaving: DataFrame | None
    cached: tuple[DataFrame, ...] = ()

    @property
    def changed(self) -> DataFrame | None:
        """Records of ``compared`` that are to be drawn or refused."""
        return None if self.compared is None else self.compared.where(CHANGED_COLUMN)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Numbers of ``compared`` that are ``changed``, ``corrected`` (author), or ``same`` in what is drawn."""
        if self.compared is None:
            return {}
        changed = F.col(CHANGED_COLUMN)
        conditions = {"changed": changed, "corrected": F.col(CORRECTED_COLUMN), "same": ~changed}
        counts = (F.count_if(is_met).alias(name) for name, is_met in conditions.items())
        return self.compared.agg(*counts).collect()[0].asDict()

    @property
    def number(self) -> int | None:
        """Number of records to be drawn or refused, if known."""
        return self.counts.get("changed")

    def unpersist(self) -> None:
        """Free what is kept in memory and scratch."""
        # The last frame first: Spark plans again what was made from a frame that is freed.
        for frame in reversed([*self.cached, *([self.compared] if self.compared is not None else [])]):
            frame.unpersist()


class _Changes(NamedTuple):
    """Records that may have changed since the release last read its input.

    ``rows``: those that may be new or changed, with the newest draws, as :func:`latest_state` gives them, of these
    records at least. ``is_unique``: no two rows have the same id. The others as in :class:`Candidates`.
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
    journal: Events,
) -> Candidates:
    """Find the candidates of a run, without the ``record_id`` of ``withdrawn``. ``draws``: None before the first."""
    if draws is None:
        rows = _identify(_drop_withdrawn(source.read(intent.version), withdrawn, columns.id), columns)
        # Prices depend on the texts; or the ledger has contents of a release whose tables were lost.
        needs_contents = inspect.job.settings.policy.n_max is None or intent.anew
        compared = _compare_contents(rows, None, columns, inspect).persist() if needs_contents else None
        return Candidates(rows, compared, None)
    if intent.changes == "feed":
        changes = _read_feed(source, draws, intent, columns, journal)
    else:
        changes = _read_snapshot(source, draws, intent, columns)
    rows = _drop_withdrawn(changes.rows, withdrawn, columns.id)
    rows = _identify(rows, columns, is_unique=changes.is_unique)
    leaving = changes.leaving
    if intent.full_snapshot:
        present = source.read(intent.version).select(column(columns.id).alias("__id"))
        absent = changes.state.where(f"status <> '{WITHDRAWN}'").join(present, "__id", "left_anti")
        leaving = _mark_leaving(absent, ABSENT)
    compared = _compare_contents(rows, changes.state, columns, inspect, once=intent.draws_once).persist()
    return Candidates(rows, compared, leaving, changes.cached)


def _read_snapshot(source: InputTable, draws: DataFrame, intent: Intent, columns: Columns) -> _Changes:
    # Used several times: to find the newest draw of each record, all draws are read and sorted.
    state = latest_state(draws, columns.id, intent.seq, columns.followed).persist()
    rows, without_id = source.read(intent.version), column(columns.id).isNull()
    # Nothing distinguishes one record without an id from another: they count as new if there are more than before.
    if intent.null_id_count and rows.where(without_id).count() <= intent.null_id_count:
        rows = rows.where(~without_id)
    return _Changes(rows, state, None, (state,))


def _identify(rows: DataFrame, columns: Columns, *, is_unique: bool = False) -> DataFrame:
    author = F.lit(None) if columns.author is None else column(columns.author)
    named, reason = flag_invalid_ids(rows, columns, is_unique=is_unique)
    return named.withColumns({AUTHOR_COLUMN: author.cast("string"), UNSOUND_COLUMN: reason}).drop("__id", "__duplicate")


def _compare_contents(
    rows: DataFrame, state: DataFrame | None, columns: Columns, inspect: Inspect, *, once: bool = False
) -> DataFrame:
    """Select the records that are new, or differ from their newest draw in content, author or kept columns.

    ``once``: a record that was ever released is never drawn again, and keeps its kept columns.
    """
    passed = [AUTHOR_COLUMN]
    refreshes = columns.followed and state is not None and not once
    if refreshes and columns.keep:
        rows = rows.withColumn(KEPT_COLUMN, F.struct(*map(column, columns.keep)))
        passed.append(KEPT_COLUMN)
    bare = replace(columns, keep=(), pseudonyms=list_lasting(columns.pseudonyms))
    screened = screen_input(rows, bare, internal=passed, refused=UNSOUND_COLUMN)

    def wordveil_inspect(batches: Any) -> Any:
        return inspect(batches)

    seen = map_records(screened, wordveil_inspect, inspect.job.settings, pa.schema(INSPECTED_FIELDS))
    if refreshes:
        kept = [F.col(KEPT_COLUMN).getField(name).alias(name) for name in columns.keep]
        hidden = [column(name) for name in bare.followed]
        seen = seen.withColumn(KEPT_COLUMN, F.struct(*kept, *hidden))
        passed = [AUTHOR_COLUMN, KEPT_COLUMN]
    if state is None:
        new = {WAS_COLUMN: F.lit(None).cast("string"), CHANGED_COLUMN: F.lit(True)}
        others = dict.fromkeys((CORRECTED_COLUMN, REFRESHED_COLUMN, STANDING_COLUMN), F.lit(False))
        return seen.withColumns({**new, **others})
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
    if once:
        differs &= F.col("status").isNull() | (F.col("status") == QUARANTINED)
    # A tombstone has no author: the ledger has the author of a record that comes back.
    is_known = F.col("status").isNotNull() & ~F.coalesce(reason.isin(*ID_REASONS), F.lit(False))
    corrected = is_known & ~F.col("state_author").eqNullSafe(F.col(AUTHOR_COLUMN))
    refreshed = F.lit(False)
    if refreshes:
        fields = seen.schema[KEPT_COLUMN].dataType
        assert isinstance(fields, StructType)
        refreshed = is_standing & differ_in_kept(F.col(KEPT_COLUMN), F.col(WAS_KEPT_COLUMN), fields)
    found = {CHANGED_COLUMN: differs, CORRECTED_COLUMN: corrected, REFRESHED_COLUMN: refreshed}
    both = both.withColumns({**found, WAS_COLUMN: was, STANDING_COLUMN: is_standing})
    names = [*passed, REASON_COLUMN, TAG_COLUMN, TOKENS_COLUMN, *found, WAS_COLUMN, STANDING_COLUMN]
    is_affected = F.col(CHANGED_COLUMN) | F.col(CORRECTED_COLUMN) | F.col(REFRESHED_COLUMN)
    return both.where(is_affected).select(column(columns.id), *map(F.col, names))


def differ_in_kept(now: Column, was: Column, fields: StructType) -> Column:
    """Return whether readers can tell two structs of kept columns with these ``fields`` apart."""
    pairs = [[as_read(of.getField(field.name), field.dataType) for of in (now, was)] for field in fields]
    return reduce(or_, (~one.eqNullSafe(other) for one, other in pairs))


def _drop_withdrawn(rows: DataFrame, withdrawn: DataFrame, name: str) -> DataFrame:
    if withdrawn.isEmpty():
        return rows
    ids = withdrawn.select(try_cast("record_id", rows.schema[name].dataType).alias("__id"))
    return filter_by_ids(rows, name, ids, "left_anti", texts=True)


def _mark_leaving(ids: DataFrame, reason: str) -> DataFrame:
    return ids.select("__id", F.lit(reason).alias(REASON_COLUMN))


def _read_feed(source: InputTable, draws: DataFrame, intent: Intent, columns: Columns, journal: Events) -> _Changes:
    """Read the records that the change feed leaves, and the ids that it deletes.

    If the feed alone does not determine the records of an id, they are read from the table. No text is shuffled or
    written to scratch: images are counted by their ids and versions, and the rows fetched afterwards.
    """
    # Without a new version of the input, only what was refused is read again.
    name, is_new = columns.id, F.lit(intent.since < intent.version)
    feed = source.changes(*intent.feed_range).where(is_new)
    fields = [column(field) for field in feed.columns if field not in _FEED_COLUMNS]
    named = _count_images(feed, name).persist()
    nameless = F.sum(F.when(F.col("__id").isNull(), F.col("__more")))
    number, more_nameless = named.agg(F.count("__id"), F.coalesce(nameless, F.lit(0))).collect()[0]
    # Spark 3.5 does not merge the tasks of a cached frame, and hundreds of a few records would each start Python.
    tasks = max(feed.sparkSession.sparkContext.defaultParallelism, -(-number // _TASK_ROWS))
    ids = named.select("__id").where("__id is not null")
    if intent.retried:
        state = latest_state(draws, name, intent.seq, columns.followed).persist()
    else:  # the feed does not mention most records, and their draws need not be sorted
        drawn = filter_by_ids(draws, name, ids, number=number)
        state = latest_state(drawn, name, intent.seq, columns.followed).coalesce(tasks).persist()
    single, gone, wanted = _sort_out(named, state, is_alone=journal.is_read_alone(intent))
    rows = _fetch_rows(feed, single, name, number).select(*fields)
    if more_nameless > 0:
        rows = rows.unionByName(_find_nameless(feed, name).select(*fields))
    unclear = wanted
    if intent.retried:
        is_refused = F.col("reason").isin(*_RETRIED)
        wanted = wanted.union(state.where(is_refused).select("__id").join(ids, "__id", "left_anti"))
    if not (is_unique := wanted.isEmpty()):
        records = filter_by_ids(source.read(intent.version), name, wanted, texts=True).select(*fields)
        rows = rows.unionByName(records)
        gone = gone.union(unclear.join(records.select(column(name).alias("__id")), "__id", "left_anti"))
    gone = gone.join(state.where(f"status <> '{WITHDRAWN}'"), "__id", "left_semi").coalesce(tasks).persist()
    cached = (named, state, gone)
    if (beside := journal.slices_beside(intent)) and not gone.isEmpty():
        held = filter_by_ids(_read_beside(source, beside, intent.version), name, gone, texts=True).select(*fields)
        rows, is_unique = rows.unionByName(held), False
        gone = gone.join(held.select(column(name).alias("__id")), "__id", "left_anti")
    # Rows that do not fit into memory are read again: texts are not written to scratch.
    rows = rows.coalesce(tasks).persist(StorageLevel.MEMORY_ONLY)
    return _Changes(rows, state, _mark_leaving(gone, DELETED).coalesce(tasks), (*cached, rows), is_unique)


def _is_after() -> Column:
    """Return whether an image of the feed is of a record as a version left it."""
    return F.col("_change_type").isin("insert", "update_postimage")


def _sum_images() -> Column:
    return F.sum(F.when(_is_after(), 1).otherwise(-1))


def _count_images(feed: DataFrame, name: str) -> DataFrame:
    """Count the images of each id that the feed names, and of records without an id.

    Columns are ``__id``, ``__more`` (by how many records with that id the table has grown), ``__version`` (the last
    that changed one) and ``__is_left`` (whether that version has left one). A record that takes, loses or keeps an id
    has an image before and one after.
    """
    more, version = _sum_images(), F.max("_commit_version")
    is_left = version.eqNullSafe(F.max(F.when(_is_after(), F.col("_commit_version"))))
    named = feed.groupBy(column(name).alias("__id"))
    return named.agg(more.alias("__more"), version.alias("__version"), is_left.alias("__is_left"))


def _sort_out(named: DataFrame, state: DataFrame, *, is_alone: bool) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Count the records of each id: those before, by its newest draw, and those that the feed adds or removes.

    Returns the ids that exactly one record has now, the one of ``__version``; the ids that no record has now; and those
    whose number of records the feed alone does not determine. ``is_alone``: the newest draws are those of the slice;
    otherwise the feed determines it for none.
    """
    is_gone = F.col("status").isNull() | (F.col("status") == WITHDRAWN)
    before = F.when(is_gone, 0).when(F.col("reason").isin(DUPLICATE_ID, INVALID_ID), 2).otherwise(1)
    counted = named.where("__id is not null").join(state, "__id", "left").withColumn("__before", before)
    copies, is_known = F.col("__before") + F.col("__more"), F.lit(is_alone) & (F.col("__before") <= 1)
    # That version deleted whatever was there before, so that nothing else is left.
    is_single = is_known & (copies == 1) & F.col("__is_left")
    is_deleted = is_known & (copies <= 0) & ~F.col("__is_left")
    single = counted.where(is_single).select("__id", "__version")
    return single, counted.where(is_deleted).select("__id"), counted.where(~is_single & ~is_deleted).select("__id")


def _fetch_rows(feed: DataFrame, single: DataFrame, name: str, number: int) -> DataFrame:
    """Fetch the images of the ids in ``single`` (at most ``number``) that their versions have left."""
    keyed = feed.where(_is_after()).withColumn("__key", F.struct(column(name), "_commit_version"))
    keys = single.select(F.struct(F.col("__id").alias(name), F.col("__version").alias("_commit_version")).alias("__id"))
    return filter_by_ids(keyed, "__key", keys, number=number, texts=True)


def _find_nameless(feed: DataFrame, name: str) -> DataFrame:
    """Find the records without an id, which all look alike, of versions that have left more of them than before."""
    images = feed.where(column(name).isNull())
    more = images.groupBy("_commit_version").agg(_sum_images().alias("__more"))
    versions = [row[0] for row in more.where("__more > 0").collect()]
    return images.where(_is_after() & F.col("_commit_version").isin(versions))


def _read_beside(source: InputTable, beside: list[tuple[str, dict[str, str]]], version: int) -> DataFrame:
    """Read the records of the other slices of a table. A slice whose condition names a lost column has none."""
    readable = set()
    for where, params in dict(beside).items():
        with suppress(ConfigError):
            source.over(where, params).read(version)
            readable.add(where)
    return source.over(*join_conditions([part for part in beside if part[0] in readable])).read(version)
