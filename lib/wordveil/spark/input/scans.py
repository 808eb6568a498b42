"""What Spark parses from text, wherever it is in what is read: CSV, JSON, XML, lines.

By default Spark ends a record of CSV at each line break, and a piece of a text becomes an id or another column.
:mod:`wordveil.spark.input.reading` opens such files by options under which no record is cut. How anyone else has opened
them is not known: a catalogue, a view, a frame of the caller's. So all of these are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from wordveil.errors import ConfigError, Fault
from wordveil.spark.platform.jvm import java_class, list_items

_SOURCES = "org.apache.spark.sql.execution.datasources"
# Hive's formats whose records are not told apart by characters.
_SERDES = {
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    "org.apache.hadoop.hive.serde2.columnar.LazyBinaryColumnarSerDe",
    "org.apache.hadoop.hive.serde2.lazybinary.LazyBinarySerDe",
}
# The leaves of a plan that read no file: values, and references to other parts of the plan.
_NO_FILES = {
    "CTERelationRef",
    "EmptyRelation",
    "LocalRelation",
    "OneRowRelation",
    "Range",
    "UnionLoopRef",
}
# How Spark names the step of a query, or the call, that an RDD was made in.
_PARSING = re.compile(r"(?:Batch)?Scan (csv|hive|json|libsvm|text|xml)\b ?(.*)")
_LINES = "textFile"


def check_scans(frame: DataFrame, setting: str, value: str = "", *, is_ours: bool = False) -> None:
    """Raise :class:`ConfigError` where a frame reads what Spark parses from text. Reads no data.

    Parameters
    ----------
    frame
        what is to be read.
    setting
        the setting or the argument that named it.
    value
        the setting's value.
    is_ours
        whether wordveil has opened what the frame reads. Then only subqueries are looked at, as a condition has them.
    """
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no way to ask
    look = _ScanInspector(frame.sparkSession)
    plans = [*([] if is_ours else [plan]), *list_items(plan.subqueriesAll())]
    for leaf in (leaf for part in plans for leaf in list_items(part.collectLeaves())):
        if problem := look.inspect(leaf):
            raise ConfigError("configuration" if value else "arguments", [Fault(setting, value[:80], problem)])


@dataclass(frozen=True)
class _ScanInspector:
    """Says what is wrong with a leaf of an analysed plan; empty where nothing is. A leaf that is not known is refused:
    it may read anything.
    """

    spark: SparkSession

    def inspect(self, leaf: Any) -> str:
        kind = str(leaf.getClass().getSimpleName())
        if kind == "LogicalRelation":
            return self._inspect_files(leaf)
        if kind == "DataSourceV2Relation":
            return self._inspect_table(leaf.table())
        if kind == "HiveTableRelation":
            return _inspect_hive(leaf.tableMeta())
        if kind in ("LogicalRDD", "ExternalRDD"):
            return _inspect_rdd(leaf.rdd())
        if kind in _NO_FILES:
            return ""
        return f"reads a source that wordveil does not know ({kind}). Write it as Parquet or Delta, and read that."

    def _inspect_files(self, leaf: Any) -> str:
        relation, table = leaf.relation(), leaf.catalogTable()
        if not self._find_class("HadoopFsRelation").isInstance(relation):
            return ""
        files = relation.fileFormat()
        if not self._is_text(files.getClass()):
            return ""
        if table.isDefined():
            return _describe(table.get().identifier().unquotedString(), files.toString())
        return _describe(", ".join(str(path) for path in list_items(relation.location().rootPaths())), files.toString())

    def _inspect_table(self, table: Any) -> str:
        is_text = self._find_class("v2.FileTable").isInstance(table) and self._is_text(table.fallbackFileFormat())
        return _describe(table.name(), table.formatName()) if is_text else ""

    def _is_text(self, file_format: Any) -> bool:
        """Whether a class reads files of text: all of Spark's that do so extend one, and so do those made of them."""
        return bool(self._find_class("TextBasedFileFormat").isAssignableFrom(file_format))

    def _find_class(self, name: str) -> Any:
        return java_class(self.spark, "java.lang.Class").forName(f"{_SOURCES}.{name}")


def _inspect_hive(table: Any) -> str:
    serde = table.storage().serde()
    name = str(serde.get()) if serde.isDefined() else "text"
    return "" if name in _SERDES else _describe(table.identifier().unquotedString(), name.rpartition(".")[2])


def _inspect_rdd(rdd: Any) -> str:
    """What is wrong with the rows of a frame that has no plan of its own, such as a batch of a stream: Spark still
    names the steps that made them.
    """
    return next((problem for one in _list_lineage(rdd) if (problem := _inspect_step(one))), "")


def _list_lineage(rdd: Any) -> Iterator[Any]:
    """An RDD and all that it was made of."""
    waiting, seen = [rdd], set()
    while waiting:
        one = waiting.pop()
        if one.id() not in seen:
            seen.add(one.id())
            yield one
            waiting += [dependency.rdd() for dependency in list_items(one.dependencies())]


def _inspect_step(rdd: Any) -> str:
    if "Checkpoint" in rdd.getClass().getSimpleName():
        return (
            "reads a checkpoint, of which Spark does not know what it was made of. Use the frame without checkpoint() "
            "and localCheckpoint()."
        )
    scope = rdd.scope()
    name = str(scope.get().name()) if scope.isDefined() else ""
    if found := _PARSING.fullmatch(name):
        return _describe(found[2] or "files", found[1])
    return _describe("files", "lines of text") if name == _LINES else ""


def _describe(source: str, kind: str) -> str:
    return (
        f"reads {source} as {kind} with options that wordveil did not choose. A piece of a text may then be read as "
        "another column, and a row that cannot be parsed is not noticed. Name the files instead, by input.path with "
        "input.format, and run the job. Or convert the files to Parquet or Delta, but not by a query of this source, "
        "which would copy the pieces: `wordveil docs inputs` shows how."
    )
