"""Iceberg on this machine: a catalogue of the tests' session, by the name of ``ice``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from wordveil.spark.platform.iceberg import fetched_iceberg_jars
from wordveil.spark.platform.versions import from_arrow


def missing() -> str | None:
    return None if fetched_iceberg_jars() else "Iceberg's jar was never fetched: make s3 fetches it"


def options(warehouse: Path, name: str = "ice") -> dict[str, str]:
    """Spark's options for the catalogue ``name`` over the tables in ``warehouse``; none without the jar."""
    jars = fetched_iceberg_jars()
    catalogue = f"spark.sql.catalog.{name}"
    given = {catalogue: "org.apache.iceberg.spark.SparkCatalog", f"{catalogue}.type": "hadoop"}
    return {"spark.jars": str(jars[0]), **given, f"{catalogue}.warehouse": str(warehouse)} if jars else {}


def write(spark: Any, table: pa.Table, name: str) -> None:
    """Add the table's rows to an Iceberg table in one snapshot; made where there is none."""
    frame = from_arrow(spark, table).coalesce(1)
    writer = frame.writeTo(name)
    if spark.catalog.tableExists(name):
        writer.append()
    else:
        writer.using("iceberg").create()
