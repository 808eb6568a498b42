"""Columns of tables by their exact names, checked before any data is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from wordveil.errors import ConfigError, Fault, did_you_mean
from wordveil.input.columns import Columns, fold_name

_PSEUDONYM = "pseudonym"
_RENAMED = "If it was renamed in the table, set input.rename: {{NEW: {name}}}."
# Values whose bytes are the same on every machine.
_HASHED = {"input.id": "Ids", _PSEUDONYM: "What becomes a pseudonym"}


def column(name: str) -> Column:
    """Return the column of exactly this name, dots and all."""
    return F.col(f"`{name}`")


def field_column(path: Sequence[str]) -> Column:
    """Return the column, or the field of a struct, of exactly this path."""
    return F.col(".".join(f"`{part}`" for part in path))


def as_read(values: Column, kind: DataType) -> Column:
    """Return values of type ``kind`` in a form in which they are equal only if readers cannot tell them apart.

    Collations equate strings and Spark zeros of different signs. Maps and variants cannot be compared.
    """
    if isinstance(kind, StringType):
        return values.cast("binary")
    if isinstance(kind, (FloatType, DoubleType)):
        return values.cast("string")
    if not _is_comparable(kind):
        return F.to_json(F.struct(values.alias("value")), {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS XXX"})
    return values


def _is_comparable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_is_comparable(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_comparable(kind.elementType)
    return not isinstance(kind, MapType) and kind.typeName() != "variant"


def text_paths(schema: StructType, columns: Columns) -> tuple[tuple[str, ...], ...]:
    """List the paths of the text columns. A single name with dots may also be a column's own name."""
    if len(columns.texts) == 1 and columns.texts[0] in schema.names:
        return ((columns.texts[0],),)
    return columns.text_paths


def find_field(schema: StructType, path: Sequence[str]) -> StructField | None:
    """Find the column, or the field of a struct, of exactly this path, or None."""
    field: StructField | None = None
    kind: DataType = schema
    for part in path:
        if not isinstance(kind, StructType) or part not in kind.names:
            return None
        field = kind[part]
        kind = field.dataType
    return field


def rename_columns(names: Sequence[str], rename: Mapping[str, str], source: str, *, lists: bool = True) -> list[str]:
    """Return the ``names`` of a table's columns, with the new ones of ``rename``, by old name.

    A table that has the new name alone stays as it is: a version from before the column was renamed, or where a stream
    lands. Raises :class:`ConfigError` if it has neither name or both. ``lists``: as in :func:`check_columns`.
    """
    others = {fold_name(name) for name in names if name not in rename}
    faults = []
    for old, new in rename.items():
        if old in names and fold_name(new) in others:
            problem = "is a column of the table, too. Remove this entry to read that one, or drop it from the table."
            faults.append(Fault(f"input.rename.{old}", new, problem))
        elif old not in names and new not in names:
            problem = f"the table has neither column.{_suggest_column(old, [*names], lists=lists)}"
            faults.append(Fault(f"input.rename.{old}", new, problem))
    if faults:
        raise ConfigError(source, faults)
    return [rename.get(name, name) for name in names]


def check_columns(
    schema: StructType, columns: Columns, source: str, *, lists: bool = True, may_rename: bool = False
) -> None:
    """Raise :class:`ConfigError` unless the table has the columns, with types that they may have.

    ``lists``: faults list the table's columns, which they must not if the first line of a CSV file may be a record.
    ``may_rename``: the configuration can rename a column.
    """
    if faults := list(_schema_faults(schema, columns, lists=lists, may_rename=may_rename)):
        raise ConfigError(source, faults)


def _schema_faults(schema: StructType, columns: Columns, *, lists: bool, may_rename: bool) -> Iterable[Fault]:
    for name, path in zip(columns.texts, text_paths(schema, columns), strict=True):
        field = find_field(schema, path)
        if field is None:
            hint = _RENAMED.format(name=path[0]) if may_rename and path[0] not in schema.names else ""
            yield Fault("input.text", name, _missing_text(schema, path, lists=lists), hint)
        elif problem := _text_problem(field.dataType):
            yield Fault("input.text", name, problem)
    named = [("input.id", columns.id)]
    named += [("input.author", columns.author)] if columns.author else []
    named += [("input.language", columns.language)] if columns.language else []
    named += [("input.keep", name) for name in columns.keep]
    hidden = [pseudonym.column for pseudonym in columns.pseudonyms]
    for where, name in [*named, *(("input.keep", name) for name in hidden)]:
        if "`" in name:
            problem = "Spark cannot quote a backtick in a column's name. Rename the column in a view of the input."
            yield Fault(where, name, problem)
        elif name not in schema.names:
            is_inside = find_field(schema, name.split(".")) is not None
            inside = "is a field of a struct, which only a text may be. Make it a column in a view of the input."
            missing = f"the table has no such column.{_suggest_column(name, schema.names, lists=lists)}"
            hint = _RENAMED.format(name=name) if may_rename and not is_inside else ""
            yield Fault(where, name, inside if is_inside else missing, hint)
        elif problem := _type_problem(_PSEUDONYM if name in hidden else where, schema[name].dataType):
            yield Fault(where, name, problem)


def _suggest_column(name: str, names: list[str], *, lists: bool) -> str:
    others = f" It has: {', '.join(names)}."
    if not lists:
        others = " The first line of its files must name the columns, unless options.header is false."
    return did_you_mean(name, names) or others


def _missing_text(schema: StructType, path: Sequence[str], *, lists: bool) -> str:
    if len(path) == 1:
        return f"the table has no such column.{_suggest_column(path[0], schema.names, lists=lists)}"
    struct = find_field(schema, path[:-1])
    if struct is not None and isinstance(struct.dataType, StructType):
        return f"the struct has no such field.{_suggest_column(path[-1], struct.dataType.names, lists=lists)}"
    return (
        "the table has no such field of a struct. A dot leads into a struct; write a column whose own name has a dot "
        f"in backticks, such as '`{'.'.join(path)}`'."
    )


def _text_problem(kind: DataType) -> str:
    shown = kind.simpleString()
    if isinstance(kind, (StringType, BinaryType, NullType, IntegralType, BooleanType, DateType)):
        return ""
    if isinstance(kind, StructType):
        texts = (field.name for field in kind.fields if isinstance(field.dataType, StringType))
        return f"is of type {shown}. Name the fields that hold text, such as COLUMN.{next(texts, 'FIELD')}."
    if isinstance(kind, (ArrayType, MapType)):
        return f"is of type {shown}. Join its texts into a string in a view of the input, or make each a record."
    return (
        f"is of type {shown}. A text must be a string, binary that holds UTF-8, a whole number, a boolean or a date: "
        "how Spark writes other types as text depends on its settings. Cast it in a view of the input."
    )


def _type_problem(where: str, kind: DataType) -> str:
    shown = kind.simpleString()
    if where == "input.language" and not isinstance(kind, StringType | NullType):
        return f"is of type {shown}. Languages must be strings, such as en. Cast it in a view of the input."
    if where in _HASHED and not isinstance(kind, (StringType, IntegralType)):
        return f"is of type {shown}. {_HASHED[where]} must be strings or whole numbers. Cast it in a view of the input."
    try:
        to_arrow_type(kind)
    except PySparkException:
        return f"is of type {shown}, which Arrow cannot represent. Leave it out, or cast it in a view of the input."
    return ""
