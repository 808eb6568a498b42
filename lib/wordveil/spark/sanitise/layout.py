"""Order of an output's rows and files that no text decides.

Spark packs its input by bytes, the largest split first. An output that keeps the input's order therefore shows which
texts are long, although the bound compares texts of any length. A longer text moves its record to the front, and a
record that has grown changes the rows before it.

Here a keyed hash of a row's id determines its position. The number of tasks follows from the number of rows, each task
has the rows of one range of hashes, in their order, and files end after a number of rows. If rows are written to
directories, tasks take these one after the other, so that there are at most as many files as tasks and directories. So
order, file boundaries and the number of files depend on ids, on the number of rows of each directory, and on public
settings. Rows without an id of their own have no text either; their kept columns order them.

Rows of a shuffled table are ordered by SHA-256 over their ids and a random key that is drawn for the purpose and kept
nowhere, in no plan of Spark either.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StringType, StructField, StructType

from wordveil.errors import InputError
from wordveil.records.schema import ID_REASONS
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.versions import from_arrow, repartition_by_number

TASK_ROWS = 50_000
"""Approximate number of rows that one task sorts and writes: hashes spread ids by chance."""
_ORDER, _TASK, _TIE = "__order", "__task", "__tie"
# Values for which Spark and Delta write the directory of null.
_NULLS = ("", "__HIVE_DEFAULT_PARTITION__")
# Characters that Spark and Delta write as % and two digits in the name of a directory.
_ESCAPED, _LONGEST = r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""", 255
_ROWS, _BEFORE = "__rows", "__before"


def check_directories(rows: DataFrame, partition_by: Sequence[str]) -> None:
    """Raise :class:`InputError` if a value of ``partition_by``, all that is read, is lost in a directory's name."""
    for name in partition_by:
        if not isinstance(rows.schema[name].dataType, StringType):
            continue
        escaped = F.regexp_replace(column(name), _ESCAPED, "%00")
        is_long = F.octet_length(F.concat(F.lit(f"{name}="), escaped)) > _LONGEST
        found = rows.agg(F.max(column(name).isin(*_NULLS)), F.max(is_long)).first()
        if found is not None and found[1]:
            raise InputError(
                f"output.partition_by = {name}: some records have a value that is too long for the name of a directory "
                f"({_LONGEST} bytes with its signs escaped). Partition by a column of short values."
            )
        if found is not None and found[0]:
            raise InputError(
                f"output.partition_by = {name}: some records have an empty value, or {_NULLS[1]}, which would be read "
                "back as null from the name of a directory. Replace it in a view of the input, or remove the column "
                "from output.partition_by."
            )


def arrange_rows(
    rows: DataFrame,
    seed: int | None,
    name: str,
    *,
    number: int | None = None,
    kept: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    counted: DataFrame | None = None,
) -> DataFrame:
    """Arrange ``rows`` in the order of keyed hashes of their ids, which are in the column ``name``.

    ``seed``: :attr:`wordveil.crypto.keys.ReleaseKeys.layout_seed`; None: of a random key that is kept nowhere.
    ``number``: the number of rows; None counts them.
    ``kept``: the columns that order rows whose ``reason`` is about their id. ``partition_by``: the columns of
    directories. ``counted``: rows to count instead, which are read sooner.
    """
    counted, directories = rows if counted is None else counted, None
    if partition_by and (number is None or number > TASK_ROWS):
        directories, number = _count_directories(counted, partition_by)
    elif number is None:
        number = counted.count()
    tasks = max(1, -(-number // TASK_ROWS))
    # 63 bits of the hash: the first 31 choose the task, so that tasks follow each other in the order of hashes.
    if seed is None:
        keyed = _add_secret_order(rows, name)
    else:
        keyed = rows.withColumn(_ORDER, F.shiftrightunsigned(F.xxhash64(F.lit(seed), column(name)), 1))
    task = F.shiftright(F.shiftright(_ORDER, 32) * tasks, 31)
    if directories is not None and tasks > 1:
        same = [column(of).eqNullSafe(F.col(name)) for of, name in zip(partition_by, directories.columns, strict=False)]
        keyed = keyed.join(F.broadcast(directories), same, "left").drop(*directories.columns[: len(partition_by)])
        place = F.col(_BEFORE) + F.shiftright(F.shiftright(_ORDER, 32) * F.col(_ROWS), 31)
        task = F.floor(place * tasks / number)
    tie = F.lit(None).cast("string")
    if kept and "reason" in rows.columns:
        tie = F.when(F.col("reason").isin(*ID_REASONS), F.to_json(F.struct(*map(column, kept))))
    keyed = keyed.withColumns({_TASK: task.cast("int"), _TIE: tie})
    # Spark requires rows in the order of their directories. If it sorted them itself, it could undo the order within
    # a directory.
    keys: list[str | Column] = [*map(column, partition_by), _ORDER, column(name), _TIE]
    return repartition_by_number(keyed, tasks, _TASK).sortWithinPartitions(*keys).select(*map(column, rows.columns))


def _add_secret_order(rows: DataFrame, name: str) -> DataFrame:
    # A row of a table, and no literal: Spark's plans, which its logs keep, show literals.
    key = from_arrow(rows.sparkSession, pa.table({"__key": pa.array([secrets.token_bytes(32)], pa.binary())}))
    digest = F.sha2(F.concat("__key", column(name).cast("string").cast("binary")), 256)
    place = F.shiftleft(F.conv(F.substring(digest, 1, 15), 16, 10).cast("long"), 3)
    keyed = rows.crossJoin(F.broadcast(key)).withColumn(_ORDER, F.coalesce(place, F.lit(0).cast("long")))
    return keyed.drop("__key")


def _count_directories(rows: DataFrame, partition_by: Sequence[str]) -> tuple[DataFrame, int]:
    """Count once the rows of each public directory (``__rows``), those before it (``__before``), and all."""
    names = [f"__directory_{place}" for place in range(len(partition_by))]
    values = rows.select(*(column(of).alias(name) for of, name in zip(partition_by, names, strict=True)))
    sizes = values.groupBy(*names).agg(F.count(F.lit(1)).alias(_ROWS)).orderBy(*names).collect()
    ends = list(accumulate(row[_ROWS] for row in sizes))
    schema = StructType([*values.schema.fields, StructField(_ROWS, LongType()), StructField(_BEFORE, LongType())])
    starts = [(*row, end - row[_ROWS]) for row, end in zip(sizes, ends, strict=True)]
    return rows.sparkSession.createDataFrame(starts, schema), ends[-1] if ends else 0
