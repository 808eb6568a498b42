"""The newest draw of each record, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordveil.spark.candidates import SEQ_COLUMN, among
from wordveil.spark.prepare import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def newest(draws: DataFrame, name: str, runs: int) -> DataFrame:
    """The draws, of so many ``runs``, without those of a record, by its id in the column ``name``, that a later run has superseded.

    The texts meet only the ids that were drawn more than once.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if runs == 1:
        return draws
    seq = F.col(SEQ_COLUMN)
    drawn = draws.where(column(name).isNotNull()).groupBy(column(name).alias("__id"))
    again = (
        drawn.agg(F.min(seq).alias("__first"), F.max(seq).alias("__newest")).where("__first < __newest").drop("__first").persist()
    )
    try:
        if again.isEmpty():
            return draws
        later = among(draws, name, again, "left")
        return later.where(F.col("__newest").isNull() | (seq == F.col("__newest"))).drop("__id", "__newest")
    finally:
        again.unpersist()
