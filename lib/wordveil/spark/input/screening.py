"""What Spark refuses before any text reaches Python: invalid ids, and texts that cannot be read or are too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wordveil.config.schema import ColumnsSection
from wordveil.records.schema import (
    DUPLICATE_ID,
    INVALID_ID,
    NULL_ID,
    NULL_TEXT,
    OVERSIZE,
    REASON_COLUMN,
    TEXT_COLUMN,
    UNDECODABLE,
)
from wordveil.spark.platform.columns import column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Up to this number, duplicate ids are sent to every executor instead of shuffling the texts to join them.
_BROADCAST_IDS = 1_000_000


def screen_input(
    table: DataFrame, columns: ColumnsSection, *, internal: Sequence[str] = (), refused: str | None = None
) -> DataFrame:
    """Return the columns id, kept, ``internal``, ``__text`` and ``__reason``: a record that Spark refuses has its
    reason and no text.

    Spark reads the texts once. It reads the ids first, to find those that are listed more than once, unless ``refused``
    names a column that holds what is known of the ids, and other reasons found before (null for records without one).
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import BinaryType

    text = column(columns.text)
    texts_are_binary = isinstance(table.schema[columns.text].dataType, BinaryType)
    known = F.col(refused) if refused else None
    if known is None:
        table, known = flag_invalid_ids(table, columns)
    as_string = text.cast("string") if texts_are_binary or not _is_string(table, columns.text) else text
    unreadable = (
        F.when(text.isNull(), NULL_TEXT)
        .when(F.octet_length(text) > columns.max_bytes, OVERSIZE)
        .when(~F.is_valid_utf8(as_string), UNDECODABLE)
    )
    reason = F.coalesce(known, unreadable)
    passed = [column(name) for name in (columns.id, *columns.keep, *internal)]
    return table.select(*passed, F.when(reason.isNull(), as_string).alias(TEXT_COLUMN), reason.alias(REASON_COLUMN))


def flag_invalid_ids(table: DataFrame, columns: ColumnsSection) -> tuple[DataFrame, Column]:
    """Return the table, and why each record's id is invalid (null where it is valid). Counts the ids and reads nothing
    else.
    """
    from pyspark.sql import functions as F  # noqa: N812

    record_id = column(columns.id)
    table, duplicate = _mark_duplicates(table, _find_repeated_ids(table, columns.id), columns.id)
    reason = (
        F.when(record_id.isNull(), NULL_ID)
        .when(~F.is_valid_utf8(record_id) if _is_string(table, columns.id) else F.lit(False), INVALID_ID)
        .when(duplicate, DUPLICATE_ID)
    )
    return table, reason


def _is_string(table: DataFrame, name: str) -> bool:
    from pyspark.sql.types import StringType

    return isinstance(table.schema[name].dataType, StringType)


def _find_repeated_ids(table: DataFrame, name: str) -> DataFrame:
    """The ids, column ``__id``, of more than one record."""
    from pyspark.sql import functions as F  # noqa: N812

    counts = table.select(column(name).alias("__id")).where("__id is not null").groupBy("__id").count()
    return counts.where(F.col("count") > 1).select("__id")


def _may_repeat(table: DataFrame, name: str) -> bool:
    """Whether some id may be listed more than once: false only if none is. Counting 64-bit hashes takes less than half
    of the time of counting ids.
    """
    from pyspark.sql import functions as F  # noqa: N812

    hashes = table.where(column(name).isNotNull()).select(F.xxhash64(column(name)).alias("__hash"))
    return bool(hashes.groupBy("__hash").count().where("count > 1").take(1))


def _mark_duplicates(table: DataFrame, repeated: DataFrame, name: str) -> tuple[DataFrame, Column]:
    """The table, and a condition that is true for each record whose id is among ``repeated``.

    The ids are counted first: usually there are none, and the texts then need no join.
    """
    from pyspark.sql import functions as F  # noqa: N812

    number = repeated.count() if _may_repeat(table, name) else 0
    if number == 0:
        return table, F.lit(False)
    marked = repeated.withColumn("__duplicate", F.lit(True))
    if number <= _BROADCAST_IDS:
        marked = F.broadcast(marked)
    joined = table.join(marked, column(name) == F.col("__id"), "left")
    return joined, F.col("__duplicate").isNotNull()
