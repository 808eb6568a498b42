"""Pairs of words and hypernyms in a large Parquet table: Spark sums and filters them before they reach the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from wordveil.embeddings.training.hypernyms import PAIR_SCHEMA, PoincareSettings, check_columns, is_parquet, read_pairs
from wordveil.embeddings.training.poincare import ReadPairs
from wordveil.errors import EmbeddingError
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import load_path
from wordveil.spark.platform.versions import to_arrow


def read_on_executors(session: Callable[[], SparkSession]) -> ReadPairs:
    """Return a function that reads pairs from Parquet on the executors of ``session``, and from text on the driver."""

    def read(path: Path, settings: PoincareSettings) -> pa.Table:
        if path.exists() and is_parquet(path):
            return read_pairs_from_parquet(session(), path, settings)
        return read_pairs(path)

    return read


def read_pairs_from_parquet(spark: SparkSession, path: Path, settings: PoincareSettings) -> pa.Table:
    """Read the distinct pairs at ``path`` that pass the limits of counts and stop-words, in no order.

    Single pairs are filtered here, so :func:`wordveil.embeddings.training.hypernyms.build_hierarchy` builds the same
    hierarchy as from all pairs. Every executor must see the path. Raises :class:`EmbeddingError` and
    :class:`wordveil.errors.SparkJobError`.
    """
    with job_errors():
        frame = load_path(spark, spark.read.format("parquet"), f"file:{path.absolute()}")
        names = check_columns(dict(frame.dtypes), str(path))
        word, hypernym = sql.col("word"), sql.col("hypernym")
        count = sql.col("count") if "count" in names else sql.lit(1)
        pairs = frame.select(word, hypernym, count.cast("bigint").alias("count"))
        bad = pairs.where(
            "word is null or hypernym is null or trim(word) = '' or trim(hypernym) = '' or not coalesce(count >= 1, "
            "false)"
        )
        if bad.head(1):
            raise EmbeddingError(f"{path}: a pair has no word, no hypernym, or a count under 1. Remove such pairs.")
        taken = pairs.where("word != hypernym")
        if settings.left_out:
            stop = sorted(settings.left_out)
            taken = taken.where(~sql.lower(word).isin(stop) & ~sql.lower(hypernym).isin(stop))
        added = taken.groupBy("word", "hypernym").agg(sql.sum("count").alias("count"))
        return to_arrow(added.where(sql.col("count") >= settings.min_count)).cast(PAIR_SCHEMA)
