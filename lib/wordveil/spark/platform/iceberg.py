"""Iceberg in a Spark session: its jar, and the table that a frame reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from wordveil.spark.platform.delta import find_fetched
from wordveil.spark.platform.filesystem import Files
from wordveil.spark.platform.jvm import find_relation
from wordveil.spark.platform.versions import SCALA, VERSION

ARTIFACT = f"org.apache.iceberg:iceberg-spark-runtime-{VERSION[0]}.{VERSION[1]}_{SCALA}:1.12.0"
"""Maven coordinates of the jar for this Spark. Reading needs neither another jar nor Iceberg's extension."""
_TABLE = "org.apache.iceberg.spark.source.SparkTable"


def fetched_iceberg_jars() -> list[Path]:
    """Find the jar, as :func:`find_fetched` does."""
    return find_fetched([ARTIFACT])


def find_iceberg_table(frame: DataFrame) -> Any:
    """Return Iceberg's object of the table that a frame reads, or None for other tables and for views."""
    relation = find_relation(frame, "DataSourceV2Relation")
    # By its name: a session without Iceberg has no such class.
    is_iceberg = relation is not None and relation.table().getClass().getName() == _TABLE
    return relation.table() if is_iceberg else None


def find_iceberg_path(spark: SparkSession, path: str) -> str | None:
    """Find the directory of the Iceberg table whose data files are at ``path`` in the usual layout, or None."""
    layout = re.fullmatch(r"(.+)/data(/.*)?", path)
    if layout is None or not Files(spark, f"{layout[1]}/metadata/any").list_matching("*.metadata.json"):
        return None
    return layout[1]
