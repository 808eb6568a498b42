"""Newest draw of each record."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.window import Window

from wordveil.records.columns import TextColumns
from wordveil.records.schema import QUARANTINED, RELEASED, UNCHANGED_COLUMN, UNKNOWN_COLUMN, WITHDRAWN, WORDS_COLUMN
from wordveil.release.budgets import BUDGET_REASONS, RefusedGroup
from wordveil.release.events import Events
from wordveil.release.layout import AUTHOR_COLUMN, EPOCH_COLUMN, SEQ_COLUMN
from wordveil.spark.platform.columns import column, field_column
from wordveil.spark.platform.session import require_encrypted_scratch

WAS_KEPT_COLUMN = "__was_kept"
# Up to this many ids are sent to every executor, instead of a shuffle of the texts.
_FEW = 1_000_000
# A value of fewer rows has a large share of refused ones by chance.
_LEAST_ROWS = 30


def find_newest(draws: DataFrame, name: str, journal: Events) -> tuple[DataFrame, DataFrame | None]:
    """Find the newest draw of each record, by the id column ``name``: the draws that no later run has superseded.

    The texts are joined only with the ids of runs after the first one or, if these have drawn many rows, with the ids
    that were drawn more than once. The former are found without reading the rows of the first run. The second result
    has these ids, which the session keeps; None if none was needed. The ``journal`` has a finished run.
    """
    if len(journal.intents()) == 1:
        return draws, None
    first, number = journal.first_draws()
    seq, is_few = F.col(SEQ_COLUMN), number <= _FEW
    drawn = draws.where(column(name).isNotNull() & (seq > (first if is_few else 0)))
    bounds = drawn.groupBy(column(name).alias("__id")).agg(F.min(seq).alias("__first"), F.max(seq).alias("__newest"))
    again = (bounds if is_few else bounds.where("__first < __newest")).drop("__first").persist()
    if not (number := again.count()):
        again.unpersist()
        return draws, None
    later = filter_by_ids(draws, name, again, "left", number)
    return later.where(F.col("__newest").isNull() | (seq == F.col("__newest"))).drop("__id", "__newest"), again


def latest_state(draws: DataFrame, name: str, before: int | None = None, kept: Sequence[str] = ()) -> DataFrame:
    """Find ``__id``, status, reason, content_tag and ``__author`` of newest draws, of runs before ``before``.

    ``kept``: columns that the state also has, as the struct ``__was_kept``.
    """
    seen = draws if before is None else draws.where(F.col(SEQ_COLUMN) < before)
    fields = ["status", "reason", "content_tag", AUTHOR_COLUMN]
    shown = [F.struct(*map(column, kept)).alias(WAS_KEPT_COLUMN)] if kept else []
    state = F.max_by(F.struct(*map(F.col, fields), *shown), F.col(SEQ_COLUMN)).alias("state")
    return seen.where(column(name).isNotNull()).groupBy(column(name).alias("__id")).agg(state).select("__id", "state.*")


def count_newest(rows: DataFrame, texts: TextColumns, since: int) -> Row:
    """Count the newest draws except for the withdrawn, for gate and publication.

    They are ``records``, the number of each kind, ``words`` and ``epsilons``; and of the released ones the ``runs``,
    the newest ``epoch`` and the newest run (``seq``). A record is empty if all of its ``texts`` are. Those without a
    text that a budget refuses are counted by its name. ``since``: the last run that was published; of later rows
    ``refused`` counts those that a budget refuses, earlier versions that stay among them, and ``asked`` also the
    released ones.
    """
    released, is_late = F.col("status") == RELEASED, F.col(SEQ_COLUMN) > since
    is_out = F.col("status") == QUARANTINED
    counted = rows.where(F.col("status") != WITHDRAWN).agg(
        F.count(F.lit(1)).alias("records"),
        F.count_if(released).alias("released"),
        F.count_if(is_out).alias("quarantined"),
        *(F.count_if(is_out & (F.col("reason") == name)).alias(name) for name in BUDGET_REASONS),
        F.count_if(is_late & is_refused()).alias("refused"),
        F.count_if(is_late & (released | is_refused())).alias("asked"),
        F.count_if(released & (F.trim(join_texts(texts)) == "")).alias("empty"),
        F.count_if(released & F.col("reason").isNotNull()).alias("stale"),
        F.coalesce(F.sum(WORDS_COLUMN), F.lit(0)).alias("words"),
        F.coalesce(F.sum(UNKNOWN_COLUMN), F.lit(0)).alias("unknown"),
        F.coalesce(F.sum(UNCHANGED_COLUMN), F.lit(0)).alias("unchanged"),
        F.max("privacy.epsilon_bound").alias("bound"),
        F.max("privacy.epsilon_pure").alias("pure"),
        F.count_if(released & F.col("privacy.epsilon_pure").isNull()).alias("unbounded"),
        F.collect_set("privacy.relation").alias("relations"),
        F.sort_array(F.array_distinct(F.flatten(F.collect_set("privacy.exposes")))).alias("exposes"),
        F.sort_array(F.collect_set(F.when(released, F.col("run_id")))).alias("runs"),
        F.max(F.when(released, F.col(EPOCH_COLUMN))).alias("epoch"),
        F.max(F.when(released, F.col(SEQ_COLUMN))).alias("seq"),
    )
    return counted.collect()[0]


def is_refused() -> Column:
    """Return the condition for draws that a budget refuses, earlier versions of a refused edit among them."""
    return F.coalesce(F.col("reason").isin(*BUDGET_REASONS), F.lit(False))


def find_most_refused(rows: DataFrame, kept: Sequence[str], refused: Column) -> tuple[RefusedGroup, ...]:
    """Find for each ``kept`` column the value of which the largest share of ``rows`` is ``refused``, if any is.

    Values of fewer than 30 rows are left out. Of equal shares the value with more rows counts, then the first by name.
    """
    if not kept:
        return ()
    values = [F.struct(F.lit(name).alias("name"), column(name).cast("string").alias("value")) for name in kept]
    named = rows.select(F.inline(F.array(*values)), refused.alias("refused"))
    counted = named.groupBy("name", "value").agg(F.count(F.lit(1)).alias("rows"), F.count_if("refused").alias("over"))
    share, by_name = F.col("over") / F.col("rows"), F.col("value").asc_nulls_last()
    order = Window.partitionBy("name").orderBy(share.desc(), F.col("rows").desc(), by_name)
    large = counted.where((F.col("rows") >= _LEAST_ROWS) & (F.col("over") > 0))
    worst = large.withColumn("rank", F.row_number().over(order)).where("rank = 1").collect()
    found = {row["name"]: RefusedGroup(row["name"], row["value"], row["rows"], row["over"]) for row in worst}
    return tuple(found[name] for name in kept if name in found)


def join_texts(texts: TextColumns) -> Column:
    """Join all texts of a record into one."""
    return F.concat_ws(" ", *map(field_column, texts.paths))


def count_statuses(draws: DataFrame, name: str) -> dict[str, tuple[int, int]]:
    """Count the records of each status, and those with a text in the draws, even an earlier one, in one pass."""
    seq = F.col(SEQ_COLUMN)
    has_text = F.max((F.col("status") == RELEASED) & (seq >= 0)).alias("has_text")
    grouped = draws.where(column(name).isNotNull()).groupBy(column(name).alias("__id"))
    records = grouped.agg(F.max_by("status", seq).alias("newest"), has_text)
    counts = records.groupBy("newest").agg(F.count("*").alias("records"), F.count_if("has_text").alias("texts"))
    return {str(row.newest): (row.records, row.texts) for row in counts.collect()}


def filter_by_ids(
    rows: DataFrame,
    name: str,
    ids: DataFrame,
    how: str = "left_semi",
    number: int | None = None,
    *,
    texts: bool = False,
) -> DataFrame:
    """Join ``rows`` with ``ids`` (column ``__id``) on the id column ``name``; by default, filter the rows by id.

    Few ids are sent to the rows, and not the rows to the ids. ``how``: the kind of join. ``number``: the number of ids,
    if known. ``texts``: the rows hold original texts, which are not shuffled unencrypted: raises :class:`PlatformError`
    for many ids in a session that does not encrypt its scratch.
    """
    few = (ids.limit(_FEW + 1).count() if number is None else number) <= _FEW
    if texts and not few:
        require_encrypted_scratch(
            rows.sparkSession,
            f"more than {_FEW:,} records are looked up by their ids, for which Spark shuffles texts to its scratch",
            "read the input in several slices, by input.where.",
        )
    return rows.join(F.broadcast(ids) if few else ids, column(name) == F.col("__id"), how)
