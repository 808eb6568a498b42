"""Sources that Spark parses from text, wherever a frame reads them: CSV, JSON, XML, lines; and rows without a source.

By default Spark ends a record of CSV at each line break, and a piece of a text becomes an id or another column.
:mod:`wordveil.spark.input.reading` opens such files with options under which no record is cut. How a catalogue, a view
or a caller has opened them is unknown, so all of these are refused.

The plan of rows that a program holds, such as those of ``createDataFrame``, ends there: they may have been collected
from such a source, and the result of a SQL script always is. Only their owner can vouch for them, by ``own_rows``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from wordveil.errors import ConfigError, Fault
from wordveil.spark.platform.connect import is_connect, list_plan_lines
from wordveil.spark.platform.jvm import gateway, java_class, list_items

_PLAN = "org.apache.spark.sql.catalyst.plans.QueryPlan"
_SOURCES = "org.apache.spark.sql.execution.datasources"
# Hive's formats in which no character separates records.
_SERDES = {
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe",
    "org.apache.hadoop.hive.serde2.lazybinary.LazyBinarySerDe",
}
# The leaves of a plan that read no file: values, and references to other parts of the plan.
_OWN_ROWS = {"CachedLocalRelation", "LocalRelation", "OneRowRelation"}
_NO_FILES = {"CTERelationRef", "EmptyRelation", "Range", "UnionLoopRef", *_OWN_ROWS}
# Spark's name of the step of a query, or of the call, that made an RDD.
_PARSING = re.compile(r"(?:Batch)?Scan (csv|hive|json|libsvm|text|xml)\b ?(.*)")
_LINES = "textFile"
# Spark's description of the call that read lines of an RDD or of a column as records.
_PARSED = re.compile(r"(csv|json|xml) at ")
# Spark Connect shows a plan as text alone. These are files that mark where rows end, and nodes that read nothing.
_FILES = {"avro", "binaryFile", "orc", "parquet"}
_TEXTS = {"csv", "json", "libsvm", "text", "xml"}
_NODES = _NO_FILES | {
    *("Aggregate", "CTERelationDef", "CollectMetrics", "Deduplicate", "Distinct", "Except", "Expand", "Filter"),
    *("FlatMapCoGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapGroupsInPandas", "Generate"),
    *("GlobalLimit", "Intersect", "Join", "LateralJoin", "LocalLimit", "MapInArrow", "MapInPandas", "Offset"),
    *("Project", "RebalancePartitions", "Relation", "Repartition", "RepartitionByExpression", "ResolvedHint"),
    *("Sample", "Sort", "SubqueryAlias", "Tail", "Union", "UnionLoop", "View", "Window", "WithCTE"),
}
_NO_ORIGIN = (
    "holds rows that come from no table: of createDataFrame, collect, VALUES, a variable or a SQL script. Spark does "
    "not know what they were made from, which may be CSV, JSON or XML that cut a text. Write the records as Parquet or "
    "Delta, and read that"
)
_SAY_SO = "; or say own_rows=True, if your program made them and each text is whole."
_UNKNOWN = (
    "In a Spark Connect session, that may be an RDD, a checkpoint, a table of another system or of Hive, or a literal "
    "with a line break. Write the records as Parquet or Delta, and read that, or use a classic session."
)
_VARIABLE = "variablereference("
_NODE = re.compile(r"(?:   |:  )*(?:\+- |:- )?([A-Za-z]\w*)(?: |$)")
_FORMAT = re.compile(r"\] (\w+)$")


def check_scans(frame: DataFrame, setting: str, value: str = "", *, own_rows: bool = False) -> None:
    """Raise :class:`ConfigError` if a frame reads a source that Spark parses from text. No data is read.

    ``setting``, ``value``: what names the frame. ``own_rows``: the caller vouches for rows without a source.
    """
    fault = "configuration" if value else "arguments"
    rows = "" if own_rows else _NO_ORIGIN + ("." if setting.startswith("input.") else _SAY_SO)
    if is_connect(frame.sparkSession):
        if problem := _inspect_lines(list_plan_lines(frame), rows):
            raise ConfigError(fault, [Fault(setting, value[:80], problem)])
        return
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no way to ask
    inspector = _ScanInspector(frame.sparkSession, rows)
    queries = list_items(plan.subqueriesAll())
    for part in (plan, *queries):
        # A subquery of one row only computes with what surrounds it.
        is_query = any(part is query for query in queries)
        for leaf in list_items(part.collectLeaves()):
            if problem := inspector.inspect(leaf, may_compute=is_query):
                raise ConfigError(fault, [Fault(setting, value[:80], problem)])
        if rows and _has_variable(frame.sparkSession, part):
            raise ConfigError(fault, [Fault(setting, value[:80], rows)])


def _has_variable(spark: SparkSession, plan: Any) -> bool:
    """Return whether a query computes with a variable of the session, which may hold whole tables."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if node.getClass().getSimpleName() == "VariableReference":
            return True
        below = list_items(node.children())
        # A leaf of a plan names its columns and computes nothing.
        if below and is_instance_of(gateway(spark), node, _PLAN):
            waiting += list_items(node.expressions())
        waiting += below
    return False


