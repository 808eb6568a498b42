"""Columns of tables by their exact names, checked before any data is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wordveil.config.schema import ColumnsSection
from wordveil.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


def column(name: str) -> Column:
    """The column of exactly this name, dots and all."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(f"`{name}`")


def check_columns(schema: StructType, columns: ColumnsSection, source: str) -> None:
    """Raise :class:`ConfigError` unless the table has the columns, with types that they may have."""
    faults = list(_schema_faults(schema, columns))
    if faults:
        raise ConfigError(source, faults)


def _schema_faults(schema: StructType, columns: ColumnsSection) -> Iterable[Fault]:
    named = [("input.id", columns.id), ("input.text", columns.text)]
    named += [("input.author", columns.author)] if columns.author else []
    named += [("input.keep", name) for name in columns.keep]
    for where, name in named:
        if "`" in name:
            yield Fault(
                where,
                name,
                "Spark cannot quote a backtick in a column's name. Rename the column in a view of the input.",
            )
        elif name not in schema.names:
            yield Fault(where, name, f"the table has no such column.{_suggest_column(name, schema.names)}")
        elif problem := _type_problem(where, schema[name].dataType):
            yield Fault(where, name, problem)


def _suggest_column(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {near[0]}?" if near else f" It has: {', '.join(names)}."


def _type_problem(where: str, kind: DataType) -> str:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import BinaryType, IntegralType, NullType, StringType

    shown = kind.simpleString()
    if where == "input.text" and not isinstance(kind, (StringType, BinaryType, NullType)):
        return (
            f"is of type {shown}. The text must be a string, or binary that holds UTF-8. Cast it in a view of the "
            "input."
        )
    if where == "input.id" and not isinstance(kind, (StringType, IntegralType)):
        return f"is of type {shown}. Ids must be strings or whole numbers. Cast it in a view of the input."
    try:
        to_arrow_type(kind)
    except PySparkException:
        return f"is of type {shown}, which Arrow cannot represent. Leave it out, or cast it in a view of the input."
    return ""
