"""Replacements for what PySpark 3.5 and 4.0 lack of PySpark 4.1."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructType, _parse_datatype_string

from wordveil.errors import PlatformError

VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
"""Version of Spark, such as ``(4, 1)``."""
SCALA = "2.13" if VERSION >= (4, 0) else "2.12"
"""Version of Scala of Spark's jars."""


def find_query_loggers() -> list[logging.Logger]:
    """Find PySpark's own loggers of failed queries, which 3.5 does not have. The third is of Spark Connect."""
    if VERSION < (4, 0):
        return []
    from pyspark.logger import PySparkLogger

    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
    return [PySparkLogger.getLogger(name) for name in names]


def is_valid_utf8(text: Column) -> Column:
    """Return a column: whether a string's bytes are UTF-8."""
    if VERSION >= (4, 0):
        return F.is_valid_utf8(text)
    # Before 4.0, to decode bytes puts U+FFFD for those that are not UTF-8.
    return F.encode(F.decode(text.cast("binary"), "UTF-8"), "UTF-8") == text.cast("binary")


def try_cast(name: str, kind: DataType) -> Column:
    """Cast the column ``name`` to ``kind``; null if that is impossible."""
    return F.expr(f"try_cast(`{name}` AS {kind.simpleString()})")


def file_path(frame: DataFrame) -> Column:
    """Return the column with the file of each row. Raises PySpark's AnalysisException for a table without files."""
    if VERSION >= (4, 0):
        metadata = frame.metadataColumn("_metadata")
    else:
        metadata = Column(frame._jdf.metadataColumn("_metadata"))  # noqa: SLF001 - PySpark 3.5 has no other way
    return metadata.getField("file_path")


def parse_schema(columns: str) -> StructType:
    """Parse the schema of ``columns``, such as ``id bigint, name string``."""
    parsed = StructType.fromDDL(columns) if VERSION >= (4, 0) else _parse_datatype_string(columns)
    assert isinstance(parsed, StructType)
    return parsed


def from_arrow(session: SparkSession, table: pa.Table, schema: StructType | str | None = None) -> DataFrame:
    """Make a DataFrame of the rows of ``table``, by default with its schema."""
    if VERSION >= (4, 0):
        return session.createDataFrame(table, schema)
    return session.createDataFrame(table.to_pylist(), schema or from_arrow_schema(table.schema))


def to_arrow(frame: DataFrame) -> pa.Table:
    """Collect all rows of ``frame``."""
    if VERSION >= (4, 0):
        return frame.toArrow()
    schema = to_arrow_schema(frame.schema)
    batches = frame._collect_as_arrow()  # type: ignore[operator]  # noqa: SLF001 - PySpark 3.5 has no other way
    return pa.Table.from_batches(batches, schema)


def repartition_by_number(rows: DataFrame, partitions: int, name: str) -> DataFrame:
    """Send each row to the partition whose number is in its column ``name``, of type int."""
    if VERSION >= (4, 1):
        return rows.repartitionById(partitions, name)
    # Spark chooses the partition by its hash of a column. Each number is replaced by one whose hash chooses it.
    place = F.pmod(F.hash(F.col("id").cast("int")), F.lit(partitions)).alias("place")
    hashed = rows.sparkSession.range(64 * partitions).groupBy(place).agg(F.min("id")).orderBy("place").collect()
    assert len(hashed) == partitions  # each is missed with a chance of e^-64
    # As one literal: a call to Java for each of thousands takes seconds.
    chosen = F.split(F.lit(",".join(str(number) for _, number in hashed)), ",").cast("array<int>")
    key = f"{name}_hashed"
    return rows.withColumn(key, chosen[F.col(name)]).repartition(partitions, key).drop(key)


def find_arrow_udf() -> Callable[..., Callable[..., Column]]:
    """Return PySpark's ``arrow_udf``, for functions for SQL that take Arrow arrays.

    Raises :class:`PlatformError` before Spark 4.1, whose functions take rows by way of pandas: that fails on a text
    that is not UTF-8, with the text in its message.
    """
    if VERSION < (4, 1):
        raise PlatformError(
            f"the function for SQL needs Spark 4.1 or newer, and this is {pyspark.__version__}. Use "
            "wordveil.sanitise(frame), and make the result a view."
        )
    from pyspark.sql.pandas.functions import arrow_udf

    return arrow_udf
