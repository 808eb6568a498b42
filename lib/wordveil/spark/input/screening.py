"""Screening by Spark before any text reaches Python: invalid ids, and texts that are unreadable or too long."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from wordveil.input.columns import Columns
from wordveil.records.columns import text_inputs
from wordveil.records.schema import (
    DUPLICATE_ID,
    INVALID_ID,
    LANGUAGE_MARK,
    MALFORMED,
    MALFORMED_COLUMN,
    NULL_ID,
    NULL_TEXT,
    OVERSIZE,
    REASON_COLUMN,
    UNDECODABLE,
)
from wordveil.spark.platform.columns import column, field_column, text_paths
from wordveil.spark.platform.session import require_encrypted_scratch
from wordveil.spark.platform.versions import is_valid_utf8

# Up to this number, duplicate ids are sent to every executor instead of shuffling the texts to join them.
_BROADCAST_IDS = 1_000_000


def screen_input(
    table: DataFrame, columns: Columns, *, internal: Sequence[str] = (), refused: str | None = None
) -> DataFrame:
    """Return the columns id, kept, ``internal``, ``__text`` and ``__reason`` of a table.

    After the kept columns come those that become pseudonyms, under their names in the output. Further text columns are
    ``__text_1`` and so on. A record that Spark refuses has its reason and no text; the ``__reason`` of any other holds
    the language that the record names, if there is a column of languages
    (:data:`wordveil.records.schema.LANGUAGE_MARK`). A record has no text if all its text columns are null, and is too
    long if all together are.

    Spark reads the texts once. To find repeated ids it reads the ids first, unless ``refused`` names a column with the
    known reasons (null for records without one).
    """
    texts = [field_column(path).cast("string") for path in text_paths(table.schema, columns)]
    sizes = [F.octet_length(text) for text in texts]
    total = sizes[0] if len(sizes) == 1 else reduce(add, (F.coalesce(size, F.lit(0)).cast("bigint") for size in sizes))
    known = F.col(refused) if refused else None
    if known is None:
        table, known = flag_invalid_ids(table, columns)
    unreadable = (
        F.when(reduce(and_, (text.isNull() for text in texts)), NULL_TEXT)
        .when(total > columns.max_bytes, OVERSIZE)
        .when(reduce(or_, (~is_valid_utf8(text) for text in texts)), UNDECODABLE)
    )
    reason = F.coalesce(known, unreadable)
    hidden = (column(pseudonym.column).alias(pseudonym.name) for pseudonym in columns.pseudonyms)
    passed = [*map(column, (columns.id, *columns.keep)), *hidden, *map(column, internal)]
    readable = [
        F.when(reason.isNull(), text).alias(name) for name, text in zip(text_inputs(len(texts)), texts, strict=True)
    ]
    named = F.concat(F.lit(LANGUAGE_MARK), column(columns.language)) if columns.language else F.lit(None)
    why = F.coalesce(reason, named.cast("string"))
    return table.select(*passed, *readable, why.alias(REASON_COLUMN))


def flag_invalid_ids(table: DataFrame, columns: Columns, *, is_unique: bool = False) -> tuple[DataFrame, Column]:
    """Return the table, and why each record's id is invalid (null if it is valid).

    Only the ids are read, and nothing if ``is_unique``. A row that could not be parsed has no id.
    """
    record_id, is_string = column(columns.id), isinstance(table.schema[columns.id].dataType, StringType)
    table, duplicate = (table, F.lit(False)) if is_unique else _mark_duplicates(table, columns.id)
    malformed = F.col(MALFORMED_COLUMN) if MALFORMED_COLUMN in table.columns else F.lit(False)
    reason = (
        F.when(malformed, MALFORMED)
        .when(record_id.isNull(), NULL_ID)
        .when(~is_valid_utf8(record_id) if is_string else F.lit(False), INVALID_ID)
        .when(duplicate, DUPLICATE_ID)
    )
    return table, reason


def _mark_duplicates(table: DataFrame, name: str) -> tuple[DataFrame, Column]:
    """Return the table, and a condition for records with a repeated id; without any, the texts need no join."""
    counts = table.select(column(name).alias("__id")).where("__id is not null").groupBy("__id").count()
    repeated = counts.where(F.col("count") > 1).select("__id")
    # Counting ids takes more than twice as long as counting their hashes of 64 bits.
    hashes = table.where(column(name).isNotNull()).select(F.xxhash64(column(name)).alias("__hash"))
    may_repeat = hashes.groupBy("__hash").count().where("count > 1").take(1)
    if not (number := repeated.count() if may_repeat else 0):
        return table, F.lit(False)
    marked = repeated.withColumn("__duplicate", F.lit(True))
    if number <= _BROADCAST_IDS:
        marked = F.broadcast(marked)
    else:
        require_encrypted_scratch(
            table.sparkSession,
            f"more than {_BROADCAST_IDS:,} ids are repeated, for which Spark shuffles texts to its scratch",
            "leave the repeated records out, by input.where.",
        )
    joined = table.join(marked, column(name) == F.col("__id"), "left")
    return joined, F.col("__duplicate").isNotNull()
