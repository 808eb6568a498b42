"""The newest draw of each record."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from wordveil.records.schema import RELEASED
from wordveil.release.layout import AUTHOR_COLUMN, SEQ_COLUMN
from wordveil.spark.platform.columns import column

# Up to this many ids are sent to every executor, instead of a shuffle of the texts.
_FEW = 1_000_000


def latest_rows(draws: DataFrame, name: str, runs: int) -> DataFrame:
    """The newest draw of each record, of a release with this number of ``runs``: the draws without those that a later
    run has superseded. ``name``: the id column.

    The texts are joined only with the ids that were drawn more than once.
    """
    if runs == 1:
        return draws
    seq = F.col(SEQ_COLUMN)
    drawn = draws.where(column(name).isNotNull()).groupBy(column(name).alias("__id"))
    bounds = drawn.agg(F.min(seq).alias("__first"), F.max(seq).alias("__newest"))
    again = bounds.where("__first < __newest").drop("__first").persist()
    try:
        if not (number := again.count()):
            return draws
        later = filter_by_ids(draws, name, again, "left", number)
        return later.where(F.col("__newest").isNull() | (seq == F.col("__newest"))).drop("__id", "__newest")
    finally:
        again.unpersist()


def latest_state(draws: DataFrame, name: str, before: int | None = None) -> DataFrame:
    """The newest draw of each record, of runs before ``before``: ``__id``, status, reason, content_tag,
    ``__author``.
    """
    seen = draws if before is None else draws.where(F.col(SEQ_COLUMN) < before)
    state = F.max_by(F.struct("status", "reason", "content_tag", AUTHOR_COLUMN), F.col(SEQ_COLUMN)).alias("state")
    return seen.where(column(name).isNotNull()).groupBy(column(name).alias("__id")).agg(state).select("__id", "state.*")


def count_statuses(draws: DataFrame, name: str) -> dict[str, tuple[int, int]]:
    """Count the records of each status, in one pass: how many there are, and of how many the draws have a text, even if
    of an earlier run. ``name``: the id column.
    """
    seq = F.col(SEQ_COLUMN)
    has_text = (F.col("status") == RELEASED) & (seq >= 0)
    records = (
        draws.where(column(name).isNotNull())
        .groupBy(column(name).alias("__id"))
        .agg(F.max_by("status", seq).alias("newest"), F.max(has_text).alias("has_text"))
    )
    counts = records.groupBy("newest").agg(F.count("*").alias("records"), F.count_if("has_text").alias("texts"))
    return {str(row.newest): (row.records, row.texts) for row in counts.collect()}


def filter_by_ids(
    rows: DataFrame, name: str, ids: DataFrame, how: str = "left_semi", number: int | None = None
) -> DataFrame:
    """Join ``rows`` with ``ids`` (column ``__id``) on the id column ``name``; by default, keep the rows whose id is
    among them. Few ids are sent to the rows, and not the rows to the ids.

    ``how``: the kind of join. ``number``: how many ids there are, if that is known.
    """
    few = (ids.limit(_FEW + 1).count() if number is None else number) <= _FEW
    return rows.join(F.broadcast(ids) if few else ids, column(name) == F.col("__id"), how)
