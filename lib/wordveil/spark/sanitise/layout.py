"""Rows and files of an output in an order that no text decides.

Spark packs its input by bytes, the largest split first. An output that keeps the input's order therefore shows which
texts are long, although the bound compares texts of any length. A longer text moves its record to the front, and a
record that has grown changes the rows before it.

Here a keyed hash of a row's id determines its position. The number of tasks follows from the number of rows, each task
has the rows of one range of hashes, in their order, and files end after a number of rows. So order, file boundaries and
the number of files depend on ids, on the number of rows, and on public settings. Rows without an id of their own have
no text either; their kept columns order them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from wordveil.records.schema import ID_REASONS
from wordveil.spark.platform.columns import column

TASK_ROWS = 50_000
"""The approximate number of rows that one task sorts and writes: hashes spread ids by chance."""
_ORDER, _TASK, _TIE = "__order", "__task", "__tie"


def arrange_rows(
    rows: DataFrame, seed: int, number: int, name: str, *, kept: Sequence[str] = (), partition_by: Sequence[str] = ()
) -> DataFrame:
    """Arrange ``rows`` in the order of keyed hashes of their ids, which are in the column ``name``.

    ``number``: how many rows there are. ``seed``: :attr:`wordveil.crypto.keys.ReleaseKeys.layout_seed`. ``kept``: the
    columns that order rows whose ``reason`` is about their id. ``partition_by``: the columns by whose values the rows
    will be written to directories.
    """
    tasks = max(1, -(-number // TASK_ROWS))
    # 63 bits of the hash: the first 31 choose the task, so that tasks follow each other in the order of hashes.
    order = F.shiftrightunsigned(F.xxhash64(F.lit(seed), column(name)), 1)
    task = F.shiftright(F.shiftright(_ORDER, 32) * tasks, 31).cast("int")
    keyed = rows.withColumn(_ORDER, order).withColumns({_TASK: task, _TIE: _tie(rows, kept)})
    # Spark requires rows in the order of their directories. If it sorted them itself, it could undo the order within
    # a directory.
    keys: list[str | Column] = [*map(column, partition_by), _ORDER, column(name), _TIE]
    return keyed.repartitionById(tasks, _TASK).sortWithinPartitions(*keys).select(*map(column, rows.columns))


def _tie(rows: DataFrame, kept: Sequence[str]) -> Column:
    """The expression that orders rows with the same id, or without one."""
    if not kept or "reason" not in rows.columns:
        return F.lit(None).cast("string")
    return F.when(F.col("reason").isin(*ID_REASONS), F.to_json(F.struct(*map(column, kept))))
