"""Build of an n-gram model of public text on Spark.

The first pass over the texts counts words, the second the n-grams of frequent words: any other n-gram is rarer still.
Executors count in batches and Spark sums. Frequent n-grams reach the driver sorted, partition by partition, so that its
memory holds little more than the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType, StringType

from wordveil.artifacts.ngram_model import open_model, write_model
from wordveil.errors import NgramError, did_you_mean, usage_error
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.versions import is_valid_utf8, to_arrow
from wordveil.text.counting import GRAM_FIELDS, PACKED_FIELDS, WORD_FIELDS, CountGrams, CountWords, pack, rank_words
from wordveil.text.slots import Grams, NgramModel, NgramSettings, assemble_trie
from wordveil.version import __version__

MAX_TEXT_BYTES = 4 * 2**20
"""Largest number of UTF-8 bytes of a text: n-grams of longer ones would be a batch of hundreds of megabytes."""
MAX_NGRAMS = 50_000_000
"""Largest number of n-grams: a driver needs about 70 bytes for each while it builds."""


def build_ngrams(
    table: DataFrame,
    text: str,
    store: Path,
    settings: NgramSettings,
    source: str,
    progress: Callable[[str], None] = ignore,
) -> tuple[NgramModel, int, int]:
    """Count the n-grams of the column ``text`` of a public ``table``, and write the model into ``store``.

    ``source``: the origin of the text, for people. The model does not depend on the texts' partitions. Also returns the
    numbers of counted texts, and of unreadable, too long or refused ones. Raises :class:`ConfigError` for the column,
    :class:`NgramError` if the model would hold no word or too many n-grams.
    """
    spark = table.sparkSession
    with job_errors("no n-gram model was written"):
        texts = _select_texts(table, text)
        progress("counting words")
        records = table.count()
        words, counts, total = _count_words(texts, settings)
        progress("counting n-grams")
        sent = spark.sparkContext.broadcast(words)
        grams = _count_grams(texts, CountGrams(settings, sent), settings).persist(StorageLevel.DISK_ONLY)
        try:
            number = grams.count()
            if number > MAX_NGRAMS:
                raise NgramError(
                    f"{number:,} n-grams occur at least {settings.min_count} times, and a model holds at most "
                    f"{MAX_NGRAMS:,}. Raise --min-count, or lower --max-n."
                )
            progress(f"collecting {number:,} n-grams")
            rows, numbers = _collect_grams(grams, settings, number)
        finally:
            grams.unpersist()
            sent.unpersist()
    read = int(counts[0])
    provenance = {
        "wordveil": __version__,
        "built": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "source": source,
        "texts": read,
        "left_out": records - read,
    }
    path = write_model(store, settings, words, total, assemble_trie(counts, rows, numbers), provenance)
    return open_model(path), read, records - read


def _select_texts(table: DataFrame, name: str) -> DataFrame:
    if name not in table.columns:
        near = did_you_mean(name, table.columns) or f" It has: {', '.join(table.columns)}."
        raise usage_error("--text", name, f"the table has no such column.{near}")
    kind = table.schema[name].dataType
    if not isinstance(kind, (StringType, BinaryType)):
        problem = f"is of type {kind.simpleString()}. The text must be a string, or binary that holds UTF-8."
        raise usage_error("--text", name, problem)
    text = column(name)
    as_string = text.cast("string")
    fit = text.isNotNull() & (F.octet_length(text) <= MAX_TEXT_BYTES) & is_valid_utf8(as_string)
    return table.where(fit).select(as_string.alias("text"))


def _map_batches(
    frame: DataFrame, body: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], fields: Any
) -> DataFrame:
    def wordveil_ngrams(batches: Any) -> Any:
        return body(batches)

    return frame.mapInArrow(wordveil_ngrams, from_arrow_schema(pa.schema(fields)))


def _count_words(texts: DataFrame, settings: NgramSettings) -> tuple[pa.StringArray, NDArray[np.int64], int]:
    """Count words: the frequent ones, after the text's beginning and by falling counts, their counts, and the total."""
    counted = (
        _map_batches(texts, CountWords(settings), WORD_FIELDS).groupBy("word").agg(F.sum("number").alias("number"))
    )
    counted = counted.persist(StorageLevel.DISK_ONLY)
    try:
        total = counted.where(F.col("word") != "").agg(F.sum("number")).first()
        frequent = to_arrow(counted.where((F.col("word") == "") | (F.col("number") >= settings.min_count)))
    finally:
        counted.unpersist()
    words, numbers = rank_words(frequent.combine_chunks())
    if len(words) < 2:
        raise NgramError(
            f"no word occurs at least {settings.min_count} times in the text, so the model would hold none. "
            "Use more text, or lower --min-count."
        )
    return words, numbers, int(total[0] if total else 0)


def _count_grams(texts: DataFrame, body: CountGrams, settings: NgramSettings) -> DataFrame:
    counted = _map_batches(texts, body, GRAM_FIELDS).groupBy("gram").agg(F.sum("number").alias("number"))
    return counted.where(F.col("number") >= settings.min_count)


def _collect_grams(
    grams: DataFrame, settings: NgramSettings, number: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Collect the n-grams, int32 ``(number, max_n)``, and their counts, int64 ``(number,)``, in the order of a trie."""
    code = Grams(settings.max_n)
    rows, numbers = np.empty((number, settings.max_n), np.int32), np.empty(number, np.int64)
    start = 0
    for block, counts in _map_batches(grams.orderBy("gram"), pack, PACKED_FIELDS).toLocalIterator():
        decoded = code.decode(bytes(block))
        stop = start + len(decoded)
        rows[start:stop] = decoded
        numbers[start:stop] = np.frombuffer(bytes(counts), "<i8")
        start = stop
    return rows, numbers
