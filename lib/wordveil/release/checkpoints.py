"""Checks that a published table's checkpoint, a Parquet file, gives every reader the same content.

A checkpoint has some facts twice. Readers skip files by parsed statistics instead of their text, find columns by a
schema beside the columns, and leave out groups of rows by the bounds in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_FOOTER = {_SPARK_SCHEMA, b"org.apache.spark.version", b"org.apache.spark.timeZone"}
_ATOMS = {
    "string": "string",
    "int64": "long",
    "int32": "integer",
    "int16": "short",
    "int8": "byte",
    "bool": "boolean",
    "float": "float",
    "double": "double",
    "date32[day]": "date",
    "binary": "binary",
}
_PARSED = {"stats_parsed": "stats", "partitionValues_parsed": "partitionValues"}


class LogError(ValueError):
    """Error of a log file that contradicts itself or has content that no manifest covers."""


def read_checkpoint(content: bytes, declared: Any = None) -> list[tuple[str, dict[str, Any]]]:
    """Read the actions of a checkpoint in one file, each with its kind.

    ``declared``: its schema in another file, if any. Raises :class:`LogError`, and pyarrow's errors.
    """
    file = pq.ParquetFile(pa.BufferReader(content))
    _check_footer(file, declared)
    actions = []
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        _check_bounds(table, file.metadata.row_group(group))
        types = {field.name: field.type for field in table.schema}
        actions += [_read_row(row, types) for row in table.to_pylist(maps_as_pydicts="strict")]
    return actions


def _read_row(row: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> tuple[str, dict[str, Any]]:
    found = {kind: action for kind, action in row.items() if action is not None}
    if len(found) != 1:
        raise LogError("has a row of several actions, or none")
    ((kind, action),) = found.items()
    for parsed, text in _PARSED.items():
        value = action.pop(parsed, None)
        told = action.get(text)
        # Numbers stay strings: a decimal has more digits than a float.
        told = json.loads(told, parse_float=str) if isinstance(told, str) else told
        if value is not None and not _is_same(value, told, types[kind].field(parsed).type):
            raise LogError(f"has {parsed} that contradict {text}")
    return kind, action


def _is_same(parsed: Any, told: Any, kind: pa.DataType) -> bool:
    """Return whether a parsed value of a type equals the value in text or JSON."""
    if isinstance(parsed, Mapping):
        values = told or {}
        return isinstance(values, Mapping) and all(
            _is_same(item, values.get(name), kind.field(name).type) for name, item in parsed.items()
        )
    if parsed is None or told is None:
        return parsed is None and told in (None, "")
    try:
        value = _parse_as(kind, told)
    except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError, pa.ArrowException):
        return False
    return bool(parsed == value) or (parsed != parsed and value != value)  # noqa: PLR0124 - it is no number


def _parse_as(kind: pa.DataType, told: Any) -> Any:
    value = told
    if pa.types.is_boolean(kind):
        value = {"true": True, "false": False}[str(told).lower()]
    elif pa.types.is_timestamp(kind):
        when = datetime.fromisoformat(told)
        when = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
        value = when if kind.tz else when.replace(tzinfo=None)
    elif pa.types.is_date(kind):
        value = date.fromisoformat(told)
    elif pa.types.is_floating(kind):
        value = pa.scalar(float(told), pa.float64()).cast(kind).as_py()
    elif pa.types.is_decimal(kind):
        value = Decimal(str(told))
    elif pa.types.is_integer(kind):
        value = int(str(told))
    elif pa.types.is_binary(kind):
        value = told.encode("utf-8")
    return value


def _check_footer(file: pq.ParquetFile, declared: Any) -> None:
    """Raise :class:`LogError` unless the file has the schemas that its footer and ``declared`` give."""
    _refuse_repeated(list(file.schema_arrow))
    told = file.metadata.metadata or {}
    if unknown := sorted(told.keys() - _FOOTER):
        raise LogError(f"has the footer {unknown[0][:60]!r}")
    for schema in (json.loads(told[_SPARK_SCHEMA]) if _SPARK_SCHEMA in told else None, declared):
        if schema is not None and not _declares(schema, pa.struct(list(file.schema_arrow))):
            raise LogError("has other columns than are declared for it")


def _refuse_repeated(fields: Iterable[pa.Field]) -> None:
    """Raise :class:`LogError` for two columns with one name: readers choose differently."""
    names = set[str]()
    for field in fields:
        if (name := field.name.lower()) in names:
            raise LogError(f"has two columns by the name {name[:60]!r}")
        names.add(name)
        _refuse_repeated(field.type.field(place) for place in range(field.type.num_fields))


def _declares(declared: Any, kind: pa.DataType) -> bool:
    """Return whether a Spark type, in its JSON, is the type of a column."""
    if not isinstance(declared, Mapping):
        if pa.types.is_timestamp(kind):
            return declared in ("timestamp", "timestamp_ntz")
        if pa.types.is_decimal(kind):
            return bool(declared == f"decimal({kind.precision},{kind.scale})")
        return bool(declared == _ATOMS.get(str(kind)))
    if declared["type"] == "struct":
        fields = declared["fields"]
        return (
            pa.types.is_struct(kind)
            and [field["name"] for field in fields] == kind.names
            and all(
                not field["metadata"] and _declares(field["type"], kind.field(place).type)
                for place, field in enumerate(fields)
            )
        )
    if declared["type"] == "map":
        return (
            pa.types.is_map(kind)
            and _declares(declared["keyType"], kind.key_type)
            and _declares(declared["valueType"], kind.item_type)
        )
    return (
        declared["type"] == "array" and pa.types.is_list(kind) and _declares(declared["elementType"], kind.value_type)
    )


def _check_bounds(table: pa.Table, group: Any) -> None:
    """Raise :class:`LogError` if the file's statistics of a group of rows are false."""
    leaves = [leaf for column in table.columns for leaf in _list_leaves(column.combine_chunks(), column.type)]
    for place, leaf in enumerate(leaves):
        about = group.column(place)
        if about.bloom_filter_offset is not None:
            raise LogError("has Bloom filters")
        bounds = about.statistics
        if leaf is None or bounds is None:
            continue
        values = [value for value in leaf.to_pylist() if value is not None]
        is_true = not bounds.has_null_count or bounds.null_count == len(leaf) - len(values)
        # Parquet has no order for the times that Spark writes.
        if values and bounds.has_min_max and not pa.types.is_timestamp(leaf.type):
            is_true = is_true and bounds.min <= min(values) and max(values) <= bounds.max
        if not is_true:
            raise LogError("has bounds of rows that are not true")


def _list_leaves(array: Any, kind: pa.DataType) -> Iterator[Any]:
    """Yield the columns of a file in order, None for one with several values a row."""
    if pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            child = None if array is None else pc.struct_field(array, [place])
            yield from _list_leaves(child, kind.field(place).type)
    elif pa.types.is_map(kind):
        yield from _list_leaves(None, kind.key_type)
        yield from _list_leaves(None, kind.item_type)
    elif pa.types.is_list(kind):
        yield from _list_leaves(None, kind.value_type)
    else:
        yield array
