"""Reader of a plain table's schema on this machine's disk, without Java, which refuses what Spark may read differently.

Java and Spark take much longer to start than a schema takes to read. Unusual tables are left to Spark: on another file
system, with types that are not plain, or with features of Delta that change names; and Delta tables if the package
deltalake is not installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StringType, StructField, StructType

from wordveil.assembly.local_paths import find_local
from wordveil.config.schema import SparkSection
from wordveil.input.files import walk_files
from wordveil.release.lake_table import open_plain
from wordveil.spark.platform.delta import CHANGE_FEED

_SPARK_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
# With one of these Spark does not read a table by its data files.
_SUMMARIES = ("_metadata", "_common_metadata", "_delta_log")
# By Parquet's physical and logical type.
_TYPES = {
    ("BYTE_ARRAY", "String"): "string",
    ("BYTE_ARRAY", "None"): "binary",
    ("BOOLEAN", "None"): "boolean",
    ("INT32", "None"): "integer",
    ("INT32", "Int8"): "byte",
    ("INT32", "Int16"): "short",
    ("INT32", "Int32"): "integer",
    ("INT32", "Date"): "date",
    ("INT64", "None"): "long",
    ("INT64", "Int64"): "long",
    ("FLOAT", "None"): "float",
    ("DOUBLE", "None"): "double",
}


@dataclass(frozen=True)
class LocalSchema:
    """Columns of a table, the names of partition columns, and whether a Delta table's change data feed is on."""

    schema: StructType
    partitions: frozenset[str]
    has_feed: bool = False


def read_local_schema(path: str, spark: SparkSection, *, delta: bool) -> LocalSchema | None:
    """Read the schema of a Parquet table, or of a Delta table (``delta``) at its latest version, from its files.

    Return None if only Spark, started with the settings ``spark``, can read it or explain its fault.
    """
    if (root := find_local(path, spark)) is None:
        return None
    try:
        return _read_delta(root) if delta else _read_parquet(root)
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None


def _read_parquet(root: Path) -> LocalSchema | None:
    """Read the columns of the first file, since Spark merges no schemas by default, and those of the directories."""
    files = sorted([root] if root.is_file() else _data_files(root))
    partitions = _partition_names(root, files)
    schema = _footer_schema(pq.read_metadata(files[0])) if files else None
    if partitions is None or schema is None:
        return None
    fields = [*schema.fields, *(StructField(name, StringType()) for name in partitions)]
    if len({field.name.lower() for field in fields}) < len(fields):
        return None
    return LocalSchema(StructType(fields), frozenset(partitions))


def _data_files(root: Path) -> list[Path]:
    """List the files of a table in directories named ``column=value``. Raises :class:`ValueError` for others."""
    files = [*walk_files(root)]
    folders = {root, *(folder for file in files for folder in file.parents if root in folder.parents)}
    has_summary = any((folder / name).exists() for folder in folders for name in _SUMMARIES)
    if has_summary or any("=" not in folder.name or folder.name.startswith("_") for folder in folders - {root}):
        raise ValueError(root)
    return files


def _partition_names(root: Path, files: Iterable[Path]) -> list[str] | None:
    """List the columns of the directories below ``root``, whose values are strings."""
    folders = {file.parent for file in files if file != root}
    rows = [[part.partition("=")[0] for part in folder.relative_to(root).parts] for folder in folders]
    names = rows[0] if rows else []
    return None if any(row != names or "%" in "".join(row) for row in rows) else names


def _footer_schema(footer: Any) -> StructType | None:
    """Read the schema that Spark has written into a footer, or that it makes of Parquet's own."""
    written = (footer.metadata or {}).get(_SPARK_METADATA)
    if written is not None:
        return _parse_schema(written)
    columns = [footer.schema.column(index) for index in range(footer.num_columns)]
    fields = [
        {"name": column.name, "type": _column_type(column), "nullable": True, "metadata": {}} for column in columns
    ]
    if any(field["type"] is None for field in fields):
        return None
    return StructType.fromJson({"type": "struct", "fields": fields})


def _column_type(column: Any) -> str | None:
    if column.path != column.name or column.max_repetition_level:
        return None
    logical = json.loads(column.logical_type.to_json())
    kind = logical["Type"]
    if kind == "Int":
        kind = f"Int{logical['bitWidth']}" if logical["isSigned"] else "unsigned"
    if kind == "Timestamp" and logical["isAdjustedToUTC"] and logical["timeUnit"] in ("milliseconds", "microseconds"):
        return "timestamp"
    return _TYPES.get((column.physical_type, kind))


def _parse_schema(written: str | bytes) -> StructType | None:
    """Parse a schema in Spark's JSON. Return None if a column has metadata that change how it is read."""
    schema = StructType.fromJson(json.loads(written))
    return None if any(set(field.metadata or {}) - {"comment"} for field in schema.fields) else schema


def _read_delta(root: Path) -> LocalSchema | None:
    table = open_plain(root)
    schema, metadata = _parse_schema(table.schema().to_json()), table.metadata()
    if schema is None:
        return None
    return LocalSchema(schema, frozenset(metadata.partition_columns), metadata.configuration.get(CHANGE_FEED) == "true")
