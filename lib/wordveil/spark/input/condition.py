"""Check of ``input.where`` in Spark's own plan: which columns it names, and whether it selects the same records again.

The output shows which records meet it, so it may name only public columns: id, kept and partition columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from wordveil.errors import ConfigError, Fault
from wordveil.input.columns import fold_name
from wordveil.input.source import PARSED_FORMATS, Source
from wordveil.records.paths import read_path
from wordveil.records.schema import MALFORMED_COLUMN
from wordveil.spark.input.listing import find_relations, name_class
from wordveil.spark.platform.iceberg import find_iceberg_table
from wordveil.spark.platform.jvm import find_file_relation, find_relation, gateway, list_items

_LONG = 10
"""Length, including a sign, from which a number may not be an INT."""
_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[dDfF]?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIMES = {"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"}
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
_ORDER = {"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Between"}
_AMONG = {"In", "InSet", "LikeAny", "LikeAll", "NotLikeAny", "NotLikeAll"}
_COMPARED = _ORDER | _AMONG | {"EqualTo", "EqualNullSafe", "EqualNull"}


def list_partitions(frame: DataFrame) -> frozenset[str]:
    """List the partition columns of the table that a frame reads. A view has none: it may compute any column."""
    if (relation := find_relation(frame, "HiveTableRelation")) is not None:
        return frozenset(str(column.name()) for column in list_items(relation.partitionCols()))
    if (iceberg := find_iceberg_table(frame)) is not None:
        spec = iceberg.table().spec()
        fields = [field for field in spec.fields() if field.transform().isIdentity()]
        return frozenset(str(spec.schema().findColumnName(field.sourceId())) for field in fields)
    files = find_file_relation(frame)
    return frozenset() if files is None else frozenset(map(str, files.partitionSchema().fieldNames()))


def check_condition(spark: SparkSession, plan: Any, source: Source, partitions: Collection[str]) -> None:
    """Raise :class:`ConfigError` for an unsafe condition, given Spark's ``plan`` of it alone."""
    if problem := next(_problems(spark, plan, source, partitions), None):
        raise ConfigError("configuration", [Fault("input.where", (source.where or "")[:80], problem)])


def _problems(spark: SparkSession, plan: Any, source: Source, partitions: Collection[str]) -> Iterator[str]:
    if name_class(plan) != "Filter" or name_class(plan.child()) != "SubqueryAlias":
        yield (
            "uses a function that Spark rewrites into a query, so that what it reads is unknown. Filter by it in a "
            f"view.{_show_view(source)}"
        )
        return
    everything = [*_walk(plan.condition())]
    if not plan.condition().deterministic() or any(name_class(node) in _TIMES for node in everything):
        yield (
            "selects other records each time Spark computes it, so that some could be lost or read twice. Remove "
            "rand() and similar functions, and write a parameter for the time, such as :today, which --param sets."
        )
    if any(
        name_class(node) == "VariableReference" or is_instance_of(gateway(spark), node, _SUBQUERY)
        for node in everything
    ):
        yield (
            "reads more than the record itself, so that records could enter and leave without a change of theirs. Join "
            f"what it reads into the table, or filter in a view.{_show_view(source)}"
        )
    hidden = {fold_name(part) for name in source.texts for part in (name, read_path(name)[0])}
    hidden |= {fold_name(pseudonym.column) for pseudonym in source.pseudonyms}
    allowed = {name.lower() for name in (source.id, *source.keep, *partitions, MALFORMED_COLUMN)}
    named = [node.name() for node in everything if name_class(node) == "AttributeReference"]
    # In doubt a name is that of a text or of a pseudonym's values, and none of those allowed.
    others = [name for name in dict.fromkeys(named) if name.lower() not in allowed or fold_name(name) in hidden]
    if others:
        yield (
            f"names {', '.join(others)}. The output shows which records meet the condition, so it may name only the "
            f"id, kept columns and partition columns. Filter by others in a view.{_show_view(source)}"
        )
    for name, kind in dict.fromkeys(_find_misordered(plan, source.rename)):
        yield (
            f"compares {name} as text, in which 10 comes before 9, and 01 is not 1: values of directories are strings. "
            f"Write cast({name} AS {kind}) in its place, or the value as the directories have it."
        )


