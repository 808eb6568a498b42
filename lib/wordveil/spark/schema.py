"""The columns of a table, for a first configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wordveil.drafting import Column
from wordveil.spark.tables import open_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_columns(session: Callable[[], SparkSession], path: str) -> list[Column]:
    """The columns of the Parquet table at ``path``. Reads file names and one footer. Raises :class:`InputError`."""
    table = open_parquet(session(), path, "--from")
    partitions = _partition_columns(table)
    return [Column(field.name, field.dataType.simpleString(), field.name in partitions) for field in table.schema.fields]


def _partition_columns(table: DataFrame) -> set[str]:
    """The columns that stand in directory names; only Spark's plan of the table tells them from the others."""
    plan = table._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no way to ask
    return set(plan.relation().partitionSchema().fieldNames())
