"""Check of ``input.where`` in Spark's own plan, for what it reads and for functions that could fail on a text.

Spark would write such a text into its event log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from wordveil.errors import ConfigError, Fault
from wordveil.input.conditions import fold_name
from wordveil.input.source import Source
from wordveil.privacy.relations import Exposure
from wordveil.records.paths import read_path
from wordveil.spark.input.listing import find_relations, name_class
from wordveil.spark.platform.jvm import gateway, list_items

_LONG = 10
"""The length, including a sign, from which a number may not be an INT."""
_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[dDfF]?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIMES = {"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now"}
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
# Functions that return a value for any text, by the names of Spark's classes.
_LOGIC = {"And", "Or", "Not", "If", "CaseWhen", "Coalesce", "Nvl", "Nvl2", "NullIf", "IsNull", "IsNotNull"}
_EQUAL = {"EqualTo", "EqualNullSafe", "EqualNull"}
_ORDER = {"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Between"}
_AMONG = {"In", "InSet", "InSubquery", "LikeAny", "LikeAll", "NotLikeAny", "NotLikeAll"}
_COMPARED = _ORDER | _EQUAL | _AMONG
_SEARCHES = {"Contains", "StartsWith", "EndsWith", "BinaryPredicate", "StringInstr", "StringLocate"}
_PARTS = {"Substring", "Left", "Right"}
_FORMS = {"Length", "OctetLength", "BitLength", "Lower", "Upper"}
_TRIMS = {"StringTrim", "StringTrimLeft", "StringTrimRight", "StringTrimBoth"}
# A field of a struct, and the nodes around a value that is used twice.
_FRAMES = {"GetStructField", "With", "CommonExpressionDef", "TypedNullLiteral"}
_QUERY_PARTS = {"Alias", "AggregateExpression", "Count", "Max", "Min"}
_SAFE = frozenset(_LOGIC | _EQUAL | _ORDER | _AMONG | _SEARCHES | _PARTS | _FORMS | _TRIMS | _FRAMES | _QUERY_PARTS)
# The error about a wrong pattern quotes it: the text may be the matched value, never the pattern.
_MATCHES = frozenset({"Like", "ILike", "RLike"})
_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})
_PLANS = frozenset(
    {
        "Aggregate",
        "Distinct",
        "Filter",
        "GlobalLimit",
        "Join",
        "LocalLimit",
        "Project",
        "SubqueryAlias",
        "Union",
        "View",
    }
)


def check_condition(spark: SparkSession, plan: Any, source: Source) -> None:
    """Raise :class:`ConfigError` for an unsafe condition, given Spark's ``plan`` of it alone."""
    if problem := next(_problems(spark, plan, source), None):
        raise ConfigError("configuration", [Fault("input.where", (source.where or "")[:80], problem)])


def _problems(spark: SparkSession, plan: Any, source: Source) -> Iterator[str]:
    if name_class(plan) != "Filter" or name_class(plan.child()) != "SubqueryAlias":
        yield (
            "uses a function that Spark rewrites into a query, so that what it reads is unknown. Filter by it in a "
            "view of public columns."
        )
        return
    everything = [*_walk(plan.condition())]
    if not plan.condition().deterministic() or any(name_class(node) in _TIMES for node in everything):
        yield (
            "selects other records each time Spark computes it, so that some could be lost or read twice. Remove "
            "rand() and similar functions, and write a parameter for the time, such as :today, which --param sets."
        )
    is_elsewhere = (
        name_class(node) == "VariableReference" or is_instance_of(gateway(spark), node, _SUBQUERY)
        for node in everything
    )
    if source.changes == "feed" and any(is_elsewhere):
        yield (
            "reads more than the record itself, which can then enter and leave without a change that the table's feed "
            "lists. Set input.changes: scan, or join what it reads into the table."
        )
    # Spark reads the whole struct that contains a text.
    roots = frozenset(fold_name(part) for name in source.texts for part in (name, read_path(name)[0]))
    shown = ", ".join(source.texts)
    use = _ConditionInspector(spark, roots).inspect(plan.condition())
    if use.reads and Exposure.CONDITION not in source.shown:
        yield (
            f"reads {shown}, the text column, in a way that only Spark sees, so that exposes does not list "
            "condition. Name the column itself, or filter in a view of public columns."
        )
    if use.risks:
        yield (
            f"computes {', '.join(dict.fromkeys(use.risks))} on what may be {shown}, the text column: if that "
            "fails, Spark writes the text into its logs. Use like, rlike, length, = or try_cast, which cannot fail, "
            "or filter in a view of public columns."
        )
    for name, kind in dict.fromkeys(_find_misordered(plan)):
        yield (
            f"compares {name} as text, in which 10 comes before 9, and 01 is not 1: values of directories are strings. "
            f"Write cast({name} AS {kind}) in its place, or the value as the directories have it."
        )


