"""Files below a table that Spark leaves out silently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from wordveil.credentials import hide_credentials
from wordveil.errors import InputError
from wordveil.input.files import is_hidden, walk_files, walk_folders
from wordveil.spark.platform.connect import is_connect
from wordveil.spark.platform.jvm import java_array, java_class, list_items

_HADOOP = "org.apache.hadoop.fs"
# An empty file of these formats has no records.
_ROWS = {"CSVFileFormat", "JsonFileFormat", "XmlFileFormat"}
_HIDDEN = "{_*,.*,*._COPYING_}"
# Files and directories without records that writers leave beside their data.
_MARKS = re.compile(r"_SUCCESS|_(common_)?metadata|_(committed|started)_\d+|\..*\.crc")
_LOGS = {"_delta_log", "_spark_metadata"}
_CATALOGUE, _PATHS, _SINK = "CatalogFileIndex", "InMemoryFileIndex", "MetadataLogFileIndex"
_LEFT_OUT = "and Spark would leave it out without a word."


def check_listing(frame: DataFrame, setting: str, name: str) -> None:
    """Raise :class:`InputError` if Spark would leave out a file of a table that ``frame`` reads. Reads no file.

    Spark lists all files below a directory, but reads no empty file, and none in a directory that is not a partition.
    """
    for index, kind in _find_indexes(frame, _PATHS):
        if problem := next(_find_unread(frame.sparkSession, index, kind), None):
            raise InputError(f"{setting} = {name}: {hide_credentials(problem)}")


def describe_hidden(frame: DataFrame) -> tuple[str, ...]:
    """Describe, in a sentence for each table that ``frame`` reads, files that Spark skips.

    No reader takes files with hidden names. In a table that a stream has written, Spark reads only files of its log.
    """
    spark, sentences = frame.sparkSession, list[str]()
    for index, _ in _find_indexes(frame, _PATHS):
        for root in map(_name_path, list_items(index.rootPaths())):
            if hidden := sorted(_list_hidden(spark, index, root)):
                sentences.append(
                    f"{len(hidden):,} with hidden names below {root} were not read, such as {hidden[0]}: names that "
                    "begin with _ or ., or end with ._COPYING_"
                )
    for index, _ in _find_indexes(frame, _SINK):
        for path in list_items(index.rootPaths()):
            root = _name_path(_find_system(spark, path).makeQualified(path))
            logged = {_name_path(status.getPath()) for status in list_items(index.allFiles())}
            found = {f"file:{file}" for file in walk_files(Path(root.removeprefix("file:")))}
            if others := sorted(found - logged):
                sentences.append(
                    f"{len(others):,} files below {root} were not read, such as {others[0]}: they are not in "
                    "_spark_metadata, the log of the stream that wrote the table"
                )
    return tuple(map(hide_credentials, sentences))


def _name_path(path: Any) -> str:
    return str(path.toString())


def _find_system(spark: SparkSession, path: Any) -> Any:
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001


def _list_hidden(spark: SparkSession, index: Any, root: str) -> Iterator[str]:
    """List hidden names in the directories of a table that have files, and in their parents.

    On this machine's disk all its directories are searched. A hidden directory counts as one name.
    """
    folders = set()
    for leaf in map(_name_path, list_items(index.leafDirToChildrenFiles().keys().toSeq())):
        folder = leaf
        while f"{folder}/".startswith(f"{root}/"):
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    if root.startswith("file:"):
        folders |= {f"file:{folder}" for folder, _ in walk_folders(Path(root.removeprefix("file:")))}
    path, pattern = java_class(spark, f"{_HADOOP}.Path"), java_class(spark, f"{_HADOOP}.GlobFilter")(_HIDDEN)
    listed = java_array(spark, path, *map(path, sorted(folders)))
    for status in _find_system(spark, path(root)).listStatus(listed, pattern):
        name = str(status.getPath().getName())
        if name not in _LOGS if status.isDirectory() else not _MARKS.fullmatch(name):
            yield name


def _find_indexes(frame: DataFrame, kind: str) -> Iterator[tuple[Any, str]]:
    """Find Spark's indexes of class ``kind`` over the files that a frame reads, each with its format's class name.

    Delta and Iceberg have their own indexes, in which every file counts.
    """
    if is_connect(frame.sparkSession):
        return
    query = frame._jdf.queryExecution()  # noqa: SLF001 - PySpark has no way to ask
    relations = find_relations(query.analyzed())
    if any(name_class(relation.location()) == _CATALOGUE for relation in relations):
        relations = find_relations(query.optimizedPlan())  # lists the partitions that the condition selects, no others
    for relation in relations:
        index = relation.location()
        if name_class(index) == _CATALOGUE:
            index = index.filterPartitions(_empty(frame.sparkSession))
        if name_class(index) == kind:
            yield index, name_class(relation.fileFormat())


def find_relations(plan: Any) -> list[Any]:
    """Find Spark's tables of files that a plan reads, including its subqueries."""
    parts = (plan, *list_items(plan.subqueriesAll()))
    leaves = (leaf for part in parts for leaf in list_items(part.collectLeaves()))
    relations = (leaf.relation() for leaf in leaves if name_class(leaf) == "LogicalRelation")
    return [relation for relation in relations if name_class(relation) == "HadoopFsRelation"]


def name_class(item: Any) -> str:
    """Return the short name of a Java object's class."""
    return str(item.getClass().getSimpleName())


def _find_unread(spark: SparkSession, index: Any, kind: str) -> Iterator[str]:
    """Describe the problem of each file that Spark would leave out."""
    roots = [*map(_name_path, list_items(index.rootPaths()))]
    local = [Path(root.removeprefix("file:")) for root in roots if root.startswith("file:")]
    for path in (path for root in local for path in walk_files(root)):
        if path.is_symlink() and not path.exists():
            yield f"{path} is a link to a file that is not there, {_LEFT_OUT} Mend or delete it."
    read = [directory.files() for directory in list_items(index.listFiles(_empty(spark), _empty(spark)))]
    leaves = index.leafFiles()
    for root in roots:
        if is_hidden(root.rpartition("/")[2]) and leaves.isEmpty():
            yield f"{root} has a hidden name, which begins with _ or ., {_LEFT_OUT} Rename it."
    if leaves.size() == sum(files.size() for files in read):
        return
    names = {_name_path(file.getPath()) for files in read for file in list_items(files)}
    listed = {_name_path(status.getPath()): status for status in list_items(leaves.values().toSeq())}
    for file in sorted(listed.keys() - names):
        if index.matchPathPattern(listed[file]):  # the user's own choice
            yield from _describe_unread(file, int(listed[file].getLen()), kind)


def _describe_unread(file: str, size: int, kind: str) -> Iterator[str]:
    """Describe the problem of a file that Spark lists and does not read, unless it has no record."""
    if is_hidden(file.rpartition("/")[2]):
        return
    if size > 0:
        yield (
            f"{file} is in a directory that is no partition (column=value), {_LEFT_OUT} Move it, name its directory by "
            'input.path, or set input.options: {recursiveFileLookup: "true"}, under which no directory is one.'
        )
    elif kind not in _ROWS:
        yield f"{file} is empty (0 bytes), {_LEFT_OUT} Restore it, or delete it if it never had a record."


def _empty(spark: SparkSession) -> Any:
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq([])