def _find_misordered(plan: Any, rename: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Find columns of directories that are compared as texts but hold only numbers or dates, with those types.

    A column counts if texts have another order than its values, or if no directory has the compared spelling.
    """
    everything = [*_walk(plan.condition())]
    compared = [node for node in everything if name_class(node) in _COMPARED and _is_string(node.children().head())]
    values = _find_values(plan, rename) if compared else {}
    for comparison in compared:
        is_ordered, nodes = name_class(comparison) in _ORDER, [*_walk(comparison)]
        direct = [node.name() for node in list_items(comparison.children()) if name_class(node) == "AttributeReference"]
        named = [node.name() for node in nodes if name_class(node) == "AttributeReference"]
        for name in named or [node.name() for node in everything if name_class(node) == "AttributeReference"]:
            if not (written := values.get(fold_name(name))) or not (kind := _find_kind(written)):
                continue
            read = {literal: value for literal in _find_literals(nodes) if (value := _read(literal, kind)) is not None}
            known = {value: _read(value, kind) for value in written}
            if is_ordered and name not in direct:  # the order of computed values is unknown
                is_other = len({*map(len, {**known, **read})}) > 1
            elif is_ordered:
                ordered = [value for _, value in sorted({**known, **read}.items())]
                is_other = any(before >= after for before, after in pairwise(ordered))
            else:
                is_other = any(value in known.values() for literal, value in read.items() if literal not in known)
            if is_other:
                yield name, kind


def _find_literals(nodes: list[Any]) -> Iterator[str]:
    """Yield literal texts, and literals that Spark casts to text to compare them with one."""
    for node in nodes:
        inner = node.child() if name_class(node) == "Cast" and _is_string(node) else node
        if name_class(inner) == "Literal" and _is_string(node):
            yield str(inner.toString())


def _find_kind(values: set[str]) -> str:
    """Return the type of all values, or an empty string if they are texts."""
    if all(map(_WHOLE.fullmatch, values)):
        return "INT" if max(map(len, values)) < _LONG else "BIGINT"
    return next((kind for kind in ("DOUBLE", "DATE") if all(_read(value, kind) is not None for value in values)), "")


def _read(value: str, kind: str) -> Any:
    """Parse a value as a number or a day. Return None for other texts."""
    if kind == "DATE":
        return tuple(map(int, day.groups())) if (day := _DATE.fullmatch(value)) else None
    return Decimal(number[1]) if (number := _NUMBER.fullmatch(value)) else None


def _find_values(plan: Any, rename: Mapping[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    indexes = [relation.location() for relation in find_relations(plan)]
    for spec in (index.partitionSpec() for index in indexes if name_class(index) == "InMemoryFileIndex"):
        rows = [partition.values() for partition in list_items(spec.partitions())]
        for place, field in enumerate(spec.partitionColumns().fields()):
            if _is_string(field):
                found[fold_name(rename.get(field.name(), field.name()))] = {
                    str(row.getUTF8String(place)) for row in rows if not row.isNullAt(place)
                }
    return found


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in list_items(node.children()):
        yield from _walk(child)


def _is_string(node: Any) -> bool:
    return bool(node.dataType().typeName() == "string")


def _show_view(source: Source) -> str:
    """Show how to make a view that filters, unless rows are parsed from text, which a view must not read."""
    if source.table is None and source.kind in PARSED_FORMATS:
        return " Write the table as Parquet or Delta first, because no view may read text files."
    table = source.table or f"{source.reader}.`{source.path}`"
    return f" CREATE VIEW slice AS SELECT * FROM {table} WHERE ...; then set input.table: slice."  # noqa: S608 - shown, never run