def _find_misordered(plan: Any) -> Iterator[tuple[str, str]]:
    """Find columns of directories that are compared as texts but hold only numbers or dates, with those types.

    A column counts if texts have another order than its values, or if no directory spells the compared value like that.
    """
    everything = [*_walk(plan.condition())]
    compared = [node for node in everything if name_class(node) in _COMPARED and _is_string(node.children().head())]
    values = _find_values(plan) if compared else {}
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
    """Return the type that all values have; empty if they are texts."""
    if all(map(_WHOLE.fullmatch, values)):
        return "INT" if max(map(len, values)) < _LONG else "BIGINT"
    return next((kind for kind in ("DOUBLE", "DATE") if all(_read(value, kind) is not None for value in values)), "")


def _read(value: str, kind: str) -> Any:
    """Parse a value as a number or a day; None for other texts."""
    if kind == "DATE":
        return tuple(map(int, day.groups())) if (day := _DATE.fullmatch(value)) else None
    return Decimal(number[1]) if (number := _NUMBER.fullmatch(value)) else None


def _find_values(plan: Any) -> dict[str, set[str]]:
    """Return the values of each text column of directories, except null."""
    found: dict[str, set[str]] = {}
    indexes = [relation.location() for relation in find_relations(plan)]
    for spec in (index.partitionSpec() for index in indexes if name_class(index) == "InMemoryFileIndex"):
        rows = [partition.values() for partition in list_items(spec.partitions())]
        for place, field in enumerate(spec.partitionColumns().fields()):
            if _is_string(field):
                found[fold_name(field.name())] = {
                    str(row.getUTF8String(place)) for row in rows if not row.isNullAt(place)
                }
    return found


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in list_items(node.children()):
        yield from _walk(child)


def _is_string(node: Any) -> bool:
    return bool(node.dataType().typeName() == "string")


@dataclass(frozen=True)
class _TextUse:
    """The use of the text by a part of a condition; ``risks`` are functions applied to it that could fail."""

    reads: bool
    risks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _ConditionInspector:
    """An inspector of conditions.

    ``columns``: the folded names of the text columns; None in a subquery, where any column may be one. ``refers``:
    whether references to an expression that is used twice refer to the text.
    """

    spark: SparkSession
    columns: frozenset[str] | None
    refers: bool = False

    def inspect(self, node: Any) -> _TextUse:
        """Inspect an expression and all below it."""
        if is_instance_of(gateway(self.spark), node, _SUBQUERY):
            return _TextUse(reads=True, risks=_ConditionInspector(self.spark, None).inspect_query(node.plan()))
        if self._is_text(node):
            return _TextUse(reads=True)
        below = self._inspect_children(node)
        reads = any(use.reads for use in below)
        own = (_name_function(node),) if reads and not _is_safe(node, below) else ()
        return _TextUse(reads, (*own, *(risk for use in below for risk in use.risks)))

    def _inspect_children(self, node: Any) -> list[_TextUse]:
        """Inspect each child and all below it, last the expressions that are used twice.

        Spark keeps their values separately.
        """
        children = list_items(node.children())
        if name_class(node) != "With":
            return [self.inspect(child) for child in children]
        used = [self.inspect(child) for child in children[1:]]
        refers = self.refers or any(use.reads for use in used)
        return [replace(self, refers=refers).inspect(children[0]), *used]

    def inspect_query(self, plan: Any) -> tuple[str, ...]:
        """Return the functions in a query that could fail on what it reads."""
        children = list_items(plan.children())
        own = () if not children or name_class(plan) in _PLANS else (name_class(plan).lower(),)
        return (
            *own,
            *(risk for expression in list_items(plan.expressions()) for risk in self.inspect(expression).risks),
            *(risk for child in children for risk in self.inspect_query(child)),
        )

    def _is_text(self, node: Any) -> bool:
        """Return whether an expression is a text column or refers to a value that may be one."""
        if name_class(node) == "CommonExpressionRef":
            return self.refers
        if name_class(node) not in ("AttributeReference", "OuterReference"):
            return False
        return self.columns is None or fold_name(node.name()) in self.columns


def _is_safe(node: Any, below: list[_TextUse]) -> bool:
    """Return whether an expression has a value for any text; ``below``: the uses of its children."""
    if name_class(node) == "Cast":
        return _is_safe_cast(node)
    if name_class(node) in _MATCHES:
        return not any(use.reads for use in below[1:])
    return name_class(node) in _SAFE


def _is_safe_cast(node: Any) -> bool:
    """Return whether a cast cannot fail: try_cast, or to strings, bytes, or numbers without loss."""
    source, target = node.child().dataType(), node.dataType()
    if node.evalMode().toString() == "TRY" or target.typeName() in ("string", "binary"):
        return True
    return source.typeName() in _NUMBERS and bool(node.canUpCast(source, target))


def _name_function(node: Any) -> str:
    """Name a function for a message."""
    return f"cast to {node.dataType().simpleString()}" if name_class(node) == "Cast" else str(node.prettyName())