def _inspect_lines(lines: list[str] | None, rows: str = "") -> str:
    """Explain what is wrong with the text of a plan, without quoting it; empty if nothing is.

    ``rows``: the fault of rows that come from no table; empty if they are accepted. Each node begins a line with its
    name. Column names and literals may add lines, but the last line of a relation always ends with its format. So lines
    of unknown beginnings or endings are refused, whatever they are.
    """
    if lines is None:
        return f"has a plan that Spark shows in part. {_UNKNOWN}"
    for line in filter(None, lines):
        node, file_format = _NODE.match(line), _FORMAT.search(line)
        name = file_format[1] if file_format else ""
        if name in _TEXTS:
            return _describe("files", name)
        if node is None or node[1] not in _NODES or (name or "parquet") not in _FILES:
            return f"has a plan with a part that wordveil does not know. {_UNKNOWN}"
        if rows and (node[1] in _OWN_ROWS or _VARIABLE in line):
            return rows
        if node[1] == "Relation" and not name:
            return f"reads a source that wordveil does not know. {_UNKNOWN}"
    return ""


@dataclass(frozen=True)
class _ScanInspector:
    """Inspector of the leaves of an analysed plan. Unknown leaves are refused. ``rows``: fault of rows of no table."""

    spark: SparkSession
    rows: str

    def inspect(self, leaf: Any, *, may_compute: bool = False) -> str:
        """Explain what is wrong with a leaf, if anything. ``may_compute``: a row without columns may be no record."""
        kind = str(leaf.getClass().getSimpleName())
        if kind == "LogicalRelation":
            return self._inspect_files(leaf)
        if kind == "DataSourceV2Relation":
            return self._inspect_table(leaf.table())
        if kind == "HiveTableRelation":
            return _inspect_hive(leaf.tableMeta())
        if kind in ("LogicalRDD", "ExternalRDD"):
            return _inspect_rdd(leaf.rdd(), self.rows)
        if kind in _NO_FILES:
            is_record = kind in _OWN_ROWS and not (may_compute and kind == "OneRowRelation")
            return self.rows if is_record else ""
        return f"reads a source that wordveil does not know ({kind}). Write it as Parquet or Delta, and read that."

    def _inspect_files(self, leaf: Any) -> str:
        relation, table = leaf.relation(), leaf.catalogTable()
        if not self._find_class("HadoopFsRelation").isInstance(relation):
            return ""
        files = relation.fileFormat()
        if not self._is_text(files.getClass()):
            return ""
        paths = ", ".join(str(path) for path in list_items(relation.location().rootPaths()))
        name = table.get().identifier().unquotedString() if table.isDefined() else paths
        return _describe(name, files.toString())

    def _inspect_table(self, table: Any) -> str:
        is_text = self._find_class("v2.FileTable").isInstance(table) and self._is_text(table.fallbackFileFormat())
        return _describe(table.name(), table.formatName()) if is_text else ""

    def _is_text(self, file_format: Any) -> bool:
        """Return whether a class reads text files: all of Spark's that do extend one class."""
        return bool(self._find_class("TextBasedFileFormat").isAssignableFrom(file_format))

    def _find_class(self, name: str) -> Any:
        return java_class(self.spark, "java.lang.Class").forName(f"{_SOURCES}.{name}")


def _inspect_hive(table: Any) -> str:
    serde = table.storage().serde()
    name = str(serde.get()) if serde.isDefined() else "text"
    return "" if name in _SERDES else _describe(table.identifier().unquotedString(), name.rpartition(".")[2])


def _inspect_rdd(rdd: Any, rows: str) -> str:
    """Explain what is wrong with rows without a plan, such as a stream's batch, by the steps that made them."""
    waiting, seen = [rdd], set()
    while waiting:
        step = waiting.pop()
        if step.id() not in seen:
            seen.add(step.id())
            if problem := _inspect_step(step, rows):
                return problem
            waiting += [dependency.rdd() for dependency in list_items(step.dependencies())]
    return ""


def _inspect_step(rdd: Any, rows: str) -> str:
    kind = rdd.getClass().getSimpleName()
    if "Checkpoint" in kind:
        return (
            "reads a checkpoint, and Spark does not know what that was made from. Use the frame without checkpoint() "
            "and localCheckpoint()."
        )
    scope = rdd.scope()
    name = str(scope.get().name()) if scope.isDefined() else ""
    if scan := _PARSING.fullmatch(name):
        return _describe(scan[2] or "files", scan[1])
    if call := _PARSED.match(rdd.creationSite().shortForm()):
        return _describe("an RDD or a column", call[1])
    if name == _LINES:
        return _describe("files", "lines of text")
    return rows if kind == "ParallelCollectionRDD" else ""


def _describe(source: str, kind: str) -> str:
    return (
        f"reads {source} as {kind} with options that wordveil did not choose. A piece of a text may then be read as "
        "another column, and a row that cannot be parsed is not noticed. Name the files instead, by input.path with "
        "input.format, and run the job. Or convert the files to Parquet or Delta, but not by a query of this source, "
        "which would copy the pieces: `wordveil docs inputs` shows how."
    )
